#include "kiln/runtime/saved_collection.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "kiln/core/mapped_file.hpp"
#include "kiln/runtime/kept_files.hpp"

namespace kiln {

namespace {

constexpr char magic[8] = {'\x93', 'k', 'i', 'l', 'n', 's', '\n', '\x1a'};
constexpr std::uint64_t page = 4096;  // programs begin at pages, so that their constants are aligned
constexpr std::uint64_t most_programs = 1 << 20;

struct collection_header {
  char magic[8] = {};
  std::uint64_t format = 1, count = 0, file_bytes = 0, checksum = 0;  // of the table
};
struct collection_place {
  std::uint64_t offset = 0, bytes = 0;
};

std::uint64_t padding(std::uint64_t n) { return (page - n % page) % page; }

}  // namespace

void save_collection(std::span<const std::vector<std::byte>> programs, const std::filesystem::path& file) {
  static constexpr char zeros[page] = {};
  std::vector<collection_place> places;
  collection_header header;
  std::memcpy(header.magic, magic, sizeof magic);
  header.count = programs.size();
  const std::uint64_t head = sizeof header + programs.size() * sizeof(collection_place);
  std::uint64_t at = head + padding(head);
  for (const auto& p : programs) {
    places.push_back({at, p.size()});
    at += p.size() + padding(p.size());
  }
  header.file_bytes = at;
  header.checksum = XXH3_64bits(places.data(), places.size() * sizeof(collection_place));
  draft_file out(file);
  out.put(&header, sizeof header);
  out.put(places.data(), places.size() * sizeof(collection_place));
  out.put(zeros, padding(head));
  for (const auto& p : programs) {
    out.put(p.data(), p.size());
    out.put(zeros, padding(p.size()));
  }
  if (const std::error_code failed = out.finish(true))
    throw error(errc::io, "compiled programs can't be written: " + failed.message()).at_source(file.string());
}

std::vector<saved_bytes> open_collection(const std::filesystem::path& file) {
  const std::string name = file.string();
  const buffer whole = map_file(name);
  collection_header header;
  if (whole.size() < sizeof magic || std::memcmp(whole.data(), magic, sizeof magic) != 0)
    raise(errc::malformed, name + ": expected compiled programs of kiln, found other bytes at its beginning");
  const auto damaged = [&](const std::string& expected) {
    raise(errc::malformed, name + " is damaged: expected " + expected);
  };
  if (whole.size() < sizeof header) damaged("a header of " + std::to_string(sizeof header) + " bytes");
  std::memcpy(&header, whole.data(), sizeof header);
  if (header.format != 1)
    raise(errc::unsupported, name + ": expected format 1, found " + std::to_string(header.format));
  if (header.file_bytes != whole.size())
    damaged(std::to_string(header.file_bytes) + " bytes, found " + std::to_string(whole.size()));
  if (header.count > most_programs || whole.size() < sizeof header + header.count * sizeof(collection_place))
    damaged("a table of " + std::to_string(header.count) + " programs");
  std::vector<collection_place> places(header.count);
  std::memcpy(places.data(), whole.data() + sizeof header, places.size() * sizeof(collection_place));
  if (XXH3_64bits(places.data(), places.size() * sizeof(collection_place)) != header.checksum)
    damaged("a table that fits its checksum");
  std::vector<saved_bytes> out;
  for (const collection_place& p : places) {
    if (p.offset % page != 0 || p.offset > whole.size() || p.bytes > whole.size() - p.offset)
      damaged("each program to lie in the file");
    out.push_back({buffer_part(whole, p.offset, p.bytes), name + ": program " + std::to_string(out.size())});
  }
  return out;
}

}  // namespace kiln
