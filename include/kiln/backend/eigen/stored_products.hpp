#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/core/dtype.hpp"

namespace kiln::eigen {

/// Products with packed weights that are stored in floats of 16 bits (kernel/gemm/stored_gemm.hpp), in one
/// instruction-set level. Where a function takes a dtype, it is f16 or bf16.
struct stored_product_table {
  /// Whether `n` adjacent floats at any address are all of the type, to the bit.
  bool (*holds)(dtype type, const std::byte* from, std::int64_t n) = nullptr;
  /// Packs floats to `isa_table::packed_b_floats` numbers of the type; else as `isa_table::pack_b`.
  void (*pack)(thread_pool& pool, dtype type, std::byte* to, const void* from, std::ptrdiff_t row, std::ptrdiff_t col,
               std::int64_t k, std::int64_t n) = nullptr;
  std::int64_t (*scratch_floats)(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) = nullptr;
  void (*multiply)(thread_pool& pool, dtype type, const kernels::gemm_problem<float>& p, const std::byte* b,
                   float* scratch, const gemm_epilogue& epilogue) = nullptr;
};

/// The table of the level that the dynamic loader picked.
extern "C" const stored_product_table* kiln_eigen_stored_products();

}  // namespace kiln::eigen
