#include <bit>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "kiln/core/object.hpp"
#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/packed_elements.hpp"
#include "kiln/onnx/impl/file/proto.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnx {

namespace {

static_assert(std::endian::native == std::endian::little, "ONNX's raw bytes are little-endian");

using onnx_proto::TensorProto;

[[noreturn]] void malformed(const std::string& name, const std::string& why) {
  raise(errc::malformed, "tensor '" + name + "': " + why);
}

// Extents, and the number of elements with every overflow caught.
std::int64_t read_dims(const std::string& name, const google::protobuf::RepeatedField<std::int64_t>& from, dims& to,
                       std::string& fault) {
  std::int64_t count = 1;
  for (const std::int64_t d : from) {
    if (d < 0) malformed(name, "an extent is negative");
    if (d != 0 && count > std::numeric_limits<std::int64_t>::max() / 64 / d) malformed(name, "too many elements");
    count *= d;
    if (to.size() < max_rank) to.push_back(d);
  }
  if (static_cast<std::size_t>(from.size()) > max_rank)
    fault = "has " + std::to_string(from.size()) + " dims; kiln's tensors have at most " + std::to_string(max_rank);
  return count;
}

// Raw data that was stripped from a message: a part of the model's buffer, or a copy.
buffer raw_bytes(std::span<const std::byte> stripped, const external_files& files) {
  if (files.model)
    return buffer_part(*files.model, static_cast<std::size_t>(stripped.data() - files.model->data()), stripped.size());
  buffer copy = buffer::allocate(stripped.size());
  std::memcpy(copy.data(), stripped.data(), stripped.size());
  return copy;
}

buffer take_string(std::string* text) {
  return buffer::borrow(reinterpret_cast<const std::byte*>(text->data()), text->size(), text,
                        [](void* owner) { delete static_cast<std::string*>(owner); });
}

// Calls f with the typed field that has a dtype's elements.
template <class F> auto with_field(const TensorProto& m, dtype t, F&& f) {
  switch (t) {
    case dtype::f32:
    case dtype::c64: return f(m.float_data());
    case dtype::f64:
    case dtype::c128: return f(m.double_data());
    case dtype::i64: return f(m.int64_data());
    case dtype::u32:
    case dtype::u64: return f(m.uint64_data());
    default: return f(m.int32_data());
  }
}

std::int64_t field_size(const TensorProto& m, dtype t) {
  return with_field(m, t, [](const auto& field) -> std::int64_t { return field.size(); });
}

template <class Stored, class Field> literal from_field(const shape& s, const Field& field) {
  buffer data = buffer::allocate(static_cast<std::size_t>(field.size()) * sizeof(Stored));
  auto* to = reinterpret_cast<Stored*>(data.data());
  for (const auto v : field) *to++ = static_cast<Stored>(v);
  return {s, std::move(data)};
}

// Typed fields store the bits of small types in wider integers.
literal from_fields(const TensorProto& m, const shape& s) {
  return with_field(m, s.type, [&](const auto& field) -> literal {
    using stored = std::decay_t<decltype(*field.begin())>;
    if constexpr (std::is_floating_point_v<stored>) {
      if (is_complex(s.type)) return complex_literal(s, reinterpret_cast<const std::byte*>(field.data()));
      return from_field<stored>(s, field);
    } else if (bits_of(s.type) < 8) {
      const std::vector<std::uint8_t> bytes(field.begin(), field.end());
      return unpacked(s, std::as_bytes(std::span(bytes)).data());
    } else if (s.type == dtype::boolean) {
      return from_field<bool>(s, field);
    } else {
      const std::size_t bytes = size_of(s.type);
      return bytes == 1   ? from_field<std::uint8_t>(s, field)
             : bytes == 2 ? from_field<std::uint16_t>(s, field)
             : bytes == 4 ? from_field<std::uint32_t>(s, field)
                          : from_field<std::uint64_t>(s, field);
    }
  });
}

std::int64_t number_of(const std::string& name, const std::string& key, const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    malformed(name, "external data's " + key + " '" + text + "' is not a number");
  return std::stoll(text);
}

// The file, which must be in one of the model's folders after its links are followed.
buffer map_external(const std::string& tensor, const std::string& location, const external_files& files) {
  namespace fs = std::filesystem;
  const fs::path named = fs::path(files.directory) / location;
  std::error_code none;
  const fs::path real = fs::canonical(named, none);
  if (none) return map_file(named.string());  // says what is wrong with it
  for (const std::string& folder : {files.directory, files.real_directory}) {
    if (folder.empty()) continue;
    const fs::path inside = real.lexically_relative(fs::canonical(folder, none));
    if (!none && !inside.empty() && *inside.begin() != "..") return map_file(real.string());
  }
  malformed(tensor, "external data '" + location + "' is a link to a file outside the model's folder");
}

buffer external_bytes(const TensorProto& m, std::int64_t bytes, external_files& files) {
  std::string location;
  std::int64_t offset = 0, length = bytes;
  for (const auto& entry : m.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number_of(m.name(), "offset", entry.value());
    if (entry.key() == "length") length = number_of(m.name(), "length", entry.value());
  }
  if (location.empty()) malformed(m.name(), "external data has no location");
  const std::string steps = "/" + location + "/";
  if (location[0] == '/' || steps.find("/../") != std::string::npos || location.find('\0') != std::string::npos)
    malformed(m.name(), "external data '" + location + "' is not inside the model's folder");
  if (length != bytes)
    malformed(m.name(), "external data has " + std::to_string(length) + " bytes, its type and extents need " +
                            std::to_string(bytes));
  auto found = files.mapped.find(location);
  if (found == files.mapped.end()) {
    try {
      found = files.mapped.emplace(location, map_external(m.name(), location, files)).first;
    } catch (const error& e) {
      if (e.code() == errc::malformed) throw;
      raise(e.code(), "external data of tensor '" + m.name() + "': " + e.message());
    }
  }
  const buffer& file = found->second;
  const auto size = static_cast<std::int64_t>(file.size());
  if (offset > size || length > size - offset)
    malformed(m.name(), "external data [" + std::to_string(offset) + ", " + std::to_string(offset + length) +
                            ") is beyond the end of '" + location + "' at " + std::to_string(size));
  return buffer_part(file, static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

}  // namespace

// Bools become 0 or 1, since other bytes in a bool are undefined behavior.
literal literal_of_raw(const shape& s, buffer bytes) {
  if (bits_of(s.type) < 8) return unpacked(s, bytes.data());
  if (is_complex(s.type)) return complex_literal(s, bytes.data());
  if (s.type != dtype::boolean) return {s, std::move(bytes)};
  buffer copy = buffer::allocate(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) copy.data()[i] = std::byte{bytes.data()[i] != std::byte{0}};
  return {s, std::move(copy)};
}

tensor read_tensor_message(TensorProto& m, external_files& files) {
  tensor out;
  out.name = m.name();
  out.type = static_cast<element>(m.data_type());
  const std::span<const std::byte> raw = std::exchange(files.stripped, {});
  dims lens;
  const std::int64_t count = read_dims(out.name, m.dims(), lens, out.fault);
  if (!out.fault.empty()) return out;
  if (m.has_segment()) {
    out.fault = "is one segment of a tensor, which kiln does not read";
    return out;
  }
  if (out.type == element::string) {
    if (m.string_data_size() != count) malformed(out.name, "the number of strings is not that of its extents");
    const std::vector<std::string> elements(m.string_data().begin(), m.string_data().end());
    out.value = string_argument(lens, elements).to_literal();
    return out;
  }
  const auto type = to_dtype(out.type);
  if (!type) {
    if (out.type == element::undefined) malformed(out.name, "has no element type");
    out.fault = "has elements of type " + std::string(to_string(out.type)) + ", which kiln's tensors do not hold";
    return out;
  }
  const shape s{*type, lens};
  const bool shares_bytes = bits_of(*type) < 8;
  const std::int64_t bytes = file_bytes(*type, count), fields = shares_bytes        ? bytes
                                                                : is_complex(*type) ? 2 * count
                                                                                    : count;
  if (m.data_location() == TensorProto::EXTERNAL) {
    out.value = literal_of_raw(s, external_bytes(m, bytes, files));
  } else if (!raw.empty() || (m.has_raw_data() && (!m.raw_data().empty() || field_size(m, *type) == 0))) {
    const std::span<const std::byte> found = raw.empty() ? std::as_bytes(std::span(m.raw_data())) : raw;
    if (static_cast<std::int64_t>(found.size()) != bytes)
      malformed(out.name,
                "has " + std::to_string(found.size()) + " bytes, its type and extents need " + std::to_string(bytes));
    out.value = shares_bytes   ? unpacked(s, found.data())
                : bytes == 0   ? literal(s, buffer::allocate(0))
                : !raw.empty() ? literal_of_raw(s, raw_bytes(raw, files))
                               : literal_of_raw(s, take_string(m.release_raw_data()));
  } else {
    if (field_size(m, *type) != fields)
      malformed(out.name, "has " + std::to_string(field_size(m, *type)) + " elements, its extents need " +
                              std::to_string(fields));
    out.value = from_fields(m, s);
  }
  return out;
}

tensor read_sparse_message(onnx_proto::SparseTensorProto& m, external_files& files) {
  tensor values = read_tensor_message(*m.mutable_values(), files);
  if (!values.fault.empty()) return values;
  const tensor indices = read_tensor_message(*m.mutable_indices(), files);
  dims lens;
  const std::int64_t count = read_dims(values.name, m.dims(), lens, values.fault);
  if (!values.fault.empty()) return values;
  const literal& v = values.value;
  if (is_object(v.get_shape().type)) {
    values.fault = "is a sparse tensor of " + std::string(to_string(values.type)) + ", which kiln does not read";
    return values;
  }
  const auto n = v.elements(), rank = static_cast<std::int64_t>(lens.size());
  const bool linear = indices.value.get_shape().rank() == 1;
  if (!indices.fault.empty() || indices.value.get_shape().type != dtype::i64 ||
      indices.value.elements() != (linear ? n : n * rank))
    malformed(values.name, "a sparse tensor's indices are int64, one tuple a value");
  const std::size_t step = size_of(v.get_shape().type);
  if (count > files.max_bytes / static_cast<std::int64_t>(step))
    raise(errc::limit, "sparse tensor '" + values.name + "' takes more bytes than the import's limit");
  files.max_bytes -= count * static_cast<std::int64_t>(step);
  buffer data = buffer::allocate(static_cast<std::size_t>(count) * step);
  if (count) std::memset(data.data(), 0, data.size());
  const auto at = indices.value.to<std::int64_t>();
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t to = linear ? at[static_cast<std::size_t>(k)] : 0;
    for (std::int64_t d = 0; d < rank && !linear; ++d) {
      const std::int64_t i = at[static_cast<std::size_t>(k * rank + d)],
                         extent = lens[static_cast<std::size_t>(d)].raw();
      if (i < 0 || i >= extent) malformed(values.name, "a sparse tensor's index is outside its extents");
      to = to * extent + i;
    }
    if (to < 0 || to >= count) malformed(values.name, "a sparse tensor's index is outside its extents");
    std::memcpy(data.data() + static_cast<std::size_t>(to) * step, v.bytes() + static_cast<std::size_t>(k) * step,
                step);
  }
  values.value = literal({v.get_shape().type, lens}, std::move(data));
  return values;
}

}  // namespace kiln::onnx
