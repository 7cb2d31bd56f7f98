#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/json_texts.hpp"

namespace kiln::language::guidance {

/// An error of a schema at its place.
[[noreturn]] void schema_fault(errc code, const std::string& path, const std::string& why);
/// The value of a keyword that counts.
std::uint32_t schema_count(const nlohmann::ordered_json& schema, const char* key, std::uint32_t otherwise,
                           const std::string& path);

/// Add paths for the strings and numbers that a schema allows (`pattern`, `format`, lengths; bounds, `multipleOf`), and
/// give the place after them. Throw `error` with the keyword and its place.
automaton::node add_schema_string(automaton& a, json_texts& texts, automaton::node from,
                                  const nlohmann::ordered_json& schema, const std::string& path);
automaton::node add_schema_number(automaton& a, json_texts& texts, automaton::node from,
                                  const nlohmann::ordered_json& schema, const std::string& path, bool is_whole);

}  // namespace kiln::language::guidance
