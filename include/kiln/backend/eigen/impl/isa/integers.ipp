#include "kiln/backend/eigen/integers.hpp"
#include "kiln/kernel/int8/gemm.hpp"
#include "kiln/kernel/int8/im2col.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

using int_vec = native_vec<std::int32_t>;
using float_lanes = native_vec<float>;
constexpr int lanes = native_lanes<float>;

template <class Machine>
void multiply(thread_pool& pool, const integer_problem& p, std::int32_t* scratch, const integer_epilogue& epilogue) {
  integer_gemm<Machine>(
      pool, p, scratch,
      [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, std::int32_t* sums,
          std::ptrdiff_t sums_row) {
        if (!epilogue.call) {
          shifted_sums(p, row0, rows, col0, cols, sums, sums_row, [&](std::int64_t r, std::int64_t j, int_vec sum) {
            store_n(epilogue.sums + (row0 + r) * epilogue.sums_row + col0 + j, sum,
                    static_cast<int>(std::min<std::int64_t>(lanes, cols - j)));
          });
          return;
        }
        auto* const floats = reinterpret_cast<float*>(sums);
        shifted_sums(p, row0, rows, col0, cols, sums, sums_row, [&](std::int64_t r, std::int64_t j, int_vec sum) {
          store(floats + r * sums_row + j, convert<float_lanes>(sum));
        });
        epilogue.call(epilogue.self, row0, rows, col0, cols, floats, sums_row);
      });
}

template <class Machine>
constexpr integer_table table_of{
    .signed_offset = Machine::offset,
    .reads_bytes = sizeof(typename Machine::left) == 1,
    .depth = Machine::depth,
    .packed_size = packed_integers_size<Machine>,
    .pack = pack_integers<Machine>,
    .scratch_size = integer_gemm_scratch,
    .multiply = multiply<Machine>,
    .gather_windows = gather_windows<Machine>,
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const integer_table* kiln_eigen_integers() {
  if constexpr (native_bytes == 64)
    if (__builtin_cpu_supports("avx512vnni")) return &table_of<four_bytes>;
  return &table_of<two_words>;
}

}  // namespace kiln::eigen
