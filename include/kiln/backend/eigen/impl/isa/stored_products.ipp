#include "kiln/backend/eigen/stored_products.hpp"

#include "kiln/backend/eigen/impl/isa/gemm_epilogues.hpp"
#include "kiln/backend/eigen/stored_packing.hpp"
#include "kiln/backend/eigen/strips.hpp"
#include "kiln/kernel/gemm/stored_gemm.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

static_assert(strip_columns % register_tile<float>::width == 0);

// Calls `run` with a number of the type.
template <class Run> auto with_stored(dtype type, Run&& run) {
  return type == dtype::f16 ? run(half()) : run(bfloat16());
}

constexpr stored_product_table table{
    .holds =
        [](dtype type, const std::byte* from, std::int64_t n) {
          return with_stored(type, [&]<class Stored>(Stored) { return are_stored_exactly<Stored>(from, n); });
        },
    .pack =
        [](thread_pool& pool, dtype type, std::byte* to, const void* from, std::ptrdiff_t row, std::ptrdiff_t col,
           std::int64_t k, std::int64_t n) {
          with_stored(type, [&]<class Stored>(Stored) {
            pack_b<Stored, float>(pool, reinterpret_cast<Stored*>(to), from, row, col, k, n);
          });
        },
    .scratch_floats = stored_gemm_scratch_size,
    .multiply =
        [](thread_pool& pool, dtype type, const gemm_problem<float>& p, const std::byte* b, float* scratch,
           const gemm_epilogue& epilogue) {
          with_stored(type, [&]<class Stored>(Stored) {
            with_epilogue(epilogue, [&](auto&& apply) {
              stored_gemm(pool, p, reinterpret_cast<const Stored*>(b), scratch, apply);
            });
          });
        },
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const stored_product_table* kiln_eigen_stored_products() { return &table; }

extern "C" [[gnu::visibility("default")]] void kiln_eigen_pack_stored(thread_pool& pool, dtype type, std::byte* to,
                                                                      const void* from, std::ptrdiff_t row,
                                                                      std::ptrdiff_t col, std::int64_t k,
                                                                      std::int64_t n) {
  with_stored(type,
              [&]<class Stored>(Stored) { pack_stored_b(pool, reinterpret_cast<Stored*>(to), from, row, col, k, n); });
}

}  // namespace kiln::eigen
