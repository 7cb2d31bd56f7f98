#include "kiln/onnx/impl/ops/cast.hpp"
#include "kiln/onnx/impl/ops/group_norm.hpp"

// Normalizations as reductions and pointwise ops, which fusion recognizes.
namespace kiln::onnx {

namespace {

// (x - mean) / sqrt(variance + epsilon) * scale + bias as a factor and an offset for each channel, in f32 for narrow
// types.
value scale_and_shift(value x, value scale, value bias, value mean, value variance, float epsilon) {
  const dtype t = x.type();
  const auto wide = [&](value v) { return t == dtype::f64 ? v.convert(t) : v.convert(dtype::f32); };
  const value factor = wide(scale) * (wide(variance) + epsilon).rsqrt(), offset = wide(bias) - wide(mean) * factor;
  const value y = widened(x);
  if (scale.rank() != 1) return (y * factor + offset).convert(t);
  return (y * y.make_along(1, factor) + y.make_along(1, offset)).convert(t);
}

// Outputs: y, the running mean and variance; before version 14 also the batch's own.
variables train_batch_norm(node_context& c, float epsilon, float momentum) {
  const value x = c.in(0);
  ints axes = axes_from(2, x.rank());
  axes.insert(0, 0);
  const value wide = widened(x), mean = wide.reduce_mean(axes), centered = wide - mean,
              variance = (centered * centered).reduce_mean(axes);
  const value own_mean = mean.reshape({x.dim(1)}), own_variance = variance.reshape({x.dim(1)});
  const auto running = [&](value before, value now) {
    return (before * momentum).convert(before.type()) + (now * (1 - momentum)).convert(before.type());
  };
  variables out{scale_and_shift(x, c.in(1), c.in(2), own_mean, own_variance, epsilon)};
  out.push_back(running(c.in(3), own_mean));
  out.push_back(running(c.in(4), own_variance));
  if (c.version < 14) {
    out.push_back(own_mean.convert(x.type()));
    out.push_back(own_variance.convert(x.type()));
  }
  return out;
}
variables import_batch_norm(node_context& c) {
  const float epsilon = c.real("epsilon", 1e-5f);
  // before version 14 it trains if more outputs than the first are read
  const bool reads = c.wants(1) || c.wants(2) || c.wants(3) || c.wants(4), spatial = c.flag("spatial", true);
  if (c.version >= 14 ? c.flag("training_mode") : reads) {
    if (c.flag("is_test")) c.malformed("is_test is set, but outputs of training are read");
    if (!spatial) c.unsupported("training with statistics of each activation");
    return train_batch_norm(c, epsilon, c.real("momentum", 0.9f));
  }
  if (!spatial) {
    // statistics for each activation instead of each channel
    return {scale_and_shift(c.in(0), c.in(1).unsqueeze({0}), c.in(2).unsqueeze({0}), c.in(3).unsqueeze({0}),
                            c.in(4).unsqueeze({0}), epsilon)};
  }
  return {scale_and_shift(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), epsilon)};
}

variables import_instance_norm(node_context& c) {
  const value x = c.in(0), y = widened(x).normalize(axes_from(2, x.rank()), c.real("epsilon", 1e-5f));
  return {(y * y.make_along(1, widened(c.in(1))) + y.make_along(1, widened(c.in(2)))).convert(x.type())};
}

// Mean and inverse standard deviation.
std::pair<value, value> statistics(value x, const ints& axes, float epsilon) {
  const value mean = x.reduce_mean(axes), centered = x - mean;
  return {mean, ((centered * centered).reduce_mean(axes) + epsilon).rsqrt()};
}

// Statistics in the stash type (f32), then scale and bias in the input's type.
variables import_layer_norm(node_context& c) {
  const value x = c.in(0);
  const ints axes = axes_from(axis_within(c, c.integer("axis", -1), x.rank()), x.rank());
  const float epsilon = c.real("epsilon", 1e-5f);
  const value wide = c.integer("stash_type", 1) == 1 ? widened(x) : x;
  value y = wide.normalize(axes, epsilon).convert(x.type()) * c.in(1);
  if (c.has(2)) y = y + c.in(2);
  variables out{y};
  if (c.wants(1) || c.wants(2)) {
    const auto [mean, deviation] = statistics(wide, axes, epsilon);
    const dtype stash = known_type(c, c.integer("stash_type", 1), "keeps statistics in");
    out.push_back(mean.convert(stash));
    out.push_back(deviation.convert(stash));
  }
  return out;
}
value rms_normalized(value x, const ints& axes, float epsilon) {
  const value wide = widened(x);
  return (wide * ((wide * wide).reduce_mean(axes) + epsilon).rsqrt()).convert(x.type());
}
variables import_rms_norm(node_context& c) {
  const value x = c.in(0);
  const ints axes = axes_from(axis_within(c, c.integer("axis", -1), x.rank()), x.rank());
  return {rms_normalized(x, axes, c.real("epsilon", 1e-5f)).convert(c.in(1).type()) * c.in(1)};
}

// The sum with a skip connection and a bias, which is the last output.
value skip_sum(node_context& c, std::size_t bias) {
  const value sum = c.in(0) + c.in(1);
  return c.has(bias) ? sum + c.in(bias) : sum;
}
// Outputs: the normalized value, mean, inverse standard deviation, sum.
variables import_skip_layer_norm(node_context& c) {
  const value sum = skip_sum(c, 4), wide = widened(sum);
  const float epsilon = c.real("epsilon", 1e-12f);
  value y = wide.normalize({-1}, epsilon).convert(sum.type()) * c.in(2);
  if (c.has(3)) y = y + c.in(3);
  const auto [mean, deviation] = statistics(wide, {-1}, epsilon);
  return {y, mean, deviation, sum};
}
variables import_skip_rms_norm(node_context& c) {
  const value sum = skip_sum(c, 3), wide = widened(sum);
  const float epsilon = c.real("epsilon", 1e-12f);
  return {rms_normalized(sum, {-1}, epsilon) * c.in(2), wide.reduce_mean({-1}),
          ((wide * wide).reduce_mean({-1}) + epsilon).rsqrt(), sum};
}

variables import_group_norm(node_context& c) {
  const value x = c.in(0);
  const dims lens = x.get_shape().lens;
  const std::int64_t groups = c.integer("num_groups", 0);
  const group_norm how{.groups = groups,
                       .epsilon = c.real("epsilon", 1e-5f),
                       .stash = c.integer("stash_type", 1) == 1 ? widened(x).type() : x.type(),
                       .type = x.type()};
  check_groups(c, how, lens);
  const auto along = [&](value v) {
    if (v.rank() != 1) c.malformed("scale and bias are vectors, found " + kiln::to_string(v.get_shape()));
    // the first version has a scale for each group
    if (c.version < 21 && !(v.dim(0) == lens[1]))
      v = v.expect_dims({groups}).unsqueeze({1}).broadcast_to({groups, lens[1] / groups}).reshape({lens[1]});
    return v.expect_dims({lens[1]});
  };
  return {group_normalized(x, how, along(c.in(1)), along(c.in(2)))};
}

variables import_lp_norm(node_context& c) {
  const value x = c.in(0);
  const ints axes{axis_within(c, c.integer("axis", -1), x.rank())};
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.malformed("p is 1 or 2, not " + std::to_string(p));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const value norm = p == 1 ? x | op::reduce_l1{axes} : x | op::reduce_l2{axes};
  const value zero = c.build.scalar(x.type(), 0.0f), infinite = c.build.scalar(x.type(), infinity);
  // a row of zeros stays zero, and its divisor is chosen once for all of its elements
  return {x / norm.equal(zero).where(infinite, norm)};
}

// Before version 9 over each channel, or across all of them, and on demand without the variance.
variables import_mean_variance_norm(node_context& c) {
  const value x = c.in(0);
  const auto given = c.integers("axes");
  const ints axes = c.version < 9   ? axes_from(c.flag("across_channels") ? 1 : 2, x.rank())
                    : given.empty() ? ints{0, 2, 3}
                                    : axes_within(c, given, x.rank());
  const value centered = x - x.reduce_mean(axes);
  if (c.version < 9 && !c.flag("normalize_variance", true)) return {centered};
  return {centered / ((centered * centered).reduce_mean(axes).sqrt() + 1e-9f)};
}

}  // namespace

std::span<const op_importer> normalize_importers() {
  static constexpr op_importer table[] = {
      {"", "BatchNormalization", 1, import_batch_norm},
      {"", "GroupNormalization", 18, import_group_norm},
      {"", "InstanceNormalization", 1, import_instance_norm},
      {"", "LayerNormalization", 1, import_layer_norm,
       "in the standard from 17 on; ONNX Runtime has it in all operator sets"},
      {"", "LpNormalization", 1, import_lp_norm},
      {"", "MeanVarianceNormalization", 1, import_mean_variance_norm},
      {"", "MeanVarianceNormalization", 9, import_mean_variance_norm},
      {"", "RMSNormalization", 23, import_rms_norm},
      {"", "SimplifiedLayerNormalization", 1, import_rms_norm,
       "ONNX Runtime's, which exporters write into this domain"},
      {microsoft, "SkipLayerNormalization", 1, import_skip_layer_norm},
      {microsoft, "SkipSimplifiedLayerNormalization", 1, import_skip_rms_norm},
  };
  return table;
}

}  // namespace kiln::onnx
