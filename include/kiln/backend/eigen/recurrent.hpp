#pragma once
#include "kiln/kernel/rnn/problem.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Recurrent layers in one instruction-set level.
struct recurrent_table {
  std::int64_t (*packed_floats)(const op::recurrent& cell, std::int64_t hidden) = nullptr;
  void (*pack)(thread_pool& pool, const op::recurrent& cell, std::int64_t hidden, float* to, const float* from,
               std::ptrdiff_t row, std::ptrdiff_t col) = nullptr;
  std::int64_t (*scratch_floats)(const op::recurrent& cell, std::int64_t batch, std::int64_t hidden) = nullptr;
  double (*seconds)(const op::recurrent& cell, std::int64_t steps, std::int64_t batch, std::int64_t hidden,
                    unsigned threads) = nullptr;
  void (*run)(thread_pool& pool, const kernels::recurrent_problem& p, float* scratch) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const recurrent_table* kiln_eigen_recurrent();

/// Recurrent layers of floats.
std::unique_ptr<kernel> lower_recurrent(const kernel_request& r);

}  // namespace kiln::eigen
