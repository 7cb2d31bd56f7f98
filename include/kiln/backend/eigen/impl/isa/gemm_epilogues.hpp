#pragma once
#include "kiln/backend/eigen/isa.hpp"

namespace kiln::eigen {

/// Calls `run` with what an epilogue is to the kernels of products.
template <class Run> void with_epilogue(const gemm_epilogue& epilogue, Run&& run) {
  if (epilogue.affine && !epilogue.call)
    run(*epilogue.affine);
  else if (epilogue.call)
    run([&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
            std::ptrdiff_t c_row) {
      if (epilogue.affine) (*epilogue.affine)(row0, rows, col0, cols, c, c_row);
      epilogue.call(epilogue.self, row0, rows, col0, cols, c, c_row);
    });
  else
    run(kernels::no_epilogue{});
}

}  // namespace kiln::eigen
