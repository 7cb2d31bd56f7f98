#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/kernel/quantized/problem.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Products with weights that are stored in blocks (kernel/quantized), in one instruction-set level.
struct quantized_table {
  int byte_bits = 0;  ///< weights of up to so many bits may be multiplied by rounded rows; 0: none
  std::int64_t (*packed_size)(const kernels::quantized_form& f) = nullptr;
  /// Columns [first, end), from a multiple of `strip_columns` to one, or to the last column.
  void (*pack)(thread_pool& pool, std::byte* to, const kernels::quantized_form& f,
               const kernels::quantized_source& from, std::int64_t first, std::int64_t end) = nullptr;
  /// Whether `n` adjacent floats at any address are IEEE halves.
  bool (*are_halves)(const std::byte* from, std::int64_t n) = nullptr;
  std::int64_t (*scratch_size)(const kernels::quantized_problem& p, unsigned workers) = nullptr;
  void (*multiply)(thread_pool& pool, const kernels::quantized_problem& p, std::byte* scratch,
                   const gemm_epilogue& epilogue) = nullptr;
};

/// The table of the level that the dynamic loader picked, for this processor.
extern "C" const quantized_table* kiln_eigen_quantized();

/// Products with constant weights that are stored in blocks, and their epilogue; null for others.
std::unique_ptr<kernel> lower_quantized(const kernel_request& r);

}  // namespace kiln::eigen
