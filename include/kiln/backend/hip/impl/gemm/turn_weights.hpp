#pragma once
#include "kiln/backend/hip/impl/gemm/few_rows.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/fuse_stored_weights.hpp"

namespace kiln::hip {

/// Lays constant right operands of products that may have few rows out with their depth contiguous, as
/// `skinny_gemm` reads them. It runs after the fusion passes.
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
      layout core = detail::without_repeats(c.at);
      if (core.lens.size() != 2 || !(core.strides[1] == dimension(1)) || core.lens[0].value() % 8 != 0 ||
          core.lens[1].value() < least_few_rows_cols)
        return {};
      std::swap(core.lens[0], core.lens[1]);
      std::swap(core.strides[0], core.strides[1]);
      const value_id rows = r.add_literal(laid_out(*c.from, core));
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
