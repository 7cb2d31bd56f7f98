#include <limits>

#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/nn/roi_align.hpp"

// GridSample, DeformConv and region pooling: a sample between pixels is a weighted sum of gathered elements, with
// indices and weights that the program computes.
namespace kiln::onnx {

namespace {

enum class padding { zeros, border, reflection };

value clamped(node_context& c, value x, value low, value high) { return c.build.add(op::clip{}, x, low, high); }
value real(node_context& c, dtype t, double v) { return c.build.scalar(t, v); }
value extent_value(node_context& c, dimension n, dtype t) { return dimensions_value(c.build, {}, {n}).convert(t); }

// A position reflected at the ends of [low, high].
value reflected(node_context& c, value x, value low, value high) {
  const dtype t = x.type();
  const value span = high - low, zero = real(c, t, 0);
  const value away = (x - low).abs();
  const value safe = span.equal(zero).where(real(c, t, 1), span);
  const value times = (away / safe).floor(), rest = away - times * safe;
  const value odd = c.build.add(op::fmod{}, times, real(c, t, 2)).equal(real(c, t, 1));
  return span.equal(zero).where(low, odd.where(high - rest, rest + low));
}

// A position moved into [0, extent - 1] by reflection or clamping; NaN becomes 0.
value inner_position(node_context& c, value at, dimension extent, padding rule, bool corners) {
  const value zero = real(c, at.type(), 0), last = extent_value(c, extent, at.type()) - 1.0;
  if (rule == padding::reflection)
    at = corners ? reflected(c, at, zero, last) : reflected(c, at, real(c, at.type(), -.5), last + .5);
  return clamped(c, at, zero, last);
}

// Elements along one axis.
struct axis_elements {
  value index;   ///< i64, inside the extent
  value inside;  ///< of x's dtype: 1, or 0 for padding; none where there is no padding with zeros
};
axis_elements elements_at(node_context& c, value position, dimension extent, padding rule, bool corners) {
  const dtype t = position.type();
  const value zero = real(c, t, 0), last = extent_value(c, extent, t) - 1.0;
  axis_elements p;
  if (rule == padding::zeros) p.inside = both(not_less(position, zero), not_greater(position, last)).convert(t);
  p.index = inner_position(c, position, extent, rule, corners).convert(dtype::i64);
  return p;
}

// x[n, c, spatial...] at indices [n, points] for each spatial axis, as [n, c, points].
value gathered(node_context& c, value x, const small_vector<axis_elements>& at) {
  const dims lens = x.get_shape().lens;
  value flat = at[0].index, inside = at[0].inside;
  dimension all = lens[2];
  for (std::size_t d = 1; d < at.size(); ++d) {
    flat = flat * dimensions_value(c.build, {}, {lens[d + 2]}) + at[d].index;
    if (inside) inside = inside * at[d].inside;
    all = all * lens[d + 2];
  }
  const dimension points = flat.dim(1);
  const value index = flat.unsqueeze({1}).broadcast_to({lens[0], lens[1], points});
  const value read = c.build.add(op::gather_elements{2}, x.reshape({lens[0], lens[1], all}), index);
  return inside ? read * inside.unsqueeze({1}) : read;
}

value cubic_weight(value distance, double a, bool far) {
  const value x = distance;
  if (far) return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
  return ((x * (a + 2) - (a + 3)) * x) * x + 1.0;
}

// Interpolates x at positions [n, points] for each spatial axis, as [n, c, points].
value sampled(node_context& c, value x, const small_vector<value>& position, std::string_view mode, padding rule,
              bool corners) {
  const std::size_t axes = position.size();
  const dims lens = x.get_shape().lens;
  struct tap {
    axis_elements at;
    value weight;
  };
  small_vector<small_vector<tap>> taps;
  for (std::size_t d = 0; d < axes; ++d) {
    value at = position[d];
    const dimension extent = lens[d + 2];
    small_vector<tap> own;
    if (mode == "nearest") {
      own.push_back({elements_at(c, at | op::round{}, extent, rule, corners), {}});
    } else if (mode == "linear") {
      // border and reflection move the position before the weights are computed
      if (rule != padding::zeros) {
        at = inner_position(c, at, extent, rule, corners);
      }
      const value low = at.floor(), above = at - low;
      const padding inner = rule == padding::zeros ? padding::zeros : padding::border;
      own.push_back({elements_at(c, low, extent, inner, corners), -above + 1.0});
      own.push_back({elements_at(c, low + 1.0, extent, inner, corners), above});
    } else {
      const value low = at.floor(), above = at - low;
      for (int k = -1; k <= 2; ++k) {
        const value distance = (above - static_cast<double>(k)).abs();
        own.push_back({elements_at(c, low + static_cast<double>(k), extent, rule, corners),
                       cubic_weight(distance, -.75, k == -1 || k == 2)});
      }
    }
    taps.push_back(std::move(own));
  }
  value sum;
  small_vector<std::size_t> choice(axes, 0);
  for (bool more = true; more;) {
    small_vector<axis_elements> at;
    value weight;
    for (std::size_t d = 0; d < axes; ++d) {
      const tap& t = taps[d][choice[d]];
      at.push_back(t.at);
      if (t.weight) weight = weight ? weight * t.weight : t.weight;
    }
    value part = gathered(c, x, at);
    if (weight) part = part * weight.unsqueeze({1});
    sum = sum ? sum + part : part;
    more = false;
    for (std::size_t d = axes; d-- > 0 && !more;) {
      more = ++choice[d] < taps[d].size();
      if (!more) choice[d] = 0;
    }
  }
  return sum;
}

std::string_view sampling_mode(const node_context& c) {
  const auto mode = c.choice("mode", {"linear", "bilinear", "cubic", "bicubic", "nearest"});
  return mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
}

variables import_grid_sample(node_context& c) {
  const value x = c.in(0), grid = c.in(1);
  const std::size_t axes = x.rank() - 2;
  if (x.rank() < 3 || grid.rank() != x.rank() || !(grid.dim(-1) == dimension(axes)))
    c.malformed("the grid has the input's rank and a coordinate for each spatial dim");
  const auto name = c.choice("padding_mode", {"zeros", "border", "reflection"});
  const padding rule = name == "border" ? padding::border : name == "reflection" ? padding::reflection : padding::zeros;
  const bool corners = c.flag("align_corners");
  const dims out = grid.get_shape().lens, lens = x.get_shape().lens;
  dimension points = 1;
  for (std::size_t d = 1; d + 1 < out.size(); ++d) points = points * out[d];
  const value where = widened(as_real(grid)).reshape({out[0], points, axes});
  small_vector<value> position;
  for (std::size_t d = 0; d < axes; ++d) {
    // coordinates run from the last spatial dim to the first, -1 to 1 across the extent
    const auto k = static_cast<std::int64_t>(axes - 1 - d);
    const value g = element_at(where, 2, k);
    const value n = extent_value(c, lens[d + 2], g.type());
    position.push_back(corners ? (g + 1.0) * (n - 1.0) / 2.0 : ((g + 1.0) * n - 1.0) / 2.0);
  }
  const value wide = is_float(x.type()) ? widened(x) : x.convert(dtype::f32);
  const value y = sampled(c, position[0].type() == wide.type() ? wide : wide.convert(position[0].type()), position,
                          sampling_mode(c), rule, corners);
  dims shape{lens[0], lens[1]};
  for (std::size_t d = 1; d + 1 < out.size(); ++d) shape.push_back(out[d]);
  return {y.convert(x.type()).reshape(shape)};
}

// Coordinates of each output pixel through theta[n, axes, axes + 1].
variables import_affine_grid(node_context& c) {
  const value theta = widened(c.in(0));
  const auto size = c.extents(1, "the size");
  if (size.size() != 4 && size.size() != 5) c.malformed("size has 4 or 5 numbers");
  const std::size_t axes = size.size() - 2;
  const bool corners = c.flag("align_corners");
  const dtype t = theta.type();
  dims grid;
  dimension points = 1;
  for (std::size_t d = 0; d < axes; ++d) {
    grid.push_back(size[d + 2]);
    points = points * size[d + 2];
  }
  small_vector<value> columns;
  for (std::size_t d = axes; d-- > 0;) {
    const value k = c.build.add(op::iota{grid, static_cast<std::int64_t>(d), t});
    const value n = extent_value(c, grid[d], t);
    value at;
    if (corners) {  // a single element is in the middle
      const value one = c.build.scalar(t, 1.0);
      at = grid[d] == dimension(1) ? k * 0.0
                                   : (n > one).where(k * 2.0 / (n - one).max(one) - one, c.build.scalar(t, 0.0));
    } else
      at = (k * 2.0 + 1.0) / n - 1.0;
    columns.push_back(at.reshape({points, 1}));
  }
  columns.push_back(c.build.add(op::fill{{points, 1}, 1, t}));
  const value base = c.build.add(op::concat{1}, columns);
  const value y = base.unsqueeze({0}).dot(theta.transpose({0, 2, 1}));
  dims out{size[0]};
  for (const dimension n : grid) out.push_back(n);
  out.push_back(axes);
  return {y.reshape(out).convert(c.in(0).type())};
}

variables import_roi_align(node_context& c) {
  op::roi_align r;
  r.height = c.integer("output_height", 1);
  r.width = c.integer("output_width", 1);
  r.samples = c.integer("sampling_ratio", 0);
  r.scale = c.real("spatial_scale", 1);
  r.greatest = c.choice("mode", {"avg", "max"}) == "max";
  r.half_pixel =
      c.text("coordinate_transformation_mode", c.version < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  return {c.build.add(r, c.in(0), c.in(1), c.in(2))};
}

// Which elements of an extent each bin of a region covers: [floor(k * bin), ceil((k + 1) * bin)) from its corner on.
value covered(node_context& c, value low, value high, std::int64_t bins, dimension extent, float scale) {
  const dtype t = low.type();
  const auto corner = [&](value x) { return (x * scale + .5f).floor(); };
  const value start = corner(low), size = (corner(high) - start + 1.0f).max(c.build.scalar(t, 1.0f));
  const value bin = size / static_cast<float>(bins);  // [rois]
  const value k = c.build.add(op::iota{{1, bins}, 1, t}), first = start.unsqueeze({1}), step = bin.unsqueeze({1});
  const value from = (k * step).floor() + first, to = ((k + 1.0f) * step | op::ceil{}) + first;
  const value at = c.build.add(op::iota{{1, 1, extent}, 2, t});
  return both(not_less(at, from.unsqueeze({2})), at < to.unsqueeze({2}));  // [rois, bins, extent]
}
variables import_max_roi_pool(node_context& c) {
  const value x = widened(c.in(0)), rois = widened(c.in(1));
  const auto pooled = c.integers("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || !(rois.dim(1) == dimension(5)) || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1)
    c.malformed("the input has rank 4, the rois are [n, 5] and pooled_shape has two positive numbers");
  const auto column = [&](std::int64_t k) { return element_at(rois, 1, k); };
  const float scale = c.real("spatial_scale", 1);
  const value images = x.gather(column(0).convert(dtype::i64), 0);  // [rois, c, h, w]
  const value low = c.build.scalar(x.type(), -std::numeric_limits<float>::infinity());
  const value rows = covered(c, column(2), column(4), pooled[0], x.dim(2), scale),
              columns = covered(c, column(1), column(3), pooled[1], x.dim(3), scale);
  const value tall = rows.unsqueeze({1, 4}).where(images.unsqueeze({2}), low).reduce_max({3}).squeeze({3});
  const value y = columns.unsqueeze({1, 2}).where(tall.unsqueeze({3}), low).reduce_max({4}).squeeze({4});
  return {y.equal(low).where(c.build.scalar(x.type(), 0.0f), y).convert(c.in(0).type())};
}

// The extents of DeformConv's offset (or mask): `each` numbers for every offset group, kernel element and output
// element.
dims deform_extents(node_context& c, const op::convolution& conv, std::int64_t groups, std::int64_t each) {
  const dims lens = c.in(0).get_shape().lens, kernel = c.in(1).get_shape().lens;
  dims out{lens[0], groups * each};
  for (std::size_t d = 0; d + 2 < lens.size(); ++d) {
    if (!kernel[d + 2].is_constant()) c.unsupported("a kernel of symbolic extents");
    out[1] *= kernel[d + 2];
    const std::int64_t pads = conv.pads.empty() ? 0 : conv.pads[d] + conv.pads[lens.size() - 2 + d];
    out.push_back((lens[d + 2] + pads - (kernel[d + 2].value() - 1) * conv.dilation[d] - 1) / conv.stride[d] + 1);
  }
  return out;
}

// DeformConv: samples at the positions that the offsets give, then a matrix product with the weight.
variables import_deform_conv(node_context& c) {
  const value w = widened(c.in(1));
  const op::convolution conv = read_convolution(c);
  const std::size_t axes = c.in(0).rank() - 2;
  const dims kernel = w.get_shape().lens;
  dims lens = c.in(0).get_shape().lens;
  lens[1] = kernel[1] * conv.group;
  const value x = widened(c.in(0).expect_dims(lens));
  const std::int64_t groups = c.integer("offset_group", 1);
  if (groups < 1 || c.in(2).rank() != x.rank())
    c.malformed("offset_group is positive, and the offset has the input's rank");
  const value offset = widened(c.in(2).expect_dims(deform_extents(c, conv, groups, static_cast<std::int64_t>(axes))));
  const dims out = offset.get_shape().lens;
  std::int64_t taps = 1;
  dimension points = 1;
  for (std::size_t d = 0; d < axes; ++d) {
    taps *= kernel[d + 2].value();
    points = points * out[d + 2];
  }
  if (!lens[1].is_constant() || lens[1].value() % groups != 0) c.malformed("offset groups share out the channels");
  const std::int64_t own = lens[1].value() / groups;
  const dtype t = x.type();
  small_vector<value> parts;
  for (std::int64_t g = 0; g < groups; ++g) {
    const value image = groups == 1 ? x : x.slice({{1}, {g * own}, {(g + 1) * own}, {}});
    // [n, taps, axes, points]
    const value moved =
        offset.reshape({lens[0], groups, taps, axes, points}).slice({{1}, {g}, {g + 1}, {}}).squeeze({1});
    small_vector<value> position;
    for (std::size_t d = 0; d < axes; ++d) {
      dims grid;
      for (std::size_t k = 0; k < axes; ++k) grid.push_back(out[k + 2]);
      const std::int64_t pad = conv.pads.empty() ? 0 : conv.pads[d];
      const value start =
          (c.build.add(op::iota{grid, static_cast<std::int64_t>(d), t}) * static_cast<double>(conv.stride[d]) -
           static_cast<double>(pad))
              .reshape({1, 1, points});
      dims inner;
      for (std::size_t k = 0; k < axes; ++k) inner.push_back(kernel[k + 2]);
      const value tap =
          (c.build.add(op::iota{inner, static_cast<std::int64_t>(d), t}) * static_cast<double>(conv.dilation[d]))
              .reshape({1, taps, 1});
      const auto k = static_cast<std::int64_t>(d);
      const value shift = element_at(moved, 2, k);
      position.push_back((shift + (start + tap)).reshape({lens[0], points * taps}));
    }
    value read = sampled(c, image, position, "linear", padding::zeros, true).reshape({lens[0], own, taps, points});
    if (c.has(4)) {
      const value mask =
          widened(c.in(4).expect_dims(deform_extents(c, conv, groups, 1))).reshape({lens[0], groups, taps, points});
      read = read * mask.slice({{1}, {g}, {g + 1}, {}});
    }
    parts.push_back(read);
  }
  value columns = parts.size() == 1 ? parts[0] : c.build.add(op::concat{1}, parts);
  const std::int64_t split = conv.group;
  const dimension channels = lens[1] / split, features = kernel[0] / split;
  columns = columns.reshape({lens[0], split, channels * taps, points});
  value y = w.reshape({1, split, features, channels * taps}).dot(columns);
  dims shape{lens[0], kernel[0]};
  for (std::size_t d = 0; d < axes; ++d) shape.push_back(out[d + 2]);
  y = y.reshape(shape);
  if (c.has(3)) y = y.add_along(1, widened(c.in(3)));
  return {y.convert(c.in(0).type())};
}

}  // namespace

std::span<const op_importer> sample_importers() {
  static constexpr op_importer table[] = {
      {"", "AffineGrid", 20, import_affine_grid}, {"", "DeformConv", 19, import_deform_conv},
      {"", "GridSample", 16, import_grid_sample}, {"", "MaxRoiPool", 1, import_max_roi_pool},
      {"", "RoiAlign", 10, import_roi_align},     {microsoft, "GridSample", 1, import_grid_sample},
  };
  return table;
}

}  // namespace kiln::onnx
