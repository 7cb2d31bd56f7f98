#pragma once
#include "kiln/runtime/saved_program.hpp"

// Several saved programs in one file: those of the parts that another runtime cuts a model into.
namespace kiln {

/// Writes programs (`save_to_bytes`) into one file, which is replaced at once and durably. Throws `error` (`io`).
void save_collection(std::span<const std::vector<std::byte>> programs, const std::filesystem::path& file);

/// The programs of such a file, mapped. A file that is not there is a `not_found` error, other bytes and a file that
/// was cut short are `malformed`. Each program is checked when it is loaded.
std::vector<saved_bytes> open_collection(const std::filesystem::path& file);

}  // namespace kiln
