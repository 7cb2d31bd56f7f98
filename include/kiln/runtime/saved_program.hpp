#pragma once
#include <filesystem>
#include <utility>

#include "kiln/runtime/executable.hpp"

// Programs in files (docs/saved_programs.md): compiled for one target, so that loading runs no pass, times nothing and
// packs nothing; or as a graph with its weights, which a load compiles for any target; or both in one file.
namespace kiln {

/// Writes a compiled program. Constants are aligned to be mapped: processes that load the file share them. A file that
/// exists is replaced at once, so that no reader sees a part of it, and the new one is on the disk when this returns
/// (fsync). Throws `error`: `io` where the file can't be written.
void save(const executable& exe, const std::filesystem::path& file);
/// The same, and `source`, from which it was compiled: a load on another machine compiles that instead.
void save(const executable& exe, const program& source, const std::filesystem::path& file);
/// Writes a program that is not compiled.
void save(const program& source, const std::filesystem::path& file);

/// What a file holds: a compiled program, a source, or both.
struct saved_parts {
  const executable* compiled = nullptr;
  const program* source = nullptr;
  /// Texts of the caller's by name, which `inspect` gives back.
  std::vector<std::pair<std::string, std::string>> notes = {};
};
/// Writes these. Neither of the two is an `invalid_argument` error.
void save(const saved_parts& parts, const std::filesystem::path& file);
/// The bytes that such a file holds.
std::vector<std::byte> save_to_bytes(const saved_parts& parts);

/// A file's bytes in memory, and what errors call them. A program that is loaded shares them.
struct saved_bytes {
  buffer bytes;
  std::string name = "the saved program in memory";
};

/// How a file is loaded.
struct load_options {
  /// Tables of the user's own ops that the program may hold: `&table_of<my_op>()`.
  std::vector<const op_table*> ops;
  /// Whether constants are compared with their checksums while the file is loaded. Otherwise the first run does so:
  /// damage is an error in either case.
  bool check_constants = false;
};

/// Loads a program for a target. Where the file holds none that is compiled for this target, this instruction set and
/// this version of kiln, the source in it is compiled with `options` and the report's remarks say why; a file without
/// a source is then an `unsupported` error that says both sides. Of a compiled program, `options` give threads or pool
/// alone. Damage is a `malformed` error that names the file and the section.
executable load(const std::filesystem::path& file, const target& t, const compile_options& options = {},
                const load_options& how = {});

executable load(const saved_bytes& from, const target& t, const compile_options& options = {},
                const load_options& how = {});

/// The source that a file holds; a file with a compiled program alone is an `unsupported` error.
program load_program(const std::filesystem::path& file, const load_options& how = {});
program load_program(const saved_bytes& from, const load_options& how = {});

/// What a file says of itself.
struct saved_program_info {
  std::string version;         ///< of the kiln that wrote it
  std::string target, format;  ///< of the compiled program (`target::binary_format`); empty: there is none
  bool has_source = false;     ///< whether it can be compiled anew
  std::vector<port> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> options;  ///< what it was compiled with, as text
  std::vector<std::string> remarks;                          ///< of the compile report
  std::vector<std::pair<std::string, std::string>> notes;    ///< `saved_parts::notes`
  std::size_t file_bytes = 0, constant_bytes = 0;
};
saved_program_info inspect(const std::filesystem::path& file);
saved_program_info inspect(const saved_bytes& from);

/// Whether a file, or bytes, begin as a saved program does.
bool is_saved_program(const std::filesystem::path& file);
bool is_saved_program(std::span<const std::byte> bytes);

}  // namespace kiln
