#pragma once
#include <cstring>

#include "kiln/backend/hip/impl/gemm/few_rows.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/fuse_stored_weights.hpp"

namespace kiln::hip {

/// A matrix of 16-bit numbers with its rows as columns, by squares that a cache holds.
inline literal turned_matrix(const literal& from) {
  const std::int64_t rows = from.get_shape().lens[0].value(), cols = from.get_shape().lens[1].value();
  buffer made = buffer::allocate(from.data().size());
  constexpr std::int64_t side = 64;
  const auto* in = reinterpret_cast<const std::uint16_t*>(from.bytes());
  auto* out = reinterpret_cast<std::uint16_t*>(made.data());
  for (std::int64_t r0 = 0; r0 < rows; r0 += side)
    for (std::int64_t c0 = 0; c0 < cols; c0 += side)
      for (std::int64_t c = c0; c < std::min(cols, c0 + side); ++c)
        for (std::int64_t r = r0; r < std::min(rows, r0 + side); ++r) out[c * rows + r] = in[r * cols + c];
  return literal(shape(from.get_shape().type, {cols, rows}), std::move(made));
}

/// Lays constant right operands of products that may have few rows out with their depth contiguous, as
/// `gemm_of_few_rows` reads them. It runs after the fusion passes.
inline pass_note turn_weights(program& p) {
  pass_note note("turn_weights");
  for_each_unfused(p, [&](module_graph& m) {
    struct done {
      value_id from, by;
    };
    small_vector<done> all;
    rewriter<module_graph> r(m);
    const auto turned = [&](value_id w) -> value_id {
      for (const done& d : all)
        if (d.from == w) return d.by;
      const shape type = r.shape_of(w);
      const constant_view c = viewed_constant(r, w);
      if (!c || c.from->has_symbols() || (type.type != dtype::f16 && type.type != dtype::bf16)) return {};
      const layout core = detail::without_repeats(c.at);
      if (core.lens.size() != 2 || !(core.strides[1] == dimension(1)) || core.lens[0].value() % 8 != 0 ||
          core.lens[1].value() < least_few_rows_cols)
        return {};
      const value_id rows = r.add_literal(turned_matrix(laid_out(*c.from, core)));
      const value_id y = detail::repeated(r, r.add(op::transpose{{1, 0}}, {rows}), type.lens);
      all.push_back({w, y});
      return y;
    };
    const std::uint32_t n = r.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      const value_id w = detail::right_operand_of_dot(p, r.module(), i);
      if (!w) continue;
      dims lens = r[i].results[0].lens;
      lens.pop_back();
      const dimension rows = product(lens);
      if (rows.is_constant() && rows.value() > most_few_rows) continue;
      const value_id by = turned(w);
      if (!by) continue;
      for (value_id& v : r.module()[i].inputs)
        if (v == w) v = by;
      note.count("product");
    }
  });
  return note;
}

}  // namespace kiln::hip
