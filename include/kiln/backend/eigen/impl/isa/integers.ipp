#include "kiln/backend/eigen/integers.hpp"
#include "kiln/kernel/integer_gemm.hpp"
#include "kiln/kernel/integer_windows.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

using int_vec = native_vec<std::int32_t>;
using float_lanes = native_vec<float>;
constexpr int lanes = native_lanes<float>;

template <class Machine>
void multiply(thread_pool& pool, const integer_problem& p, std::int32_t* scratch, const integer_tail& tail) {
  integer_gemm<Machine>(
      pool, p, scratch,
      [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, std::int32_t* sums,
          std::ptrdiff_t sums_row) {
        if (!tail.call) {
          shifted_sums(p, row0, rows, col0, cols, sums, sums_row, [&](std::int64_t r, std::int64_t j, int_vec sum) {
            store_n(tail.sums + (row0 + r) * tail.sums_row + col0 + j, sum,
                    static_cast<int>(std::min<std::int64_t>(lanes, cols - j)));
          });
          return;
        }
        auto* const floats = reinterpret_cast<float*>(sums);
        shifted_sums(p, row0, rows, col0, cols, sums, sums_row, [&](std::int64_t r, std::int64_t j, int_vec sum) {
          store(floats + r * sums_row + j, convert<float_lanes>(sum));
        });
        tail.call(tail.self, row0, rows, col0, cols, floats, sums_row);
      });
}

template <class Byte>
void widen_bytes(const std::byte* from, float* to, std::int64_t n) {
  using V = vec<Byte, lanes>;
  const auto* const bytes = reinterpret_cast<const Byte*>(from);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(to + i, convert<float_lanes>(convert<int_vec>(load<V>(bytes + i))));
  for (; i < n; ++i) to[i] = static_cast<float>(bytes[i]);
}
template <class Byte>
void narrow_floats(const float* from, std::byte* to, std::int64_t n) {
  using V = vec<Byte, lanes>;
  auto* const bytes = reinterpret_cast<Byte*>(to);
  // what is beyond the greatest byte becomes it, and NaN becomes 0
  const auto narrow = [](float_lanes x) __attribute__((always_inline)) {
    constexpr auto most = static_cast<float>(std::numeric_limits<Byte>::max());
    x = select(x > broadcast<float_lanes>(most), broadcast<float_lanes>(most), x);
    if constexpr (std::is_signed_v<Byte>)
      x = select(x < broadcast<float_lanes>(-128.0F), broadcast<float_lanes>(-128.0F), x);
    return convert<V>(convert<int_vec>(x));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(bytes + i, narrow(load<float_lanes>(from + i)));
  if (i < n)
    store_n(bytes + i, narrow(load_n<float_lanes>(from + i, static_cast<int>(n - i))), static_cast<int>(n - i));
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
    .bytes_to_floats =
        [](const std::byte* from, bool is_signed, float* to, std::int64_t n) {
          is_signed ? widen_bytes<std::int8_t>(from, to, n) : widen_bytes<std::uint8_t>(from, to, n);
        },
    .floats_to_bytes =
        [](const float* from, bool is_signed, std::byte* to, std::int64_t n) {
          is_signed ? narrow_floats<std::int8_t>(from, to, n) : narrow_floats<std::uint8_t>(from, to, n);
        },
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const integer_table* kiln_eigen_integers() {
  if constexpr (native_bytes == 64)
    if (__builtin_cpu_supports("avx512vnni")) return &table_of<four_bytes>;
  return &table_of<two_words>;
}

}  // namespace kiln::eigen
