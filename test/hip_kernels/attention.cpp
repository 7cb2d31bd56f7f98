#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/atom/atom_fma.hpp"
#include "kiln/backend/hip/kernels/atom/atom_wmma.hpp"
#include "kiln/backend/hip/kernels/attention/attention_mma.hpp"
#include "kiln/backend/hip/kernels/attention/attention_plain.hpp"
#include "kiln/backend/hip/kernels/attention/attention_simt.hpp"
#include "kiln/backend/hip/kernels/attention/attention_staged.hpp"

using namespace kiln::gpu;

namespace {

struct sizes {
  int batch, heads, kv_heads, queries, keys, depth, value_depth, splits = 1, one_mask = 0;  // for all rows
  bool mask_each = false;  // for each head, else for all
};

/// What attention reads and should give, heads and rows interleaved as projections leave them.
template <class T> struct problem {
  sizes z;
  std::vector<T> q, k, v, out, mask;
  std::vector<unsigned char> keep;
  explicit problem(const sizes& z) : z(z) {
    const auto n = [](int a, int b, int c, int d) { return static_cast<std::size_t>(a * b * c * d); };
    q = random_values<T>(n(z.batch, z.heads, z.queries, z.depth), 1);
    k = random_values<T>(n(z.batch, z.kv_heads, z.keys, z.depth), 2);
    v = random_values<T>(n(z.batch, z.kv_heads, z.keys, z.value_depth), 3);
    out.assign(n(z.batch, z.heads, z.queries, z.value_depth), narrow<T>(77.0f));
    mask = random_values<T>(n(z.batch, mask_heads(), z.queries, z.keys), 4);
    for (std::size_t i = 0; z.one_mask != 0 && i < mask.size(); ++i) mask[i] = mask[i % n(1, 1, 1, z.keys)];
    for (std::size_t i = 0; i < mask.size(); ++i) keep.push_back((z.one_mask ? i % n(1, 1, 1, z.keys) : i) % 3 != 0);
    // a query that sees nothing
    for (int j = 0; z.one_mask == 0 && j < z.keys; ++j) keep[static_cast<std::size_t>(j)] = 0;
  }
  int mask_heads() const { return z.mask_each ? z.heads : 1; }
  template <class E> static attention_operand<E> rows(E* base, int heads, int rows, int depth) {
    return {base, static_cast<i64>(heads) * rows * depth, depth, static_cast<i64>(heads) * depth};
  }
  template <mask_kind Mask, bool Causal> void check(double bound) const {
    const int group = z.heads / z.kv_heads;
    const auto at = [](const std::vector<T>& x, int heads, int rows, int depth, int b, int h, int i, int d) {
      return static_cast<double>(widen(x[static_cast<std::size_t>(((b * rows + i) * heads + h) * depth + d)]));
    };
    for (int b = 0; b < z.batch; ++b)
      for (int h = 0; h < z.heads; ++h)
        for (int i = 0; i < z.queries; ++i) {
          std::vector<double> w(static_cast<std::size_t>(z.keys));
          double sum = 0;
          for (int j = 0; j < z.keys; ++j) {
            double score = 0;
            for (int d = 0; d < z.depth; ++d)
              score += at(q, z.heads, z.queries, z.depth, b, h, i, d) *
                       at(k, z.kv_heads, z.keys, z.depth, b, h / group, j, d);
            score *= 0.5;
            const auto m =
                static_cast<std::size_t>(((b * mask_heads() + (z.mask_each ? h : 0)) * z.queries + i) * z.keys + j);
            if (Mask == mask_kind::adds) score += static_cast<double>(widen(mask[m]));
            const bool seen = (!Causal || j <= i + z.keys - z.queries) && (Mask != mask_kind::keeps || keep[m]);
            sum += w[static_cast<std::size_t>(j)] = seen ? std::exp(score) : 0;
          }
          for (int d = 0; d < z.value_depth; ++d) {
            double expected = 0;
            for (int j = 0; j < z.keys; ++j)
              expected += w[static_cast<std::size_t>(j)] * at(v, z.kv_heads, z.keys, z.value_depth, b, h / group, j, d);
            if (sum > 0) expected /= sum;
            // a bound of 0: half of an f16's last place, and what sums in float lose
            const double allowed = bound > 0 ? bound : std::ldexp(0.505, std::ilogb(expected) - 10) + 2e-6;
            ASSERT_NEAR(at(out, z.heads, z.queries, z.value_depth, b, h, i, d), expected, allowed)
                << b << " " << h << " " << i << " " << d;
          }
        }
  }
  attention_sizes device_sizes(int rows) const {
    const int group = z.heads / z.kv_heads;
    return {z.heads,
            group,
            z.queries,
            z.keys,
            z.depth,
            z.value_depth,
            (group * z.queries + rows - 1) / rows,
            z.splits,
            0.5f,
            z.batch * z.kv_heads,
            nullptr,
            nullptr,
            1};
  }
  template <mask_kind Mask> epilogue_operand device_mask() const {
    const void* base = Mask == mask_kind::keeps ? static_cast<const void*>(keep.data()) : mask.data();
    const i64 row = z.one_mask ? 0 : z.keys;
    // a single query's row has no step, as the host has it
    return {base,
            {row * z.queries * mask_heads(), z.mask_each ? i64{z.keys} * z.queries : 0, z.queries > 1 ? row : 0, 1}};
  }
  /// Calls `kernel` with the queries, keys, values, result and mask.
  template <mask_kind Mask, class Kernel> void call(Kernel&& kernel) {
    kernel(rows(std::as_const(q).data(), z.heads, z.queries, z.depth),
           rows(std::as_const(k).data(), z.kv_heads, z.keys, z.depth),
           rows(std::as_const(v).data(), z.kv_heads, z.keys, z.value_depth),
           rows(out.data(), z.heads, z.queries, z.value_depth), device_mask<Mask>());
  }
};

/// What blocks that share a tile's keys leave for the last of them.
struct split_memory {
  std::vector<float> partial;
  std::vector<int> arrivals;
  split_memory(attention_sizes& s, const sizes& z, int floats) {
    const auto tiles = static_cast<std::size_t>(s.tiles * z.batch * z.kv_heads);
    partial.resize(tiles * static_cast<std::size_t>(z.splits * floats));
    arrivals.resize(tiles);
    s.partial = partial.data(), s.arrivals = arrivals.data();
  }
};

template <class T, class Tile, mask_kind Mask, bool Causal>
void check_mma(const sizes& z, double bound = kiln::elementary::same<T, f16> ? 2e-3 : 1.5e-2) {
  constexpr attention_memory memory{Tile::warps / Tile::parts * Tile::atoms_m * 16, Tile::keys, Tile::depth,
                                    Tile::value_depth, sizeof(T)};
  problem<T> p(z);
  attention_sizes s = p.device_sizes(memory.rows);
  const split_memory splits(s, z, split_floats(memory.rows, Tile::value_depth));
  for (int again = 0; again < (z.splits > 1 ? 2 : 1); ++again)
    run_grid(s.tiles * z.splits * z.batch * z.kv_heads, 1, Tile::warps * 32, memory.bytes_in_registers(Tile::parts),
             [&](char* shared) {
               p.template call<Mask>([&](const auto&... operands) {
                 attention_in_registers<T, Tile, Mask, Causal>(operands..., s, shared);
               });
             });
  p.template check<Mask, Causal>(bound);
}

template <class T, class Tile, mask_kind Mask, bool Causal> void check_simt(const sizes& z, double bound) {
  constexpr attention_memory memory = vector_rows<T, Tile>::memory;
  problem<T> p(z);
  attention_sizes s = p.device_sizes(memory.rows);
  const split_memory splits(s, z, split_floats(memory.rows, Tile::value_depth));
  run_grid(s.tiles * z.splits * z.batch * z.kv_heads, 1, Tile::warps * warp_lanes, memory.bytes_simt(),
           [&](char* shared) {
             p.template call<Mask>(
                 [&](const auto&... operands) { attention_simt<T, Tile, Mask, Causal>(operands..., s, shared); });
           });
  p.template check<Mask, Causal>(bound);
}

template <class Atom, class Tile, mask_kind Mask, bool Causal> void check_staged(const sizes& z, double bound) {
  using T = typename Atom::element;
  constexpr attention_memory memory = staged_warp<Atom, Tile>::memory;
  problem<T> p(z);
  const attention_sizes s = p.device_sizes(memory.rows);
  run_grid(s.tiles * z.batch * z.kv_heads, 1, Tile::warps * warp_lanes, memory.bytes_staged(), [&](char* shared) {
    p.template call<Mask>(
        [&](const auto&... operands) { attention_staged<Atom, Tile, Mask, Causal>(operands..., s, shared); });
  });
  p.template check<Mask, Causal>(bound);
}

TEST(device_attention, any_atom_serves) {
  check_staged<atom_fma<float>, attention_tile<2, 2, 32, 16, 8, 1>, mask_kind::none, false>({1, 2, 2, 33, 41, 13, 5},
                                                                                            1e-5);
  check_staged<atom_fma<float>, attention_tile<2, 2, 16, 32, 32, 4>, mask_kind::adds, true>({2, 4, 2, 21, 40, 32, 32},
                                                                                            1e-5);
  check_staged<atom_wmma<f16>, attention_tile<1, 2, 32, 32, 32, 8>, mask_kind::keeps, true>({1, 4, 2, 21, 40, 32, 32},
                                                                                            2e-3);
}

template <mask_kind Mask, bool Causal, int Each> void check_plain(const sizes& z) {
  problem<float> p(z);
  attention_sizes s = p.device_sizes(1);
  run_grid(z.batch * z.heads * z.queries, 1, 256, 0, [&](char*) {
    attention_plain<float, Mask, Causal, Each>(
        p.rows(static_cast<const float*>(p.q.data()), z.heads, z.queries, z.depth),
        p.rows(static_cast<const float*>(p.k.data()), z.kv_heads, z.keys, z.depth),
        p.rows(static_cast<const float*>(p.v.data()), z.kv_heads, z.keys, z.value_depth),
        p.rows(p.out.data(), z.heads, z.queries, z.value_depth), p.template device_mask<Mask>(), s);
  });
  p.check<Mask, Causal>(1e-5);
}

TEST(device_attention, any_depth) {
  check_plain<mask_kind::none, true, 1>({2, 4, 2, 3, 5, 7, 6});
  check_plain<mask_kind::adds, false, 2>({1, 1, 1, 2, 600, 5, 300});
  check_plain<mask_kind::keeps, true, 1>({1, 2, 1, 3, 300, 17, 9});
}

TEST(device_attention, whole_tiles) {
  check_mma<f16, attention_tile<2, 2, 32, 64, 64, 8>, mask_kind::none, false>({1, 2, 2, 128, 64, 64, 64});
  check_mma<f16, attention_tile<1, 2, 32, 64, 64, 8>, mask_kind::none, true>({2, 1, 1, 64, 96, 64, 64});
}

TEST(device_attention, ragged_sizes_and_depths) {
  check_mma<f16, attention_tile<1, 2, 32, 48, 32, 8>, mask_kind::none, false>({1, 2, 2, 33, 41, 40, 24});
  check_mma<f16, attention_tile<1, 2, 32, 16, 16, 1>, mask_kind::none, true>({1, 2, 2, 19, 19, 7, 5});
}

TEST(device_attention, masks_and_groups_of_heads) {
  check_mma<f16, attention_tile<1, 2, 32, 32, 32, 8>, mask_kind::keeps, false>({1, 4, 2, 21, 40, 32, 32});
  check_mma<f16, attention_tile<1, 1, 32, 32, 32, 8>, mask_kind::adds, true>({2, 4, 1, 21, 40, 32, 32});
  check_mma<bf16, attention_tile<1, 1, 32, 32, 32, 8>, mask_kind::keeps, true>({1, 4, 2, 21, 25, 32, 32});
  check_mma<f16, attention_tile<2, 2, 64, 32, 32, 8>, mask_kind::adds, true>({1, 2, 1, 70, 130, 32, 32, 1, 1});
  check_mma<bf16, attention_tile<1, 2, 64, 32, 32, 8>, mask_kind::adds, false>({1, 4, 2, 40, 128, 32, 32});
}

// Biases of heads: rows of a lane that read the same query read no bias of another head.
TEST(device_attention, masks_of_each_head) {
  sizes z{2, 8, 2, 1, 64, 32, 32};
  z.mask_each = true;
  check_mma<f16, attention_tile<1, 1, 32, 32, 32, 8>, mask_kind::adds, false>(z);
  check_mma<f16, attention_tile<1, 1, 32, 32, 32, 8>, mask_kind::keeps, false>(z);
  z.heads = 24, z.keys = 130;  // both rows of a lane, of three heads of eight
  check_mma<f16, attention_tile<1, 1, 64, 32, 32, 8>, mask_kind::adds, true>(z);
  check_mma<bf16, attention_tile<1, 4, 16, 32, 32, 8, false, 4>, mask_kind::adds, false>(z);
  z.queries = 3, z.splits = 2;
  check_mma<f16, attention_tile<2, 1, 32, 32, 32, 8>, mask_kind::adds, true>(z);
}

TEST(device_attention, few_keys_are_weighed_without_rounding) {
  check_mma<f16, attention_tile<1, 2, 32, 32, 32, 8, true>, mask_kind::none, false>({2, 2, 2, 33, 41, 32, 32}, 0);
}

TEST(device_attention, one_query_with_split_keys) {
  check_mma<f16, attention_tile<1, 1, 32, 32, 32, 8>, mask_kind::none, true>({2, 8, 2, 1, 300, 32, 32, 3});
  check_mma<f16, attention_tile<1, 1, 32, 32, 32, 8>, mask_kind::keeps, false>({1, 2, 2, 3, 70, 32, 32, 4});
}

// Warps that work the same rows, each with keys of its own: of one block and of several, more warps than steps among
// them, and rows that see none of a warp's keys.
TEST(device_attention, few_rows_whose_keys_warps_share) {
  check_mma<f16, attention_tile<1, 4, 16, 32, 48, 8, false, 4>, mask_kind::none, false>({2, 8, 2, 1, 300, 32, 40});
  check_mma<f16, attention_tile<1, 4, 16, 32, 48, 8, false, 4>, mask_kind::none, true>({1, 6, 2, 5, 333, 32, 48, 3});
  check_mma<f16, attention_tile<1, 4, 32, 16, 32, 4, false, 4>, mask_kind::adds, true>({2, 2, 2, 9, 40, 12, 31});
  check_mma<bf16, attention_tile<1, 2, 16, 64, 64, 8, false, 2>, mask_kind::keeps, false>({1, 16, 1, 1, 70, 64, 64, 2});
  check_mma<f16, attention_tile<1, 4, 16, 16, 16, 1, false, 4>, mask_kind::none, true>({1, 1, 1, 16, 9, 7, 5});
  check_mma<f16, attention_tile<1, 4, 16, 16, 16, 8, true, 4>, mask_kind::none, false>({1, 3, 1, 4, 61, 16, 16}, 0);
}

// Rows a thread, warps, keys, depths, elements of a copy.
TEST(device_attention, on_the_vector_unit) {
  check_simt<float, attention_tile<4, 2, 32, 32, 64, 4>, mask_kind::none, false>({2, 4, 4, 21, 70, 32, 64}, 1e-5);
  check_simt<float, attention_tile<4, 2, 64, 48, 64, 4>, mask_kind::adds, true>({1, 4, 2, 33, 50, 40, 44}, 1e-5);
  check_simt<float, attention_tile<1, 4, 16, 32, 128, 1>, mask_kind::keeps, false>({2, 6, 2, 3, 41, 29, 71}, 1e-5);
  check_simt<float, attention_tile<2, 1, 32, 16, 64, 2>, mask_kind::none, true>({1, 2, 1, 9, 9, 14, 62}, 1e-5);
  check_simt<float, attention_tile<1, 4, 16, 32, 64, 4>, mask_kind::keeps, false>({2, 6, 2, 1, 100, 32, 40, 3}, 1e-5);
  check_simt<float, attention_tile<1, 8, 32, 16, 128, 4>, mask_kind::adds, true>({1, 8, 2, 2, 70, 16, 72, 4}, 1e-5);
  check_simt<f16, attention_tile<2, 2, 32, 32, 64, 8>, mask_kind::none, true>({1, 2, 2, 20, 40, 32, 64}, 2e-3);
}

}  // namespace
