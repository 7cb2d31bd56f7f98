#pragma once
#include "kiln/backend/eigen/impl/isa/linear_algebra.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::eigen {

template <class T> product_functions<T> tiled_products() {
  return {
      .packed_size = kernels::packed_b_size<T>,
      .pack = kernels::pack_b<T>,
      .scratch_size = kernels::gemm_unpacked_scratch_size<T>,
      .run = [](thread_pool& pool, const kernels::gemm_problem<T>& p, bool packed,
                T* scratch) { packed ? kernels::gemm(pool, p, scratch) : kernels::gemm_unpacked(pool, p, scratch); },
  };
}

}  // namespace kiln::eigen
