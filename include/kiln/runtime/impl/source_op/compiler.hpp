#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace kiln::detail {

/// The words of the compiler's command, the first of which is a path. `given` as `source_op_options::compiler`.
std::vector<std::string> compiler_command(const std::string& given);

/// A digest of the text and of how that compiler makes code of it.
std::string code_digest(const std::string& source, const std::string& compiler);

/// Compiles C++ text to a shared object and loads it, for the life of the process; gives dlopen's handle. The object is
/// kept in the folder under a name made of the text and the compiler, and taken from there the next time.
void* load_compiled(const std::string& source, const std::string& compiler, const std::filesystem::path& folder);

}  // namespace kiln::detail
