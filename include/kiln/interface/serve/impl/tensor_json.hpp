#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/core/argument.hpp"
#include "kiln/interface/serve/impl/json.hpp"

namespace kiln::serve {

/// Extents of a request as constants. Errors: `api_error` 400 for those that are no extents or whose product is more
/// than `most` elements.
dims extents_of(std::span<const std::int64_t> lens, const std::string& where, std::int64_t most);
dims extents_of(const json& list, const std::string& where, std::int64_t most);
/// The least and the greatest value of a type of whole numbers.
std::pair<std::int64_t, std::uint64_t> range_of(dtype t);
/// A tensor of numbers, flat or nested. Errors: `api_error` 400 for another count, or a number the type does not have.
argument argument_of(const json& data, const shape& type, const std::string& where);
/// A tensor of row-major bytes, little-endian. Errors: as above.
argument argument_of(std::string_view bytes, const shape& type, const std::string& where);
/// All elements in a flat list. Errors: `api_error` 400 for one that JSON has no number for.
json json_of(const argument& a, const std::string& where);
std::string bytes_of(const argument& a);

}  // namespace kiln::serve
