#pragma once
#include "kiln/op/derive.hpp"

namespace kiln {

namespace detail {

// Axes as a set: counted from the front, ascending, each once. Unchanged where one is outside the rank.
constexpr ints sorted_axes(const ints& axes, std::size_t rank) {
  inline_vector<bool, max_rank> on(rank, false);
  for (std::int64_t a : axes) {
    const std::int64_t n = normal_axis(a, rank);
    if (n < 0) return axes;
    on[static_cast<std::size_t>(n)] = true;
  }
  ints out;
  for (std::size_t d = 0; d < rank; ++d)
    if (on[d]) out.push_back(static_cast<std::int64_t>(d));
  return out;
}

template <class Op>
concept writes_itself_out = requires(const Op& op, std::span<const shape> in) {
  { op.normalized(in) } -> std::same_as<Op>;
};

}  // namespace detail

/// The op with its attributes in their one normal form, so that equal computations compare equal and passes need not
/// know defaults. An op's own `normalized(shapes)` says it; otherwise attributes called `axis` and `axes` (a set) count
/// from the front over the dims of input 0, or of the result where the op says `axes_of_result = true`.
template <class Op> constexpr Op normalized(const Op& op, std::span<const shape> in, const shape& out) {
  if constexpr (detail::writes_itself_out<Op>) {
    return op.normalized(in);
  } else {
    Op n = op;
    [[maybe_unused]] std::size_t rank = in.empty() ? out.rank() : in[0].rank();
    if constexpr (requires { Op::axes_of_result; }) rank = out.rank();
    if constexpr (kind_of<Op>() == op_kind::reduction) {
      if (n.axes.empty())
        for (std::size_t d = 0; d < rank; ++d) n.axes.push_back(static_cast<std::int64_t>(d));
    }
    if constexpr (requires { op.axes; })
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(op.axes)>, ints>)
        n.axes = detail::sorted_axes(n.axes, rank);
    if constexpr (requires { op.axis; })
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(op.axis)>, std::int64_t>)
        if (n.axis < 0 && n.axis >= -static_cast<std::int64_t>(rank)) n.axis += static_cast<std::int64_t>(rank);
    return n;
  }
}

}  // namespace kiln
