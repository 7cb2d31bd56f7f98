#pragma once
#include "kiln/kernel/rnn/linear_attention_problem.hpp"
#include "kiln/kernel/rnn/problem.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Recurrent layers and linear attention in one instruction-set level.
struct recurrent_table {
  std::int64_t (*packed_floats)(const op::recurrent& cell, std::int64_t hidden) = nullptr;
  void (*pack)(thread_pool& pool, const op::recurrent& cell, std::int64_t hidden, float* to, const std::byte* from,
               std::ptrdiff_t row, std::ptrdiff_t col) = nullptr;
  std::int64_t (*scratch_floats)(const op::recurrent& cell, std::int64_t batch, std::int64_t hidden) = nullptr;
  double (*seconds)(const op::recurrent& cell, std::int64_t steps, std::int64_t batch, std::int64_t hidden,
                    unsigned threads) = nullptr;
  void (*run)(thread_pool& pool, const kernels::recurrent_problem& p, float* scratch) = nullptr;
  /// Of each worker; `each`: query heads of a state.
  std::int64_t (*linear_attention_scratch_floats)(std::int64_t each, std::int64_t depth) = nullptr;
  void (*linear_attention)(thread_pool& pool, const kernels::linear_attention_problem& p, float* scratch) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const recurrent_table* kiln_eigen_recurrent();

/// Recurrent layers of floats.
std::unique_ptr<kernel> lower_recurrent(const kernel_request& r);
/// Attention as a recurrence over a state, of f32.
std::unique_ptr<kernel> lower_linear_attention(const kernel_request& r);

}  // namespace kiln::eigen
