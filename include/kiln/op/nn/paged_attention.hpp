#pragma once
#include <bit>

#include "kiln/op/nn/joined_sequences.hpp"
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
    for (const shape& s : in.first(3))
      if (s.type != dtype::f32) return fault::of(errc::unsupported, "dtype of the operands", dtype::f32, s.type);
    if (in[3].type != dtype::i64 || !(in[3].elements() == dimension(1)))
      return fault::of(errc::shape_mismatch, "the batch is one address", "i64[1]", in[3].lens);
    return detail::joined_attention_shape(in);
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
        const double sink = detail::sink_of(e, h);
        for (std::int64_t i = 0; i < s.tokens; ++i) {
          const std::int64_t row = h * n + first + i;
          detail::attend_token(
              *this, q.data + row * depth, depth, width, s.past + i, sink,
              [&](std::int64_t j, float* to) { read(keys, j, to); },
              [&](std::int64_t j, float* to) { read(values, j, to); }, out.data + row * width);
        }
      }
      first += s.tokens;
    }
  }

 private:
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
  static void read(const rows& from, std::int64_t position, float* to) {
    decode(from.batch.stored, from.at(position), to, from.depth);
    if (has_page_scales(from.batch.stored))
      for (std::int64_t c = 0; c < from.depth; ++c) to[c] *= from.scale(position);
  }
};

}  // namespace kiln::op
