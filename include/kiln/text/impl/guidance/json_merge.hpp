#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kiln::language::guidance {

/// The schema that a `$ref` leads to, and an error of one keyword at its place.
struct merge_context {
  std::function<const nlohmann::ordered_json&(const nlohmann::ordered_json& schema)> target;
  std::function<void(const std::string& why)> refuse;  ///< throws `unsupported`
};

/// A schema of the values that two schemas allow (`allOf`). Keywords that cannot be joined are refused by name.
nlohmann::ordered_json merged(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b, const merge_context& c,
                              int depth = 0);

/// Whether a keyword says nothing about which values are allowed.
bool is_annotation(std::string_view key);

}  // namespace kiln::language::guidance
