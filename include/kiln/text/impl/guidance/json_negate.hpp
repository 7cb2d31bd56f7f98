#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "kiln/text/impl/guidance/json_merge.hpp"

namespace kiln::language::guidance {

/// Schemas that together hold for the values for which a schema does not. A value that is none of some is
/// `{"not": {"enum": [...]}}`, which is left as it is. Refuses keywords that are not turned round, by their names.
std::vector<nlohmann::ordered_json> negated(const nlohmann::ordered_json& schema, const merge_context& c,
                                            int depth = 0);
/// Whether a schema's "not" is of values alone.
bool bars_values(const nlohmann::ordered_json& schema);
/// Those of which each holds for what some of `a` and some of `b` hold for.
std::vector<nlohmann::ordered_json> both_of(const std::vector<nlohmann::ordered_json>& a,
                                            const std::vector<nlohmann::ordered_json>& b, const merge_context& c);

}  // namespace kiln::language::guidance
