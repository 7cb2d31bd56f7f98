#include "kiln/onnx/impl/ops/attention.hpp"
#include "kiln/op/index/bit_cast.hpp"
#include "kiln/op/linear/det.hpp"
#include "kiln/op/sequence/linear_attention.hpp"

// Linear attention, caches, and single operators: BitCast, CenterCropPad, Det, SwiGLU.
namespace kiln::onnx {

namespace {

variables import_bit_cast(node_context& c) {
  const auto to = to_dtype(static_cast<element>(c.integer("to", 0)));
  if (!to) c.unsupported("reads bits as " + std::string(to_string(static_cast<element>(c.integer("to", 0)))));
  return {c.in(0) | op::bit_cast{*to}};
}

variables import_det(node_context& c) { return {c.in(0) | op::det{}}; }

// Writes an update into a cache, from an index of each batch on; mode circular wraps around the end.
variables import_tensor_scatter(node_context& c) {
  const value cache = c.in(0), update = c.in(1);
  const std::size_t rank = cache.rank();
  const std::int64_t axis = axis_within(c, c.integer("axis", -2), rank);
  if (axis == 0 || update.rank() != rank) c.malformed("the update has the cache's rank, and the axis is not the batch");
  const auto mode = c.choice("mode", {"linear", "circular"});
  dims batch(rank, dimension(1));
  batch[0] = update.dim(0);
  value at = indices_along(c, rank, axis, update.dim(axis));
  if (c.has(2)) at = at + c.in(2).convert(dtype::i64).reshape(batch);
  if (mode == "circular") at = c.build.add(op::mod{}, at, dimensions_value(c.build, {}, {cache.dim(axis)}));
  return {c.build.add(op::scatter_elements{axis}, cache, at.broadcast_to(update.get_shape().lens), update)};
}

// Inputs: query, key, value [batch, seq, heads * depth], past state, decay, beta.
variables import_linear_attention(node_context& c) {
  const auto rule = c.choice("update_rule", {"gated_delta", "delta", "gated", "linear"});
  const bool corrects = rule == "delta" || rule == "gated_delta", fades = rule == "gated" || rule == "gated_delta";
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
  const value y = c.build.add(op::linear_attention{attention_scale(c, k), corrects}, q, k, v, state, decay, beta);
  return {y.reshape({batch, steps, width * heads}).convert(c.in(0).type()),
          y.result(1).convert(c.has(3) ? c.in(3).type() : c.in(0).type())};
}

variables import_swiglu(node_context& c) {
  return {swish(widened(c.in(0)), c.real("alpha", 1)).convert(c.in(0).type()) * c.in(1)};
}

variables import_center_crop_pad(node_context& c) {
  const value x = c.in(0);
  const auto wanted = c.extents(1, "the shape");
  const ints axes = axes_attribute(c, x.rank());
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

std::span<const op_importer> state_importers() {
  static constexpr op_importer table[] = {
      {"", "BitCast", 26, import_bit_cast}, {"", "CenterCropPad", 18, import_center_crop_pad},
      {"", "Det", 11, import_det},          {"", "LinearAttention", 27, import_linear_attention},
      {"", "SwiGLU", 28, import_swiglu},    {"", "TensorScatter", 24, import_tensor_scatter},
  };
  return table;
}

}  // namespace kiln::onnx
