#pragma once
#include "kiln/backend/eigen/rows.hpp"

namespace kiln::eigen {

/// An op of two operands and its loop over rows; null where there is none.
struct pair_loop {
  operation op;
  pair_function run = nullptr;
};
/// That of a body that is one op of two parameters of one type.
pair_loop find_pair_loop(const module_graph& body);

/// Runs the loop where the result's rows and at least one operand's are contiguous and long enough, the other operand's
/// too or of one element each. False, and nothing done, elsewhere. `grain`: elements that make a task.
bool run_pairs(const pair_loop& of, const launch& l, const row_loops& loops, std::int64_t grain);

}  // namespace kiln::eigen
