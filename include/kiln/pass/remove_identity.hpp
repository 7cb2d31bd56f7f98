#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

constexpr auto fold_same_view = [](auto& r, value_id v) {
  const value_id x = r.input(v, 0);
  const dims lens = r.shape_of(x).lens;
  if (!(r.shape_of(v).lens == lens)) return value_id{};
  const auto at = r.producer(v).op.map(layout::standard(lens));
  return at && at->is_standard() ? x : value_id{};
};

template <class Op> constexpr auto fold_of_one_element(pass_note& note) {
  return rewrite_each<Op>("reduce_of_one", [&note](auto& r, value_id v) {
    const value_id x = r.input(v, 0);
    if (!(r.shape_of(x).lens == r.shape_of(v).lens)) return value_id{};
    if (std::is_same_v<Op, op::reduce_sum> || std::is_same_v<Op, op::reduce_mean>)
      note.remark_on(r.shape_of(v).type, "a sum over one element becomes it: of -0 it gives -0, not 0");
    return x;
  });
}

}  // namespace detail

/// Removes ops that give their operand back: identity, a conversion to the dtype it has, copies, views whose layout is
/// the operand's own, reductions over extents of 1, a concatenation of one, padding by nothing.
template <class Program> constexpr pass_note remove_identity(Program& p) {
  pass_note note("remove_identity");
  for_each_module(p, [&](auto& m) {
    note.count(apply_rewrites(
        m, rewrite_kind<op_kind::view>("view", detail::fold_same_view),
        rewrite_each<op::identity>("identity", [](auto& r, value_id v) { return r.input(v, 0); }),
        rewrite_each<op::contiguous>("contiguous", [](auto& r, value_id v) { return r.input(v, 0); }),
        rewrite_each<op::convert>("convert",
                                  [](auto& r, value_id v) {
                                    const value_id x = r.input(v, 0);
                                    return r.shape_of(x).type == r.shape_of(v).type ? x : value_id{};
                                  }),
        rewrite_each<op::concat>(
            "concat_of_one",
            [](auto& r, value_id v) { return r.producer(v).inputs.size() == 1 ? r.input(v, 0) : value_id{}; }),
        rewrite_each<op::pad>("pad_by_nothing",
                              [](auto& r, value_id v) {
                                for (dimension d : r.template get_if<op::pad>(v)->pads)
                                  if (!(d == dimension(0))) return value_id{};
                                return r.input(v, 0);
                              }),
        detail::fold_of_one_element<op::reduce_sum>(note), detail::fold_of_one_element<op::reduce_mean>(note),
        detail::fold_of_one_element<op::reduce_max>(note), detail::fold_of_one_element<op::reduce_min>(note),
        detail::fold_of_one_element<op::reduce_prod>(note)));
  });
  return note;
}

}  // namespace kiln
