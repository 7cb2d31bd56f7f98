#include <algorithm>
#include <cmath>
#include <vector>

#include "kiln/onnx/impl/ops/resize.hpp"
#include "kiln/op/nn/resample.hpp"

// Resize is separable: along each axis an output element is a weighted sum of a few input elements. Extents and scales
// give their indices and weights.
namespace kiln::onnx {

namespace {

// One axis: indices and weights of `taps` input elements for each output element, tap after tap.
struct axis_plan {
  std::int64_t extent = 0, taps = 0;
  std::vector<std::int64_t> at;
  std::vector<double> weight;
  std::vector<bool> outside;  // output elements that are the extrapolation value
};

double source_position(const resize_rules& r, std::int64_t x, double scale, std::int64_t in, std::int64_t out,
                       double from, double to) {
  const auto n = static_cast<double>(in), wanted = static_cast<double>(x), length = n * scale;
  if (r.coordinates == "asymmetric") return wanted / scale;
  if (r.coordinates == "align_corners") return length == 1 ? 0 : wanted * (n - 1) / (length - 1);
  if (r.coordinates == "pytorch_half_pixel") return length > 1 ? (wanted + .5) / scale - .5 : 0;
  if (r.coordinates == "tf_half_pixel_for_nn") return (wanted + .5) / scale;
  if (r.coordinates == "tf_crop_and_resize")
    return length > 1 ? from * (n - 1) + wanted * (to - from) * (n - 1) / (length - 1) : .5 * (from + to) * (n - 1);
  if (r.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(out) / length, center = n / 2;
    return center * (1 - adjustment) + (wanted + .5) / scale - .5;
  }
  return (wanted + .5) / scale - .5;
}

std::int64_t nearest(const resize_rules& r, double x) {
  if (r.rounding == "floor") return static_cast<std::int64_t>(std::floor(x));
  if (r.rounding == "ceil") return static_cast<std::int64_t>(std::ceil(x));
  if (r.rounding == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(x + .5));
  return static_cast<std::int64_t>(std::ceil(x - .5));
}

double cubic_weight(double a, double x) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

constexpr std::int64_t most_entries = std::int64_t{1} << 26;

axis_plan plan_axis(const resize_rules& r, std::int64_t in, std::int64_t out, double scale, double from, double to) {
  axis_plan p;
  p.extent = out;
  const bool is_nearest = r.mode == "nearest", is_cubic = r.mode == "cubic";
  // antialiasing widens the kernel when it shrinks
  const double stretch = r.antialias && scale < 1 ? scale : 1, reach = (is_cubic ? 2 : 1) / stretch;
  const double taps = is_nearest ? 1 : 2 * std::ceil(reach);
  // indices and weights are constants of the program, so their number is limited
  if (const double entries = taps * static_cast<double>(out); !(entries <= most_entries))
    raise(errc::limit, "a resized axis has a table of at most " + std::to_string(most_entries) + " taps, found " +
                           std::to_string(entries));
  p.taps = static_cast<std::int64_t>(taps);
  p.at.assign(static_cast<std::size_t>(p.taps * out), 0);
  p.weight.assign(static_cast<std::size_t>(p.taps * out), 1);
  p.outside.assign(static_cast<std::size_t>(out), false);
  for (std::int64_t x = 0; x < out; ++x) {
    const double source = source_position(r, x, scale, in, out, from, to);
    p.outside[static_cast<std::size_t>(x)] =
        r.coordinates == "tf_crop_and_resize" && (source < 0 || source > static_cast<double>(in - 1));
    const std::int64_t first =
        is_nearest ? nearest(r, source) : static_cast<std::int64_t>(std::floor(source)) - p.taps / 2 + 1;
    double sum = 0;
    std::vector<double> weights(static_cast<std::size_t>(p.taps), 1);
    for (std::int64_t k = 0; k < p.taps && !is_nearest; ++k) {
      const double distance = (source - static_cast<double>(first + k)) * stretch;
      double w = is_cubic ? cubic_weight(r.cubic, distance) : std::max(0., 1 - std::abs(distance));
      if (r.exclude_outside && (first + k < 0 || first + k >= in)) w = 0;
      weights[static_cast<std::size_t>(k)] = w;
      sum += w;
    }
    for (std::int64_t k = 0; k < p.taps; ++k) {
      const auto slot = static_cast<std::size_t>(k * out + x);
      p.at[slot] = std::clamp<std::int64_t>(first + k, 0, in - 1);
      if (!is_nearest) p.weight[slot] = weights[static_cast<std::size_t>(k)] / sum;
    }
  }
  return p;
}

// Elements outside the region of interest become the extrapolation value.
value cover_outside(node_context& c, value x, std::int64_t axis, const axis_plan& p, float outside) {
  small_vector<bool> flags;
  bool any = false;
  for (const bool b : p.outside) flags.push_back(b), any = any || b;
  if (!any) return x;
  const value mask = c.build.constant<bool>(dtype::boolean, {p.extent}, flags);
  return x.make_along(axis, mask).where(c.build.scalar(x.type(), outside), x);
}

struct wanted_size {
  std::int64_t out = 0;
  double scale = 1;
};

value resize(node_context& c, const resize_rules& r, const ints& axes, const std::vector<wanted_size>& sizes,
             const std::vector<float>& region) {
  const value x = c.in(0);
  const bool weighted = r.mode != "nearest";
  value y = !weighted ? x : op::resample::types_of_sums.contains(x.type()) ? widened(x) : as_real(x);
  std::vector<axis_plan> plans;
  std::vector<std::size_t> order;  // of the axes that are resampled, ascending
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t in = x.dim(axes[i]).value();
    const double from = region.empty() ? 0 : region[i], to = region.empty() ? 1 : region[axes.size() + i];
    plans.push_back(plan_axis(r, in, sizes[i].out, sizes[i].scale, from, to));
    if (sizes[i].out != in || sizes[i].scale != 1 || !region.empty()) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t k) { return axes[i] < axes[k]; });
  op::resample sums{{}, weighted};
  small_vector<value> operands{y};
  for (const std::size_t i : order) {
    const axis_plan& p = plans[i];
    sums.axes.push_back(axes[i]);
    operands.push_back(c.build.constant<std::int64_t>(dtype::i64, {p.taps, p.extent}, p.at));
    if (weighted)
      operands.push_back(
          c.build.constant<double>(y.type() == dtype::f64 ? dtype::f64 : dtype::f32, {p.taps, p.extent}, p.weight));
  }
  if (!order.empty()) y = c.build.add(sums, operands);
  for (std::size_t i = 0; i < axes.size(); ++i) y = cover_outside(c, y, axes[i], plans[i], r.outside);
  // weights are rounded: f32 rounds a sum back to the integer that it should be
  if (is_integer(x.type()) && bits_of(x.type()) <= 16 && y.type() != x.type()) y = y.convert(dtype::f32);
  return y.type() == x.type() ? y : y.convert(x.type());
}

std::int64_t extent_of(double size) {
  if (!(size <= most_entries)) raise(errc::limit, "a resized extent is within its limit: " + std::to_string(size));
  return static_cast<std::int64_t>(std::floor(size));
}

std::int64_t known_extent(const node_context& c, std::int64_t axis) {
  const dimension n = c.in(0).dim(axis);
  if (!n.is_constant()) c.unsupported("resizes an extent of " + kiln::to_string(n));
  return n.value();
}

// Extents by scales, or scales by extents.
std::vector<wanted_size> sizes_by_scale(const node_context& c, const ints& axes, std::span<const float> scales) {
  if (scales.size() != axes.size()) c.malformed("there is a scale for each axis");
  std::vector<wanted_size> out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t in = known_extent(c, axes[i]);
    if (!(scales[i] > 0) || scales[i] > 1e6f) c.malformed("a scale is positive");
    out.push_back({extent_of(static_cast<double>(in) * scales[i]), scales[i]});
  }
  return out;
}
std::vector<wanted_size> sizes_by_extent(const node_context& c, const ints& axes,
                                         std::span<const std::int64_t> extents) {
  if (extents.size() != axes.size()) c.malformed("there is a size for each axis");
  const auto policy = c.text("keep_aspect_ratio_policy", "stretch");
  std::vector<wanted_size> out;
  double common = policy == "not_larger" ? 1e30 : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t in = known_extent(c, axes[i]);
    if (in < 1 || extents[i] < 1) c.malformed("a resized extent is positive");
    out.push_back({extents[i], static_cast<double>(extents[i]) / static_cast<double>(in)});
    common = policy == "not_larger" ? std::min(common, out.back().scale) : std::max(common, out.back().scale);
  }
  if (policy == "stretch") return out;
  for (std::size_t i = 0; i < axes.size(); ++i)
    out[i] = {extent_of(std::round(static_cast<double>(c.in(0).dim(axes[i]).value()) * common)), common};
  return out;
}

bool is_known(value v) {
  const auto& from = v.owner().module().producer(v.id());
  return from.kind == instruction_kind::literal && !from.constant.has_symbols();
}
bool all_known(const node_context& c, const ints& axes, std::initializer_list<value> lists) {
  bool known = true;
  for (const value v : lists) known = known && (!v || is_known(v));
  for (const std::int64_t a : axes) known = known && c.in(0).dim(a).is_constant();
  return known;
}

variables import_resize(node_context& c) {
  resize_rules r{std::string(c.text("mode", "nearest")),
                 std::string(c.text("coordinate_transformation_mode", "half_pixel")),
                 std::string(c.text("nearest_mode", "round_prefer_floor")),
                 c.real("cubic_coeff_a", -0.75f),
                 c.real("extrapolation_value", 0),
                 c.flag("exclude_outside"),
                 c.flag("antialias")};
  if (c.version < 11) r = {r.mode, "asymmetric", "floor", -0.75f, 0, false, false};
  const std::size_t rank = c.in(0).rank(), scales_at = c.version < 11 ? 1 : 2;
  const ints axes = axes_attribute(c, rank);
  const auto reals = [&](std::size_t i, std::string_view what) {
    const literal* l = c.constant(i);
    if (!l) c.malformed(std::string(what) + " is missing");
    const auto list = l->to<float>();
    return std::vector<float>(list.begin(), list.end());
  };
  const bool scaled = c.has(scales_at) && !(c.in(scales_at).get_shape().elements() == dimension(0));
  if (!scaled && !c.has(3)) c.malformed("scales or sizes are given");
  const value by_scale = scaled ? c.in(scales_at) : value(), by_size = scaled ? value() : c.in(3),
              cut = r.coordinates == "tf_crop_and_resize" ? c.in(1) : value();
  // a batch that only a run knows keeps its extent
  if (scaled && !cut && is_known(by_scale)) {
    const std::vector<float> scales = reals(scales_at, "the list of scales");
    ints changed;
    std::vector<float> by;
    for (std::size_t i = 0; i < axes.size() && scales.size() == axes.size(); ++i)
      if (scales[i] != 1 || c.in(0).dim(axes[i]).is_constant()) changed.push_back(axes[i]), by.push_back(scales[i]);
    if (changed.size() < axes.size() && all_known(c, changed, {by_scale}))
      return {resize(c, r, changed, sizes_by_scale(c, changed, by), {})};
  }
  if (!all_known(c, axes, {by_scale, by_size, cut})) return {dynamic_resize(c, r, axes, by_scale, by_size, cut)};
  std::vector<float> region;
  if (r.coordinates == "tf_crop_and_resize") {
    region = reals(1, "the region of interest");
    if (region.size() != 2 * axes.size()) c.malformed("the region of interest has two numbers an axis");
  }
  return {resize(c, r, axes,
                 scaled ? sizes_by_scale(c, axes, reals(scales_at, "the list of scales"))
                        : sizes_by_extent(c, axes, as_span(c.numbers(3, "the list of sizes"))),
                 region)};
}

variables import_upsample(node_context& c) {
  std::vector<float> scales(c.reals("scales").begin(), c.reals("scales").end());
  if (c.version < 7) scales = {1, 1, c.real("height_scale", 1), c.real("width_scale", 1)};
  const value list = c.version >= 9
                         ? c.in(1)
                         : c.build.constant<float>(dtype::f32, {static_cast<std::int64_t>(scales.size())}, scales);
  const ints axes = axes_from(0, c.in(0).rank());
  const resize_rules r{
      c.text("mode", "nearest") == "nearest" ? "nearest" : "linear", "asymmetric", "floor", -0.75f, 0, false, false};
  if (!all_known(c, axes, {list})) return {dynamic_resize(c, r, axes, list, {}, {})};
  if (c.version >= 9) {
    const auto given = c.constant(1)->to<float>();
    scales.assign(given.begin(), given.end());
  }
  return {resize(c, r, axes, sizes_by_scale(c, axes, scales), {})};
}

}  // namespace

std::span<const op_importer> resize_importers() {
  static constexpr op_importer table[] = {
      {"", "Resize", 10, import_resize, "antialias by scales that a run computes: ranks up to 7"},
      {"", "Upsample", 1, import_upsample},
      {"", "Upsample", 10, nullptr},
  };
  return table;
}

}  // namespace kiln::onnx
