#pragma once
#include "kiln/fixed/attention_plan.hpp"
#include "kiln/fixed/body.hpp"
#include "kiln/fixed/pooling_step.hpp"
#include "kiln/kernel/fixed_product.hpp"
#include "kiln/kernel/turn_square.hpp"
#include "kiln/op/nn/attention.hpp"

namespace kiln::fixed {

/// Attention of f32 (see op::attention): the scores of a block of queries lie in scratch memory.
template <class Step, const op::attention& Op>
struct attention_step {
  static constexpr place q = Step::in[0], k = Step::in[1], v = Step::in[2], out = Step::out[0];
  static constexpr std::int64_t heads = q.lens[1], kv_heads = k.lens[1], sq = q.lens[2], sk = k.lens[2],
                                depth = q.lens[3], width = v.lens[3];
  static constexpr bool masked = Step::inputs == 4;
  static constexpr attention_plan plan = attention_plan::of(q, k);
  static constexpr int registers = native_bytes == 64 ? 24 : 12;
  using vector = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;

  static KILN_FN float dot(const float* a, const float* b) {
    constexpr std::int64_t whole = q.strides[3] == 1 && k.strides[3] == 1 ? depth / lanes * lanes : 0;
    float sum = 0;
    if constexpr (whole != 0) {
      vector acc{};
      for (std::int64_t c = 0; c < whole; c += lanes)
        acc = elementary::mad(load<vector>(a + c), load<vector>(b + c), acc);
      sum = reduce_add(acc);
    }
    if constexpr (whole != depth)
      for (std::int64_t c = whole; c < depth; ++c) sum += a[c * q.strides[3]] * b[c * k.strides[3]];
    return sum;
  }
  static KILN_FN float with_mask(const step_memory& m, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
                                 float s) {
    if constexpr (masked) {
      constexpr place mask = Step::in[3];
      const std::int64_t at[4] = {b, h, i, j};
      std::int64_t o = mask.offset;
      for (std::size_t d = 0; d < 4; ++d)
        if (mask.lens[d] != 1) o += at[d] * mask.strides[d];
      const auto x = buffer_of<Step, 3>(m)[o];
      if constexpr (mask.type == dtype::boolean)
        return x ? s : -std::numeric_limits<float>::infinity();
      else
        return s + x;
    } else {
      return s;
    }
  }
  template <std::size_t K>
  static KILN_FN std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) {
    constexpr place p = Step::operand(K);
    return p.offset + b * p.strides[0] + h * p.strides[1] + i * p.strides[2];
  }

  // the keys of one head, an element of all of them in a row
  static void pack(const float* keys, float* to) {
    constexpr bool squares = k.strides[3] == 1 && depth % lanes == 0;
    constexpr std::int64_t whole = squares ? sk / lanes * lanes : 0;
    for (std::int64_t j = 0; j < whole; j += lanes)
      for (std::int64_t c = 0; c < (squares ? depth : 0); c += lanes) {
        vector square[lanes];
        each<static_cast<std::size_t>(lanes)>(
            [&](auto r) { square[r] = load<vector>(keys + (j + static_cast<std::int64_t>(r)) * k.strides[2] + c); });
        kernels::turn_square<lanes>(square);
        each<static_cast<std::size_t>(lanes)>(
            [&](auto r) { store(to + (c + static_cast<std::int64_t>(r)) * plan.pitch + j, square[r]); });
      }
    for (std::int64_t j = whole; j < plan.pitch; ++j)
      for (std::int64_t c = 0; c < depth; ++c)
        to[c * plan.pitch + j] = j < sk ? keys[j * k.strides[2] + c * k.strides[3]] : 0;
  }
  static KILN_FN void score(const float* queries, const float* keys, float* scores) {
    if constexpr (plan.packs) {
      constexpr kernels::product_extents extents{plan.block, sk, depth, q.strides[2], q.strides[3], plan.pitch, true};
      kernels::fixed_product<extents, lanes, registers>(
          queries, keys, [&](std::int64_t i, std::int64_t j, auto, vector s) {
            store(scores + i * plan.pitch + j, s * splat<vector>(Op.scale));
          });
    } else {
      for (std::int64_t i = 0; i < plan.block; ++i)
        for (std::int64_t j = 0; j < sk; ++j)
          scores[i * plan.pitch + j] = dot(queries + i * q.strides[2], keys + j * k.strides[2]) * Op.scale;
    }
  }
  // scores of one query become weights, of which those from `last` on are 0
  static KILN_FN void weigh(const step_memory& m, std::int64_t b, std::int64_t h, std::int64_t i, float* scores) {
    constexpr float hidden = -std::numeric_limits<float>::infinity();
    const std::int64_t last = !Op.causal || i + sk - sq >= sk ? sk : i + sk - sq + 1;
    if constexpr (masked)
      for (std::int64_t j = 0; j < last; ++j) scores[j] = with_mask(m, b, h, i, j, scores[j]);
    for (std::int64_t j = last < 0 ? 0 : last; j < plan.pitch; ++j) scores[j] = hidden;
    vector tops = splat<vector>(hidden);
    for (std::int64_t j = 0; j < plan.pitch; j += lanes) tops = kiln::max(load<vector>(scores + j), tops);
    float top = hidden;
    for (int l = 0; l < lanes; ++l) top = tops[l] > top || tops[l] != tops[l] ? tops[l] : top;
    if (top == hidden) {
      for (std::int64_t j = 0; j < plan.pitch; j += lanes) store(scores + j, vector{});
      return;
    }
    vector sums{};
    for (std::int64_t j = 0; j < plan.pitch; j += lanes) {
      const vector e = kiln::exp(load<vector>(scores + j) - splat<vector>(top));
      sums += e;
      store(scores + j, e);
    }
    const vector share = splat<vector>(1 / reduce_add(sums));
    for (std::int64_t j = 0; j < plan.pitch; j += lanes) store(scores + j, load<vector>(scores + j) * share);
  }
  static KILN_FN void gather(const float* scores, const float* values, float* result) {
    if constexpr (v.strides[3] == 1 && out.strides[3] == 1) {
      constexpr kernels::product_extents extents{plan.block, width, sk, plan.pitch, 1, v.strides[2], width % 16 == 0};
      kernels::fixed_product<extents, lanes, registers>(
          scores, values, [&](std::int64_t i, std::int64_t c, auto count, vector s) {
            vector_lanes<float>::store<float, 1, decltype(count)::value>(result + i * out.strides[2] + c, s);
          });
    } else {
      for (std::int64_t i = 0; i < plan.block; ++i)
        for (std::int64_t c = 0; c < width; ++c) {
          float sum = 0;
          for (std::int64_t j = 0; j < sk; ++j)
            sum += scores[i * plan.pitch + j] * values[j * v.strides[2] + c * v.strides[3]];
          result[i * out.strides[2] + c * out.strides[3]] = sum;
        }
    }
  }

  static KILN_FN void run(const step_memory& m) {
    auto* const packed = reinterpret_cast<float*>(m.scratch);
    float* const scores = packed + plan.keys();
    constexpr std::int64_t group = heads / kv_heads;
    for (std::int64_t b = 0; b < q.lens[0]; ++b)
      for (std::int64_t h = 0; h < heads; ++h) {
        const float* const keys = buffer_of<Step, 1>(m) + row<1>(b, h / group, 0);
        if constexpr (plan.packs)
          if (h % group == 0) pack(keys, packed);
        for (std::int64_t first = 0; first < sq; first += plan.block) {
          const std::int64_t i = first < sq - plan.block ? first : sq - plan.block;  // the last block overlaps
          score(buffer_of<Step, 0>(m) + row<0>(b, h, i), plan.packs ? packed : keys, scores);
          for (std::int64_t r = 0; r < plan.block; ++r) weigh(m, b, h, i + r, scores + r * plan.pitch);
          gather(scores, buffer_of<Step, 2>(m) + row<2>(b, h / group, 0),
                 buffer_of<Step, Step::inputs>(m) + row<Step::inputs>(b, h, i));
        }
      }
  }
};

}  // namespace kiln::fixed
