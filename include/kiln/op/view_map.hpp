#pragma once
#include "kiln/op/concepts.hpp"

/// Steps that several view ops share.
namespace kiln::detail {

constexpr std::string_view copy_needed = "the input's strides allow this view without a copy";

/// The layout under other extents of as many elements; a fault where the strides ask for a copy.
constexpr result<layout> reshaped(const layout& in, const dims& to) {
  for (dimension d : to)
    if (d.max() < 0) return fault::of(errc::invalid_argument, "extents are not negative", 0, d);
  const dimension from = product(in.lens), into = product(to);
  const auto equal = same(from, into);
  if (equal && !*equal) return fault::of(errc::shape_mismatch, "a reshape keeps the number of elements", in.lens, to);
  if (in.lens == to) return in;
  if (in.dense() || from == dimension(0)) return layout{to, row_major(to), in.offset};
  if (const auto out = reshape_layout(in, to)) return *out;
  return fault::of(errc::unsupported, copy_needed, to, in.strides);
}

/// Axes as flags over `rank` dims: negative ones count from the end; each is named at most once.
constexpr result<inline_vector<bool, max_rank>> named_axes(const ints& axes, std::size_t rank) {
  inline_vector<bool, max_rank> on(rank, false);
  for (std::int64_t a : axes) {
    const std::int64_t n = normal_axis(a, rank);
    if (n < 0) return fault::of(errc::shape_mismatch, "an axis lies within the rank", rank, a);
    if (on[static_cast<std::size_t>(n)]) return fault::of(errc::shape_mismatch, "an axis is named once", "once", a);
    on[static_cast<std::size_t>(n)] = true;
  }
  return on;
}

}  // namespace kiln::detail
