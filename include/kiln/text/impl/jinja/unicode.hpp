#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// UTF-8 text as Python's str sees it: code points, their classes and their cases. Bytes that are no UTF-8 count as one
// point each and stay as they are.
namespace kiln::language::jinja {

/// Code points of a text.
std::size_t count_points(std::string_view);
/// The point at `at`, which then moves past it; a byte that begins no character gives 0xDC00 plus the byte.
std::uint32_t next_point(std::string_view text, std::size_t& at);
/// Where the next point begins.
std::size_t after_point(std::string_view text, std::size_t at);
/// The begins of all points, and the text's size.
std::vector<std::size_t> point_places(std::string_view);
void append_point(std::string& to, std::uint32_t point);

/// Python's str.isspace for one point.
bool is_space(std::uint32_t point);
bool is_printable(std::uint32_t point);
bool is_alphabetic(std::uint32_t point);
bool is_decimal(std::uint32_t point);
bool is_digit(std::uint32_t point);
bool is_numeric(std::uint32_t point);
bool is_upper(std::uint32_t point);
bool is_lower(std::uint32_t point);
bool is_name_begin(std::uint32_t point);
bool is_name_rest(std::uint32_t point);

/// Full case mappings, independent of language.
std::string upper(std::string_view);
std::string lower(std::string_view);
std::string fold_case(std::string_view);
/// Each run of letters with its first letter in title case and the others in lower case.
std::string title(std::string_view);
/// The first character in title case, the others in lower case.
std::string capitalize(std::string_view);
std::string swapcase(std::string_view);

/// Without white space, or without the points of `which`, at the named ends.
std::string_view strip(std::string_view text, bool left, bool right);
std::string_view strip(std::string_view text, std::string_view which, bool left, bool right);

}  // namespace kiln::language::jinja
