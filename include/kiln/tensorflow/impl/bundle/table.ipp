#include "kiln/tensorflow/impl/bundle/table.hpp"

#include "kiln/core/error.hpp"
#include "kiln/tensorflow/impl/bundle/crc32c.hpp"

#if KILN_SNAPPY
#include <snappy-c.h>
#endif

namespace kiln::tensorflow {

namespace {

constexpr std::size_t footer_bytes = 48, trailer_bytes = 5;
constexpr std::uint64_t magic = 0xdb4775248b80fb57;
constexpr std::size_t most_bytes = std::size_t{1} << 30;  // of all entries: an index has the names of tensors

[[noreturn]] void damaged(const std::string& why) { raise(errc::malformed, "the table " + why); }

template <class T> T number_at(bytes_view bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}
std::uint64_t varint(bytes_view& from, const char* what) {
  std::uint64_t out = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto b = static_cast<std::uint64_t>(from[0]);
    from = from.subspan(1);
    out |= (b & 127) << shift;
    if (b < 128) return out;
  }
  damaged(std::string("ends in the middle of ") + what);
}
std::string text_of(bytes_view b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

struct block_handle {
  std::uint64_t offset, size;
};
block_handle read_handle(bytes_view& from) {
  const std::uint64_t offset = varint(from, "a block's place");
  return {offset, varint(from, "a block's place")};
}

#if KILN_SNAPPY
std::string decompressed(bytes_view block) {
  const char* const from = reinterpret_cast<const char*>(block.data());
  std::size_t size = 0;
  // a block of this format expands at most about 64 times
  if (snappy_uncompressed_length(from, block.size(), &size) != SNAPPY_OK || size > 64 * block.size() + 1024)
    damaged("has a compressed block that is none");
  std::string out(size, '\0');
  if (snappy_uncompress(from, block.size(), out.data(), &size) != SNAPPY_OK || size != out.size())
    damaged("has a compressed block that is none");
  return out;
}
#else
std::string decompressed(bytes_view) {
  raise(errc::unsupported, "the table has compressed blocks, and kiln was built without libsnappy");
}
#endif

std::string read_block(bytes_view file, block_handle h) {
  const std::size_t end = file.size() - footer_bytes;
  if (h.offset > end || h.size > end - h.offset || end - h.offset - h.size < trailer_bytes)
    damaged("has a block at " + std::to_string(h.offset) + " of " + std::to_string(h.size) +
            " bytes, which is not in the " + std::to_string(file.size()) + " bytes of the file");
  const bytes_view with_kind = file.subspan(h.offset, h.size + 1);
  const auto stated = number_at<std::uint32_t>(file, h.offset + h.size + 1);
  if (masked(crc32c(with_kind)) != stated)
    damaged("is damaged: the checksum of the block at " + std::to_string(h.offset) + " differs");
  const bytes_view content = with_kind.first(h.size);
  const auto kind = static_cast<unsigned>(with_kind.back());
  if (kind == 0) return text_of(content);
  if (kind == 1) return decompressed(content);
  damaged("has a block of kind " + std::to_string(kind) + ", known are 0 (plain) and 1 (snappy)");
}

// Entries of a block, in order: each has what its key does not share with the one before, then its value.
template <class Each> void each_entry(const std::string& block, Each&& each) {
  bytes_view bytes = std::as_bytes(std::span(block));
  if (bytes.size() < 4) damaged("has a block without its end");
  const std::uint64_t restarts = number_at<std::uint32_t>(bytes, bytes.size() - 4);
  if (restarts > (bytes.size() - 4) / 4) damaged("has a block with " + std::to_string(restarts) + " points of restart");
  bytes = bytes.first(bytes.size() - 4 - 4 * restarts);
  std::string key;
  while (!bytes.empty()) {
    const std::uint64_t shared = varint(bytes, "an entry"), own = varint(bytes, "an entry"),
                        size = varint(bytes, "an entry");
    if (shared > key.size() || own > bytes.size() || size > bytes.size() - own)
      damaged("has an entry that is longer than its block");
    key.resize(shared);
    key += text_of(bytes.first(own));
    each(key, bytes.subspan(own, size));
    bytes = bytes.subspan(own + size);
  }
}

}  // namespace

std::map<std::string, std::string> read_table(bytes_view file) {
  if (file.size() < footer_bytes) damaged("has " + std::to_string(file.size()) + " bytes, its end alone has 48");
  bytes_view footer = file.last(footer_bytes);
  if (number_at<std::uint64_t>(footer, footer_bytes - 8) != magic) damaged("does not end as a table does");
  read_handle(footer);
  const std::string index = read_block(file, read_handle(footer));
  std::map<std::string, std::string> out;
  std::size_t bytes = 0, in_blocks = 0;
  each_entry(index, [&](const std::string&, bytes_view place) {
    const block_handle handle = read_handle(place);
    const std::string block = read_block(file, handle);
    in_blocks += handle.size + trailer_bytes;
    if (in_blocks > file.size()) damaged("has blocks that overlap");
    each_entry(block, [&](const std::string& key, bytes_view value) {
      bytes += key.size() + value.size();
      if (bytes > most_bytes) raise(errc::limit, "the table has more than " + std::to_string(most_bytes) + " bytes");
      if (!out.empty() && key <= out.rbegin()->first) damaged("has keys that are not in order");
      out.emplace_hint(out.end(), key, text_of(value));
    });
  });
  return out;
}

}  // namespace kiln::tensorflow
