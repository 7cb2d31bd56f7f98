#include "kiln/onnx/impl/ops/resize.hpp"

// Indices and weights along an axis as values of the program: the rules of resize.ipp, in f64.
namespace kiln::onnx {

namespace {

// Values of one axis: scalars, and a vector with the source position of each output element.
struct axis_values {
  dimension in, out;
  value extent, scale, source;
};

class resizer {
 public:
  resizer(node_context& c, const resize_rules& r) : c_(c), rules_(r) {}

  value number(double x) const { return c_.build.scalar(dtype::f64, x); }
  value number(dimension d) const {
    return dimensions_value(c_.build, {}, small_vector<dimension>{d}).convert(dtype::f64);
  }
  value element(value list, std::size_t k) const {
    const auto at = static_cast<std::int64_t>(k);
    return list.slice({{0}, {at}, {at + 1}, {}}).reshape({}).convert(dtype::f64);
  }
  dimension whole(value size) const {
    return c_.dimensions_of(size.floor().convert(dtype::i64), "a resized extent", 0)[0];
  }

  std::vector<axis_values> by_scale(const ints& axes, value scales) const {
    scales = listed(scales, axes.size());
    std::vector<axis_values> out;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axis_values a;
      a.in = c_.in(0).dim(axes[i]);
      a.extent = number(a.in);
      a.scale = element(scales, i);
      const auto& from = c_.build.module().producer(a.scale.id());
      const bool kept = from.kind == instruction_kind::literal && from.constant.at<double>(0) == 1;
      a.out = kept ? a.in : whole(a.extent * a.scale);
      out.push_back(a);
    }
    return out;
  }
  std::vector<axis_values> by_size(const ints& axes, value sizes) const {
    const auto extents = c_.dimensions_of(listed(sizes, axes.size()), "the list of sizes", 0);
    if (extents.size() != axes.size()) c_.malformed("there is a size for each axis");
    const auto policy = c_.text("keep_aspect_ratio_policy", "stretch");
    std::vector<axis_values> out;
    value common;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axis_values a;
      a.in = c_.in(0).dim(axes[i]);
      a.out = extents[i];
      a.extent = number(a.in);
      a.scale = number(a.out) / a.extent;
      common = !common ? a.scale : policy == "not_larger" ? common.min(a.scale) : common.max(a.scale);
      out.push_back(a);
    }
    if (policy == "stretch") return out;
    for (axis_values& a : out) {
      a.scale = common;
      a.out = whole(a.extent * common + .5);
    }
    return out;
  }

  value source_of(const axis_values& a, value from, value to) const {
    const value at = c_.build.add(op::iota{{a.out}, 0, dtype::i64}).convert(dtype::f64);
    const value n = a.extent, length = n * a.scale, one = number(1.);
    const std::string& how = rules_.coordinates;
    const value many = length > one;
    if (how == "asymmetric") return at / a.scale;
    if (how == "align_corners") return many.where(at * (n - one) / many.where(length - one, one), number(0.));
    if (how == "pytorch_half_pixel") return many.where((at + .5) / a.scale - .5, number(0.));
    if (how == "tf_half_pixel_for_nn") return (at + .5) / a.scale;
    if (how == "tf_crop_and_resize") {
      const value wide = (to - from) * (n - one), step = wide / many.where(length - one, one);
      return many.where(from * (n - one) + at * step, (from + to) * .5 * (n - one));
    }
    if (how == "half_pixel_symmetric") {
      const value adjustment = number(a.out) / length;
      return n * .5 * (one - adjustment) + (at + .5) / a.scale - .5;
    }
    return (at + .5) / a.scale - .5;
  }

  value along(value x, std::int64_t axis, const axis_values& a) const {
    const std::string& how = rules_.rounding;
    if (rules_.mode == "nearest") {
      const value s = a.source;
      return picked(x, axis, a,
                    how == "floor"               ? s.floor()
                    : how == "ceil"              ? s.ceil()
                    : how == "round_prefer_ceil" ? (s + .5).floor()
                                                 : (s - .5).ceil());
    }
    if (rules_.antialias) return smoothed(x, axis, a);
    const int taps = rules_.mode == "cubic" ? 4 : 2;
    const value first = a.source.floor();
    std::vector<value> taps_at, weights;
    value whole;
    for (int k = 0; k < taps; ++k) {
      taps_at.push_back(first + (k - taps / 2 + 1));
      weights.push_back(weight(a.source - taps_at.back(), taps_at.back(), a));
      whole = whole ? whole + weights.back() : weights.back();
    }
    value sum;
    for (std::size_t k = 0; k < taps_at.size(); ++k) {
      const value part = picked(x, axis, a, taps_at[k]);
      const value term = part * part.make_along(axis, (weights[k] / whole).convert(dtype::f32).convert(x.type()));
      sum = sum ? sum + term : term;
    }
    return sum;
  }
  value covered(value x, std::int64_t axis, const axis_values& a) const {
    const value outside = c_.build.scalar(x.type(), rules_.outside);
    const value before = (a.source < number(0.)), after = (a.source > a.extent - 1);
    for (const value beyond : {before, after}) x = x.make_along(axis, beyond).where(outside, x);
    return x;
  }

 private:
  // Antialiasing widens the kernel by the scale: a run computes the number of taps.
  value smoothed(value x, std::int64_t axis, const axis_values& a) const {
    if (x.rank() == max_rank)
      c_.unsupported("resizes a tensor of rank " + std::to_string(max_rank) + " with antialias");
    const value stretch = a.scale.min(number(1.)), reach = number(rules_.mode == "cubic" ? 2. : 1.) / stretch;
    const dimension half = c_.dimensions_of(reach.ceil().convert(dtype::i64), "the reach of a resize", 1)[0],
                    taps = half * 2;
    const value tap = c_.build.add(op::iota{{1, taps}, 1, dtype::i64}).convert(dtype::f64);
    const value source = a.source.unsqueeze({1}), taps_at = source.floor() + (tap - number(half) + 1);
    value w = weight((source - taps_at) * stretch, taps_at, a);
    w = w / w.reduce_sum({1});
    const value read = picked(x, axis, a, taps_at);  // [..., out, taps, ...]
    const auto at = static_cast<std::size_t>(axis);
    dims each(read.rank(), dimension(1)), lens = x.get_shape().lens;
    each[at] = lens[at] = a.out;
    each[at + 1] = taps;
    return (read * w.convert(dtype::f32).convert(x.type()).reshape(each)).reduce_sum({axis + 1}).reshape(lens);
  }
  value picked(value x, std::int64_t axis, const axis_values& a, value taps_at) const {
    return x.gather(taps_at.max(number(0.)).min(a.extent - 1).convert(dtype::i64), axis);
  }
  value weight(value distance, value tap_at, const axis_values& axis) const {
    const value x = distance.abs(), none = number(0.);
    value w;
    if (rules_.mode == "cubic") {
      const double a = rules_.cubic;
      const value near = (x * (a + 2) - (a + 3)) * x * x + 1, far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
      w = (x > number(1.)).where((x < number(2.)).where(far, none), near);
    } else {
      w = (number(1.) - x).max(none);
    }
    if (!rules_.exclude_outside) return w;
    w = (tap_at < none).where(none, w);
    return (tap_at > axis.extent - 1).where(none, w);
  }

  node_context& c_;
  const resize_rules& rules_;
};

}  // namespace

value dynamic_resize(node_context& c, const resize_rules& r, const ints& axes, value scales, value sizes,
                     value region) {
  const value x = c.in(0);
  const resizer make(c, r);
  if (scales && scales.rank() != 1) c.malformed("there is a scale for each axis");
  std::vector<axis_values> plans = scales ? make.by_scale(axes, scales) : make.by_size(axes, sizes);
  value y = is_float(x.type()) || r.mode == "nearest" ? x : x.convert(dtype::f32);
  if (region) region = listed(region, 2 * axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axis_values& a = plans[i];
    if (a.in == a.out && !region) continue;
    a.source = region ? make.source_of(a, make.element(region, i), make.element(region, axes.size() + i))
                      : make.source_of(a, {}, {});
    y = make.along(y, axes[i], a);
  }
  for (std::size_t i = 0; region && i < axes.size(); ++i) y = make.covered(y, axes[i], plans[i]);
  return y.convert(x.type());
}

}  // namespace kiln::onnx
