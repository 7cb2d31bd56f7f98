#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/atom/atom_fma.hpp"
#include "kiln/backend/hip/kernels/atom/atom_mma.hpp"
#include "kiln/backend/hip/kernels/atom/atom_wmma.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm_streamed.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm_untiled.hpp"

using namespace kiln::gpu;

namespace {

// result = sums * 2 + bias of the column
template <class T, int Width, bool AlongRows> struct doubled {
  static constexpr int width = Width;
  static constexpr bool along_rows = AlongRows;
  static constexpr int expected = 0;
  result_place<T, false> place;
  epilogue_operand bias;
  template <int V> struct operands { held_run<T, V> bias; };
  template <int V> void read(operands<V>& to, const position& p, int count) const {
    read_run<T, AlongRows ? run_kind::same : run_kind::strided, AlongRows>(to.bias, bias, p, count);
  }
  template <class S, int V> void apply(S (&v)[V], const operands<V>& x, const position& p, int count) const {
    T out[V];
    for (int i = 0; i < V; ++i) out[i] = narrow<T>(v[i] * 2 + widen(x.bias.at(i)));
    write_run<AlongRows>(place, out, p, count);
  }
};

struct sizes {
  int batch0, batch1, m, n, k, splits;
};

// Whether `c` holds twice the product and the bias, for the first `entries` of the batch, and 77 after them. A and B
// are dense with the depth or the rows contiguous, A of `pad_m` rows; entries of the second batch index share one B.
template <class T>
void check_product(const sizes& z, int pad_m, bool depth_a, bool depth_b, bool along_rows, const std::vector<T>& a,
                   const std::vector<T>& b, const std::vector<T>& bias, const std::vector<T>& c, int entries,
                   double bound) {
  const auto at = [](const std::vector<T>& v, int i) {
    return static_cast<double>(widen(v[static_cast<std::size_t>(i)]));
  };
  for (int e = 0; e < z.batch0 * z.batch1; ++e)
    for (int i = 0; i < z.m; ++i)
      for (int j = 0; j < z.n; ++j) {
        double sum = 0;
        for (int k = 0; k < z.k; ++k)
          sum += at(a, e * pad_m * z.k + (depth_a ? i * z.k + k : k * pad_m + i)) *
                 at(b, e / z.batch1 * z.n * z.k + (depth_b ? j * z.k + k : k * z.n + j));
        const double expected = e < entries ? 2 * sum + at(bias, j) : 77;
        ASSERT_NEAR(at(c, e * z.m * z.n + (along_rows ? j * z.m + i : i * z.n + j)), expected,
                    bound * (1 + std::abs(expected)))
            << e << " " << i << " " << j;
      }
}

// Tiles of products like that.
template <class Atom, class Tile, bool DepthA, bool DepthB, int Vector, bool AlongRows>
void check(const sizes& z, int width_m = 0) {
  using T = typename Atom::element;
  using S = typename Atom::sum;
  const int batch = z.batch0 * z.batch1;
  const int pad_m = width_m ? width_m : z.m;
  const auto a = random_values<T>(static_cast<std::size_t>(batch * pad_m * z.k), 1);
  const auto b = random_values<T>(static_cast<std::size_t>(z.batch0 * z.n * z.k), 2);
  const auto bias = random_values<T>(static_cast<std::size_t>(z.n), 3);
  std::vector<T> c(static_cast<std::size_t>(batch * z.m * z.n), narrow<T>(S(77)));
  constexpr int threads = Tile::warps_m * Tile::warps_n * warp_lanes;
  const int tiles_m = (z.m + Tile::rows - 1) / Tile::rows, tiles_n = (z.n + Tile::cols - 1) / Tile::cols;
  std::vector<S> partial(static_cast<std::size_t>(tiles_m * tiles_n * batch * z.splits * Tile::rows * Tile::cols));
  std::vector<int> arrivals(static_cast<std::size_t>(tiles_m * tiles_n * batch));

  using A = matrix_operand<T, DepthA, Vector>;
  using B = matrix_operand<T, DepthB, Vector>;
  const A fa{{a.data(), {z.batch1 * pad_m * z.k, pad_m * z.k}, DepthA ? z.k : 1, DepthA ? 1 : pad_m}};
  const B fb{{b.data(), {z.n * z.k, 0}, DepthB ? z.k : 1, DepthB ? 1 : z.n}};
  const doubled<T, Vector, AlongRows> result{
      {{c.data(), {z.batch1 * z.m * z.n, z.m * z.n, AlongRows ? 1 : z.n, AlongRows ? z.m : 1}, 0}},
      {bias.data(), {0, 0, 0, 1}}};
  const gemm_sizes s{z.m, z.n, z.k, tiles_m, tiles_n, z.batch1, z.splits, partial.data(), arrivals.data()};
  for (int again = 0; again < 2; ++again)
    run_grid(tiles_m * tiles_n * batch, z.splits, threads, memory_of_gemm<Atom, Tile, A, B>.bytes(),
             [&](char* shared) { gemm<Atom, Tile>(fa, fb, result, s, shared); });

  check_product(z, pad_m, DepthA, DepthB, AlongRows, a, b, bias, c, batch, 1e-2);
  for (int n : arrivals) ASSERT_EQ(n, 0);
}

using small = block_tile<32, 32, 32, 2, 1, 3>;

TEST(device_gemm, whole_tiles_of_either_order) {
  check<atom_mma<f16>, small, true, true, 8, false>({1, 1, 64, 64, 96, 1});
  check<atom_mma<f16>, small, true, false, 8, false>({1, 1, 64, 64, 96, 1});
  check<atom_mma<f16>, small, false, true, 8, true>({1, 1, 64, 64, 96, 1});
  check<atom_mma<bf16>, small, false, false, 8, false>({1, 1, 64, 64, 96, 1});
}

TEST(device_gemm, ragged_sizes) {
  check<atom_mma<f16>, small, true, true, 1, false>({1, 1, 37, 45, 51, 1});
  check<atom_mma<f16>, small, false, false, 1, true>({1, 1, 37, 45, 51, 1});
  check<atom_mma<f16>, small, true, false, 8, false>({1, 1, 33, 40, 8, 1});
  check<atom_mma<f16>, small, true, true, 2, false>({1, 1, 1, 2, 2, 1});
  check<atom_mma<f16>, small, false, true, 4, false>({1, 1, 35, 36, 20, 1}, 36);
}

TEST(device_gemm, batches_share_a_factor) { check<atom_mma<f16>, small, true, false, 8, false>({2, 3, 40, 40, 40, 1}); }

TEST(device_gemm, split_depth) {
  check<atom_mma<f16>, small, true, true, 8, false>({1, 2, 40, 40, 200, 3});
  check<atom_fma<float>, small, true, false, 4, false>({2, 1, 20, 36, 100, 4});
  // more blocks than steps of the depth
  check<atom_mma<f16>, small, true, true, 8, false>({1, 1, 40, 40, 40, 4});
}

TEST(device_gemm, vector_units_serve_floats_and_integers) {
  check<atom_fma<float>, small, true, true, 4, false>({1, 1, 40, 72, 44, 1});
  check<atom_fma<float>, small, false, false, 1, false>({1, 1, 33, 35, 37, 1});
  check<atom_fma<double>, small, true, false, 2, false>({1, 1, 34, 36, 38, 1});
  check<atom_fma<f16>, small, false, true, 8, true>({1, 1, 40, 40, 40, 1});
}

TEST(device_gemm, lanes_of_gfx11) {
  check<atom_wmma<f16>, small, true, false, 8, false>({1, 1, 40, 48, 40, 1});
  check<atom_wmma<bf16>, small, false, true, 8, false>({1, 1, 40, 48, 40, 1});
}

TEST(device_gemm, many_tiles_are_counted_in_bands) {
  using tiny = block_tile<16, 16, 16, 1, 1, 2>;
  check<atom_mma<f16>, tiny, true, true, 8, false>({1, 1, 16 * 11, 56, 16, 1});
}

// A thread a run of results: [batch0, batch1, m, n], the left factor's rows contiguous, the right one's columns, or
// their depths; entries past those asked for stay as they were.
template <class T, int Width, bool AlongRows, bool Joined> void check_each(const sizes& z, bool depth) {
  const int batch = z.batch0 * z.batch1, entries = batch - 1;
  const auto a = random_values<T>(static_cast<std::size_t>(batch * z.m * z.k), 1),
             b = random_values<T>(static_cast<std::size_t>(z.batch0 * z.n * z.k), 2),
             bias = random_values<T>(static_cast<std::size_t>(z.n), 3);
  std::vector<T> c(static_cast<std::size_t>(batch * z.m * z.n), narrow<T>(77.0f));
  const matrix_argument<T> fa{a.data(), {z.batch1 * z.m * z.k, z.m * z.k}, depth ? z.k : 1, depth ? 1 : z.m},
      fb{b.data(), {z.n * z.k, 0}, depth ? z.k : 1, depth ? 1 : z.n};
  const doubled<T, Width, AlongRows> result{
      {{c.data(), {z.batch1 * z.m * z.n, z.m * z.n, AlongRows ? 1 : z.n, AlongRows ? z.m : 1}, 0}},
      {bias.data(), {0, 0, 0, 1}}};
  const int length = AlongRows ? z.m : z.n, runs = (length + Width - 1) / Width * (AlongRows ? z.n : z.m);
  const gemm_sizes s{z.m, z.n, z.k, runs, 1, z.batch1, 1, nullptr, nullptr, entries};
  for (int at = 0; at < runs * batch + 5; ++at) gemm_untiled<Joined>(fa, fb, result, s, at);
  check_product(z, z.m, depth, depth, AlongRows, a, b, bias, c, entries, 1e-3);
}
TEST(device_gemm, a_thread_a_run_of_results) {
  check_each<float, 1, false, false>({3, 2, 7, 11, 9, 1}, true);
  check_each<float, 4, false, true>({1, 3, 5, 16, 8, 1}, false);
  check_each<float, 2, false, true>({2, 2, 3, 10, 7, 1}, false);
  check_each<f16, 2, true, true>({2, 3, 2, 9, 3, 1}, false);
  check_each<double, 2, true, false>({2, 1, 6, 5, 4, 1}, true);
}

// Few rows of either factor; the other one's depth or its rows contiguous. `form` runs the kernel of a block.
template <class T, bool Left, class Form>
void check_streamed(const sizes& z, bool along, int lines, int threads, Form form) {
  const int entries = z.batch0 * z.batch1, many_rows = Left ? z.n : z.m, few_rows = Left ? z.m : z.n;
  const auto many = random_values<T>(static_cast<std::size_t>(entries * many_rows * z.k), 1),
             few = random_values<T>(static_cast<std::size_t>(entries * few_rows * z.k), 2),
             bias = random_values<T>(static_cast<std::size_t>(z.n), 3);
  std::vector<T> c(static_cast<std::size_t>(entries * z.m * z.n), narrow<T>(77.0f));
  const auto dense = [&](const std::vector<T>& x, int rows, bool deep) {
    return matrix_argument<T>{x.data(), {z.batch1 * rows * z.k, rows * z.k}, deep ? z.k : 1, deep ? 1 : rows};
  };
  const auto fm = dense(many, many_rows, along), ff = dense(few, few_rows, true);
  const doubled<T, 1, false> result{{{c.data(), {z.batch1 * z.m * z.n, z.m * z.n, z.n, 1}, 0}},
                                    {bias.data(), {0, 0, 0, 1}}};
  const int parts = (many_rows + lines - 1) / lines;
  const gemm_sizes s{z.m, z.n, z.k, 1, parts, z.batch1, 1, nullptr, nullptr, 0};
  run_grid(parts * entries, 1, threads, 65536,
           [&](char* shared) { form(Left ? ff : fm, Left ? fm : ff, result, s, reinterpret_cast<sum_t<T>*>(shared)); });
  for (int e = 0; e < entries; ++e)
    for (int i = 0; i < z.m; ++i)
      for (int j = 0; j < z.n; ++j) {
        const int line = Left ? j : i, f = Left ? i : j;
        double sum = 0;
        for (int k = 0; k < z.k; ++k)
          sum += static_cast<double>(widen(many[static_cast<std::size_t>(
                     e * many_rows * z.k + (along ? line * z.k + k : k * many_rows + line))])) *
                 static_cast<double>(widen(few[static_cast<std::size_t>((e * few_rows + f) * z.k + k)]));
        const double expected = 2 * sum + static_cast<double>(widen(bias[static_cast<std::size_t>(j)]));
        ASSERT_NEAR(static_cast<double>(widen(c[static_cast<std::size_t>((e * z.m + i) * z.n + j)])), expected,
                    2e-3 * (1 + std::abs(expected)))
            << e << " " << i << " " << j;
      }
}
TEST(device_gemm, few_rows_by_a_factor_that_is_read_once) {
  const auto along = [](const auto& a, const auto& b, const auto& r, const gemm_sizes& s, auto*) {
    gemm_streamed_along<4, true, true, 2, 4>(a, b, r, s);
  };
  check_streamed<float, true>({1, 1, 3, 37, 300, 1}, true, 8, 128, along);
  check_streamed<f16, true>({2, 2, 4, 16, 264, 1}, true, 8, 128, along);
  check_streamed<float, false>({1, 2, 21, 2, 132, 1}, true, 8, 64,
                               [](const auto& a, const auto& b, const auto& r, const gemm_sizes& s, auto*) {
                                 gemm_streamed_along<2, false, false, 4, 2>(a, b, r, s);
                               });
  const auto across = [](const auto& a, const auto& b, const auto& r, const gemm_sizes& s, auto* shared) {
    gemm_streamed_across<4, true, 8, 3>(a, b, r, s, shared);
  };
  check_streamed<float, true>({2, 1, 3, 44, 101, 1}, false, 32, 96, across);
  check_streamed<f16, true>({1, 1, 4, 72, 37, 1}, false, 64, 96, across);
  check_streamed<double, false>({1, 2, 34, 1, 50, 1}, false, 8, 64,
                                [](const auto& a, const auto& b, const auto& r, const gemm_sizes& s, auto* shared) {
                                  gemm_streamed_across<1, false, 4, 2>(a, b, r, s, shared);
                                });
}

}  // namespace
