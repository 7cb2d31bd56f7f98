#pragma once
#include <string_view>

#include "kiln/text/impl/guidance/automaton.hpp"

namespace kiln::language::guidance {

/// The JSON texts that a schema allows, as `guide::json_schema` describes them. Throws its errors.
automaton automaton_of_schema(std::string_view schema);

}  // namespace kiln::language::guidance
