#include "kiln/onnx/impl/ops/attention.hpp"
#include "kiln/op/index/bit_cast.hpp"
#include "kiln/op/linear/det.hpp"
#include "kiln/op/sequence/linear_attention.hpp"

// Linear attention, its gates, caches, and single operators: BitCast, CenterCropPad, Det, SwiGLU.
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

// x[batch, seq, heads, depth] with each head as often as there are `heads` for it.
value repeated(value x, dimension heads) {
  const dims lens = x.get_shape().lens;
  if (lens[2] == heads) return x;
  return x.unsqueeze({3})
      .broadcast_to({lens[0], lens[1], lens[2], heads / lens[2], lens[3]})
      .reshape({lens[0], lens[1], heads, lens[3]});
}

// Inputs: query, key, value [batch, seq, heads * depth], past state, decay, beta. In com.microsoft there may be fewer
// query heads than states, and fewer key heads.
variables import_linear_attention(node_context& c) {
  const auto rule = c.choice("update_rule", {"gated_delta", "delta", "gated", "linear"});
  const bool corrects = rule == "delta" || rule == "gated_delta", fades = rule == "gated" || rule == "gated_delta";
  const std::int64_t heads = c.integer("q_num_heads", 0), own = c.integer("kv_num_heads", 0);
  if (heads < 1 || own < 1) c.malformed("q_num_heads and kv_num_heads are positive");
  if (heads % own != 0 && own % heads != 0)
    c.malformed("one of q_num_heads and kv_num_heads is a multiple of the other, found " + std::to_string(heads) +
                " and " + std::to_string(own));
  if (c.integer("state_window", 0) != 0) c.unsupported("states of several steps (state_window)");
  if (!c.has(1) || !c.has(2)) c.malformed("key and value are inputs");
  if (fades && !c.has(4)) c.malformed("the update rule '" + std::string(rule) + "' needs a decay");
  if (corrects && !c.has(5)) c.malformed("the update rule '" + std::string(rule) + "' needs a beta");
  const auto apart = [&](std::size_t i, dimension n) {
    const value x = widened(c.in(i));
    if (x.rank() != 3 || !(x.dim(2) % n == dimension(0))) c.malformed("an input is [batch, seq, heads * depth]");
    return x.reshape({x.dim(0), x.dim(1), n, x.dim(2) / n});
  };
  value q = apart(0, heads);
  const dimension key_heads = c.in(1).rank() == 3 ? c.in(1).dim(2) / q.dim(3) : dimension(own);
  if (!(dimension(own) % key_heads == dimension(0)))
    c.malformed("kv_num_heads is a multiple of the key's heads, " + kiln::to_string(key_heads));
  const value k = repeated(apart(1, key_heads), own), v = apart(2, own);
  if (heads < own) q = repeated(q, own);
  const dimension batch = q.dim(0), steps = q.dim(1), depth = k.dim(3), width = v.dim(3);
  const dtype t = q.type();
  const auto filled = [&](const dims& lens, double x) { return c.build.add(op::fill{{}, x, t}).broadcast_to(lens); };
  const value state = c.has(3) ? widened(c.in(3)) : filled({batch, own, depth, width}, 0);
  value decay = filled({batch, steps, own, depth}, 1), beta = filled({batch, steps, own}, 1);
  if (fades) decay = apart(4, own).exp().broadcast_to({batch, steps, own, depth});
  if (corrects) beta = widened(c.in(5)).broadcast_to({batch, steps, own});
  const value y = c.build.add(op::linear_attention{attention_scale(c, k), corrects}, q, k, v, state, decay, beta);
  return {y.reshape({batch, steps, width * q.dim(2)}).convert(c.in(0).type()),
          y.result(1).convert(c.has(3) ? c.in(3).type() : c.in(0).type())};
}

// Inputs: a and bias and factor of each head, b. The decay is factor * softplus(a + bias), and beta is sigmoid(b).
variables import_linear_attention_gate(node_context& c) {
  const value a = c.in(0);
  const auto per_head = [&](std::size_t i) {
    if (a.rank() < 1 || !(c.in(i).get_shape().elements() == a.dim(-1)))
      c.malformed("bias and factor have a number for each head, " + kiln::to_string(a.dim(-1)) + ", found " +
                  kiln::to_string(c.in(i).get_shape()));
    return c.in(i).reshape({a.dim(-1)});
  };
  const value fade = per_head(2) * c.build.add(op::softplus{}, widened(a) + per_head(1));
  variables out{fade.convert(a.type())};
  if (c.wants(1)) {
    if (!c.has(3)) c.malformed("beta is an output, and b is no input");
    out.push_back(widened(c.in(3)).sigmoid().convert(a.type()));
  }
  return out;
}

// Inputs: x, gains, gate. The root mean square of each run of x as long as the gains made 1, times gains and gate.
variables import_gated_rms_norm(node_context& c) {
  const value x = c.in(0);
  const dimension run = c.in(1).get_shape().elements();
  if (x.rank() < 1 || !(x.dim(-1) % run == dimension(0)))
    c.malformed("the last extent is a multiple of the number of gains, " + kiln::to_string(run) + ", found " +
                kiln::to_string(x.get_shape()));
  const auto kind = c.choice("activation", {"silu", "swish", "sigmoid"});
  dims lens = x.get_shape().lens;
  const dims whole = lens;
  lens.back() = lens.back() / run;
  lens.push_back(run);
  const value wide = widened(x).reshape(lens), gate = widened(c.in(2)).reshape(lens);
  const value y =
      wide * ((wide * wide).reduce_mean({-1}) + c.real("epsilon", 1e-5f)).rsqrt() * widened(c.in(1)).reshape({run});
  return {(y * (kind == "sigmoid" ? gate.sigmoid() : gate.silu())).reshape(whole).convert(x.type())};
}

variables import_gated_add(node_context& c) { return {c.in(0) + c.in(1) * c.in(2)}; }

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
      {"", "BitCast", 26, import_bit_cast},
      {"", "CenterCropPad", 18, import_center_crop_pad},
      {"", "Det", 11, import_det},
      {"", "LinearAttention", 27, import_linear_attention},
      {"", "SwiGLU", 28, import_swiglu},
      {"", "TensorScatter", 24, import_tensor_scatter},
      {microsoft, "GatedAdd", 1, import_gated_add},
      {microsoft, "GatedRMSNorm", 1, import_gated_rms_norm},
      {microsoft, "LinearAttention", 1, import_linear_attention},
      {microsoft, "LinearAttentionGate", 1, import_linear_attention_gate},
  };
  return table;
}

}  // namespace kiln::onnx
