#pragma once
#include <filesystem>

#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// How a program is written: "msgpack" is kiln's own file (docs/saved_programs.md), whatever its name; "json" is
/// `unsupported`, since kiln's files have no such form.
struct file_options {
  std::string format = "msgpack";
};

/// Writes a program, compiled or not. A compiled one keeps what it was compiled from.
void save(const program& p, const std::filesystem::path& file, const file_options& options = {});
/// Reads one; a compiled one is compiled anew where it is for another machine. A file that MIGraphX wrote is an
/// `unsupported` error that says so.
program load(const std::filesystem::path& file, const file_options& options = {});

/// The same in memory.
std::vector<std::byte> save_buffer(const program& p, const file_options& options = {});
program load_buffer(std::span<const std::byte> bytes, const file_options& options = {});

}  // namespace kiln::migraphx
