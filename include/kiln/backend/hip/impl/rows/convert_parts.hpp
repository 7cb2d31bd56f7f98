#pragma once
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/index/concat.hpp"
#include "kiln/op/pointwise/convert.hpp"
#include "kiln/pass/row_parts.hpp"

namespace kiln::hip {

/// Parts of converted rows are converted parts, and what joins rows of computed parts to convert them joins converted
/// parts: so rotations of 16-bit floats that are computed in f32 are one kernel, where they were one before and one
/// after as well.
inline pass_note convert_parts(program& p) {
  pass_note note("convert_parts");
  for_each_module(p, [&](module_graph& m) {
    rewriter<module_graph> r(m);
    const auto convert_each = [&](std::uint32_t i) {
      const value_id whole{i, 0};
      if (r.users(i).empty()) return;
      const op::convert* to = r.get_if<op::convert>(whole);
      if (!to) return;
      const op::convert conversion = *to;
      const value_id from = r.input(whole, 0);
      const auto* joins = r.get_if<op::concat>(from);
      const std::size_t rank = r.shape_of(from).rank();
      if (joins && r.single_use(from) && static_cast<std::size_t>(normal_axis(joins->axis, rank)) + 1 == rank) {
        const small_vector<value_id> parts = r.producer(from).inputs;
        small_vector<value_id> made;
        for (const value_id part : parts) {
          if (!r.is_kind(part, op_kind::pointwise)) return;
          made.push_back(part);
        }
        const operation joint(*joins);
        for (value_id& part : made) part = r.add(conversion, {part});
        r.replace(whole, r.add(joint, std::move(made)));
        return note.count("conversion of joined parts");
      }
      small_vector<std::uint32_t> users;
      for (const std::uint32_t u : r.users(i)) {
        if (u == r.output_user || !kiln::detail::part_taken(r, {u, 0})) return;
        users.push_back(u);
      }
      for (const std::uint32_t u : users) {
        const operation slice = r[u].op;
        const value_id part = r.add(slice, {from});
        r.replace({u, 0}, r.add(conversion, {part}));
      }
      note.count("conversion of parts");
    };
    for (std::uint32_t i = 0, count = r.size(); i < count; ++i)
      if (r[i].kind == instruction_kind::op) convert_each(i);
  });
  return note;
}

}  // namespace kiln::hip
