#pragma once
#include <functional>

#include "kiln/core/archive.hpp"
#include "kiln/graph/module.hpp"

namespace kiln {

/// Keeps the data of a constant beside the program, and gives its number there.
using keep_constant = std::function<std::uint64_t(const buffer&)>;
/// The data that was kept under a number; it has at least so many bytes.
using kept_constant = std::function<buffer(std::uint64_t number, std::size_t bytes)>;

/// Writes a program: modules, ops with their attributes, shapes, names. Constants of more than 64 bytes are kept
/// beside it; one whose data was freed is written as a shape alone.
void save_program(archive_writer& to, const program& p, const keep_constant& keep);

/// Reads it again. Ops are found by name among the library's and `own`; an unknown one is a `not_found` error that
/// names it, and a program that breaks its own form a `malformed` one.
program restore_program(archive_reader& from, const kept_constant& kept, std::span<const op_table* const> own = {});

}  // namespace kiln
