#include <cmath>
#include <limits>

#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/pass/fusion_group.hpp"

// Products, windows, attention and recurrent layers.
namespace kiln::onnx {

namespace {

void write_convolution(exporter& x, const exported& e) {
  const auto& o = e.as<op::convolution>();
  if (!is_float(e.result().type)) return write_integer_convolution(x, e);
  auto n = x.write("Conv", e.in, {e.out[0]});
  put_window(n, o).set("group", o.group);
}
void write_deconvolution(exporter& x, const exported& e) {
  const auto& o = e.as<op::deconvolution>();
  auto n = x.write("ConvTranspose", e.in, {e.out[0]});
  put_window(n, o).set("group", o.group);
  if (!o.output_padding.empty()) n.set("output_padding", all(o.output_padding));
}
void write_pooling(exporter& x, const exported& e) {
  const auto& o = e.as<op::pooling>();
  const std::string_view name = o.mode == op::pooling_mode::max       ? "MaxPool"
                                : o.mode == op::pooling_mode::average ? "AveragePool"
                                                                      : "LpPool";
  auto n = x.write(name, e.in, {e.out[0]});
  put_window(n, o).set("kernel_shape", all(o.lengths)).set("ceil_mode", std::int64_t{o.ceil_mode});
  if (o.mode == op::pooling_mode::average) n.set("count_include_pad", std::int64_t{o.count_include_pad});
  if (o.mode == op::pooling_mode::lp) n.set("p", o.lp_order);
}
void write_lrn(exporter& x, const exported& e) {
  const auto& o = e.as<op::lrn>();
  x.write("LRN", e.in, {e.out[0]})
      .set("size", static_cast<std::int64_t>(o.size))
      .set("alpha", static_cast<float>(o.alpha))
      .set("beta", static_cast<float>(o.beta))
      .set("bias", static_cast<float>(o.bias));
}

// Spelled out; a query that sees no key has the result 0.
void write_attention(exporter& x, const exported& e) {
  const auto& o = e.as<op::attention>();
  const shape &q = e.types[0], &k = e.types[1], &v = e.types[2];
  const dtype t = q.type;
  const auto repeated = [&](const std::string& name, const shape& s) {
    if (s.lens[1] == q.lens[1]) return name;
    const dimension each = q.lens[1] / s.lens[1];
    const std::string apart = x.reshaped(name, {s.lens[0], s.lens[1], 1, s.lens[2], s.lens[3]});
    return x.reshaped(x.expanded(apart, {s.lens[0], s.lens[1], each, s.lens[2], s.lens[3]}),
                      {s.lens[0], q.lens[1], s.lens[2], s.lens[3]});
  };
  const std::string turned = e.out[0] + "_turned";
  const ints order{0, 1, 3, 2};
  x.write("Transpose", {repeated(e.in[1], k)}, {turned}).set("perm", all(order));
  std::string scores = x.make("Mul", {x.make("MatMul", {e.in[0], turned}), x.scalar(t, o.scale)});
  const std::string low = x.scalar(t, -std::numeric_limits<float>::infinity());
  if (e.in.size() > 3)
    scores =
        e.types[3].type == dtype::boolean ? x.make("Where", {e.in[3], scores, low}) : x.make("Add", {scores, e.in[3]});
  if (o.causal) {
    const dimension plane[] = {q.lens[2], k.lens[2]}, beyond[] = {k.lens[2] - q.lens[2]};
    const std::string ones = e.out[0] + "_ones", seen = e.out[0] + "_seen";
    const float one[] = {1};
    x.write("ConstantOfShape", {x.dimensions(plane)}, {ones})
        .set("value", literal::of<float>(shape{dtype::f32, {1}}, one));
    x.write("Trilu", {ones, x.reshaped(x.dimensions(beyond), {})}, {seen}).set("upper", std::int64_t{0});
    scores = x.make("Where", {x.cast(seen, dtype::boolean), scores, low});
  }
  const std::string p = e.out[0] + "_probabilities", top = e.out[0] + "_top";
  const std::int64_t last[] = {-1};
  x.write("Softmax", {scores}, {p}).set("axis", std::int64_t{-1});
  x.write("ReduceMax", {scores, x.integers(last)}, {top}).set("keepdims", std::int64_t{1});
  const std::string safe = x.make("Where", {x.make("Equal", {top, low}), x.scalar(t, 0), p});
  x.write("MatMul", {safe, repeated(e.in[2], v)}, {e.out[0]});
}

std::string_view function_name(op::cell_function f) {
  constexpr std::string_view known[] = {"Affine",   "Elu",        "HardSigmoid",    "LeakyRelu",
                                        "Relu",     "ScaledTanh", "Sigmoid",        "Softplus",
                                        "Softsign", "Tanh",       "ThresholdedRelu"};
  return known[static_cast<unsigned>(f)];
}

// The product with the inputs is done already, so the layer's W is the identity.
void write_recurrent(exporter& x, const exported& e) {
  const auto& o = e.as<op::recurrent>();
  const dimension all_gates = e.types[1].lens[1], hidden = e.types[1].lens[0];
  if (!all_gates.is_constant()) exporter::unsupported("a recurrent layer of symbolic extent");
  const std::int64_t n = all_gates.value();
  small_vector<float> identity(static_cast<std::size_t>(n * n), 0.0f);
  for (std::int64_t k = 0; k < n; ++k) identity[static_cast<std::size_t>(k * n + k)] = 1;
  const dtype t = e.result().type;
  const std::string w = x.constant(literal::of<float>(shape{t, {1, n, n}}, identity));
  const std::string r = x.reshaped(x.make("Transpose", {e.in[1]}), {1, n, hidden});
  const std::string none =
      x.constant(literal::of<float>(shape{t, {1, n}}, small_vector<float>(static_cast<std::size_t>(n), 0.0f)));
  const std::string b = e.out[0] + "_bias";
  x.write("Concat", {none, x.reshaped(e.in[2], {1, n})}, {b}).set("axis", std::int64_t{1});
  const auto state = [&](std::size_t i) { return x.reshaped(e.in[i], {1, e.types[i].lens[0], hidden}); };
  names in{e.in[0], w, r, b, x.cast(e.in[4], dtype::i32), state(3)};
  const bool remembers = o.cell == op::cell_kind::lstm;
  if (remembers) {
    in.push_back(state(5));
    in.push_back(x.reshaped(e.in[6], {1, hidden * 3}));
  }
  names raw;
  for (std::size_t k = 0; k < (remembers ? 3u : 2u); ++k) raw.push_back(e.out[k] + "_whole");
  names functions;
  std::vector<float> alpha, beta;
  for (std::size_t k = 0; k < o.functions.size(); ++k) {
    using op::cell_function;
    const cell_function f = o.functions[k];
    functions.emplace_back(function_name(f));
    const bool two = f == cell_function::affine || f == cell_function::hard_sigmoid || f == cell_function::scaled_tanh;
    if (two || f == cell_function::elu || f == cell_function::leaky_relu || f == cell_function::thresholded_relu)
      alpha.push_back(o.alpha[k]);
    if (two) beta.push_back(o.beta[k]);
  }
  auto node = x.write(remembers ? "LSTM" : o.cell == op::cell_kind::gru ? "GRU" : "RNN", in, raw);
  node.set("hidden_size", hidden.value())
      .set("direction", std::string_view(o.reverse ? "reverse" : "forward"))
      .set("activations", functions);
  if (!alpha.empty()) node.set("activation_alpha", std::span<const float>(alpha));
  if (!beta.empty()) node.set("activation_beta", std::span<const float>(beta));
  if (std::isfinite(o.clip)) node.set("clip", o.clip);
  if (o.linear_before_reset) node.set("linear_before_reset", std::int64_t{1});
  if (o.coupled) node.set("input_forget", std::int64_t{1});
  for (std::size_t k = 0; k < raw.size(); ++k) {
    const std::int64_t axis[] = {k == 0 ? 1 : 0};
    x.write("Squeeze", {raw[k], x.integers(axis)}, {e.out[k]});
  }
}

// A matrix that is only repeated for the batch of the left operand repeats by itself.
template <fixed_text Name> void write_product(exporter& x, const exported& e) {
  names in = e.in;
  const auto& repeated = e.home->producer((*e.home)[e.at].inputs[1]);
  if (repeated.kind == instruction_kind::op && repeated.op.is<op::multibroadcast>()) {
    const dims &own = e.home->shape_of(repeated.inputs[0]).lens, &lens = e.types[1].lens;
    if (own.size() == 2 && own[0] == lens[lens.size() - 2] && own[1] == lens[lens.size() - 1])
      in[1] = e.name_of(repeated.inputs[0]);
  }
  x.write(Name.text, in, e.out);
}
void write_det(exporter& x, const exported& e) { x.write("Det", e.in, {e.out[0]}); }  // without the room
void write_dft(exporter& x, const exported& e) {
  const auto& o = e.as<op::dft>();
  const bool own = o.length == dimension(0);
  x.write("DFT",
          {e.in[0], own ? std::string() : x.reshaped(x.dimensions({&o.length, 1}), {}),
           x.scalar(dtype::i64, normal_axis(o.axis, e.types[0].rank()))},
          {e.out[0]})
      .set("inverse", std::int64_t{o.inverse})
      .set("onesided", std::int64_t{o.one_sided});
}
void write_inverse(exporter& x, const exported& e) { x.write("Inverse", e.in, {e.out[0]}).of_domain("com.microsoft"); }
// MelWeightMatrix has rates that are integers, and edges that are floats: f32 in ONNX Runtime.
void write_mel_weights(exporter& x, const exported& e) {
  const auto& o = e.as<op::mel_weights>();
  const auto count = [&](const dimension& n) { return x.reshaped(x.dimensions({&n, 1}), {}); };
  const auto scalar = [&](std::size_t i) { return x.reshaped(e.in[i], {}); };
  const auto known = [&](std::size_t i) {
    const literal* const l = e.constant(i);
    return l ? l->at<double>(0) : std::numeric_limits<double>::quiet_NaN();
  };
  const auto edge = [&](std::size_t i) {
    if (is_float(e.types[i].type)) return scalar(i);
    const double v = known(i);
    return x.cast(scalar(i), static_cast<double>(static_cast<float>(v)) == v ? dtype::f32 : dtype::f64);
  };
  if (is_float(e.types[0].type) && std::trunc(known(0)) != known(0))
    exporter::unsupported("mel weights of a rate that is not known to be an integer");
  x.write("MelWeightMatrix", {count(o.mels), count(o.length), x.cast(scalar(0), dtype::i64), edge(1), edge(2)},
          {e.out[0]});
}
void write_random_uniform(exporter& x, const exported& e) {
  const auto& o = e.as<op::random_uniform>();
  const ints lens = to_ints(o.lens);
  x.write("RandomUniform", {}, {e.out[0]})
      .set("low", static_cast<float>(o.low))
      .set("high", static_cast<float>(o.high))
      .set("seed", static_cast<float>(o.seed))
      .set("dtype", static_cast<std::int64_t>(to_element(o.type)))
      .set("shape", all(lens));
}
void write_roi_align(exporter& x, const exported& e) {
  const auto& o = e.as<op::roi_align>();
  if (o.samples < 0) {
    const std::string images = x.reshaped(x.cast(e.in[2], e.types[1].type), {e.types[2].lens[0], 1}),
                      rois = e.out[0] + "_rois";
    const std::int64_t size[] = {o.height, o.width};
    x.write("Concat", {images, e.in[1]}, {rois}).set("axis", std::int64_t{1});
    x.write("MaxRoiPool", {e.in[0], rois}, {e.out[0]})
        .set("pooled_shape", std::span<const std::int64_t>(size))
        .set("spatial_scale", o.scale);
    return;
  }
  x.write("RoiAlign", {e.in[0], e.in[1], x.cast(e.in[2], dtype::i64)}, {e.out[0]})
      .set("output_height", o.height)
      .set("output_width", o.width)
      .set("sampling_ratio", o.samples)
      .set("spatial_scale", o.scale)
      .set("mode", std::string_view(o.greatest ? "max" : "avg"))
      .set("coordinate_transformation_mode", std::string_view(o.half_pixel ? "half_pixel" : "output_half_pixel"));
}

// What an instruction reads is made by an op that ONNX Runtime moves quantization across, or drops before it.
bool reads_what_vanishes(const module_graph& m, std::uint32_t at) {
  const auto& made = m.producer(m[at].inputs[0]);
  if (made.kind != instruction_kind::op) return false;
  return made.op.kind() == op_kind::view || made.op.is<op::pooling>() || made.op.is<op::relu>() ||
         made.op.is<op::clip>();
}
// Convolutions alone read an instruction's result, as it is.
bool is_only_convolved(const module_graph& m, std::uint32_t at) {
  for (const value_id v : m.outputs)
    if (v.instruction == at) return false;
  for (std::uint32_t i = 0; i < m.size(); ++i)
    for (const value_id v : m[i].inputs)
      if (v.instruction == at && !(m[i].kind == instruction_kind::op && m[i].op.is<op::convolution>())) return false;
  return true;
}
// ONNX Runtime 1.30 treats quantization to floats as that to integers: it moves it across MaxPool and views, drops Relu
// before it, and makes integer products of MatMul between two DequantizeLinear. It cannot compute that, or computes
// something else: there quantization of values is spelled out.
bool spells_floats(const exported& e, dtype stored) {
  return quantize::is_float8(stored) && e.types[1].lens.empty() && !e.constant(0);
}

void write_quantize(exporter& x, const exported& e) {
  const auto& o = e.as<op::quantize_linear>();
  if (spells_floats(e, o.type) && reads_what_vanishes(*e.home, e.at)) {
    const auto most = static_cast<float>(quantize::greatest_float8(o.type));
    const std::string ratio = x.make("Div", {e.in[0], e.in[1]}),
                      kept = x.make("Clip", {ratio, x.scalar(dtype::f32, -most), x.scalar(dtype::f32, most)});
    x.write("Cast", {kept}, e.out).set("to", static_cast<std::int64_t>(to_element(o.type)));
    return;
  }
  names in = e.in;
  if (in.size() == 2 && o.type != dtype::u8) {  // the zero point says the type
    const dims lens = e.types[1].lens;
    const literal zero = literal::scalar(o.type, std::int64_t{0});
    in.push_back(lens.empty() ? x.constant(zero) : x.expanded(x.constant(zero), lens));
  }
  auto n = x.write("QuantizeLinear", in, e.out);
  if (!e.types[1].lens.empty()) n.set("axis", o.axis);
}
void write_dequantize(exporter& x, const exported& e) {
  if (spells_floats(e, e.types[0].type) && !is_only_convolved(*e.home, e.at)) {
    x.write("Mul", {x.cast(e.in[0], dtype::f32), e.in[1]}, e.out);
    return;
  }
  auto n = x.write("DequantizeLinear", e.in, e.out);
  if (!e.types[1].lens.empty()) n.set("axis", e.as<op::dequantize_linear>().axis);
}

}  // namespace

std::span<const op_exporter> export_layers() {
  static constexpr op_exporter table[] = {
      {"attention", write_attention},
      {"block_dequantize", write_block_dequantize},
      {"centered_dot", write_product<"MatMulInteger">},
      {"convolution", write_convolution},
      {"deconvolution", write_deconvolution},
      {"det", write_det},
      {"dequantize_linear", write_dequantize},
      {"dft", write_dft},
      {"dot", write_product<"MatMul">},
      {"dynamic_quantize_linear", write_same<"DynamicQuantizeLinear">},
      {"inverse", write_inverse},
      {"lrn", write_lrn},
      {"mel_weights", write_mel_weights},
      {"pooling", write_pooling},
      {"quantize_linear", write_quantize},
      {"random_uniform", write_random_uniform},
      {"recurrent", write_recurrent},
      {"roi_align", write_roi_align},
  };
  return table;
}

}  // namespace kiln::onnx
