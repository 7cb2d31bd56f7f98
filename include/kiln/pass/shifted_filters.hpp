#pragma once
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/pointwise/add.hpp"
#include "kiln/op/pointwise/mul.hpp"
#include "kiln/op/view/multibroadcast.hpp"
#include "kiln/op/view/reshape.hpp"
#include "kiln/op/view/slice.hpp"

namespace kiln::detail {

/// What is subtracted from whole numbers of [least, greatest] so that they fit i8: 0 where they do, nothing where no
/// number is enough.
constexpr std::optional<std::int64_t> shift_to_i8(std::int64_t least, std::int64_t greatest) {
  if (least >= -128 && greatest <= 127) return 0;
  if (greatest - least > 255) return std::nullopt;
  return least + 128;
}

/// Filters [m, c / group, kernel...] of i8 with a filter of ones after those of each group, which sums its windows.
constexpr literal with_sums_of_windows(const literal& filters, std::int64_t group) {
  const auto values = filters.to<float>();
  dims lens = filters.get_shape().lens;
  const std::int64_t all = lens[0].value(), each = all == 0 ? 0 : std::int64_t(values.size()) / all;
  const std::int64_t own = all / group * each;  // numbers of a group's filters
  small_vector<float> out;
  for (std::int64_t g = 0; g < group; ++g) {
    for (std::int64_t i = 0; i < own; ++i) out.push_back(values[static_cast<std::size_t>(g * own + i)]);
    for (std::int64_t i = 0; i < each; ++i) out.push_back(1);
  }
  lens[0] = all + group;
  return literal::of<float>(shape(dtype::i8, lens), out);
}

/// The i32 convolution with `filters + shift` from that with `with_sums_of_windows(filters)`.
template <class Rewriter>
constexpr value_id add_shifted_windows(Rewriter& r, value_id y, std::int64_t group, std::int64_t shift) {
  dims lens = r.shape_of(y).lens;
  const std::int64_t own = lens[1].value() / group - 1;
  dims by_group{lens[0], group, own + 1};
  for (std::size_t d = 2; d < lens.size(); ++d) by_group.push_back(lens[d]);
  const value_id apart = r.add(op::reshape{by_group}, {y});
  const auto filters = [&](std::int64_t from, std::int64_t to) {
    return r.add(op::slice{{2}, {dimension(from)}, {dimension(to)}, {}}, {apart});
  };
  const value_id sums = filters(0, own), windows = filters(own, own + 1);
  const value_id by =
      r.add(op::multibroadcast{r.shape_of(windows).lens}, {r.add_literal(literal::scalar(dtype::i32, shift))});
  const value_id more = r.add(op::multibroadcast{r.shape_of(sums).lens}, {r.add(op::mul{}, {windows, by})});
  lens[1] = own * group;
  return r.add(op::reshape{lens}, {r.add(op::add{}, {sums, more})});
}

}  // namespace kiln::detail
