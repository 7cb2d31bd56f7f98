#pragma once
#include <functional>
#include <mutex>
#include <optional>

#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/saved_program.hpp"

namespace kiln {

/// What decides how a program is compiled, by name: hashes of its content, options.
using program_identity = std::vector<std::pair<std::string, std::string>>;

/// Where the programs of one session come from beside the compiler, and where they are kept.
struct store_settings {
  std::filesystem::path load, save;  ///< files of all of them (saved_collection.hpp); empty: none
  std::filesystem::path folder;      ///< a cache, as `compile_options::cache`; empty: none
  unsigned folder_limit = 10240;     ///< MiB
  bool recompiles = false;           ///< reads none of them
};

/// Gets programs compiled before where they are the same, and compiles the others. Threads may share it.
class program_store {
 public:
  /// Is told what is done and, as a warning, why what a file has is not used.
  using listener = std::function<void(bool is_warning, const std::string& line)>;

  /// Opens the file. One that is not there yet is said so; one that can't be used is a warning.
  program_store(store_settings how, const target& t, const compile_options& options, listener told);
  ~program_store();

  /// The program of this identity; `compile` makes it where none is kept. `name` stands in what is told.
  executable get(const std::string& name, program_identity identity, const std::function<executable()>& compile);
  /// Writes the file of all that were asked for so far. Throws `error` (`io`).
  void write() const;

 private:
  struct entry;
  struct asked;
  std::optional<executable> load_from_file(const asked& of);
  std::optional<executable> load_from_folder(const asked& of, const std::filesystem::path& file) const;
  void keep(const executable& exe, const asked& of, const std::filesystem::path& file);

  const store_settings how_;
  const target& target_;
  const compile_options options_;
  const listener told_;
  std::vector<entry> entries_;  // of the file that is loaded
  mutable std::mutex guard_;
  std::size_t asked_ = 0;
  std::vector<std::vector<std::byte>> saved_;
};

/// The name of a program's file in a cache: a hash of its identity.
std::string cache_file_name(const program_identity& identity);

}  // namespace kiln
