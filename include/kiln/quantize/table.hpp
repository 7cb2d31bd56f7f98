#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "kiln/quantize/calibration.hpp"

// Calibration tables: the ranges of a program's tensors as files.
namespace kiln::quantize {

/// The forms of a table. All but the JSON ones keep a tensor's greatest magnitude alone: read again, its range is
/// symmetric.
enum class table_form : std::uint8_t {
  native,       ///< TensorRT's and MIGraphX's text: a header, then "tensor: bits of the scale", scale = magnitude / 127
  json,         ///< ONNX Runtime's calibration.json: lowest, highest, mean and deviation where they are known; of
                ///< channels their axis too
  plain_json,   ///< an object of tensor names, each with its magnitude
  flatbuffers,  ///< ONNX Runtime's calibration.flatbuffers: keys, and magnitudes as decimal text
  cache,        ///< ONNX Runtime's calibration.cache: lines "tensor magnitude"
};

/// All of them, in order.
constexpr table_form table_forms[] = {table_form::native, table_form::json, table_form::plain_json,
                                      table_form::flatbuffers, table_form::cache};
/// The form's name: "native", "json", "plain_json", "flatbuffers", "cache".
std::string_view to_string(table_form f);
/// The form of that name; others are an `invalid_argument` error that lists them.
table_form table_form_named(std::string_view name);

/// The ranges as the bytes of a table; those of unnamed values are left out. Names that a form can't hold (a line
/// break, or a space at an end), ranges that are not finite, and no range at all are an `invalid_argument` error. `by`
/// is what chose the ranges: ONNX Runtime's JSON says so.
std::string table_bytes(const ranges& r, table_form form, calibration_method by = calibration_method::min_max);

/// Writes a table; a reader sees the old file or the whole new one. Errors: those of `table_bytes`; `io`.
void write_table(const std::filesystem::path& path, const ranges& r, table_form form,
                 calibration_method by = calibration_method::min_max);

/// The form that a table's content shows. Bytes that are no table have any of them.
table_form form_of_table(std::string_view bytes);

/// Reads the bytes of a table in any form, which the content tells. `place` is what errors name. A table that is empty,
/// cut off or otherwise not as its form says is a `malformed` error with the line, what was expected and found.
ranges parse_table(std::string_view bytes, const std::string& place);

/// Reads a table file. A file that does not exist is a `not_found` error, one that can't be read `io`.
ranges read_table(const std::filesystem::path& path);

}  // namespace kiln::quantize
