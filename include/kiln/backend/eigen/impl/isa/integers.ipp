#include "kiln/backend/eigen/integers.hpp"
#include "kiln/kernel/int8/attention.hpp"
#include "kiln/kernel/int8/dynamic_quantize.hpp"
#include "kiln/kernel/int8/image.hpp"
#include "kiln/kernel/int8/matrices.hpp"
#include "kiln/kernel/int8/pointwise.hpp"
#include "kiln/kernel/int8/product.hpp"
#include "kiln/kernel/pool/bytes.hpp"
#include "kiln/kernel/simd/transpose.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;

using int_vec = native_vec<std::int32_t>;
using float_lanes = native_vec<float>;
constexpr int lanes = native_lanes<float>;

// Hands sums of rows [row0, row0 + rows) to an epilogue.
void hand_over(const integer_epilogue& epilogue, std::int64_t row0, std::int64_t rows, std::int64_t col0,
               std::int64_t cols, std::int32_t* sums, std::ptrdiff_t sums_row) {
  auto* const floats = reinterpret_cast<float*>(sums);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < cols; j += lanes) {
      const auto sum = load<int_vec>(sums + r * sums_row + j);
      if (epilogue.call)
        store(floats + r * sums_row + j, convert<float_lanes>(sum));
      else
        store_n(epilogue.sums + (row0 + r) * epilogue.sums_row + col0 + j, sum,
                static_cast<int>(std::min<std::int64_t>(lanes, cols - j)));
    }
  if (epilogue.call) epilogue.call(epilogue.self, row0, rows, col0, cols, floats, sums_row);
}

template <class Machine>
void multiply(thread_pool& pool, const integer_problem& problem, std::int32_t* scratch,
              const integer_epilogue& epilogue) {
  if (epilogue.call || problem.less)
    return integer_gemm_by_sums<Machine>(pool, problem, scratch, [&](auto... part) { hand_over(epilogue, part...); });
  const integer_problem p = with_memory<Machine>(problem, scratch, pool.size());
  integer_product<Machine>(
      pool, p,
      [&](auto&&...) {
        return stored_sums{epilogue.sums, epilogue.sums_row};
      },
      [](auto&&...) {}, integer_rows_at_once(p));
}

template <class Machine>
void multiply_matrices(thread_pool& pool, const byte_matrices& p, std::int32_t* scratch,
                       const integer_epilogue& epilogue) {
  if (!epilogue.call)
    return multiply_byte_matrices<Machine>(
        pool, p, scratch,
        [&](std::int64_t matrix, auto&&...) {
          return stored_sums{epilogue.sums + matrix * p.m * epilogue.sums_row, epilogue.sums_row};
        },
        [](auto&&...) {});
  multiply_byte_matrices<Machine>(
      pool, p, scratch,
      [&](std::int64_t, std::int64_t row0, std::int64_t col0, std::int32_t* sums) {
        return integer_sums{sums, std::min(integer_task_cols, round_up(p.n, lanes)), row0, col0};
      },
      [&](const auto& made, std::int64_t matrix, std::int64_t row0, std::int64_t rows, std::int64_t col0,
          std::int64_t cols) { hand_over(epilogue, matrix * p.m + row0, rows, col0, cols, made.sums, made.row); });
}

template <class Machine>
void requantize_matrices(thread_pool& pool, const byte_matrices& p, std::int32_t* scratch, const requantization& how,
                         std::byte* const* results, const std::byte* const* addends) {
  multiply_byte_matrices<Machine>(
      pool, p, scratch,
      [&](std::int64_t matrix, std::int64_t, std::int64_t, std::int32_t*) {
        requantization one = how;
        one.result = results[matrix];
        if (addends) one.addend = addends[matrix];
        return one;
      },
      [](auto&&...) {});
}

template <class Machine>
void requantize(thread_pool& pool, const integer_problem& problem, std::int32_t* scratch, const requantization& how,
                const float_planes& planes) {
  const integer_problem p = with_memory<Machine>(problem, scratch, pool.size());
  const auto nothing = [](auto&&...) {};
  if (!planes.at)
    return integer_product<Machine>(
        pool, p, [&](std::int64_t, std::int64_t, unsigned) { return how; }, nothing, integer_rows_at_once(p));
  // pixels of a task become rows of planes
  constexpr std::int64_t row = integer_task_cols + native_lanes<float>;
  integer_product<Machine>(
      pool, p,
      [&](std::int64_t row0, std::int64_t col0, unsigned worker) {
        requantization task = how;
        auto* const own = reinterpret_cast<float*>(scratch + worker * integer_task_rows * row);
        task.result = reinterpret_cast<std::byte*>(own - row0 * row - col0);
        task.result_row = row;
        return task;
      },
      [&](const requantization& task, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols) {
        const auto* const from = reinterpret_cast<const float*>(task.result) + col0;
        for (std::int64_t at = row0; at < row0 + rows;) {
          const std::int64_t image = at / planes.pixels, pixel = at % planes.pixels;
          const std::int64_t count = std::min(planes.pixels - pixel, row0 + rows - at);
          transpose_block(from + at * row, row, planes.at + image * planes.image + col0 * planes.channel + pixel,
                          planes.channel, count, cols);
          at += count;
        }
      });
}

template <class Machine> integer_windows windows(const conv_problem& p) {
  const window_runs<Machine> w(p);
  return {w.each, w.count, w.words(), w.by_channel(p)};
}

template <class Machine>
void place(thread_pool& pool, const conv_problem& p, const byte_image& x, std::byte* copy, std::ptrdiff_t* runs,
           integer_problem& to) {
  if (copy) {
    const padded_image<Machine> image(p);
    image.write(pool, x, copy);
    return find_windows<Machine>(p, copy, {image.step(0), image.step(1), image.step(2)}, image.image(), runs, to);
  }
  find_windows<Machine>(p, x.at, x.axis, x.batch, runs, to);
}

template <class Machine>
constexpr integer_table table_of{
    .signed_offset = Machine::offset,
    .reads_bytes = sizeof(typename Machine::left) == 1,
    .depth = Machine::depth,
    .packed_size = packed_integers_size<Machine>,
    .pack = pack_integers<Machine>,
    .channel_block = channel_lanes<Machine>::narrow,
    .packed_channels_size = packed_channels_size<Machine>,
    .pack_channels = pack_channels<Machine>,
    .joined_groups =
        [](const conv_problem& p) {
          return joined_groups<Machine>(p.groups, p.group_inputs(), p.group_outputs(), p.taps());
        },
    .scratch_size = integer_gemm_scratch<Machine>,
    .windows = windows<Machine>,
    .image_size = [](const conv_problem& p) { return padded_image<Machine>(p).size(); },
    .place = place<Machine>,
    .multiply = multiply<Machine>,
    .requantize = requantize<Machine>,
    .max_pool =
        [](thread_pool& pool, const pooling_problem& p, const byte_pooling& images, bool is_signed) {
          is_signed ? pool_bytes<std::int8_t>(pool, p, images) : pool_bytes<std::uint8_t>(pool, p, images);
        },
    .map_bytes = map_bytes,
    .combine_bytes =
        [](const byte_combination& how, const std::byte* from, const std::byte* beside, std::byte* to,
           std::int64_t count) {
          if (how.is_signed)
            combine_bytes(how, reinterpret_cast<const std::int8_t*>(from), beside, to, count);
          else
            combine_bytes(how, reinterpret_cast<const std::uint8_t*>(from), beside, to, count);
        },
    .sum_bytes = sum_bytes,
    .range_scratch = range_scratch,
    .quantize_by_range = quantize_by_range,
    .matrices_scratch = byte_matrices_scratch<Machine>,
    .multiply_matrices = multiply_matrices<Machine>,
    .requantize_matrices = requantize_matrices<Machine>,
    .attention_scratch = byte_attention_scratch<Machine>,
    .attend = attend_to_bytes<Machine>,
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const integer_table* kiln_eigen_integers() {
  if constexpr (native_bytes == 64)
    if (__builtin_cpu_supports("avx512vnni")) return &table_of<four_bytes>;
  if constexpr (native_bytes == 32) {
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl")) return &table_of<four_bytes>;
    if (__builtin_cpu_supports("avxvnni")) return &table_of<four_bytes_by<true>>;
  }
  return &table_of<two_words>;
}

}  // namespace kiln::eigen
