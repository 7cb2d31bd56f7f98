#pragma once
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/option_row.hpp"
#include "kiln/runtime/run_options.hpp"

// The one table of options: the command line, bindings and docs/options.md are made by going over it.
namespace kiln {

using compile_option = option_row<compile_options>;
using run_option = option_row<run_options>;

/// The fields of `compile_options` that text can set, in the order that listings show.
std::span<const compile_option> compile_option_table();
/// The same of `run_options`.
std::span<const run_option> run_option_table();

/// Sets the option of that name. A name that is none is a `not_found` error that lists all, the nearest one first; a
/// value that is none of the option's is an `invalid_argument` error with what was expected and found.
void set_option(compile_options& to, std::string_view name, std::string_view value);
void set_option(run_options& to, std::string_view name, std::string_view value);

/// The value of the option of that name, as `set_option` takes it.
std::string get_option(const compile_options& from, std::string_view name);
std::string get_option(const run_options& from, std::string_view name);

}  // namespace kiln
