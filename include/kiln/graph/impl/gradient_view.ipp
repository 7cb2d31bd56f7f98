#include "kiln/graph/impl/gradient.hpp"

// Views: what was moved goes back, what was repeated is summed, what was left out is zero.
namespace kiln::detail {

namespace {

void same(backward_step& s) { s.give(0, s.slope); }
void reshape(backward_step& s) { s.give(0, s.slope.reshape(s.in_lens(0))); }
void expect_dims(backward_step& s) { s.give(0, s.slope.expect_dims(s.in_lens(0))); }
void reverse(backward_step& s) { s.give(0, s.build.add(s.as<op::reverse>(), s.slope)); }

void transpose(backward_step& s) {
  const ints& permutation = s.as<op::transpose>().permutation;
  const std::size_t rank = s.slope.rank();
  if (permutation.empty()) return s.give(0, s.slope.transpose({}));
  ints back(rank, 0);
  for (std::size_t i = 0; i < rank; ++i)
    back[static_cast<std::size_t>(normal_axis(permutation[i], rank))] = static_cast<std::int64_t>(i);
  s.give(0, s.slope.transpose(back));
}

void broadcast(backward_step& s) {
  const std::int64_t axis = s.as<op::broadcast>().axis;
  const std::size_t rank = s.slope.rank(), own = s.in(0).rank();
  const auto first = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  ints axes = axes_between(0, first);
  for (const std::int64_t d : axes_between(first + own, rank)) axes.push_back(d);
  s.give(0, (axes.empty() ? s.slope : s.slope.reduce_sum(axes)).reshape(s.in_lens(0)));
}

// Zeros before and after along one axis; negative numbers crop.
value padded(value x, std::size_t axis, dimension before, dimension after) {
  if (before == dimension(0) && after == dimension(0)) return x;
  op::pad around;
  around.pads = decltype(around.pads)(2 * x.rank(), dimension(0));
  around.pads[axis] = before;
  around.pads[x.rank() + axis] = after;
  return x.owner().add(around, x);
}

// x's elements `step` apart, zeros between and after them.
value stretched(value x, std::size_t axis, std::int64_t step) {
  if (step == 1) return x;
  dims lens = x.get_shape().lens;
  lens[axis] = lens[axis] * step;
  const auto next = static_cast<std::int64_t>(axis) + 1;
  return padded(x.unsqueeze({next}), axis + 1, 0, step - 1).reshape(lens);
}

void slice(backward_step& s) { s.give(0, unsliced(s.slope, s.as<op::slice>(), s.in_lens(0))); }

constexpr gradient_rule rules[] = {
    {"broadcast", broadcast}, {"contiguous", same},     {"expect_dims", expect_dims}, {"flatten", reshape},
    {"multibroadcast", same}, {"reshape", reshape},     {"reverse", reverse},         {"slice", slice},
    {"squeeze", reshape},     {"transpose", transpose}, {"unsqueeze", reshape},
};

}  // namespace

value unsliced(value slope, const op::slice& o, const dims& lens) {
  for (std::size_t i = 0; i < o.starts.size(); ++i) {
    const auto at = o.axes.empty() ? i : static_cast<std::size_t>(normal_axis(o.axes[i], lens.size()));
    // where the first element of this axis is: the offset in a layout in which no other axis counts
    op::slice one{{static_cast<std::int64_t>(at)}, {o.starts[i]}, {o.ends[i]}, {o.steps.empty() ? 1 : o.steps[i]}};
    layout alone{lens, dims(lens.size(), dimension(0)), 0};
    alone.strides[at] = 1;
    const layout kept = one.map(alone).value();
    const dimension count = kept.lens[at];
    const std::int64_t step = kept.strides[at].value(), apart = step < 0 ? -step : step;
    dimension first = kept.offset;
    if (step < 0) {
      slope = slope.owner().add(op::reverse{{static_cast<std::int64_t>(at)}}, slope);
      first = first - (count - 1) * apart;
    }
    slope = padded(stretched(slope, at, apart), at, first, lens[at] - first - count * apart);
  }
  return slope;
}

std::span<const gradient_rule> view_gradients() { return rules; }

}  // namespace kiln::detail
