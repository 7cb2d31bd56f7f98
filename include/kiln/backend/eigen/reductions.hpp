#pragma once
#include "kiln/core/dtype.hpp"
#include "kiln/kernel/reduce/problem.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Reductions in one instruction-set level: elements of `from` are folded to elements of `to`, which is `from` or, of
/// sums of integers, i64.
struct reduction_table {
  bool (*serves)(kernels::reduction_kind kind, dtype from, dtype to) = nullptr;
  void (*reduce)(thread_pool& pool, const kernels::reduction_problem& p, dtype from, dtype to,
                 std::byte* scratch) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const reduction_table* kiln_eigen_reductions();

/// Single reductions of f32, f64, i32, i64, u8 and i8 over any dims.
std::unique_ptr<kernel> lower_reduction(const kernel_request& r);

}  // namespace kiln::eigen
