#include "kiln/tensorflow/impl/bundle/tensor_bundle.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kiln/core/mapped_file.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/tensorflow/impl/bundle/crc32c.hpp"
#include "kiln/tensorflow/impl/bundle/table.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/impl/file/tensor_message.hpp"

// Messages of tensor_bundle.proto and tensor_slice.proto.
namespace kiln::tensorflow {

namespace {

// Keys of slices order as their parts do: numbers and names are written so that bytes compare as they do.
void append_number(std::string& to, std::uint64_t n) {
  std::string digits;
  for (; n != 0; n >>= 8) digits.insert(digits.begin(), static_cast<char>(n & 255));
  to += static_cast<char>(digits.size());
  to += digits;
}
void append_name(std::string& to, const std::string& name) {
  for (const char c : name) {
    to += c;
    if (c == '\0') to += '\xff';
    if (c == '\xff') to += '\0';
  }
  to += '\0';
  to += '\1';
}
// Big-endian in n bytes, of which the first 7n bits are the number; the leading bits say n.
void append_signed(std::string& to, std::int64_t v) {
  const std::uint64_t magnitude = static_cast<std::uint64_t>(v < 0 ? ~v : v);
  unsigned bits = 0;
  while (bits < 63 && magnitude >> bits) ++bits;
  const unsigned n = bits / 7 + 1;
  std::string bytes(10, v < 0 ? '\xff' : '\0');
  for (unsigned i = 0; i < 8; ++i) bytes[9 - i] = static_cast<char>(static_cast<std::uint64_t>(v) >> (8 * i));
  bytes.erase(0, 10 - n);
  const unsigned header = 0xffffu << (16 - n) & 0xffffu;
  bytes[0] = static_cast<char>(bytes[0] ^ static_cast<char>(header >> 8));
  if (n > 1) bytes[1] = static_cast<char>(bytes[1] ^ static_cast<char>(header & 255));
  to += bytes;
}

std::string quoted(const std::string& name) { return "tensor '" + name + "'"; }

}  // namespace

tensor_bundle::tensor_bundle(std::string prefix) : prefix_(std::move(prefix)) {
  const std::string file = prefix_ + ".index";
  try {
    const buffer bytes = map_file(file);
    const auto all = read_table({bytes.data(), bytes.size()});
    const auto header = all.find("");
    if (header == all.end()) raise(errc::malformed, "the table has no header");
    std::uint64_t big_endian = 0;
    shards_ = 0;
    each_field(std::as_bytes(std::span(header->second)), "the header", [&](const wire_field& f) {
      if (f.number == 1) shards_ = f.value;
      if (f.number == 2) big_endian = f.value;
    });
    if (big_endian != 0) raise(errc::unsupported, "its tensors are big-endian");
    if (shards_ < 1 || shards_ > 99999)
      raise(errc::malformed, "it says that there are " + std::to_string(shards_) + " files");
    for (const auto& [name, value] : all)
      if (!name.empty()) entries_.emplace(name, read_entry(name, value));
  } catch (error& e) {
    throw e.at_source(file);
  }
}

tensor_bundle::entry tensor_bundle::read_entry(const std::string& name, const std::string& value) {
  entry e;
  const std::string where = quoted(name);
  each_field(std::as_bytes(std::span(value)), where, [&](const wire_field& f) {
    switch (f.number) {
      case 1: e.type = f.value; break;
      case 2: e.lens = read_shape(f.content, where).lens; break;
      case 3: e.shard = f.value; break;
      case 4: e.offset = f.value; break;
      case 5: e.size = f.value; break;
      case 6:
        if (f.content.size() != 4) refuse(where, "its checksum has no 4 bytes");
        std::memcpy(&e.checksum, f.content.data(), 4);
        break;
      case 7: {
        std::vector<part> slice;
        each_field(f.content, where, [&](const wire_field& s) {
          if (s.number != 1) return;
          part p;
          each_field(s.content, where, [&](const wire_field& x) {
            if (x.number == 1) p.start = static_cast<std::int64_t>(x.value);
            if (x.number == 2) p.length = static_cast<std::int64_t>(x.value);
          });
          slice.push_back(p);
        });
        e.slices.push_back(std::move(slice));
        break;
      }
      default: break;
    }
  });
  return e;
}

const tensor_bundle::entry& tensor_bundle::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw error(errc::not_found, "it has no " + quoted(name)).at_source(prefix_ + ".index");
  return found->second;
}

std::string tensor_bundle::file_of(std::uint64_t shard) const {
  char name[48];
  std::snprintf(name, sizeof name, ".data-%05u-of-%05u", static_cast<unsigned>(shard), static_cast<unsigned>(shards_));
  return prefix_ + name;
}
const buffer& tensor_bundle::shard(std::uint64_t number) {
  const auto [at, is_new] = files_.try_emplace(number);
  if (is_new) {
    at->second = map_file(file_of(number));
    left_ += 2 * at->second.size();
  }
  return at->second;
}

buffer tensor_bundle::bytes_of(const std::string& name, const entry& e) {
  if (e.shard >= shards_)
    throw error(errc::malformed,
                quoted(name) + " is in file " + std::to_string(e.shard) + " of " + std::to_string(shards_))
        .at_source(prefix_ + ".index");
  const buffer& file = shard(e.shard);
  if (e.offset > file.size() || e.size > file.size() - e.offset)
    throw error(errc::malformed, quoted(name) + " is " + std::to_string(e.size) + " bytes at " +
                                     std::to_string(e.offset) + ", the file has " + std::to_string(file.size()))
        .at_source(file_of(e.shard));
  if (e.size > left_)
    throw error(errc::limit, quoted(name) + ": the tensors that are read have more bytes than their files")
        .at_source(prefix_ + ".index");
  left_ -= e.size;
  const buffer bytes = buffer_part(file, e.offset, e.size);
  if (masked(crc32c({bytes.data(), bytes.size()})) != e.checksum)
    throw error(errc::malformed, quoted(name) + " is damaged: the checksum of its " + std::to_string(e.size) +
                                     " bytes at " + std::to_string(e.offset) + " differs")
        .at_source(file_of(e.shard));
  return bytes;
}

onnx::tensor tensor_bundle::read(const std::string& name) {
  const entry& e = find(name);
  onnx::tensor out;
  out.name = name;
  out.type = to_element(e.type);
  const auto held = onnx::to_dtype(out.type);
  if (!held || is_object(*held)) {
    out.fault = "is of " + type_name(e.type) + ", which constants of a program do not hold";
    return out;
  }
  if (e.lens.size() > max_rank) {
    out.fault = "has " + std::to_string(e.lens.size()) + " dims; kiln's tensors have at most 8";
    return out;
  }
  shape s{*held, {}};
  std::uint64_t bytes = size_of(*held);
  for (const std::int64_t n : e.lens) {
    if (n < 0 || (n > 0 && bytes > (std::uint64_t{1} << 46) / static_cast<std::uint64_t>(n)))
      throw error(errc::malformed, quoted(name) + " has an extent of " + std::to_string(n))
          .at_source(prefix_ + ".index");
    bytes *= static_cast<std::uint64_t>(n);
    s.lens.push_back(n);
  }
  if (!e.slices.empty()) return joined(name, e);
  if (bytes != e.size)
    throw error(errc::malformed, quoted(name) + " has " + std::to_string(e.size) + " bytes, its shape " +
                                     kiln::to_string(s) + " " + std::to_string(bytes))
        .at_source(prefix_ + ".index");
  out.value = onnx::literal_of_raw(s, bytes_of(name, e));
  return out;
}

// Of slices, each with an entry of its own.
onnx::tensor tensor_bundle::joined(const std::string& name, const entry& e) {
  const auto broken = [&](const std::string& why) {
    throw error(errc::malformed, quoted(name) + ": " + why).at_source(prefix_ + ".index");
  };
  onnx::tensor out;
  out.name = name;
  out.type = to_element(e.type);
  const dtype type = *onnx::to_dtype(out.type);
  const std::size_t width = size_of(type), rank = e.lens.size();
  shape s{type, {}};
  std::uint64_t count = 1;
  for (const std::int64_t n : e.lens) {
    s.lens.push_back(n);
    count *= static_cast<std::uint64_t>(n);
  }
  std::vector<std::pair<buffer, std::vector<part>>> slices;
  std::uint64_t given = 0;
  for (std::vector<part> slice : e.slices) {
    if (slice.size() != rank)
      broken("a slice of " + std::to_string(slice.size()) + " axes, not " + std::to_string(rank));
    std::string key;
    append_number(key, 0);
    append_name(key, name);
    append_number(key, rank);
    std::uint64_t own = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      append_signed(key, slice[d].start);
      append_signed(key, slice[d].length);
      if (slice[d].length < 0) slice[d] = {0, e.lens[d]};
      if (slice[d].start < 0 || slice[d].start > e.lens[d] || slice[d].length > e.lens[d] - slice[d].start)
        broken("a slice is outside the tensor");
      own *= static_cast<std::uint64_t>(slice[d].length);
    }
    const auto found = entries_.find(key);
    if (found == entries_.end()) broken("one of its slices is not there");
    if (found->second.type != e.type || found->second.size != own * width)
      broken("a slice has " + std::to_string(found->second.size) + " bytes, expected " + std::to_string(own * width));
    slices.emplace_back(bytes_of(name, found->second), slice);
    given += own;
  }
  if (given != count) broken("its slices have " + std::to_string(given) + " elements, it has " + std::to_string(count));
  buffer whole = buffer::allocate(count * width);
  std::vector<bool> is_given(count);  // as many elements as there are: once each
  for (const auto& [bytes, slice] : slices) {
    if (bytes.size() == 0) continue;
    std::vector<std::int64_t> at(rank, 0);
    const std::uint64_t row = rank ? static_cast<std::uint64_t>(slice[rank - 1].length) * width : width;
    for (std::uint64_t from = 0; from < bytes.size(); from += row) {
      std::uint64_t to = 0;
      for (std::size_t d = 0; d < rank; ++d)
        to = to * static_cast<std::uint64_t>(e.lens[d]) + static_cast<std::uint64_t>(slice[d].start + at[d]);
      for (std::uint64_t i = to; i < to + row / width; ++i) {
        if (is_given[i]) broken("two of its slices have the same elements");
        is_given[i] = true;
      }
      std::memcpy(whole.data() + to * width, bytes.data() + from, row);
      for (std::size_t d = rank - 1; rank > 1 && d-- > 0;) {
        if (++at[d] < slice[d].length) break;
        at[d] = 0;
      }
    }
  }
  out.value = onnx::literal_of_raw(s, std::move(whole));
  return out;
}

// The length of each text, a checksum of the lengths, and the texts. Both checksums are of lengths in 4 bytes, where
// these are enough.
std::string tensor_bundle::read_text(const std::string& name) {
  const entry& e = find(name);
  const std::string where = quoted(name);
  if (e.shard >= shards_) refuse(where, "it is in a file that is not there");
  const buffer& file = shard(e.shard);
  if (e.offset > file.size() || e.size > file.size() - e.offset)
    throw error(errc::malformed, where + " is outside the file").at_source(file_of(e.shard));
  bytes_view bytes(file.data() + e.offset, e.size);
  std::uint64_t size = 0;
  std::size_t digits = 0;
  for (; digits < std::min<std::size_t>(bytes.size(), 9); ++digits) {
    const auto b = static_cast<std::uint64_t>(bytes[digits]);
    size |= (b & 127) << (7 * digits);
    if (b < 128) break;
  }
  const std::size_t begin = digits + 1 + 4;
  if (to_element(e.type) != onnx::element::string || bytes.size() < begin || size != bytes.size() - begin)
    throw error(errc::malformed, where + " is no text").at_source(file_of(e.shard));
  if (!e.lens.empty())
    throw error(errc::malformed, where + " has " + std::to_string(e.lens.size()) + " dims, a text has none")
        .at_source(prefix_ + ".index");
  const std::size_t length_bytes = size >> 32 ? 8 : 4;
  std::uint32_t of_length = 0;
  std::memcpy(&of_length, bytes.data() + digits + 1, 4);
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(&size, 1)).first(length_bytes));
  if (masked(crc) != of_length || masked(crc32c(bytes.subspan(digits + 1), crc)) != e.checksum)
    throw error(errc::malformed, where + " is damaged: the checksum of its " + std::to_string(e.size) + " bytes at " +
                                     std::to_string(e.offset) + " differs")
        .at_source(file_of(e.shard));
  return {reinterpret_cast<const char*>(bytes.data()) + begin, size};
}

}  // namespace kiln::tensorflow
