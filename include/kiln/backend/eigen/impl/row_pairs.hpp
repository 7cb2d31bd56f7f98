#pragma once
#include "kiln/backend/eigen/rows.hpp"

namespace kiln::eigen {

/// The loops over rows of a body that is one op of two parameters of one type, and those of the parameters the other
/// way round; null where there are none.
struct pair_loops {
  pair_function of = nullptr, swapped = nullptr;
};
pair_loops find_pair_loops(const module_graph& body);

/// Runs them where the result's rows and at least one operand's are contiguous and long enough, the other operand's
/// too or of one element each. False, and nothing done, elsewhere. `grain`: elements that make a task.
bool run_pairs(const pair_loops& loops_of_op, const launch& l, const row_loops& loops, std::int64_t grain);

}  // namespace kiln::eigen
