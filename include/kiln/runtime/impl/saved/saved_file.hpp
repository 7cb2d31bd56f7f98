#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/mapped_file.hpp"
#include "kiln/runtime/thread_pool.hpp"

// A saved program's file: a header with a table of sections, the sections, and the data of constants, each beginning at
// a multiple of 64 bytes. Sections and header have checksums (XXH3, 64 bits), the data has one for each MiB.
namespace kiln::detail {

enum class section : std::uint32_t { about, program, decisions, source, blocks, checksums, data };
inline constexpr std::size_t section_count = 7;
std::string_view to_string(section s);

/// Raise it when files of this version can't be read by the code before.
inline constexpr std::uint32_t saved_format = 1;

/// Blocks of data lie at multiples of it.
inline constexpr std::size_t block_alignment = 64;

/// Whether a file's first bytes are a saved program's.
bool begins_as_saved(const std::filesystem::path& file);
bool begins_as_saved(std::span<const std::byte> bytes);

/// Where a block of data lies, counted from the beginning of the data.
struct block_place {
  std::uint64_t offset = 0, bytes = 0;
};

/// Blocks of data, each once however many constants are of its bytes.
class distinct_blocks {
 public:
  /// The number of a block; one of the same memory as an earlier one has that one's.
  std::uint64_t add(const buffer& b) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].data() == b.data() && all_[i].size() == b.size()) return i;
    all_.push_back(b);
    return all_.size() - 1;
  }
  const std::vector<buffer>& all() const { return all_; }

 private:
  std::vector<buffer> all_;
};

/// Collects blocks of data and sections, and writes them.
class saved_file_writer {
 public:
  std::uint64_t add_block(const buffer& b) { return blocks_.add(b); }
  void add_section(section s, std::string bytes) { sections_[static_cast<std::size_t>(s)] = std::move(bytes); }
  /// Writes by a draft (`draft_file`), durably or not. Throws `error` (`io`).
  void write(const std::filesystem::path& to, bool durable);
  /// What `write` writes.
  std::vector<std::byte> bytes();

 private:
  using sink = std::function<void(const void* bytes, std::size_t n)>;
  std::string close();
  void put_to(const std::string& header, const sink& put) const;
  distinct_blocks blocks_;
  std::string sections_[section_count];
};

/// A file, mapped or in memory, whose header and sections fit their checksums.
class saved_file {
 public:
  /// Throws `error` that names the file: `not_found`, `io`, `malformed`; `unsupported` for another format.
  explicit saved_file(const std::filesystem::path& path) : saved_file(path.string(), map_file(path.string())) {}
  saved_file(std::string name, buffer whole);

  const std::string& name() const { return name_; }
  std::size_t bytes() const { return whole_.size(); }
  std::string_view get(section s) const { return sections_[static_cast<std::size_t>(s)]; }
  bool has(section s) const { return !get(s).empty(); }
  /// Block `number` as a part of the mapping. One that is not there, or is shorter, is a `malformed` error.
  buffer block(std::uint64_t number, std::size_t least_bytes) const;
  std::size_t blocks() const { return blocks_.size(); }
  const block_place& place(std::size_t block) const { return blocks_[block]; }
  /// Compares the data with its checksums; a difference is a `malformed` error.
  void check_data(thread_pool& pool) const;
  [[noreturn]] void damaged(std::string_view expected) const;

 private:
  std::string_view part(std::uint64_t offset, std::uint64_t bytes, std::string_view what) const;
  std::string name_;
  buffer whole_;
  std::string_view sections_[section_count];
  std::vector<block_place> blocks_;
};

}  // namespace kiln::detail
