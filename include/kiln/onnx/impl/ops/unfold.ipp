#include <algorithm>
#include <limits>

#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/onnx/impl/ops/unfold.hpp"

// Col2Im, MaxUnpool, UnfoldTensor, and the indices of MaxPool.
namespace kiln::onnx {

namespace {

// A matrix with 1 where the column is the row modulo the columns, else 0.
value repeated_identity(node_context& c, std::int64_t rows, std::int64_t columns, dtype t) {
  const value column = indices_along(c, 2, 1, columns);
  const value own = c.build.add(op::mod{}, indices_along(c, 2, 0, rows), c.build.scalar(dtype::i64, columns));
  return own.equal(column).convert(t);
}

std::int64_t along(const node_context& c, std::string_view name, std::size_t d, std::size_t count,
                   std::int64_t otherwise) {
  const auto given = c.integers(name);
  if (given.empty()) return otherwise;
  if (given.size() != count) c.malformed(std::string(name) + " has " + std::to_string(count) + " numbers");
  return given[d];
}

std::int64_t positive(const node_context& c, std::string_view name, std::size_t d, std::size_t count) {
  const std::int64_t n = along(c, name, d, count, 1);
  if (n < 1) c.malformed(std::string(name) + " are positive");
  return n;
}

// The number of spatial dims of Col2Im.
std::size_t checked_axes(const node_context& c, std::size_t image, std::size_t block) {
  if (c.in(0).rank() != 3 || image < 1 || image != block)
    c.malformed("image and block have a number for each spatial dim");
  return image;
}

// Col2Im by a scatter of the columns' elements into the padded image; a run may compute the image and block shapes.
value col_to_im_added(node_context& c, value x) {
  const auto image = c.extents(1, "the image's shape"), block = c.dimensions_of(c.in(2), "the block's shape", 1);
  const std::size_t axes = checked_axes(c, image.size(), block.size());
  if (2 * axes > max_rank) c.unsupported("more than four spatial dims");
  dims grid(2 * axes, dimension(1)), padded;
  dimension taps = 1, columns = 1, pixels = 1;
  op::slice kept;
  for (std::size_t k = 0; k < axes; ++k) {
    const std::int64_t stride = positive(c, "strides", k, axes), dilation = positive(c, "dilations", k, axes);
    const std::int64_t before = along(c, "pads", k, 2 * axes, 0), after = along(c, "pads", axes + k, 2 * axes, 0);
    if (before < 0 || after < 0)
      c.unsupported(
          "negative pads of an image that a run computes, of four spatial dims, or of channels that a run knows");
    padded.push_back(image[k] + (before + after));
    grid[k] = block[k];
    grid[axes + k] = (padded[k] - (block[k] - 1) * dilation - 1) / stride + 1;
    if (grid[axes + k].max() < 1) c.malformed("a block is larger than the padded image");
    taps *= grid[k];
    columns *= grid[axes + k];
    pixels *= padded[k];
    kept.axes.push_back(static_cast<std::int64_t>(k) + 2);
    kept.starts.push_back(before);
    kept.ends.push_back(image[k] + before);
  }
  const auto number = [&](dimension n) { return dimensions_value(c.build, {}, {n}); };
  value at;
  dimension row = pixels;
  for (std::size_t k = 0; k < axes; ++k) {
    row = row / padded[k];
    const auto steps = [&](std::size_t d, std::int64_t step) {
      return indices_along(c, 2 * axes, static_cast<std::int64_t>(d), grid[d]) * step;
    };
    const value offset =
        (steps(k, along(c, "dilations", k, axes, 1)) + steps(axes + k, along(c, "strides", k, axes, 1))) * number(row);
    at = at ? at + offset : offset;
  }
  const dimension channels = x.dim(1) / taps;
  if (channels.is_constant() && !(channels * taps == x.dim(1))) c.malformed("the channels are a multiple of the block");
  const dims lens{x.dim(0), channels, taps * columns};
  const value zero = c.build.add(op::fill{{x.dim(0), channels, pixels}, 0, x.type()});
  const value where = at.broadcast_to(grid).reshape({1, 1, taps * columns}).broadcast_to(lens);
  const value sum = c.build.add(op::scatter_elements{2, op::scatter_mode::add}, zero, where, x.reshape(lens));
  dims shape{x.dim(0), channels};
  for (const dimension d : padded) shape.push_back(d);
  return sum.reshape(shape).slice(kept);
}

// Col2Im as a transposed convolution with an identity weight.
variables import_col_to_im(node_context& c) {
  const value x = is_float(c.in(0).type()) ? c.in(0) : c.in(0).convert(dtype::f64);
  // a convolution has up to three spatial dims, and a known number of groups
  if (c.is_dynamic(1) || c.is_dynamic(2) || !x.dim(1).is_constant() || c.in(1).get_shape().elements().max() > 3)
    return {col_to_im_added(c, x).convert(c.in(0).type())};
  const auto image = c.numbers(1, "the image's shape"), block = c.numbers(2, "the block's shape");
  const std::size_t axes = checked_axes(c, image.size(), block.size());
  std::int64_t taps = 1;
  for (const std::int64_t k : block) {
    if (k < 1 || k > (1 << 20)) c.malformed("a block's extent is positive");
    taps *= k;
  }
  const dimension channels = x.dim(1) / taps;
  if (!(channels * taps == x.dim(1))) c.malformed("the channels are a multiple of the block");
  op::deconvolution d;
  d.group = channels.value();
  d.pads = ints(2 * axes, 0);
  dims columns{x.dim(0), x.dim(1)}, weight{channels * taps, 1};
  for (std::size_t k = 0; k < axes; ++k) {
    const std::int64_t stride = positive(c, "strides", k, axes), dilation = positive(c, "dilations", k, axes);
    d.stride.push_back(stride);
    d.dilation.push_back(dilation);
    d.pads[k] = along(c, "pads", k, 2 * axes, 0);
    d.pads[axes + k] = along(c, "pads", axes + k, 2 * axes, 0);
    const std::int64_t reach = (block[k] - 1) * dilation + 1, room = image[k] + d.pads[k] + d.pads[axes + k] - reach;
    if (room < 0) c.malformed("a block is larger than the padded image");
    d.output_padding.push_back(room % stride);
    columns.push_back(room / stride + 1);
    weight.push_back(block[k]);
  }
  const value w = repeated_identity(c, channels.value() * taps, taps, x.type()).reshape(weight);
  return {c.build.add(d, x.reshape(columns), w).convert(c.in(0).type())};
}

// MaxUnpool: scatters elements by their indices into an output of the extents that the window implies.
variables import_max_unpool(node_context& c) {
  const value x = c.in(0);
  const dims lens = x.get_shape().lens;
  const std::size_t axes = lens.size() - 2;
  if (lens.size() < 3 || c.integers("kernel_shape").size() != axes)
    c.malformed("kernel_shape has a number for each spatial dim");
  dims implied{lens[0], lens[1]};
  for (std::size_t d = 0; d < axes; ++d)
    implied.push_back((lens[d + 2] - 1) * along(c, "strides", d, axes, 1) + c.integers("kernel_shape")[d] -
                      along(c, "pads", d, 2 * axes, 0) - along(c, "pads", axes + d, 2 * axes, 0));
  const dimension all = product(implied), given = product(lens);
  const value zero = c.build.add(op::fill{{all}, 0, x.type()});
  value y = c.build.add(op::scatter_elements{0}, zero, c.in(1).reshape({given}), x.reshape({given})).reshape(implied);
  if (!c.has(2)) return {y};
  const auto wanted = c.extents(2, "the output's shape");
  if (wanted.size() != implied.size()) c.malformed("output_shape has the input's rank");
  op::pad p;
  for (std::size_t d = 0; d < implied.size(); ++d) p.pads.push_back(0);
  for (std::size_t d = 0; d < implied.size(); ++d) p.pads.push_back(wanted[d] - implied[d]);
  return {y | p};
}

// Windows along one axis, their elements along a new last one.
variables import_unfold_tensor(node_context& c) {
  const value x = c.in(0);
  const std::int64_t axis = axis_within(c, c.integer("dim", -1), x.rank()), size = c.integer("size", 0),
                     step = c.integer("step", 1);
  if (size < 1 || step < 1) c.malformed("size and step are positive");
  const dimension extent = x.dim(axis);
  if (extent.max() < size)
    c.malformed("a window of " + std::to_string(size) + " is longer than the extent of " + kiln::to_string(extent));
  const value at = indices_along(c, 2, 0, (extent - size) / step + 1) * step + indices_along(c, 2, 1, size);
  const value windows = x.gather(at, axis);  // [..., windows, size, ...]
  ints order = axes_from(0, windows.rank());
  std::rotate(order.begin() + axis + 1, order.begin() + axis + 2, order.end());
  return {windows.transpose(order)};
}

double least_of(dtype t) {
  if (is_float(t)) return -std::numeric_limits<double>::infinity();
  return is_signed_integer(t) ? -9.3e18 : 0;
}

}  // namespace

value argmax_positions(node_context& c, value x, const dims& pooled, const op::pooling& p, bool column_major) {
  const dims lens = x.get_shape().lens;
  const std::size_t axes = p.lengths.size();
  dims grid;  // of taps, then of windows: the greatest of neighbors is found in vectors
  std::int64_t taps = 1;
  dimension points = 1, all = 1;
  for (std::size_t d = 0; d < axes; ++d) {
    grid.push_back(p.lengths[d]);
    taps *= p.lengths[d];
  }
  for (std::size_t d = 0; d < axes; ++d) {
    grid.push_back(pooled[d + 2]);
    points = points * pooled[d + 2];
    all = all * lens[d + 2];
  }
  const auto axis_of = [&](std::size_t d) {
    return indices_along(c, grid.size(), static_cast<std::int64_t>(d), grid[d]);
  };
  const auto number = [&](dimension n) { return dimensions_value(c.build, {}, {n}); };
  const auto table = [&](value v, std::size_t first, std::size_t last, const dims& to) {
    dims own(grid.size(), dimension(1));
    for (std::size_t d = first; d < last; ++d) own[d] = grid[d];
    return v.broadcast_to(own).reshape(to);
  };
  struct place {
    value tap, window, step, last;  // by axis: a pixel is tap + window
    bool inside;                    // in any case
  };
  std::vector<place> places;
  value inside, row;
  dimension row_step = all, column_step = 1;
  bool all_inside = true;
  for (std::size_t d = 0; d < axes; ++d) {
    const std::int64_t pad = p.pads.empty() ? 0 : p.pads[d];
    const dimension most = (pooled[d + 2] - 1) * p.stride[d] + (p.lengths[d] - 1) * p.dilation[d];
    row_step = row_step / lens[d + 2];
    const place at{axis_of(d) * p.dilation[d], axis_of(axes + d) * p.stride[d] - pad,
                   number(column_major ? column_step : row_step), number(lens[d + 2] - 1),
                   pad == 0 && at_most(most + 1, lens[d + 2]).value_or(false)};
    column_step = column_step * lens[d + 2];
    value pixel = at.tap + at.window;
    if (!at.inside) {
      inside = both(inside, both(not_less(pixel, number(0)), not_greater(pixel, at.last)));
      pixel = c.build.add(op::clip{}, pixel, number(0), at.last);
    }
    all_inside = all_inside && at.inside;
    pixel = pixel * number(row_step);
    row = row ? row + pixel : pixel;
    places.push_back(at);
  }
  value shown = x.reshape({lens[0], lens[1], all}).gather(table(row, 0, 2 * axes, {taps, points}), 2);
  if (!all_inside)
    shown = table(inside, 0, 2 * axes, {taps, points})
                .where(shown, c.build.add(op::fill{{}, least_of(x.type()), x.type()}));
  const value best = c.build.add(op::arg_max{2}, shown).reshape({lens[0], lens[1], points});
  value found = c.build.add(op::iota{{lens[0] * lens[1]}, 0, dtype::i64}).reshape({lens[0], lens[1], 1}) * number(all);
  value tap, window;  // of axes along which every pixel is inside, together
  for (const place& at : places) {
    if (at.inside) {
      tap = tap ? tap + at.tap * at.step : at.tap * at.step;
      window = window ? window + at.window * at.step : at.window * at.step;
      continue;
    }
    const value pixel = table(at.tap, 0, axes, {taps}).gather(best, 0) + table(at.window, axes, 2 * axes, {points});
    found = found + c.build.add(op::clip{}, pixel, number(0), at.last) * at.step;
  }
  if (tap) found = found + table(tap, 0, axes, {taps}).gather(best, 0) + table(window, axes, 2 * axes, {points});
  return found.reshape(pooled);
}

std::span<const op_importer> unfold_importers() {
  static constexpr op_importer table[] = {
      {"", "Col2Im", 18, import_col_to_im, "up to four spatial dims"},
      {"", "MaxUnpool", 9, import_max_unpool},
      {microsoft, "UnfoldTensor", 1, import_unfold_tensor},
  };
  return table;
}

}  // namespace kiln::onnx
