#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "kiln/text/impl/guidance/json_merge.hpp"

namespace kiln::language::guidance {

/// Types of values by JSON Schema's names.
using kinds = std::set<std::string>;

/// Those that a schema's `type` allows, all without one; a number may be an integer. Throws `error` (`malformed`).
kinds kinds_of_schema(const nlohmann::ordered_json& schema, const std::string& path);
kinds kinds_of_value(const nlohmann::ordered_json& v);
/// Whether no value belongs to both schemas, as far as types, constants and required constants of objects tell.
bool are_apart(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b, const merge_context& c,
               const std::string& path, int depth = 0);

}  // namespace kiln::language::guidance
