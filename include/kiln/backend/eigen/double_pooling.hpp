#pragma once
#include "kiln/kernel/pool/problem.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {

/// Pooling of doubles in one instruction-set level: the greatest elements or the means of windows of the planes at x
/// become those at y, one after the other; `p.x`, `p.y` and its images are not read.
struct double_pooling_table {
  void (*pool)(thread_pool& pool, const kernels::pooling_problem& p, const double* x, double* y) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const double_pooling_table* kiln_eigen_double_pooling();

}  // namespace kiln::eigen
