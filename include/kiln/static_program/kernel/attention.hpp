#pragma once
#include <limits>

#include "kiln/kernel/simd/transpose_square.hpp"
#include "kiln/static_program/kernel/product.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

/// Element steps of an operand of attention.
struct attention_steps {
  std::int64_t batch = 0, head = 0, position = 0, element = 1;
};

/// Extents and element steps, as constants, of attention over [batch, head, position, element]. A block of queries at a
/// time meets the keys of a head, which are transposed where enough queries read them.
struct attention_extents {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, depth = 1, width = 1;
  attention_steps q{}, k{}, v{}, out{};
  bool causal = false;

  constexpr std::int64_t group() const { return heads / kv_heads; }
  constexpr std::int64_t block() const { return queries < 16 ? queries : 16; }
  constexpr std::int64_t pitch() const { return (keys + 15) / 16 * 16; }
  constexpr bool packs() const { return queries * group() >= 8; }
  constexpr std::int64_t packed() const { return packs() ? depth * pitch() : 0; }
  /// Elements of memory: the transposed keys, then the scores of a block.
  constexpr std::int64_t memory() const { return packed() + block() * pitch(); }
};

/// The keys of one head, an element of all of them in a row.
template <attention_extents P, int Lanes> KILN_FN void pack_keys(const float* keys, float* to) {
  using V = vec<float, Lanes>;
  constexpr bool squares = P.k.element == 1 && P.depth % Lanes == 0;
  constexpr std::int64_t whole = squares ? P.keys / Lanes * Lanes : 0, depth = squares ? P.depth : 0;
  for (std::int64_t j = 0; j < whole; j += Lanes)
    for (std::int64_t c = 0; c < depth; c += Lanes) {
      V square[Lanes];
#pragma GCC unroll 16
      for (int r = 0; r < Lanes; ++r) square[r] = load<V>(keys + (j + r) * P.k.position + c);
      transpose_square<Lanes>(square);
#pragma GCC unroll 16
      for (int r = 0; r < Lanes; ++r) store(to + (c + r) * P.pitch() + j, square[r]);
    }
  for (std::int64_t j = whole; j < P.pitch(); ++j)
    for (std::int64_t c = 0; c < P.depth; ++c)
      to[c * P.pitch() + j] = j < P.keys ? keys[j * P.k.position + c * P.k.element] : 0;
}

/// Scores of a block of queries from packed keys, or from those of the head.
template <attention_extents P, int Lanes, int Registers, class Math>
KILN_FN void score_keys(const float* queries, const float* keys, float* scores, float scale) {
  using V = vec<float, Lanes>;
  if constexpr (P.packs()) {
    constexpr product_extents extents{P.block(), P.keys, P.depth, P.q.position, P.q.element, P.pitch(), true};
    static_product<extents, Lanes, Registers>(queries, keys, [&](std::int64_t i, std::int64_t j, auto, V s) {
      store(scores + i * P.pitch() + j, s * splat<V>(scale));
    });
  } else {
    constexpr std::int64_t whole = P.q.element == 1 && P.k.element == 1 ? P.depth / Lanes * Lanes : 0;
    for (std::int64_t i = 0; i < P.block(); ++i)
      for (std::int64_t j = 0; j < P.keys; ++j) {
        const float* const a = queries + i * P.q.position;
        const float* const b = keys + j * P.k.position;
        float sum = 0;
        if constexpr (whole != 0) {
          V sums{};
          for (std::int64_t c = 0; c < whole; c += Lanes) sums = multiply_add(load<V>(a + c), load<V>(b + c), sums);
          sum = Math::sum(sums);
        }
        if constexpr (whole != P.depth)
          for (std::int64_t c = whole; c < P.depth; ++c) sum += a[c * P.q.element] * b[c * P.k.element];
        scores[i * P.pitch() + j] = sum * scale;
      }
  }
}

/// Scores of one query become weights, of which those from `last` on are 0.
template <attention_extents P, int Lanes, class Math> KILN_FN void weigh_keys(float* scores, std::int64_t last) {
  using V = vec<float, Lanes>;
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = last < 0 ? 0 : last; j < P.pitch(); ++j) scores[j] = hidden;
  V tops = splat<V>(hidden);
  for (std::int64_t j = 0; j < P.pitch(); j += Lanes) tops = Math::max(load<V>(scores + j), tops);
  float top = hidden;
  for (int l = 0; l < Lanes; ++l) top = tops[l] > top || tops[l] != tops[l] ? tops[l] : top;
  if (top == hidden) {
    for (std::int64_t j = 0; j < P.pitch(); j += Lanes) store(scores + j, V{});
    return;
  }
  V sums{};
  for (std::int64_t j = 0; j < P.pitch(); j += Lanes) {
    const V e = Math::exp(load<V>(scores + j) - splat<V>(top));
    sums += e;
    store(scores + j, e);
  }
  const V share = splat<V>(1.0f / Math::sum(sums));
  for (std::int64_t j = 0; j < P.pitch(); j += Lanes) store(scores + j, load<V>(scores + j) * share);
}

/// The values of a block of queries by their weights.
template <attention_extents P, int Lanes, int Registers>
KILN_FN void gather_values(const float* weights, const float* values, float* result) {
  using V = vec<float, Lanes>;
  if constexpr (P.v.element == 1 && P.out.element == 1) {
    constexpr product_extents extents{P.block(), P.width, P.keys, P.pitch(), 1, P.v.position, P.width % 16 == 0};
    static_product<extents, Lanes, Registers>(weights, values, [&](std::int64_t i, std::int64_t c, auto count, V s) {
      if constexpr (decltype(count)::value == Lanes)
        store(result + i * P.out.position + c, s);
      else
        store_n(result + i * P.out.position + c, s, decltype(count)::value);
    });
  } else {
    for (std::int64_t i = 0; i < P.block(); ++i)
      for (std::int64_t c = 0; c < P.width; ++c) {
        float sum = 0;
        for (std::int64_t j = 0; j < P.keys; ++j)
          sum += weights[i * P.pitch() + j] * values[j * P.v.position + c * P.v.element];
        result[i * P.out.position + c * P.out.element] = sum;
      }
  }
}

/// Attention of f32: `mask(batch, head, query, key, score)` gives the score that counts, Math has exp, max and sum of
/// vectors. `memory` holds `P.memory()` elements.
template <attention_extents P, int Lanes, int Registers, class Math, class Mask>
KILN_FN void static_attention(const float* q, const float* k, const float* v, float* out, float* memory, float scale,
                              Mask&& mask) {
  float* const scores = memory + P.packed();
  for (std::int64_t b = 0; b < P.batch; ++b)
    for (std::int64_t h = 0; h < P.heads; ++h) {
      const float* const keys = k + b * P.k.batch + h / P.group() * P.k.head;
      if constexpr (P.packs())
        if (h % P.group() == 0) pack_keys<P, Lanes>(keys, memory);
      for (std::int64_t first = 0; first < P.queries; first += P.block()) {
        // the last block overlaps the one before it
        const std::int64_t i = first < P.queries - P.block() ? first : P.queries - P.block();
        score_keys<P, Lanes, Registers, Math>(q + b * P.q.batch + h * P.q.head + i * P.q.position,
                                              P.packs() ? memory : keys, scores, scale);
        for (std::int64_t r = 0; r < P.block(); ++r) {
          float* const row = scores + r * P.pitch();
          const std::int64_t reach = i + r + P.keys - P.queries + 1, last = P.causal && reach < P.keys ? reach : P.keys;
          for (std::int64_t j = 0; j < last; ++j) row[j] = mask(b, h, i + r, j, row[j]);
          weigh_keys<P, Lanes, Math>(row, last);
        }
        gather_values<P, Lanes, Registers>(scores, v + b * P.v.batch + h / P.group() * P.v.head,
                                           out + b * P.out.batch + h * P.out.head + i * P.out.position);
      }
    }
}

}  // namespace kiln::kernels
