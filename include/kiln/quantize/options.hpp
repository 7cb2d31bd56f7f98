#pragma once
#include "kiln/quantize/quantizer.hpp"
#include "kiln/runtime/option_row.hpp"

// The one table of options of a quantization: bindings and docs/options.md are made by going over it.
namespace kiln::quantize {

/// A row of the table, and the precisions that it means something to.
struct quantizer_option : option_row<quantizer_options> {
  bool (*serves)(precision) = nullptr;
};

/// The fields of `quantizer_options` that text can set, in the order that listings show.
std::span<const quantizer_option> quantizer_option_table();

/// Sets the option of that name. Errors: as `kiln::set_option`.
void set_option(quantizer_options& to, std::string_view name, std::string_view value);

/// The value of the option of that name, as `set_option` takes it.
std::string get_option(const quantizer_options& from, std::string_view name);

/// Options that are not at their defaults mean something to the precision; else an `invalid_argument` error names one.
void check_use(const quantizer_options& o);

}  // namespace kiln::quantize
