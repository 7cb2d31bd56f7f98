#pragma once
#include <charconv>
#include <cmath>

#include "kiln/quantize/table.hpp"

namespace kiln::quantize::detail {

/// Throws that a table is not as it should be, at a line of it (0: no line).
[[noreturn]] void bad_table(const std::string& place, std::size_t line, const std::string& expected,
                            const std::string& found);

/// Refuses ends that are out of order, or whose difference is no finite number.
void check_range(const std::string& name, range r, const std::string& place, std::size_t line);

/// Adds a tensor with a symmetric range, or any range, unless the table has one of that name.
void add_range(ranges& to, const std::string& name, tensor_range r, const std::string& place, std::size_t line);

/// A number in decimal text, the shortest that reads back as it; -1 where the text is no finite number.
std::string decimal(double v);
double magnitude_of_text(std::string_view text);

/// The beginning of a text, for messages.
std::string in_quotes(std::string_view text);

std::string native_table(const ranges& r);
std::string cache_table(const ranges& r);
std::string json_table(const ranges& r, bool plain, calibration_method by);
std::string flatbuffers_table(const ranges& r);
/// Whether an object of JSON is ONNX Runtime's form.
bool is_tensors_data(std::string_view bytes);
ranges parse_native(std::string_view bytes, const std::string& place);
ranges parse_cache(std::string_view bytes, const std::string& place);
ranges parse_json(std::string_view bytes, const std::string& place);
ranges parse_flatbuffers(std::string_view bytes, const std::string& place);

}  // namespace kiln::quantize::detail
