#include "kiln/onnx/impl/parse.hpp"

// Layers of com.microsoft that are neither attention nor quantised.
namespace kiln::onnx {

namespace {

value channels_first(value x) { return x.transpose({0, 3, 1, 2}); }
value channels_last(value x) { return x.transpose({0, 2, 3, 1}); }

// Inputs: x, scale, offset; with a skip: the skip and a bias behind them, and the sum is an output.
template <bool Skips>
variables parse_group_norm(call& c) {
  const bool last = c.flag("channels_last", true);
  if (c.in(0).rank() != 4) c.malformed("the input has rank 4");
  const std::int64_t groups = c.integer("groups", 0);
  if (groups < 1) c.malformed("groups is positive");
  value sum = c.in(0);
  if constexpr (Skips) {
    const value skip = c.in(3);
    sum = sum + (skip.rank() == 2 ? skip.unsqueeze(last ? ints{1, 2} : ints{2, 3}) : skip);
    if (c.has(4)) sum = last ? sum + c.in(4) : sum.add_along(1, c.in(4));
  }
  const value x = last ? channels_first(sum) : sum;
  const dims lens = x.get_shape().lens;
  value y = widened(x)
                .reshape({lens[0], groups, product(lens) / (lens[0] * groups)})
                .normalise({2}, c.real("epsilon", 1e-5f))
                .reshape(lens);
  y = y * y.make_along(1, widened(c.in(1))) + y.make_along(1, widened(c.in(2)));
  if (c.flag("activation")) y = y.silu();
  y = y.convert(x.type());
  variables out{last ? channels_last(y) : y};
  if constexpr (Skips) out.push_back(sum);
  return out;
}

variables parse_nhwc_conv(call& c) {
  const call plain{c.build, c.source, c.version, {variable(channels_first(c.in(0))), c.inputs[1]}, c.bodies};
  const value y = plain.in(0).conv(plain.in(1), read_convolution(plain));
  return {channels_last(c.has(2) ? y.add_along(1, c.in(2)) : y)};
}

// Inputs: word ids, segment ids, word, position and segment tables, scale, offset, mask, position ids.
variables parse_embed_layer_norm(call& c) {
  const value ids = c.in(0);
  if (ids.rank() != 2) c.malformed("word ids are [batch, sequence]");
  const value at = c.has(8) ? c.in(8).convert(dtype::i64) : c.build.add(op::iota{{1, ids.dim(1)}, 1, dtype::i64});
  value sum = c.in(2).gather(ids, 0) + c.in(3).gather(at, 0);
  if (c.has(1) && c.has(4)) sum = sum + c.in(4).gather(c.in(1), 0);
  const value y = widened(sum).normalise({-1}, c.real("epsilon", 1e-12f)).convert(sum.type()) * c.in(5) + c.in(6);
  const value length = c.has(7) ? c.in(7).convert(dtype::i64).reduce_sum({1}).squeeze({1}).convert(dtype::i32)
                                : c.build.add(op::fill{{ids.dim(0)}, 0, dtype::i32});
  return {y, length, sum};
}

variables parse_bias_add(call& c) { return {c.in(0) + c.in(1) + c.in(2)}; }
variables parse_bias_softmax(call& c) {
  const value x = c.in(0), shifted = x + c.in(1);
  return {shifted.softmax(axis_within(c, c.integer("axis", 1), x.rank()))};
}
variables parse_bias_split_gelu(call& c) {
  const value x = c.in(0) + c.in(1);
  const dimension half = x.dim(2) / 2;
  return {x.slice({{2}, {0}, {half}, {}}) * x.slice({{2}, {half}, {x.dim(2)}, {}}).gelu()};
}

}  // namespace

std::span<const row> microsoft_rows() {
  static constexpr row rows[] = {
      {microsoft, "BiasAdd", 1, parse_bias_add},
      {microsoft, "BiasSoftmax", 1, parse_bias_softmax},
      {microsoft, "BiasSplitGelu", 1, parse_bias_split_gelu},
      {microsoft, "EmbedLayerNormalization", 1, parse_embed_layer_norm},
      {microsoft, "GroupNorm", 1, parse_group_norm<false>},
      {microsoft, "NhwcConv", 1, parse_nhwc_conv},
      {microsoft, "SkipGroupNorm", 1, parse_group_norm<true>},
  };
  return rows;
}

}  // namespace kiln::onnx
