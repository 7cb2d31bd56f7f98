#pragma once
#include <bit>
#include <vector>

#include "kiln/core/math.hpp"
#include "kiln/op/evaluation.hpp"

namespace kiln::op {

/// `paged_attention` as devices compute it: keys and values lie in blocks of the operands' type, and a table in the
/// device's memory tells the sequences. Each row of the table, i64[rows, head + blocks], is some tokens of one
/// sequence: where the first of them stands in the run, how many they are (0: none, at most `most`), its position in
/// the sequence, how many positions were there before the run, zeros for the kernels' own use (as many as there are
/// kv_heads, or more), and the blocks' addresses, position p in block p / `block`.
/// Rows of one sequence follow each other. q[1, heads, n, d], k[1, kv_heads, n, d], v[1, kv_heads, n, dv], the table,
/// and optional sinks f32[heads] or f32[1] give [1, heads, n, dv]; new keys and values are written to their blocks.
/// Not in the default registry: programs that have it are made where their caches are.
struct block_attention {
  std::int64_t keys = 0, values = 0;  ///< bytes from a block's begin: [kv_heads, block, d] and [kv_heads, block, dv]
  std::int64_t block = 32;            ///< positions of a block
  std::int64_t head = 5;              ///< words of a row before the blocks' addresses
  std::int64_t most = 1;              ///< tokens of a row of the table
  std::int64_t window = 0;
  float scale = 1.0f, softcap = 0;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 4 && in.size() != 5)
      return fault::of(errc::invalid_argument, "number of inputs", "4 or 5", in.size());
    const shape &q = in[0], &k = in[1], &v = in[2];
    if (q.type != dtype::f32 && q.type != dtype::f16 && q.type != dtype::bf16)
      return fault::of(errc::unsupported, "dtype of the operands", "f32, f16 or bf16", q.type);
    for (const shape& s : in.first(3)) {
      if (s.type != q.type) return fault::of(errc::shape_mismatch, "operands have one dtype", q.type, s.type);
      if (s.rank() != 4) return fault::of(errc::shape_mismatch, "operands have rank 4", 4, s.rank());
      if (!(s.lens[0] == dimension(1)))
        return fault::of(errc::shape_mismatch, "sequences stand one after the other in one batch", 1, s.lens[0]);
      if (!(s.lens[2] == q.lens[2]))
        return fault::of(errc::shape_mismatch, "query, key and value have one length", q.lens[2], s.lens[2]);
    }
    if (!(k.lens[1] == v.lens[1]))
      return fault::of(errc::shape_mismatch, "key and value have equal heads", k.lens[1], v.lens[1]);
    if (k.lens[1] == dimension(0) || !(q.lens[1] % k.lens[1] == dimension(0)))
      return fault::of(errc::shape_mismatch, "query heads are a multiple of key heads", k.lens[1], q.lens[1]);
    if (!(q.lens[3] == k.lens[3]))
      return fault::of(errc::shape_mismatch, "query and key have equal last extents", q.lens[3], k.lens[3]);
    if (in[3].type != dtype::i64 || in[3].rank() != 2)
      return fault::of(errc::shape_mismatch, "the table of sequences is i64 of rank 2", 2, in[3].rank());
    if (in.size() == 5 && (in[4].type != dtype::f32 || in[4].rank() != 1 ||
                           !(in[4].lens[0] == q.lens[1] || in[4].lens[0] == dimension(1))))
      return fault::of(errc::shape_mismatch, "sinks are one number, or one for each head", q.lens[1], in[4].lens);
    return shape{q.type, {q.lens[0], q.lens[1], q.lens[2], v.lens[3]}};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto q = e.template in<float>(0), k = e.template in<float>(1), v = e.template in<float>(2);
    const auto table = e.template in<std::int64_t>(3);
    const auto out = e.template out<float>();
    const std::int64_t heads = q.lens[1], kv_heads = k.lens[1], n = q.lens[2], depth = q.lens[3], width = v.lens[3];
    const dtype stored = e.in_shape(0).type;
    for (std::int64_t r = 0; r < table.lens[0]; ++r) {
      const std::int64_t* const row = table.data + r * table.lens[1];
      for (std::int64_t i = 0; i < row[1]; ++i)
        for (std::int64_t g = 0; g < kv_heads; ++g) {
          const std::int64_t from = g * n + row[0] + i;
          encode(stored, k.data + from * depth, place(row, keys, g, row[2] + i, depth, stored), depth);
          encode(stored, v.data + from * width, place(row, values, g, row[2] + i, width, stored), width);
        }
    }
    for (std::int64_t r = 0; r < table.lens[0]; ++r) {
      const std::int64_t* const row = table.data + r * table.lens[1];
      for (std::int64_t h = 0; h < heads; ++h) {
        double sink = hidden;
        if (e.has(4)) {
          const auto sinks = e.template in<float>(4);
          sink = static_cast<double>(sinks[sinks.size() == 1 ? 0 : h]);
        }
        const std::int64_t g = h / (heads / kv_heads);
        for (std::int64_t i = 0; i < row[1]; ++i) {
          const std::int64_t at = h * n + row[0] + i, own = row[2] + i;
          const std::int64_t low = window > 0 && own >= window ? own - window + 1 : 0;
          std::vector<float> x(static_cast<std::size_t>(depth > width ? depth : width));
          std::vector<double> weights, y(static_cast<std::size_t>(width), 0);
          double top = sink, sum = 0;
          for (std::int64_t j = low; j <= own; ++j) {
            decode(stored, place(row, keys, g, j, depth, stored), x.data(), depth);
            double s = 0;
            for (std::int64_t c = 0; c < depth; ++c)
              s += static_cast<double>(q[at * depth + c]) * static_cast<double>(x[static_cast<std::size_t>(c)]);
            s *= static_cast<double>(scale);
            if (softcap > 0) s = static_cast<double>(softcap) * kiln::tanh(s / static_cast<double>(softcap));
            weights.push_back(s);
            top = kiln::max(top, s);
          }
          for (double& w : weights) sum += w = kiln::exp(w - top);
          if (sink != hidden) sum += kiln::exp(sink - top);
          for (std::int64_t j = low; j <= own; ++j) {
            decode(stored, place(row, values, g, j, width, stored), x.data(), width);
            for (std::size_t c = 0; c < y.size(); ++c)
              y[c] += weights[static_cast<std::size_t>(j - low)] / sum * static_cast<double>(x[c]);
          }
          for (std::int64_t c = 0; c < width; ++c)
            out[at * width + c] = static_cast<float>(y[static_cast<std::size_t>(c)]);
        }
      }
    }
  }

 private:
  static constexpr double hidden = -std::numeric_limits<double>::infinity();
  std::byte* place(const std::int64_t* row, std::int64_t from, std::int64_t g, std::int64_t position,
                   std::int64_t depth, dtype stored) const {
    auto* const begin = std::bit_cast<std::byte*>(row[head + position / block]);
    return begin + from + (g * block + position % block) * depth * static_cast<std::int64_t>(size_of(stored));
  }
};

}  // namespace kiln::op
