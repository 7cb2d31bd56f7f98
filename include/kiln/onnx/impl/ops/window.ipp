#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/onnx/impl/ops/activation.hpp"
#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/onnx/impl/ops/unfold.hpp"

// Convolutions and pooling.
namespace kiln::onnx {

namespace {

struct window {
  spatial kernel{}, stride{}, dilation{};
  ints pads{};
};

spatial spatial_attribute(const node_context& c, std::string_view name, std::size_t axes) {
  const auto given = c.integers(name);
  if (given.empty()) return spatial(axes, 1);
  if (given.size() != axes) c.malformed(std::string(name) + " has a number for each spatial dim");
  for (const std::int64_t v : given)
    if (v < 1 || v > (std::int64_t{1} << 31)) c.malformed(std::string(name) + " is out of range");
  return spatial(given);
}

ints pads_attribute(const node_context& c, std::size_t axes) {
  const auto pads = c.integers("pads");
  if (!pads.empty() && pads.size() != 2 * axes) c.malformed("pads has a begin and an end for each spatial dim");
  return ints(pads);
}

// The number of spatial dims of an input [batch, channel, spatial...].
std::size_t spatial_dims(const node_context& c) {
  const std::size_t rank = c.in(0).rank();
  if (rank < 3) c.malformed("the input has a batch, a channel and spatial dims, found rank " + std::to_string(rank));
  if (rank > 5) c.unsupported("more than three spatial dims");
  return rank - 2;
}

window read_window(const node_context& c, const spatial& kernel) {
  const std::size_t axes = kernel.size();
  window w{kernel, spatial_attribute(c, "strides", axes), spatial_attribute(c, "dilations", axes), {}};
  const auto mode = c.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) {
    w.pads = pads_attribute(c, axes);
    return w;
  }
  if (mode == "VALID") return w;
  const bool upper = mode == "SAME_UPPER";
  if (!upper && mode != "SAME_LOWER") c.malformed("auto_pad is '" + std::string(mode) + "'");
  w.pads.resize(2 * axes, 0);
  for (std::size_t d = 0; d < axes; ++d) {
    // the output has ceil(extent / stride) elements; with stride 1 the pads are the same at any extent
    const dimension extent = w.stride[d] == 1 ? dimension(1) : c.in(0).get_shape().lens[d + 2];
    if (!extent.is_constant()) c.unsupported("auto_pad with a stride over an extent of " + kiln::to_string(extent));
    const std::int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1, n = extent.value(),
                       total = std::max<std::int64_t>(
                           0, ((n + w.stride[d] - 1) / w.stride[d] - 1) * w.stride[d] + reach - n);
    w.pads[d] = upper ? total / 2 : total - total / 2;
    w.pads[axes + d] = total - w.pads[d];
  }
  return w;
}

spatial kernel_of(const node_context& c) {
  const std::size_t axes = spatial_dims(c);
  if (c.integers("kernel_shape").size() != axes) c.malformed("kernel_shape has a number for each spatial dim");
  return spatial_attribute(c, "kernel_shape", axes);
}

// The kernel extents of a convolution's weight, which kernel_shape may repeat.
spatial kernel_of_weight(const node_context& c) {
  const std::size_t axes = spatial_dims(c);
  const dims lens = c.in(1).get_shape().lens;
  if (lens.size() != axes + 2) c.malformed("the weight has the input's rank");
  spatial out;
  for (std::size_t d = 0; d < axes; ++d) {
    if (!lens[d + 2].is_constant()) c.unsupported("a kernel of symbolic extents");
    out.push_back(lens[d + 2].value());
  }
  const auto stated = c.integers("kernel_shape");
  if (!stated.empty() && !(spatial_attribute(c, "kernel_shape", axes) == out))
    c.malformed("kernel_shape differs from the weight's extents");
  return out;
}

variables import_conv(node_context& c) {
  const value y = c.in(0).conv(c.in(1), read_convolution(c));
  return {c.has(2) ? y.add_along(1, c.in(2)) : y};
}

// Convolution plus a tensor of the result's extents, then an activation, whose attributes are a list.
variables import_fused_conv(node_context& c) {
  const value y = import_conv(c)[0].tensor, sum = c.has(3) ? y + c.in(3).expect_dims(y.get_shape().lens) : y;
  const std::string_view name = c.text("activation", "");
  const auto given = c.reals("activation_params");
  std::vector<std::string> names;
  if (name == "Clip") names = {"min", "max"};
  if (name == "HardSigmoid") names = {"alpha", "beta"};
  if (name == "LeakyRelu") names = {"alpha"};
  if (given.size() < names.size())
    c.malformed("activation_params has " + std::to_string(given.size()) + " numbers, and " + std::string(name) +
                " reads " + std::to_string(names.size()));
  if (name == "Clip")
    return {c.build.add(op::clip{}, sum, c.build.scalar(sum.type(), given[0]), c.build.scalar(sum.type(), given[1]))};
  std::vector<attribute> own(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    own[i].name = names[i];
    own[i].kind = attribute_kind::real;
    own[i].real = given[i];
  }
  return {activated(c, sum, name, std::move(own))};
}

variables import_conv_transpose(node_context& c) {
  const spatial kernel = kernel_of_weight(c);
  const std::size_t axes = kernel.size();
  op::deconvolution d{
      spatial_attribute(c, "strides", axes), spatial_attribute(c, "dilations", axes), {}, {}, c.integer("group", 1)};
  d.output_padding = spatial(axes, 0);
  if (const auto extra = c.integers("output_padding"); !extra.empty()) {
    if (extra.size() != axes) c.malformed("output_padding has a number for each spatial dim");
    d.output_padding = spatial(extra);
  }
  const auto mode = c.text("auto_pad", "NOTSET");
  auto wanted = c.integers("output_shape");
  if (wanted.size() == axes + 2) wanted = wanted.subspan(2);  // some exporters state the batch and the channels too
  const bool same_extent = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (!wanted.empty() || same_extent) {
    if (!wanted.empty() && wanted.size() != axes) c.malformed("output_shape has a number for each spatial dim");
    d.pads.resize(2 * axes, 0);
    for (std::size_t i = 0; i < axes; ++i) {
      const dimension in = c.in(0).get_shape().lens[i + 2];
      const dimension out = wanted.empty() ? in * d.stride[i] : dimension(wanted[i]);
      const dimension total =
          (in - 1) * d.stride[i] + d.output_padding[i] + ((kernel[i] - 1) * d.dilation[i] + 1) - out;
      if (!total.is_constant()) c.unsupported("pads that depend on an extent of " + kiln::to_string(in));
      // a negative total is padding of the result
      const std::int64_t cut = std::max<std::int64_t>(0, total.value());
      if (total.value() < 0) d.output_padding[i] -= total.value();
      d.pads[i] = mode == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
      d.pads[axes + i] = cut - d.pads[i];
    }
  } else {
    d.pads = pads_attribute(c, axes);
  }
  const value y = c.build.add(d, c.in(0), c.in(1));
  return {c.has(2) ? y.add_along(1, c.in(2)) : y};
}

variables pool(node_context& c, op::pooling& p) {
  const window w = read_window(c, kernel_of(c));
  p.lengths = w.kernel;
  p.stride = w.stride;
  p.dilation = w.dilation;
  p.pads = w.pads;
  p.ceil_mode = c.flag("ceil_mode");
  return {c.in(0).pool(p)};
}
variables import_max_pool(node_context& c) {
  op::pooling p;
  p.mode = op::pooling_mode::max;
  variables out = pool(c, p);
  if (c.wants(1))
    out.push_back(argmax_positions(c, c.in(0), out[0].tensor.get_shape().lens, p, c.flag("storage_order")));
  return out;
}
variables import_nhwc_max_pool(node_context& c) {
  node_context plain = c.with_inputs({variable(channels_first(c.in(0)))});
  op::pooling p;
  p.mode = op::pooling_mode::max;
  return {channels_last(pool(plain, p)[0].tensor)};
}
// Whether the mask is 0, for each element of x: channel k reads as many elements as it has from the one that is
// (k * as many) modulo the number of the mask's channels on, and beyond one spatial dim its first element is never 0
// (ONNX Runtime 1.30).
value masked_out(node_context& c) {
  const value x = c.in(0), mask = c.in(1);
  dims lens = x.get_shape().lens;
  if (mask.rank() != lens.size()) c.malformed("the mask has the input's rank");
  dims own = lens;
  own[0] = mask.dim(0);
  own[1] = mask.dim(1);
  const dimension channels = lens[0] * lens[1], masks = own[0] * own[1];
  dimension plane = 1;
  for (std::size_t d = 2; d < lens.size(); ++d) plane *= lens[d];
  value given = mask.expect_dims(own);
  if (masks == dimension(1)) {
    lens[0] = 1;
    lens[1] = 1;
  } else {
    const auto number = [&](dimension n) { return dimensions_value(c.build, {}, {n}); };
    const value start = c.build.add(op::mod{}, indices_along(c, 2, 0, channels) * number(plane), number(masks));
    given = given.reshape({masks * plane}).gather(start + indices_along(c, 2, 1, plane), 0).reshape(lens);
  }
  const value out = given.equal(c.build.scalar(mask.type(), 0));
  if (lens.size() == 3) return out;
  dims spatial(lens);
  spatial[0] = 1;
  spatial[1] = 1;
  return both(out, c.build.add(op::iota{{plane}, 0, dtype::i64}).reshape(spatial) > c.build.scalar(dtype::i64, 0));
}

// A row of a window ends where the mask is 0.
variables import_masked_max_pool(node_context& c) {
  op::pooling p;
  p.mode = op::pooling_mode::max;
  const value x = c.in(0);
  if (!is_float(x.type())) c.unsupported("a masked window of " + std::string(to_string(x.type())));
  const dimension n = x.dim(-1), count = pool(c, p)[0].tensor.dim(-1);
  const std::size_t axes = p.lengths.size(), last = axes - 1;
  const auto axis = static_cast<std::int64_t>(x.rank()) - 1;
  if (p.dilation[last] != 1) c.unsupported("a dilation of windows whose rows end where a mask is 0");
  for (const std::int64_t pad : {p.pads.empty() ? 0 : p.pads[last], p.pads.empty() ? 0 : p.pads[axes + last]})
    if (pad >= p.lengths[last]) c.unsupported("a pad of " + std::to_string(pad) + ", no less than the kernel's width");
  const value zero = c.build.scalar(dtype::i64, 0), end = dimensions_value(c.build, {}, {n - 1});
  // a window's elements are not adjacent, so that whole rows are reduced at once: [kernel, count]
  const value at = indices_along(c, 2, 1, count) * p.stride[last] + indices_along(c, 2, 0, p.lengths[last]) -
                   (p.pads.empty() ? 0 : p.pads[last]);
  // beyond an end is the last element again, which changes neither the greatest one nor where a row ends
  const value kept = c.build.add(op::clip{}, at, zero, end);
  const value lowest = c.build.scalar(x.type(), std::numeric_limits<float>::lowest());
  const value stops = masked_out(c).convert(x.type()).gather(kept, axis) | op::cumsum{axis};
  value y =
      (stops > c.build.scalar(x.type(), 0)).where(lowest, x.gather(kept, axis)).reduce_max({axis}).squeeze({axis});
  if (last > 0) {  // the other axes
    p.lengths[last] = p.stride[last] = p.dilation[last] = 1;
    if (!p.pads.empty()) p.pads[last] = p.pads[axes + last] = 0;
    y = y.pool(p);
  }
  return {y.max(lowest)};
}

variables import_lp_pool(node_context& c) {
  op::pooling p;
  p.mode = op::pooling_mode::lp;
  if (c.version >= 2) {
    p.lp_order = c.integer("p", 2);
  } else {  // a float then
    const float order = c.real("p", 2);
    if (!(order >= 1 && order < 1e6f) || order != std::floor(order))
      c.unsupported("an order of " + std::to_string(order) + " that is no positive integer");
    p.lp_order = static_cast<std::int64_t>(order);
  }
  return pool(c, p);
}

variables import_global_average_pool(node_context& c) { return {c.in(0).reduce_mean(axes_from(2, c.in(0).rank()))}; }
variables import_global_max_pool(node_context& c) { return {c.in(0).reduce_max(axes_from(2, c.in(0).rank()))}; }
variables import_global_lp_pool(node_context& c) {
  const value x = c.in(0);
  const ints axes = axes_from(2, x.rank());
  const float p = c.version < 2 ? c.real("p", 2) : static_cast<float>(c.integer("p", 2));
  if (p == 1) return {x | op::reduce_l1{axes}};
  if (p == 2) return {x | op::reduce_l2{axes}};
  const value order = c.build.scalar(x.type(), p);
  return {x.abs().pow(order).reduce_sum(axes).pow(order.recip())};
}

variables import_lrn(node_context& c) {
  return {c.in(0) | op::lrn{c.integer("size", 1), c.real("alpha", 0.0001f), c.real("beta", 0.75f), c.real("bias", 1)}};
}

}  // namespace

variables average_pool(node_context& c) {
  op::pooling p;
  p.mode = op::pooling_mode::average;
  p.count_include_pad = c.flag("count_include_pad");
  return pool(c, p);
}

op::convolution read_convolution(const node_context& c) {
  const window w = read_window(c, kernel_of_weight(c));
  return {w.stride, w.dilation, w.pads, c.integer("group", 1)};
}

std::span<const op_importer> window_importers() {
  static constexpr op_importer table[] = {
      {"", "AveragePool", 1, average_pool, "up to three spatial dims"},
      {"", "Conv", 1, import_conv, "up to three spatial dims"},
      {"", "ConvTranspose", 1, import_conv_transpose, "up to three spatial dims"},
      {"", "GlobalAveragePool", 1, import_global_average_pool},
      {"", "GlobalLpPool", 1, import_global_lp_pool},
      {"", "GlobalMaxPool", 1, import_global_max_pool},
      {"", "LRN", 1, import_lrn},
      {"", "LpPool", 1, import_lp_pool, "up to three spatial dims"},
      {"", "MaxPool", 1, import_max_pool, "up to three spatial dims"},
      {microsoft, "FusedConv", 1, import_fused_conv, "up to three spatial dims"},
      {microsoft, "MaxpoolWithMask", 1, import_masked_max_pool, "up to three spatial dims"},
      {microsoft, "NhwcMaxPool", 1, import_nhwc_max_pool, "up to three spatial dims"},
  };
  return table;
}

}  // namespace kiln::onnx
