#pragma once
#include "kiln/pass/fusion_group.hpp"

namespace kiln {

namespace detail {

// Whether the last dims alone are folded, a few elements for each of many results: a kernel has rows enough without a
// division of each.
constexpr bool are_many_short_rows(const dims& lens, const inline_vector<bool, max_rank>& folded) {
  constexpr std::int64_t many = 16, few = 1 << 14;
  std::int64_t rows = 1, row = 1;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    if (!lens[d].is_constant() || (d > 0 && folded[d - 1] && !folded[d])) return false;
    (folded[d] ? row : rows) *= lens[d].value();
  }
  return rows >= many && row <= few;
}

// The same extremes, those of rows first; an empty value where there is only one row, or none.
template <class Op, class R> constexpr value_id extremes_of_rows(R& r, value_id v) {
  const auto* op = r.template get_if<Op>(v);
  if (!op) return {};
  const value_id x = r.input(v, 0);
  const dims lens = r.shape_of(x).lens;
  const auto folded = reduced_dims(op->axes, lens.size()).value();
  const std::size_t last = lens.size() - 1;
  if (lens.size() < 2 || !folded[last] || lens[last] == dimension(1)) return {};
  ints others;
  bool many = false;
  for (std::size_t d = 0; d < last; ++d)
    if (folded[d]) {
      others.push_back(static_cast<std::int64_t>(d));
      many = many || !(lens[d] == dimension(1));
    }
  if (!many || are_many_short_rows(lens, folded)) return {};
  const value_id rows = r.add(Op{{static_cast<std::int64_t>(last)}}, {x});
  return r.add(Op{others}, {rows});
}

}  // namespace detail

/// Takes the maximum and the minimum of several dims row by row, then over the rows: the first part runs on all
/// threads, or in the kernel that makes the rows, as dynamic quantization of images wants it.
template <class Program> constexpr pass_note reduce_in_rows(Program& p) {
  pass_note note("reduce_in_rows");
  rewrite_unfused(p, [&](auto& r, std::uint32_t i) {
    value_id by = detail::extremes_of_rows<op::reduce_max>(r, {i, 0});
    if (!by) by = detail::extremes_of_rows<op::reduce_min>(r, {i, 0});
    if (!by) return;
    r.replace({i, 0}, by);
    note.count("reduction");
  });
  return note;
}

}  // namespace kiln
