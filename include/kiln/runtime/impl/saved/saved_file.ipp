#include "kiln/runtime/impl/saved/saved_file.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <fstream>

#include "kiln/core/archive.hpp"
#include "kiln/runtime/kept_files.hpp"

namespace kiln::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "a saved program's numbers are little-endian");

constexpr char magic[8] = {'\x93', 'k', 'i', 'l', 'n', '\r', '\n', '\x1a'};
constexpr std::size_t chunk = 1 << 20;

struct section_entry {
  std::uint64_t offset = 0, bytes = 0, checksum = 0;  // the data's: 0
};
struct file_header {
  char magic[8] = {};
  std::uint32_t format = saved_format, sections = section_count;
  std::uint64_t file_bytes = 0;
  section_entry table[section_count];
  std::uint64_t checksum = 0;  // of all before it
};
static_assert(sizeof(file_header) == 200);

std::uint64_t hash(const void* bytes, std::size_t n) { return XXH3_64bits(bytes, n); }
std::uint64_t hash(const file_header& h) { return hash(&h, offsetof(file_header, checksum)); }

std::size_t chunks_of(std::string_view data) { return (data.size() + chunk - 1) / chunk; }

std::uint64_t aligned(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

// The checksums of data that is given in pieces, as it stands in the file.
class chunk_checksums {
 public:
  chunk_checksums() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, std::size_t n) {
    for (const auto* from = static_cast<const char*>(bytes); n != 0;) {
      const std::size_t now = std::min(n, chunk - filled_);
      XXH3_64bits_update(&state_, from, now);
      from += now, n -= now, filled_ += now;
      if (filled_ == chunk) close();
    }
  }
  void add_zeros(std::size_t n) {
    static constexpr char zeros[block_alignment] = {};
    add(zeros, n);
  }
  std::string take() {
    if (filled_ != 0) close();
    return std::move(all_);
  }

 private:
  void close() {
    const std::uint64_t sum = XXH3_64bits_digest(&state_);
    all_.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    XXH3_64bits_reset(&state_);
    filled_ = 0;
  }
  alignas(64) XXH3_state_t state_;
  std::size_t filled_ = 0;
  std::string all_;
};

}  // namespace

std::string_view to_string(section s) {
  return enumerator_name(s, {"about", "program", "decisions", "source", "blocks", "checksums", "data"});
}

bool begins_as_saved(const std::filesystem::path& file) {
  char first[sizeof magic] = {};
  std::ifstream in(file, std::ios::binary);
  return in.read(first, sizeof first) && std::memcmp(first, magic, sizeof magic) == 0;
}

bool begins_as_saved(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof magic && std::memcmp(bytes.data(), magic, sizeof magic) == 0;
}

// Adds the sections that tell of the others; the header.
std::string saved_file_writer::close() {
  archive_writer places;
  chunk_checksums sums;
  std::uint64_t data_bytes = 0;
  places.put_unsigned(blocks_.all().size());
  for (const buffer& b : blocks_.all()) {
    const std::uint64_t at = aligned(data_bytes, block_alignment);
    sums.add_zeros(at - data_bytes);
    sums.add(b.data(), b.size());
    places.put_unsigned(at);
    places.put_unsigned(b.size());
    data_bytes = at + b.size();
  }
  add_section(section::blocks, places.bytes());
  add_section(section::checksums, sums.take());

  file_header header;
  std::memcpy(header.magic, magic, sizeof magic);
  std::uint64_t at = sizeof header;
  for (std::size_t s = 0; s + 1 < section_count; ++s) {
    // zeros after a section are part of it, so that every byte of the file is under a checksum
    constexpr std::uint64_t word = 8, page = 4096;
    const std::uint64_t end = at + sections_[s].size();
    sections_[s].resize(aligned(end, s + 2 == section_count ? page : word) - at);
    header.table[s] = {at, sections_[s].size(), hash(sections_[s].data(), sections_[s].size())};
    at += sections_[s].size();
  }
  const std::uint64_t data_at = at;
  header.table[section_count - 1] = {data_at, data_bytes, 0};
  header.file_bytes = data_at + data_bytes;
  header.checksum = hash(header);
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

void saved_file_writer::put_to(const std::string& header, const sink& put) const {
  put(header.data(), header.size());
  for (const std::string& s : sections_) put(s.data(), s.size());
  std::uint64_t written = 0;
  for (const buffer& b : blocks_.all()) {
    static constexpr char zeros[block_alignment] = {};
    const std::uint64_t block_at = aligned(written, block_alignment);
    put(zeros, block_at - written);
    put(b.data(), b.size());
    written = block_at + b.size();
  }
}

void saved_file_writer::write(const std::filesystem::path& to, bool durable) {
  const std::string header = close();
  draft_file out(to);
  put_to(header, [&](const void* bytes, std::size_t n) { out.put(bytes, n); });
  if (const std::error_code failed = out.finish(durable))
    throw error(errc::io, "a saved program can't be written: " + failed.message()).at_source(to.string());
}

std::vector<std::byte> saved_file_writer::bytes() {
  const std::string header = close();
  file_header about;
  std::memcpy(&about, header.data(), sizeof about);
  std::vector<std::byte> out;
  out.reserve(about.file_bytes);
  put_to(header, [&](const void* bytes, std::size_t n) {
    const auto* const from = static_cast<const std::byte*>(bytes);
    out.insert(out.end(), from, from + n);
  });
  return out;
}

saved_file::saved_file(std::string name, buffer whole) : name_(std::move(name)), whole_(std::move(whole)) {
  file_header header;
  if (whole_.size() < sizeof magic || std::memcmp(whole_.data(), magic, sizeof magic) != 0)
    raise(errc::malformed, name_ + ": expected a saved program of kiln, found other bytes at its beginning");
  if (whole_.size() < sizeof header) damaged("a header of " + std::to_string(sizeof header) + " bytes");
  std::memcpy(&header, whole_.data(), sizeof header);
  if (header.format != saved_format)
    raise(errc::unsupported, name_ + ": expected format " + std::to_string(saved_format) +
                                 " of saved programs, found " + std::to_string(header.format) +
                                 ": save the program again with this version of kiln");
  if (header.checksum != hash(header) || header.sections != section_count) damaged("a header that fits its checksum");
  if (header.file_bytes != whole_.size())
    damaged(std::to_string(header.file_bytes) + " bytes, found " + std::to_string(whole_.size()));
  for (std::size_t s = 0; s < section_count; ++s) {
    const section_entry& e = header.table[s];
    const std::string_view what = to_string(static_cast<section>(s));
    sections_[s] = part(e.offset, e.bytes, what);
    if (s + 1 < section_count && hash(sections_[s].data(), sections_[s].size()) != e.checksum)
      damaged("section '" + std::string(what) + "' to fit its checksum");
  }
  if (header.table[section_count - 1].offset % block_alignment != 0) damaged("data that is aligned");
  archive_reader from(get(section::blocks), name_);
  blocks_.resize(from.take_count(2));
  for (block_place& b : blocks_) {
    b = {from.take_unsigned(), from.take_unsigned()};
    if (b.offset % block_alignment != 0 || b.offset > get(section::data).size() ||
        b.bytes > get(section::data).size() - b.offset)
      damaged("each block to lie in the data");
  }
  if (get(section::checksums).size() < chunks_of(get(section::data)) * sizeof(std::uint64_t))
    damaged("a checksum for each MiB of data");
}

std::string_view saved_file::part(std::uint64_t offset, std::uint64_t bytes, std::string_view what) const {
  if (offset > whole_.size() || bytes > whole_.size() - offset)
    damaged("section '" + std::string(what) + "' to lie in the file");
  return {reinterpret_cast<const char*>(whole_.data()) + offset, static_cast<std::size_t>(bytes)};
}

buffer saved_file::block(std::uint64_t number, std::size_t least_bytes) const {
  if (number >= blocks_.size() || blocks_[number].bytes < least_bytes)
    damaged("a block of at least " + std::to_string(least_bytes) + " bytes under number " + std::to_string(number));
  const auto data = static_cast<std::size_t>(get(section::data).data() - reinterpret_cast<const char*>(whole_.data()));
  return buffer_part(whole_, data + blocks_[number].offset, blocks_[number].bytes);
}

void saved_file::check_data(thread_pool& pool) const {
  const std::string_view data = get(section::data), sums = get(section::checksums);
  std::atomic<bool> fits{true};
  pool.parallel_for(static_cast<std::int64_t>(chunks_of(data)), [&](std::int64_t i, unsigned) {
    const auto k = static_cast<std::size_t>(i);
    const std::string_view bytes = data.substr(k * chunk, chunk);
    std::uint64_t sum = 0;
    std::memcpy(&sum, sums.data() + k * sizeof sum, sizeof sum);
    if (hash(bytes.data(), bytes.size()) != sum) fits.store(false, std::memory_order_relaxed);
  });
  if (!fits) damaged("constants to fit their checksums");
}

void saved_file::damaged(std::string_view expected) const {
  raise(errc::malformed, name_ + " is damaged: expected " + std::string(expected));
}

}  // namespace kiln::detail
