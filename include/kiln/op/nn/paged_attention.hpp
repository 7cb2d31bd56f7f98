#pragma once
#include <bit>
#include <vector>

#include "kiln/core/math.hpp"
#include "kiln/op/evaluation.hpp"
#include "kiln/op/nn/paged_batch.hpp"

namespace kiln::op {

/// Causal attention of several sequences whose tokens stand one after the other, over keys and values in blocks (Kwon
/// et al. 2023, "Efficient memory management for large language model serving with PagedAttention"): q[1, heads, n, d],
/// k[1, kv_heads, n, d], v[1, kv_heads, n, dv] of new tokens, and i64[1], the address of a `paged_batch` that lives
/// during the run, give [1, heads, n, dv]. New keys and values are written into their blocks first; then each token
/// sees those of its own sequence up to its own, the last `window` of them where that is not 0. Scores are multiplied
/// by `scale`, then bounded: softcap * tanh(score / softcap) where that is not 0. An optional operand f32[heads] or
/// f32[1] are sinks: scores that take part in each head's softmax and have no value. Not in the default registry:
/// programs that have it are made where their caches are.
struct paged_attention {
  std::int64_t layer = 0;  ///< of the batch's
  std::int64_t window = 0;
  float scale = 1.0f, softcap = 0;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 4 && in.size() != 5)
      return fault::of(errc::invalid_argument, "number of inputs", "4 or 5", in.size());
    for (const shape& s : in.first(3)) {
      if (s.type != dtype::f32) return fault::of(errc::unsupported, "dtype of the operands", dtype::f32, s.type);
      if (s.rank() != 4) return fault::of(errc::shape_mismatch, "operands have rank 4", 4, s.rank());
      if (!(s.lens[0] == dimension(1)))
        return fault::of(errc::shape_mismatch, "sequences stand one after the other in one batch", 1, s.lens[0]);
      if (!(s.lens[2] == in[0].lens[2]))
        return fault::of(errc::shape_mismatch, "query, key and value have one length", in[0].lens[2], s.lens[2]);
    }
    const shape &q = in[0], &k = in[1], &v = in[2];
    if (!(k.lens[1] == v.lens[1]))
      return fault::of(errc::shape_mismatch, "key and value have equal heads", k.lens[1], v.lens[1]);
    if (k.lens[1] == dimension(0) || !(q.lens[1] % k.lens[1] == dimension(0)))
      return fault::of(errc::shape_mismatch, "query heads are a multiple of key heads", k.lens[1], q.lens[1]);
    if (!(q.lens[3] == k.lens[3]))
      return fault::of(errc::shape_mismatch, "query and key have equal last extents", q.lens[3], k.lens[3]);
    if (in[3].type != dtype::i64 || !(in[3].elements() == dimension(1)))
      return fault::of(errc::shape_mismatch, "the batch is one address", "i64[1]", in[3].lens);
    if (in.size() == 5 && (in[4].type != dtype::f32 || in[4].rank() != 1 ||
                           !(in[4].lens[0] == q.lens[1] || in[4].lens[0] == dimension(1))))
      return fault::of(errc::shape_mismatch, "sinks are one number, or one for each head", q.lens[1], in[4].lens);
    return shape{q.type, {q.lens[0], q.lens[1], q.lens[2], v.lens[3]}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto q = e.template in<float>(0), k = e.template in<float>(1), v = e.template in<float>(2);
    const auto out = e.template out<float>();
    static_assert(sizeof(std::int64_t) == sizeof(const paged_batch*));
    const auto* const batch =
        std::bit_cast<const paged_batch*>(static_cast<std::int64_t>(e.template in<std::int64_t>(3)[0]));
    const std::int64_t heads = q.lens[1], kv_heads = k.lens[1], n = q.lens[2], depth = q.lens[3], width = v.lens[3];
    const paged_layer at = batch->layers[static_cast<std::size_t>(layer)];
    std::int64_t first = 0;
    for (const paged_sequence& s : batch->sequences) {
      for (std::int64_t g = 0; g < kv_heads; ++g)
        for (std::int64_t i = 0; i < s.tokens; ++i) {
          write({*batch, s, at.keys, at.key_scales, g, depth}, s.past + i, k.data + (g * n + first + i) * depth);
          write({*batch, s, at.values, at.value_scales, g, width}, s.past + i, v.data + (g * n + first + i) * width);
        }
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t g = h / (heads / kv_heads);
        const rows keys{*batch, s, at.keys, at.key_scales, g, depth},
            values{*batch, s, at.values, at.value_scales, g, width};
        double sink = hidden;
        if (e.has(4)) {
          const auto sinks = e.template in<float>(4);
          sink = static_cast<double>(sinks[sinks.size() == 1 ? 0 : h]);
        }
        for (std::int64_t i = 0; i < s.tokens; ++i) {
          const std::int64_t row = h * n + first + i;
          attend(q.data + row * depth, keys, values, s.past + i, sink, out.data + row * width);
        }
      }
      first += s.tokens;
    }
  }

 private:
  static constexpr double hidden = -std::numeric_limits<double>::infinity();
  struct rows {
    const paged_batch& batch;
    const paged_sequence& sequence;
    std::ptrdiff_t numbers, scales;
    std::int64_t head, depth;
    std::byte* block(std::int64_t position) const { return sequence.blocks[position / batch.block]; }
    std::int64_t slot(std::int64_t position) const { return head * batch.block + position % batch.block; }
    std::byte* at(std::int64_t position) const {
      const auto bytes = static_cast<std::int64_t>(size_of(batch.stored));
      return block(position) + numbers + slot(position) * depth * bytes;
    }
    float& scale(std::int64_t position) const {
      return reinterpret_cast<float*>(block(position) + scales)[slot(position)];
    }
  };
  static void write(const rows& to, std::int64_t position, const float* from) {
    float by = 1;
    if (has_page_scales(to.batch.stored)) {
      float greatest = 0;
      for (std::int64_t c = 0; c < to.depth; ++c) greatest = kiln::max(greatest, kiln::abs(from[c]));
      const float most = greatest_paged(to.batch.stored);
      to.scale(position) = greatest / most;
      by = page_factor(to.batch.stored, greatest);
    }
    const auto bytes = static_cast<std::ptrdiff_t>(size_of(to.batch.stored));
    for (std::int64_t c = 0; c < to.depth; ++c) {
      const float x = from[c] * by, whole = to.batch.stored == dtype::i8 ? kiln::round(x) : x;
      encode(to.batch.stored, &whole, to.at(position) + c * bytes, 1);
    }
  }
  static void read(const rows& from, std::int64_t position, std::vector<float>& to) {
    to.resize(static_cast<std::size_t>(from.depth));
    decode(from.batch.stored, from.at(position), to.data(), from.depth);
    if (has_page_scales(from.batch.stored))
      for (float& x : to) x *= from.scale(position);
  }
  void attend(const float* q, const rows& keys, const rows& values, std::int64_t own, double sink, float* out) const {
    const std::int64_t low = window > 0 && own >= window ? own - window + 1 : 0;
    std::vector<float> row;
    std::vector<double> weights, y(static_cast<std::size_t>(values.depth), 0);
    double top = sink, sum = 0;
    for (std::int64_t j = low; j <= own; ++j) {
      read(keys, j, row);
      double s = 0;
      for (std::int64_t c = 0; c < keys.depth; ++c)
        s += static_cast<double>(q[c]) * static_cast<double>(row[static_cast<std::size_t>(c)]);
      s *= static_cast<double>(scale);
      if (softcap > 0) s = static_cast<double>(softcap) * kiln::tanh(s / static_cast<double>(softcap));
      weights.push_back(s);
      top = kiln::max(top, s);
    }
    for (double& w : weights) sum += w = kiln::exp(w - top);
    if (sink != hidden) sum += kiln::exp(sink - top);
    for (std::int64_t j = low; j <= own; ++j) {
      read(values, j, row);
      for (std::size_t c = 0; c < y.size(); ++c)
        y[c] += weights[static_cast<std::size_t>(j - low)] / sum * static_cast<double>(row[c]);
    }
    for (std::size_t c = 0; c < y.size(); ++c) out[c] = static_cast<float>(y[c]);
  }
};

}  // namespace kiln::op
