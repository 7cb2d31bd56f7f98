#pragma once
#include <bit>

#include "kiln/op/nn/joined_sequences.hpp"

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
  /// Words of a row, in the order above.
  static constexpr std::int64_t first = 0, tokens = 1, position = 2, past = 3, counters = 4;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 4 && in.size() != 5)
      return fault::of(errc::invalid_argument, "number of inputs", "4 or 5", in.size());
    const dtype type = in[0].type;
    if (type != dtype::f32 && type != dtype::f16 && type != dtype::bf16)
      return fault::of(errc::unsupported, "dtype of the operands", "f32, f16 or bf16", type);
    for (const shape& s : in.first(3))
      if (s.type != type) return fault::of(errc::shape_mismatch, "operands have one dtype", type, s.type);
    if (in[3].type != dtype::i64 || in[3].rank() != 2)
      return fault::of(errc::shape_mismatch, "the table of sequences is i64 of rank 2", 2, in[3].rank());
    return detail::joined_attention_shape(in);
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto q = e.template in<float>(0), k = e.template in<float>(1), v = e.template in<float>(2);
    const auto table = e.template in<std::int64_t>(3);
    const auto out = e.template out<float>();
    const std::int64_t heads = q.lens[1], kv_heads = k.lens[1], n = q.lens[2], depth = q.lens[3], width = v.lens[3];
    const dtype stored = e.in_shape(0).type;
    const auto each_row = [&](auto&& visit) {
      for (std::int64_t r = 0; r < table.lens[0]; ++r) visit(table.data + r * table.lens[1]);
    };
    each_row([&](const std::int64_t* row) {
      for (std::int64_t i = 0; i < row[tokens]; ++i)
        for (std::int64_t g = 0; g < kv_heads; ++g) {
          const std::int64_t from = g * n + row[first] + i, own = row[position] + i;
          encode(stored, k.data + from * depth, place(row, keys, g, own, depth, stored), depth);
          encode(stored, v.data + from * width, place(row, values, g, own, width, stored), width);
        }
    });
    each_row([&](const std::int64_t* row) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const double sink = detail::sink_of(e, h);
        const std::int64_t g = h / (heads / kv_heads);
        for (std::int64_t i = 0; i < row[tokens]; ++i) {
          const std::int64_t at = h * n + row[first] + i;
          detail::attend_token(
              *this, q.data + at * depth, depth, width, row[position] + i, sink,
              [&](std::int64_t j, float* to) { decode(stored, place(row, keys, g, j, depth, stored), to, depth); },
              [&](std::int64_t j, float* to) { decode(stored, place(row, values, g, j, width, stored), to, width); },
              out.data + at * width);
        }
      }
    });
  }

 private:
  std::byte* place(const std::int64_t* row, std::int64_t from, std::int64_t g, std::int64_t at, std::int64_t depth,
                   dtype stored) const {
    auto* const begin = std::bit_cast<std::byte*>(row[head + at / block]);
    return begin + from + (g * block + at % block) * depth * static_cast<std::int64_t>(size_of(stored));
  }
};

}  // namespace kiln::op
