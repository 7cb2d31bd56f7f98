#include <limits>

#include "kiln/onnx/impl/parse.hpp"
#include "kiln/op/nn/roi_align.hpp"

// Images read between their pixels: a sample is a weighted sum of gathered elements, weights and positions being
// computed by the graph.
namespace kiln::onnx {

namespace {

enum class padding { zeros, border, reflection };

value at_most_and_least(call& c, value x, value low, value high) { return c.build.add(op::clip{}, x, low, high); }
value real(call& c, dtype t, double v) { return c.build.scalar(t, v); }
value extent_value(call& c, dimension n, dtype t) { return dimensions_value(c.build, {}, {n}).convert(t); }

// Folds a position back into [low, high] as a mirror at each end does.
value reflected(call& c, value x, value low, value high) {
  const dtype t = x.type();
  const value span = high - low, zero = real(c, t, 0);
  const value away = (x - low).abs();
  const value safe = span.equal(zero).where(real(c, t, 1), span);
  const value times = (away / safe).floor(), rest = away - times * safe;
  const value odd = c.build.add(op::fmod{}, times, real(c, t, 2)).equal(real(c, t, 1));
  return span.equal(zero).where(low, odd.where(high - rest, rest + low));
}

// An axis of positions in pixels: element k of x along it, and whether it exists.
struct picked {
  value index;   ///< i64, inside the extent
  value inside;  ///< of x's dtype: 1 or 0; none where every position counts
};
picked pick(call& c, value position, dimension extent, padding rule, bool corners) {
  const dtype t = position.type();
  const value zero = real(c, t, 0), last = extent_value(c, extent, t) - 1.0;
  picked p;
  value at = position;
  if (rule == padding::zeros)
    p.inside = c.build
                   .add(op::logical_and{}, c.build.add(op::greater_or_equal{}, at, zero),
                        c.build.add(op::less_or_equal{}, at, last))
                   .convert(t);
  if (rule == padding::reflection)
    at = corners ? reflected(c, at, zero, last) : reflected(c, at, real(c, t, -.5), last + .5);
  // a position that is no number reads the first element
  const value kept = at_most_and_least(c, at, zero, last);
  p.index = kept.convert(dtype::i64);
  return p;
}

// x[n, c, spatial...] at index tuples of one spatial axis each [n, points], as [n, c, points].
value gathered(call& c, value x, const small_vector<picked>& at) {
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

// Sums over the corners of the cell around each position; `position` holds one value [n, points] an axis.
value sampled(call& c, value x, const small_vector<value>& position, std::string_view mode, padding rule,
              bool corners) {
  const std::size_t axes = position.size();
  const dims lens = x.get_shape().lens;
  struct tap {
    picked at;
    value weight;
  };
  small_vector<small_vector<tap>> taps;
  for (std::size_t d = 0; d < axes; ++d) {
    value at = position[d];
    const dimension extent = lens[d + 2];
    small_vector<tap> own;
    if (mode == "nearest") {
      own.push_back({pick(c, at | op::round{}, extent, rule, corners), {}});
    } else if (mode == "linear") {
      // border and reflection move the position itself, so that weights follow it
      if (rule != padding::zeros) {
        const value last = extent_value(c, extent, at.type()) - 1.0;
        if (rule == padding::reflection)
          at = corners ? reflected(c, at, real(c, at.type(), 0), last)
                       : reflected(c, at, real(c, at.type(), -.5), last + .5);
        at = at_most_and_least(c, at, real(c, at.type(), 0), last);
      }
      const value low = at.floor(), above = at - low;
      const padding inner = rule == padding::zeros ? padding::zeros : padding::border;
      own.push_back({pick(c, low, extent, inner, corners), -above + 1.0});
      own.push_back({pick(c, low + 1.0, extent, inner, corners), above});
    } else {
      const value low = at.floor(), above = at - low;
      for (int k = -1; k <= 2; ++k) {
        const value distance = (above - static_cast<double>(k)).abs();
        own.push_back({pick(c, low + static_cast<double>(k), extent, rule, corners),
                       cubic_weight(distance, -.75, k == -1 || k == 2)});
      }
    }
    taps.push_back(std::move(own));
  }
  value sum;
  small_vector<std::size_t> choice(axes, 0);
  for (bool more = true; more;) {
    small_vector<picked> at;
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

std::string sampling_mode(const call& c) {
  const auto mode = c.text("mode", c.version < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") return "linear";
  if (mode == "bicubic") return "cubic";
  if (mode != "nearest" && mode != "linear" && mode != "cubic") c.malformed("mode is '" + std::string(mode) + "'");
  return std::string(mode);
}

variables parse_grid_sample(call& c) {
  const value x = c.in(0), grid = c.in(1);
  const std::size_t axes = x.rank() - 2;
  if (x.rank() < 3 || grid.rank() != x.rank() || !(grid.dim(-1) == dimension(axes)))
    c.malformed("the grid has the input's rank and a coordinate for each spatial dim");
  const auto name = c.text("padding_mode", "zeros");
  const padding rule = name == "border" ? padding::border : name == "reflection" ? padding::reflection : padding::zeros;
  if (name != "zeros" && rule == padding::zeros) c.malformed("padding_mode is '" + std::string(name) + "'");
  const bool corners = c.flag("align_corners");
  const dims out = grid.get_shape().lens, lens = x.get_shape().lens;
  dimension points = 1;
  for (std::size_t d = 1; d + 1 < out.size(); ++d) points = points * out[d];
  const value where = widened(as_real(grid)).reshape({out[0], points, axes});
  small_vector<value> position;
  for (std::size_t d = 0; d < axes; ++d) {
    // coordinates run from the last spatial dim to the first, -1 to 1 across the extent
    const auto k = static_cast<std::int64_t>(axes - 1 - d);
    const value g = where.slice({{2}, {k}, {k + 1}, {}}).squeeze({2});
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
variables parse_affine_grid(call& c) {
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
    if (corners) {  // a single element stands in the middle
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

variables parse_roi_align(call& c) {
  op::roi_align r;
  r.height = c.integer("output_height", 1);
  r.width = c.integer("output_width", 1);
  r.samples = c.integer("sampling_ratio", 0);
  r.scale = c.real("spatial_scale", 1);
  const auto mode = c.text("mode", "avg");
  if (mode != "avg" && mode != "max") c.malformed("mode is '" + std::string(mode) + "'");
  r.greatest = mode == "max";
  r.half_pixel =
      c.text("coordinate_transformation_mode", c.version < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  return {c.build.add(r, c.in(0), c.in(1), c.in(2))};
}

// Whole pixels: bin k of an extent covers [floor(k * bin), ceil((k + 1) * bin)) from the region's corner on.
value covered(call& c, value low, value high, std::int64_t bins, dimension extent, float scale) {
  const dtype t = low.type();
  const auto corner = [&](value x) { return (x * scale + .5f).floor(); };
  const value start = corner(low), size = (corner(high) - start + 1.0f).max(c.build.scalar(t, 1.0f));
  const value bin = size / static_cast<float>(bins);  // [rois]
  const value k = c.build.add(op::iota{{1, bins}, 1, t}), first = start.unsqueeze({1}), step = bin.unsqueeze({1});
  const value from = (k * step).floor() + first, to = ((k + 1.0f) * step | op::ceil{}) + first;
  const value at = c.build.add(op::iota{{1, 1, extent}, 2, t});
  return c.build.add(op::logical_and{}, c.build.add(op::greater_or_equal{}, at, from.unsqueeze({2})),
                     at < to.unsqueeze({2}));  // [rois, bins, extent]
}
variables parse_max_roi_pool(call& c) {
  const value x = widened(c.in(0)), rois = widened(c.in(1));
  const auto pooled = c.integers("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || !(rois.dim(1) == dimension(5)) || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1)
    c.malformed("the input has rank 4, the rois are [n, 5] and pooled_shape has two positive numbers");
  const auto column = [&](std::int64_t k) { return rois.slice({{1}, {k}, {k + 1}, {}}).squeeze({1}); };
  const float scale = c.real("spatial_scale", 1);
  const value images = x.gather(column(0).convert(dtype::i64), 0);  // [rois, c, h, w]
  const value low = c.build.scalar(x.type(), -std::numeric_limits<float>::infinity());
  const value rows = covered(c, column(2), column(4), pooled[0], x.dim(2), scale),
              columns = covered(c, column(1), column(3), pooled[1], x.dim(3), scale);
  const value tall = rows.unsqueeze({1, 4}).where(images.unsqueeze({2}), low).reduce_max({3}).squeeze({3});
  const value y = columns.unsqueeze({1, 2}).where(tall.unsqueeze({3}), low).reduce_max({4}).squeeze({4});
  return {y.equal(low).where(c.build.scalar(x.type(), 0.0f), y).convert(c.in(0).type())};
}

// Each kernel position reads the input where its offset points; the product with the weight is a matrix product.
// The extents of an offset, `each` numbers for every kernel position and offset group, over the places of the result.
dims deform_extents(call& c, const op::convolution& conv, std::int64_t groups, std::int64_t each) {
  const dims lens = c.in(0).get_shape().lens, kernel = c.in(1).get_shape().lens;
  dims out{lens[0], groups * each};
  for (std::size_t d = 0; d + 2 < lens.size(); ++d) {
    if (!kernel[d + 2].is_constant()) c.unsupported("a kernel whose extents only a run knows");
    out[1] *= kernel[d + 2];
    const std::int64_t pads = conv.pads.empty() ? 0 : conv.pads[d] + conv.pads[lens.size() - 2 + d];
    out.push_back((lens[d + 2] + pads - (kernel[d + 2].value() - 1) * conv.dilation[d] - 1) / conv.stride[d] + 1);
  }
  return out;
}

variables parse_deform_conv(call& c) {
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
      const value shift = moved.slice({{2}, {k}, {k + 1}, {}}).squeeze({2});
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

std::span<const row> sample_rows() {
  static constexpr row rows[] = {
      {"", "AffineGrid", 20, parse_affine_grid}, {"", "DeformConv", 19, parse_deform_conv},
      {"", "GridSample", 16, parse_grid_sample}, {"", "MaxRoiPool", 1, parse_max_roi_pool},
      {"", "RoiAlign", 10, parse_roi_align},     {microsoft, "GridSample", 1, parse_grid_sample},
  };
  return rows;
}

}  // namespace kiln::onnx
