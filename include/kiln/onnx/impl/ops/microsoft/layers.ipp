#include "kiln/onnx/impl/ops/group_norm.hpp"
#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/op/linear/inverse.hpp"

// Other layers of com.microsoft.
namespace kiln::onnx {

namespace {

// Inputs: x, scale, offset; SkipGroupNorm also has a skip connection and a bias, and their sum is an output.
template <bool Skips> variables import_group_norm(node_context& c) {
  const bool last = c.flag("channels_last", true);
  if (c.in(0).rank() != 4) c.malformed("the input has rank 4");
  value sum = c.in(0);
  if constexpr (Skips) {
    const value skip = c.in(3);
    sum = sum + (skip.rank() == 2 ? skip.unsqueeze(last ? ints{1, 2} : ints{2, 3}) : skip);
    if (c.has(4)) sum = last ? sum + c.in(4) : sum.add_along(1, c.in(4));
  }
  const value x = last ? channels_first(sum) : sum;
  const dtype wide = widened(x).type();
  const group_norm how{c.integer("groups", 0), c.real("epsilon", 1e-5f), wide, wide};
  const dims lens = x.get_shape().lens;
  check_groups(c, how, lens);
  value y = group_normalized(x, how, c.in(1).expect_dims({lens[1]}), c.in(2).expect_dims({lens[1]}));
  if (c.flag("activation")) y = y.silu();
  y = y.convert(x.type());
  variables out{last ? channels_last(y) : y};
  if constexpr (Skips) out.push_back(sum);
  return out;
}

variables import_nhwc_conv(node_context& c) {
  const node_context plain = c.with_inputs({variable(channels_first(c.in(0))), c.inputs[1]});
  const value y = plain.in(0).conv(plain.in(1), read_convolution(plain));
  return {channels_last(c.has(2) ? y.add_along(1, c.in(2)) : y)};
}

// Inputs: word ids, segment ids, word, position and segment tables, scale, offset, mask; `at` are positions.
// `rows(i, ids)` are rows of the table that is input i, and `numbers(i)` is input i, as floats.
template <class Rows, class Numbers>
variables embedded(node_context& c, value at, const Rows& rows, const Numbers& numbers) {
  const value ids = c.in(0);
  if (ids.rank() != 2) c.malformed("word ids are [batch, sequence]");
  value sum = rows(2, ids) + rows(3, at ? at.convert(dtype::i64) : indices_along(c, 2, 1, ids.dim(1)));
  if (c.has(1) && c.has(4)) sum = sum + rows(4, c.in(1));
  const value y = widened(sum).normalize({-1}, c.real("epsilon", 1e-12f)).convert(sum.type()) * numbers(5) + numbers(6);
  const value length = c.has(7) ? c.in(7).convert(dtype::i64).reduce_sum({1}).squeeze({1}).convert(dtype::i32)
                                : c.build.add(op::fill{{ids.dim(0)}, 0, dtype::i32});
  return {y, length, sum};
}
variables import_embed_layer_norm(node_context& c) {
  return embedded(
      c, c.optional_in(8), [&](std::size_t i, value ids) { return c.in(i).gather(ids, 0); },
      [&](std::size_t i) { return c.in(i); });
}
// Tables, scale and offset are 8-bit integers, whose scales and zero points are inputs 8 and up, 13 and up.
variables import_quantized_embed_layer_norm(node_context& c) {
  constexpr std::size_t scales = 8, zeros = 13, first = 2;
  const auto real = [&](std::size_t i, value stored) {
    variables inputs = c.inputs;
    inputs[i] = variable(stored);
    node_context own = c.with_inputs(std::move(inputs));
    return dequantized_input(own, i, scales + i - first, zeros + i - first);
  };
  return embedded(
      c, {}, [&](std::size_t i, value ids) { return real(i, c.in(i).gather(ids, 0)); },
      [&](std::size_t i) { return real(i, c.in(i)); });
}

variables import_bias_add(node_context& c) { return {c.in(0) + c.in(1) + c.in(2)}; }
variables import_bias_softmax(node_context& c) {
  const value x = c.in(0), shifted = x + c.in(1);
  return {shifted.softmax(axis_within(c, c.integer("axis", 1), x.rank()))};
}
variables import_bias_split_gelu(node_context& c) {
  const value x = c.in(0) + c.in(1);
  const dimension half = x.dim(2) / 2;
  return {x.slice({{2}, {0}, {half}, {}}) * x.slice({{2}, {half}, {x.dim(2)}, {}}).gelu()};
}

variables import_inverse(node_context& c) { return {c.in(0) | op::inverse{}}; }

}  // namespace

std::span<const op_importer> microsoft_layer_importers() {
  static constexpr op_importer table[] = {
      {microsoft, "BiasAdd", 1, import_bias_add},
      {microsoft, "BiasSoftmax", 1, import_bias_softmax},
      {microsoft, "BiasSplitGelu", 1, import_bias_split_gelu},
      {microsoft, "EmbedLayerNormalization", 1, import_embed_layer_norm},
      {microsoft, "GroupNorm", 1, import_group_norm<false>},
      {microsoft, "Inverse", 1, import_inverse},
      {microsoft, "NhwcConv", 1, import_nhwc_conv},
      {microsoft, "QEmbedLayerNormalization", 1, import_quantized_embed_layer_norm},
      {microsoft, "SkipGroupNorm", 1, import_group_norm<true>},
  };
  return table;
}

}  // namespace kiln::onnx
