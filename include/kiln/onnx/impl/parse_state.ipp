#include <algorithm>
#include <cmath>

#include "kiln/onnx/impl/parse.hpp"
#include "kiln/onnx/impl/run_axes.hpp"
#include "kiln/op/index/bit_cast.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "kiln/op/linear/det.hpp"
#include "kiln/op/sequence/linear_attention.hpp"

// Operators that carry something along an axis, and the bits and determinants beside them.
namespace kiln::onnx {

namespace {

variables parse_cumprod(call& c) {
  if (is_open(c, 1)) {
    const value x = c.in(0), flags = axis_flags(c, counted_axes(c, 1, x.rank()), x.rank());
    const bool exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
    return {along_flagged(c, x, flags, [&](value v, const ints& axis) {
      return v | op::cumprod{axis[0], exclusive, reverse};
    })};
  }
  const auto axis = c.numbers(1, "the axis");
  if (axis.size() != 1) c.malformed("axis is one number");
  return {c.in(0) | op::cumprod{axis_within(c, axis[0], c.in(0).rank()), c.flag("exclusive"), c.flag("reverse")}};
}

variables parse_bit_cast(call& c) {
  const auto to = to_dtype(static_cast<element>(c.integer("to", 0)));
  if (!to) c.unsupported("reads bits as " + std::string(to_string(static_cast<element>(c.integer("to", 0)))));
  return {c.in(0) | op::bit_cast{*to}};
}

variables parse_det(call& c) { return {c.in(0) | op::det{}}; }

// A cache with the update written from an index of each batch on, past the end or around it.
variables parse_tensor_scatter(call& c) {
  const value cache = c.in(0), update = c.in(1);
  const std::size_t rank = cache.rank();
  const std::int64_t axis = axis_within(c, c.integer("axis", -2), rank);
  if (axis == 0 || update.rank() != rank) c.malformed("the update has the cache's rank, and the axis is not the batch");
  const auto mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular") c.malformed("mode is '" + std::string(mode) + "'");
  dims along(rank, dimension(1)), batch(rank, dimension(1));
  along[static_cast<std::size_t>(axis)] = update.dim(axis);
  batch[0] = update.dim(0);
  value at = c.build.add(op::iota{along, axis, dtype::i64});
  if (c.has(2)) at = at + c.in(2).convert(dtype::i64).reshape(batch);
  if (mode == "circular") at = c.build.add(op::mod{}, at, dimensions_value(c.build, {}, {cache.dim(axis)}));
  return {c.build.add(op::scatter_elements{axis}, cache, at.broadcast_to(update.get_shape().lens), update)};
}

// Inputs: query, key, value [batch, seq, heads * depth], past state, decay, beta.
variables parse_linear_attention(call& c) {
  const auto rule = c.text("update_rule", "gated_delta");
  const bool corrects = rule == "delta" || rule == "gated_delta", fades = rule == "gated" || rule == "gated_delta";
  if (!corrects && !fades && rule != "linear") c.malformed("update_rule is '" + std::string(rule) + "'");
  const std::int64_t heads = c.integer("q_num_heads", 0), own = c.integer("kv_num_heads", 0);
  if (heads < 1 || own < 1) c.malformed("q_num_heads and kv_num_heads are positive");
  const auto apart = [&](std::size_t i, std::int64_t n) {
    const value x = widened(c.in(i));
    if (x.rank() != 3 || !(x.dim(2) % n == dimension(0))) c.malformed("an input is [batch, seq, heads * depth]");
    return x.reshape({x.dim(0), x.dim(1), n, x.dim(2) / n});
  };
  const value q = apart(0, heads), k = apart(1, own), v = apart(2, own);
  const dimension batch = q.dim(0), steps = q.dim(1), depth = k.dim(3), width = v.dim(3);
  const dtype t = q.type();
  const auto filled = [&](const dims& lens, double x) { return c.build.add(op::fill{lens, x, t}); };
  const value state = c.has(3) ? widened(c.in(3)) : filled({batch, own, depth, width}, 0);
  value decay = filled({batch, steps, own, depth}, 1), beta = filled({batch, steps, own}, 1);
  if (fades) decay = apart(4, own).exp().broadcast_to({batch, steps, own, depth});
  if (corrects) beta = widened(c.in(5)).broadcast_to({batch, steps, own});
  float scale = c.real("scale", 0);
  if (scale == 0) {
    if (!depth.is_constant()) c.unsupported("a scale for a depth of " + kiln::to_string(depth));
    scale = static_cast<float>(1 / std::sqrt(static_cast<double>(depth.value())));
  }
  const value y = c.build.add(op::linear_attention{scale, corrects}, q, k, v, state, decay, beta);
  return {y.reshape({batch, steps, width * heads}).convert(c.in(0).type()),
          y.result(1).convert(c.has(3) ? c.in(3).type() : c.in(0).type())};
}

variables parse_swiglu(call& c) {
  const value gate = widened(c.in(0));
  const float alpha = c.real("alpha", 1);
  const value y = alpha == 1 ? gate.silu() : gate * (gate * alpha).sigmoid();
  return {y.convert(c.in(0).type()) * c.in(1)};
}

variables parse_center_crop_pad(call& c) {
  const value x = c.in(0);
  const auto wanted = c.extents(1, "the shape");
  const ints axes = c.find("axes") ? axes_within(c, c.integers("axes"), x.rank()) : axes_from(0, x.rank());
  if (wanted.size() != axes.size()) c.malformed("shape has a number for each axis");
  op::slice cut;
  op::pad around;
  around.pads = inline_vector<dimension, 2 * max_rank>(2 * x.rank(), dimension(0));
  bool pads = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const dimension own = x.dim(axes[i]), n = wanted[i];
    const auto fits = at_most(n, own);
    if (!fits || *fits) {
      const dimension kept = smaller(own, n), from = (own - kept) / 2;
      cut.axes.push_back(axes[i]);
      cut.starts.push_back(from);
      cut.ends.push_back(from + kept);
    }
    if (!fits || !*fits) {
      const auto d = static_cast<std::size_t>(axes[i]);
      const dimension added = larger(n - own, 0);
      around.pads[d] = added / 2;
      around.pads[x.rank() + d] = added - added / 2;
      pads = true;
    }
  }
  const value kept = cut.axes.empty() ? x : x.slice(cut);
  return {pads ? kept | around : kept};
}

}  // namespace

std::span<const row> state_rows() {
  static constexpr row rows[] = {
      {"", "BitCast", 26, parse_bit_cast},
      {"", "CenterCropPad", 18, parse_center_crop_pad},
      {"", "CumProd", 26, parse_cumprod},
      {"", "Det", 11, parse_det},
      {"", "LinearAttention", 27, parse_linear_attention},
      {"", "SwiGLU", 28, parse_swiglu},
      {"", "TensorScatter", 24, parse_tensor_scatter},
  };
  return rows;
}

}  // namespace kiln::onnx
