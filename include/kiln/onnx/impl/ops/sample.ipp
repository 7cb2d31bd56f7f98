#include <array>
#include <limits>

#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/nn/grid_sample.hpp"
#include "kiln/op/nn/roi_align.hpp"

// GridSample, DeformConv and region pooling.
namespace kiln::onnx {

namespace {

value extent_value(node_context& c, dimension n, dtype t) { return dimensions_value(c.build, {}, {n}).convert(t); }

op::sampling_mode sampling_mode(const node_context& c) {
  const auto mode = c.choice("mode", {"linear", "bilinear", "cubic", "bicubic", "nearest"});
  return mode == "nearest"                      ? op::sampling_mode::nearest
         : mode == "cubic" || mode == "bicubic" ? op::sampling_mode::cubic
                                                : op::sampling_mode::linear;
}

variables import_grid_sample(node_context& c) {
  const value x = c.in(0), grid = c.in(1);
  if (x.rank() < 3 || grid.rank() != x.rank() || !(grid.dim(-1) == dimension(x.rank() - 2)))
    c.malformed("the grid has the input's rank and a coordinate for each spatial dim");
  op::grid_sample o;
  o.mode = sampling_mode(c);
  const auto name = c.choice("padding_mode", {"zeros", "border", "reflection"});
  o.padding = name == "border"       ? op::sampling_padding::border
              : name == "reflection" ? op::sampling_padding::reflection
                                     : op::sampling_padding::zeros;
  o.align_corners = c.flag("align_corners");
  const value wide = is_float(x.type()) ? widened(x) : x.convert(dtype::f32), where = widened(as_real(grid));
  // in the wider of both dtypes
  const dtype t = wide.type() == dtype::f64 || where.type() == dtype::f64 ? dtype::f64 : dtype::f32;
  return {c.build.add(o, wide.convert(t), where.convert(t)).convert(x.type())};
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
  small_vector<value> planes;
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
    planes.push_back(at.reshape({1, points}));
  }
  planes.push_back(c.build.add(op::fill{{1, points}, 1, t}));
  // few long rows: a product whose rows are the points has columns shorter than a vector
  const value base = c.build.add(op::concat{0}, planes);
  const value y = theta.dot(base.unsqueeze({0})).transpose({0, 2, 1});
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

variables import_max_roi_pool(node_context& c) {
  const value x = widened(c.in(0)), rois = c.in(1).convert(x.type());
  const auto pooled = c.integers("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || !(rois.dim(1) == dimension(5)) || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1)
    c.malformed("the input has rank 4, the rois are [n, 5] and pooled_shape has two positive numbers");
  const op::roi_align greatest{pooled[0], pooled[1], -1, static_cast<float>(c.real("spatial_scale", 1)), false, true};
  const value images = element_at(rois, 1, 0).convert(dtype::i64), corners = rois.slice({{1}, {1}, {5}, {}});
  return {c.build.add(greatest, x, corners, images).convert(c.in(0).type())};
}

// `count` positions from low to high, which are fractions of the way to the last of `extent` elements: [rois, count].
value crop_positions(node_context& c, value low, value high, dimension count, dimension extent) {
  const dtype t = low.type();
  const value last = extent_value(c, extent - 1, t);
  const auto column = [](value v) { return v.unsqueeze({1}); };
  const value middle = column((low + high) * .5 * last);
  if (count == dimension(1)) return middle;
  const value k = indices_along(c, 2, 1, count, t);
  const value step = column((high - low) * last / extent_value(c, larger(count - 1, 1), t));
  const value at = k.equal(extent_value(c, count - 1, t)).where(column(high * last), column(low * last) + k * step);
  return count.min() > 1 ? at : extent_value(c, count, t).equal(c.build.scalar(t, 1)).where(middle, at);
}

// Inputs: images[n, c, h, w], corners[rois, 4] as (y1, x1, y2, x2), an image for each, and the extents of the crops.
variables import_crop_and_resize(node_context& c) {
  const value x = widened(c.in(0)), rois = c.in(1).convert(x.type());
  const auto size = c.extents(3, "the crops' size");
  if (x.rank() != 4 || rois.rank() != 2 || !(rois.dim(1) == dimension(4)) || size.size() != 2)
    c.malformed("the input has rank 4, the rois are [n, 4] and crop_size has two numbers");
  const dtype t = x.type();
  const dims lens = x.get_shape().lens;
  const auto place = [&](std::int64_t d) {
    return crop_positions(c, element_at(rois, 1, d), element_at(rois, 1, d + 2), size[static_cast<std::size_t>(d)],
                          lens[static_cast<std::size_t>(d) + 2]);
  };
  // how far outside of the image, if positive
  const auto beyond = [&](value at, dimension extent) { return (at - extent_value(c, extent - 1, t)).max(-at); };
  const auto clipped = [&](value at, dimension extent) {
    return c.build.add(op::clip{}, at, c.build.scalar(t, 0), extent_value(c, extent - 1, t));
  };
  const value row = place(0).unsqueeze({2}), column = place(1).unsqueeze({1});
  const value i = clipped(row, lens[2]), j = clipped(column, lens[3]);
  const auto image_or = [&](value y, std::int64_t channels, value otherwise) {
    const auto farthest = beyond(row, lens[2]).unsqueeze({channels}).max(beyond(column, lens[3]).unsqueeze({channels}));
    return (farthest > c.build.scalar(t, 0)).where(otherwise, y);
  };
  const value outside = c.build.scalar(t, c.real("extrapolation_value", 0));
  const bool nearest = c.choice("mode", {"bilinear", "nearest"}) == "nearest";
  if (!nearest && size[0].is_constant() && size[1].is_constant() && size[0].value() > 0 && size[1].value() > 0) {
    op::roi_align aligned{size[0].value(), size[1].value(), 1};
    // positions are the middles of bins
    const auto corners = [&](value at, std::int64_t n, std::int64_t axis) {
      const value first = at.slice({{axis}, {0}, {1}, {}}), end = at.slice({{axis}, {n - 1}, {n}, {}});
      const value half = n > 1 ? (end - first) * (.5 / static_cast<double>(n - 1)) : c.build.scalar(t, .5);
      return std::array{(first - half + .5).squeeze({3 - axis}), (end + half + .5).squeeze({3 - axis})};
    };
    const auto [y0, y1] = corners(row, aligned.height, 1);
    const auto [x0, x1] = corners(column, aligned.width, 2);
    const value bins = c.build.add(op::concat{1}, x0, y0, x1, y1);
    return {image_or(c.build.add(aligned, x, bins, c.in(2)), 1, outside).convert(c.in(0).type())};
  }
  // pixels are rows of channels
  const value pixels = channels_last(x).reshape({lens[0] * lens[2] * lens[3], lens[1]});
  const value image = (indices_along(c, 1, 0, lens[0]) * extent_value(c, lens[2] * lens[3], dtype::i64))
                          .gather(c.in(2).expect_dims({rois.dim(0)}), 0)
                          .unsqueeze({1, 2});
  const auto pixel = [&](value r, value k) {  // [rois, height, width, channels]
    const value above = image + r.convert(dtype::i64) * extent_value(c, lens[3], dtype::i64);
    return pixels.gather(above + k.convert(dtype::i64), 0);
  };
  const value top = i.floor(), left = j.floor(), down = i - top, right = j - left;
  value y;
  if (nearest) {
    const value half = c.build.scalar(t, .5);
    y = pixel((down < half).where(top, top + 1), (right < half).where(left, left + 1));
  } else {
    const value bottom = i | op::ceil{}, end = j | op::ceil{};
    const auto between = [](value a, value b, value part) { return a + (b - a) * part.unsqueeze({3}); };
    y = between(between(pixel(top, left), pixel(top, end), right),
                between(pixel(bottom, left), pixel(bottom, end), right), down);
  }
  return {channels_first(image_or(y, 3, outside)).convert(c.in(0).type())};
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
  // [n, groups, taps, axes, points], positions of the kernel's elements in the image
  small_vector<value> starts;
  for (std::size_t d = 0; d < axes; ++d) {
    dims grid, inner;
    for (std::size_t k = 0; k < axes; ++k) {
      grid.push_back(out[k + 2]);
      inner.push_back(kernel[k + 2]);
    }
    const std::int64_t pad = conv.pads.empty() ? 0 : conv.pads[d];
    const auto axis = static_cast<std::int64_t>(d);
    const value start =
        (c.build.add(op::iota{grid, axis, t}) * static_cast<double>(conv.stride[d]) - static_cast<double>(pad))
            .reshape({1, 1, points});
    const value tap =
        (c.build.add(op::iota{inner, axis, t}) * static_cast<double>(conv.dilation[d])).reshape({taps, 1, 1});
    starts.push_back(start + tap);
  }
  const value still = starts.size() == 1 ? starts[0] : c.build.add(op::concat{1}, starts);  // [taps, axes, points]
  const value moved = offset.reshape({lens[0], groups, taps, axes, points}) + still;
  // each group is an image of its own
  const value grid = moved.transpose({0, 1, 2, 4, 3}).reshape({lens[0] * groups, taps * points, axes});
  dims images{lens[0] * groups, own};
  for (std::size_t d = 0; d < axes; ++d) images.push_back(lens[d + 2]);
  op::grid_sample sampling;
  sampling.normalized = false;
  value columns = c.build.add(sampling, x.reshape(images), grid).reshape({lens[0], groups, own, taps, points});
  if (c.has(4))
    columns =
        columns *
        widened(c.in(4).expect_dims(deform_extents(c, conv, groups, 1))).reshape({lens[0], groups, 1, taps, points});
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
      {"", "AffineGrid", 20, import_affine_grid},
      {"", "DeformConv", 19, import_deform_conv},
      {"", "GridSample", 16, import_grid_sample},
      {"", "MaxRoiPool", 1, import_max_roi_pool},
      {"", "RoiAlign", 10, import_roi_align},
      {microsoft, "GridSample", 1, import_grid_sample},
      {microsoft, "CropAndResize", 1, import_crop_and_resize},
  };
  return table;
}

}  // namespace kiln::onnx
