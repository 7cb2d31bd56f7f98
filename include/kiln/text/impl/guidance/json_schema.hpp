#pragma once
#include <string_view>

#include "kiln/text/impl/guidance/automaton.hpp"

namespace kiln::language::guidance {

/// The JSON texts that a schema allows, as `guide::json_schema` describes them. Throws its errors.
automaton automaton_of_schema(std::string_view schema);
/// The same as a rule of an automaton that has others.
std::uint32_t add_schema(automaton& a, std::string_view schema);

}  // namespace kiln::language::guidance
