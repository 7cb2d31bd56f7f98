#include <vector>

#include "kiln/graph/impl/gradient.hpp"
#include "kiln/op/linear/dft.hpp"

// Sums of products: an operand's slope is the same kind of sum over the result's slope and the other operand.
namespace kiln::detail {

namespace {

value transposed(value x) {
  ints axes = axes_between(0, x.rank());
  std::swap(axes[x.rank() - 2], axes[x.rank() - 1]);
  return x.transpose(axes);
}
void dot(backward_step& s) {
  s.give(0, s.build.add(op::dot{}, s.slope, transposed(s.in(1))));
  s.give(1, s.build.add(op::dot{}, transposed(s.in(0)), s.slope));
}

// The input's extents along the spatial dims from `first` on.
value cropped(value x, const dims& to) {
  op::slice kept;
  for (std::size_t d = 2; d < x.rank(); ++d) {
    kept.axes.push_back(static_cast<std::int64_t>(d));
    kept.starts.push_back(0);
    kept.ends.push_back(to[d]);
  }
  return x.get_shape().lens == to ? x : x.slice(kept);
}

// The slope of weights [filters, channels / group, kernel...] that were slid over `wide` and gave, or took, `narrow`:
// the batch is what is summed over, so it stands where channels do, and the narrow tensor slides with stride and
// dilation exchanged.
value weight_slope(value wide, value narrow, const op::convolution& o, const dims& weight) {
  const auto batch_inside = [&](value x) {  // [n, group * c, spatial...] as [group, c, n, spatial...]
    const dims lens = x.get_shape().lens;
    dims apart = lens;
    apart[1] = o.group;
    apart.insert(2, lens[1] / dimension(o.group));
    ints order{1, 2, 0};
    for (const std::int64_t d : axes_between(3, apart.size())) order.push_back(d);
    return x.reshape(apart).transpose(order);
  };
  const auto joined = [](value x) {  // the first two dims as one
    dims lens = x.get_shape().lens;
    lens[0] = lens[0] * lens[1];
    lens.erase(1);
    return x.reshape(lens);
  };
  ints groups_inside{1, 0};
  for (const std::int64_t d : axes_between(2, wide.rank() + 1)) groups_inside.push_back(d);
  value x = batch_inside(wide).transpose(groups_inside);  // [c, group, n, spatial...]
  dims lens = x.get_shape().lens;
  lens[1] = lens[1] * lens[2];
  lens.erase(2);
  op::convolution exchanged = o;
  exchanged.stride = o.dilation;
  exchanged.dilation = o.stride;
  const value slope = x.reshape(lens).conv(joined(batch_inside(narrow)), exchanged);  // [c, filters, kernel...]
  ints order = axes_between(0, slope.rank());
  std::swap(order[0], order[1]);
  return cropped(slope.transpose(order), weight);
}

void convolution(backward_step& s) {
  const shape in[] = {s.in(0).get_shape(), s.in(1).get_shape()};
  const op::convolution o = s.as<op::convolution>().normalized(in);
  op::deconvolution back{o.stride, o.dilation, {}, o.pads, o.group};
  for (std::size_t d = 0; d + 2 < in[0].rank(); ++d) {
    // elements after the last window have no slope
    const std::size_t at = d + 2, axes = in[0].rank() - 2;
    const dimension reached = (s.slope.get_shape().lens[at] - 1) * o.stride[d] + (in[1].lens[at] - 1) * o.dilation[d] +
                              1 - o.pads[d] - o.pads[axes + d];
    const dimension unread = in[0].lens[at] - reached;
    if (!unread.is_constant())
      raise(errc::unsupported, "op 'convolution' over symbolic extents with strides has no derivative");
    back.output_padding.push_back(unread.value());
  }
  s.give(0, s.build.add(back, s.slope, s.in(1)));
  s.give(1, weight_slope(s.in(0), s.slope, o, in[1].lens));
}

void deconvolution(backward_step& s) {
  const shape in[] = {s.in(0).get_shape(), s.in(1).get_shape()};
  const op::deconvolution o = s.as<op::deconvolution>().normalized(in);
  const op::convolution back{o.stride, o.dilation, o.pads, o.group};
  s.give(0, cropped(s.slope.conv(s.in(1), back), in[0].lens));
  s.give(1, weight_slope(s.slope, s.in(0), back, in[1].lens));
}

// A constant of the extents' rank whose `values` vary along one axis.
value along_axis(backward_step& s, std::size_t axis, std::span<const double> values) {
  dims lens(s.slope.rank(), dimension(1));
  lens[axis] = static_cast<std::int64_t>(values.size());
  return s.build.constant(literal::of<double>({dtype::f64, lens}, values)).convert(s.slope.type());
}

// A transform's matrix is symmetric: its adjoint is the same transform between two conjugations. What a one-sided
// inverse takes as one number and its conjugate counts twice.
void dft(backward_step& s) {
  const auto& o = s.as<op::dft>();
  const dims& lens = s.in_lens(0);
  const auto axis = static_cast<std::size_t>(normal_axis(o.axis, lens.size()));
  const dimension n = o.length_of(lens[axis]);
  const bool half = o.one_sided && o.inverse;
  const double signs[] = {1, -1};
  const value conjugates = along_axis(s, lens.size() - 1, signs);
  const value slope = s.slope.dim(-1) == dimension(2) ? s.slope * conjugates : s.slope;
  value x = (slope | op::dft{static_cast<std::int64_t>(axis), o.inverse, false, n}) * conjugates;
  const dimension taken = half ? n / 2 + 1 : n;
  op::pad fit;
  fit.pads.resize(2 * lens.size(), dimension(0));
  fit.pads[lens.size() + axis] = taken - n;
  if (half) {
    if (!n.is_constant())
      raise(errc::unsupported, "op 'dft' of a spectrum's half and a symbolic length has no derivative");
    std::vector<double> counts(static_cast<std::size_t>(taken.value()), 2.0);
    counts[0] = 1;
    if (n.value() % 2 == 0) counts.back() = 1;
    x = (x | fit) * along_axis(s, axis, counts);
  }
  fit.pads[lens.size() + axis] = lens[axis] - taken;
  x = x | fit;
  s.give(0, lens.back() == dimension(2) ? x : x.slice({{-1}, {0}, {1}, {}}));
}

constexpr gradient_rule rules[] = {
    {"convolution", convolution},
    {"deconvolution", deconvolution},
    {"dft", dft},
    {"dot", dot},
};

}  // namespace

std::span<const gradient_rule> linear_gradients() { return rules; }

}  // namespace kiln::detail
