#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/attention/attention_blocks.hpp"
#include "kiln/backend/hip/kernels/attention/attention_plain.hpp"

using namespace kiln::gpu;

namespace {

/// Sequences whose keys and values are in blocks of 32, tokens of the run and of runs before it, and what attention
/// over them should give. Heads and rows are interleaved, layers before this one take the blocks' first `keys` bytes.
template <class T> struct paged_problem {
  struct sequence {
    int past, tokens;
  };
  int heads, kv_heads, depth, value_depth, most, window;
  std::vector<sequence> sequences;
  std::vector<T> q, k, v, out;
  std::vector<std::vector<T>> all_k, all_v;  // of each sequence, [position, head, depth]
  std::vector<std::vector<T>> blocks;
  std::vector<i64> table;
  float sinks[8] = {0.5f, -1.0f, 2.0f, 0.0f, 1.5f, -0.5f, 0.25f, 1.0f};
  static constexpr int positions = 32, before = 48, head = 12;
  int tokens = 0, rows = 0, width = head + 16;

  paged_problem(int heads, int kv_heads, int depth, int value_depth, int most, int window, std::vector<sequence> of)
      : heads(heads),
        kv_heads(kv_heads),
        depth(depth),
        value_depth(value_depth),
        most(most),
        window(window),
        sequences(std::move(of)) {
    for (const sequence& s : sequences) tokens += s.tokens, rows += (s.tokens + most - 1) / most;
    const auto n = [](int a, int b, int c) { return static_cast<std::size_t>(a * b * c); };
    q = random_values<T>(n(tokens, heads, depth), 1);
    k = random_values<T>(n(tokens, kv_heads, depth), 2), v = random_values<T>(n(tokens, kv_heads, value_depth), 3);
    out.assign(n(tokens, heads, value_depth), narrow<T>(77.0f));
    int first = 0;
    for (const sequence& s : sequences) {
      const int count = (s.past + s.tokens + positions - 1) / positions;
      const std::size_t at = blocks.size();
      for (int b = 0; b < count; ++b)
        blocks.emplace_back(n(before + positions * kv_heads * (depth + value_depth), 1, 1), narrow<T>(55.0f));
      auto& ks = all_k.emplace_back(random_values<T>(n(s.past + s.tokens, kv_heads, depth), 7));
      auto& vs = all_v.emplace_back(random_values<T>(n(s.past + s.tokens, kv_heads, value_depth), 8));
      std::copy_n(k.begin() + first * kv_heads * depth, s.tokens * kv_heads * depth,
                  ks.begin() + s.past * kv_heads * depth);
      std::copy_n(v.begin() + first * kv_heads * value_depth, s.tokens * kv_heads * value_depth,
                  vs.begin() + s.past * kv_heads * value_depth);
      for (int p = 0; p < s.past; ++p)
        visit(
            at, p, [&](T& kept, T&, T given) { kept = given; }, all_k.size() - 1);
      for (int i = 0; i < s.tokens; i += most) {
        const std::size_t row = table.size();
        table.resize(row + static_cast<std::size_t>(width), 0);
        const i64 words[] = {first + i, std::min(most, s.tokens - i), s.past + i, s.past};
        std::copy_n(words, 4, table.begin() + static_cast<std::ptrdiff_t>(row));
        for (int b = 0; b < count; ++b)
          table[row + head + static_cast<std::size_t>(b)] =
              static_cast<i64>(reinterpret_cast<std::uintptr_t>(blocks[at + static_cast<std::size_t>(b)].data()));
      }
      first += s.tokens;
    }
  }
  // Calls for each number of a position in the blocks: its place there, and what stands for it.
  template <class Visit> void visit(std::size_t first_block, int p, Visit visit, std::size_t sequence) {
    std::vector<T>& b = blocks[first_block + static_cast<std::size_t>(p / positions)];
    for (int g = 0; g < kv_heads; ++g) {
      const int slot = g * positions + p % positions;
      for (int d = 0; d < depth; ++d)
        visit(b[static_cast<std::size_t>(before + slot * depth + d)], b[0],
              all_k[sequence][static_cast<std::size_t>((p * kv_heads + g) * depth + d)]);
      for (int d = 0; d < value_depth; ++d)
        visit(b[static_cast<std::size_t>(before + positions * kv_heads * depth + slot * value_depth + d)], b[0],
              all_v[sequence][static_cast<std::size_t>((p * kv_heads + g) * value_depth + d)]);
    }
  }
  block_table device_table(float softcap, bool sunk) {
    const auto size = static_cast<int>(sizeof(T));
    return {table.data(),
            width,
            head,
            before * size,
            (before + positions * kv_heads * depth) * size,
            window,
            softcap,
            sunk ? sinks : nullptr,
            1};
  }
  attention_sizes device_sizes(int splits, float* partial) const {
    return {heads, heads / kv_heads, 0, 0, depth, value_depth, 1, splits, 0.5f, 0, partial, nullptr, 1};
  }
  template <class E> static attention_operand<E> rows_of(E* base, int heads, int depth) {
    return {base, 0, depth, static_cast<i64>(heads) * depth};
  }
  void check(double bound, float softcap = 0, bool sunk = false) {
    int first = 0;
    std::size_t at = 0;
    const auto value = [](const std::vector<T>& of, int i) {
      return static_cast<double>(widen(of[static_cast<std::size_t>(i)]));
    };
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const auto [past, count] = sequences[s];
      for (int i = 0; i < count; ++i)
        for (int h = 0; h < heads; ++h) {
          const int own = past + i, low = window > 0 ? std::max(0, own - window + 1) : 0, g = h / (heads / kv_heads);
          std::vector<double> w;
          double sum = sunk ? std::exp(static_cast<double>(sinks[h])) : 0;
          for (int j = low; j <= own; ++j) {
            double score = 0;
            for (int d = 0; d < depth; ++d)
              score +=
                  value(q, ((first + i) * heads + h) * depth + d) * value(all_k[s], (j * kv_heads + g) * depth + d);
            score *= 0.5;
            if (softcap > 0) score = static_cast<double>(softcap) * std::tanh(score / static_cast<double>(softcap));
            w.push_back(std::exp(score)), sum += w.back();
          }
          for (int d = 0; d < value_depth; ++d) {
            double expected = 0;
            for (int j = low; j <= own; ++j)
              expected +=
                  w[static_cast<std::size_t>(j - low)] / sum * value(all_v[s], (j * kv_heads + g) * value_depth + d);
            ASSERT_NEAR(value(out, ((first + i) * heads + h) * value_depth + d), expected, bound)
                << s << " " << i << " " << h << " " << d;
          }
        }
      for (int p = 0; p < past + count; ++p)
        visit(
            at, p, [&](T& kept, T&, T given) { ASSERT_EQ(widen(kept), widen(given)) << s << " " << p; }, s);
      at += static_cast<std::size_t>((past + count + positions - 1) / positions), first += count;
    }
  }
};

template <class T, class Tile> void check_over_blocks(paged_problem<T> p, int splits, double bound) {
  constexpr attention_memory memory{Tile::warps * 16, Tile::keys, Tile::depth, Tile::value_depth, sizeof(T)};
  std::vector<float> partial(
      static_cast<std::size_t>(p.rows * p.kv_heads * splits * split_floats(memory.rows, Tile::value_depth)));
  const block_table table = p.device_table(0, false);
  const attention_sizes s = p.device_sizes(splits, partial.data());
  const auto lanes = [&](char* shared) {
    attention_over_blocks<T, Tile, 32>(p.rows_of(static_cast<const T*>(p.q.data()), p.heads, p.depth),
                                       p.rows_of(static_cast<const T*>(p.k.data()), p.kv_heads, p.depth),
                                       p.rows_of(static_cast<const T*>(p.v.data()), p.kv_heads, p.value_depth),
                                       p.rows_of(p.out.data(), p.heads, p.value_depth), table, s, shared);
  };
  for (const int apart : {1, splits}) {  // counters are zero after a run as before it
    run_grid(splits * p.rows * p.kv_heads, 1, Tile::warps * 32, memory.bytes_in_registers(), lanes, apart);
    p.check(bound);
  }
}

TEST(device_attention, sequences_in_blocks) {
  using tile = attention_tile<1, 2, 32, 32, 48, 8>;
  check_over_blocks<f16, tile>({4, 2, 32, 48, 16, 0, {{0, 1}, {31, 1}, {32, 1}, {290, 1}}}, 3, 2e-3);
  check_over_blocks<f16, tile>({4, 2, 32, 48, 16, 0, {{290, 1}, {80, 1}, {40, 1}}}, 3, 2e-3);
  check_over_blocks<f16, tile>({2, 2, 32, 40, 32, 0, {{5, 3}, {0, 40}, {33, 33}}}, 2, 2e-3);
  check_over_blocks<bf16, tile>({8, 1, 24, 48, 4, 0, {{70, 6}, {0, 1}}}, 1, 1.5e-2);
}
TEST(device_attention, sequences_in_blocks_with_a_window) {
  using tile = attention_tile<1, 2, 32, 32, 32, 8>;
  check_over_blocks<f16, tile>({4, 2, 32, 32, 16, 20, {{0, 1}, {100, 1}, {300, 1}, {0, 45}, {90, 17}}}, 3, 2e-3);
}
TEST(device_attention, sequences_in_blocks_of_any_depth_with_sinks_and_bounds) {
  for (const bool bounded : {false, true}) {
    paged_problem<float> p(6, 2, 13, 300, 8, bounded ? 20 : 0, {{0, 1}, {300, 1}, {31, 11}});
    const float softcap = bounded ? 1.5f : 0;
    const block_table table = p.device_table(softcap, bounded);
    attention_sizes s = p.device_sizes(1, nullptr);
    s.tiles = p.most;
    run_grid(p.most * p.rows * p.heads, 1, 256, 0, [&](char*) {
      attention_plain_over_blocks<float, 32, 2>(
          p.rows_of(static_cast<const float*>(p.q.data()), p.heads, p.depth),
          p.rows_of(static_cast<const float*>(p.k.data()), p.kv_heads, p.depth),
          p.rows_of(static_cast<const float*>(p.v.data()), p.kv_heads, p.value_depth),
          p.rows_of(p.out.data(), p.heads, p.value_depth), table, s);
    });
    p.check(1e-5, softcap, bounded);
  }
}

}  // namespace
