#include "kiln/onnx/impl/exporter.hpp"

// Elementwise ops and reductions: most have an operator of their own.
namespace kiln::onnx {

namespace {

template <fixed_text Name>
void same(exporter& x, const exported& e) {
  x.write(Name.text, e.in, {e.out[0]});
}
template <fixed_text First, fixed_text Second>
void chain(exporter& x, const exported& e) {
  x.write(Second.text, {x.make(First.text, e.in)}, {e.out[0]});
}
std::string one(exporter& x, dtype t, double v = 1) { return x.scalar(t, v); }

template <class Op, fixed_text Name>
void with_alpha(exporter& x, const exported& e) {
  x.write(Name.text, e.in, {e.out[0]}).set("alpha", static_cast<float>(e.op.get_if<Op>()->alpha));
}
void write_selu(exporter& x, const exported& e) {
  const auto& o = *e.op.get_if<op::selu>();
  x.write("Selu", e.in, {e.out[0]}).set("alpha", static_cast<float>(o.alpha)).set("gamma", static_cast<float>(o.gamma));
}
void write_hard_sigmoid(exporter& x, const exported& e) {
  const auto& o = *e.op.get_if<op::hard_sigmoid>();
  x.write("HardSigmoid", e.in, {e.out[0]})
      .set("alpha", static_cast<float>(o.alpha))
      .set("beta", static_cast<float>(o.beta));
}
void write_shrink(exporter& x, const exported& e) {
  const auto& o = *e.op.get_if<op::shrink>();
  x.write("Shrink", e.in, {e.out[0]}).set("lambd", o.lambd).set("bias", o.bias);
}
void write_gelu(exporter& x, const exported& e) {
  const std::string_view how = e.op.get_if<op::gelu>()->tanh_approximation ? "tanh" : "none";
  x.write("Gelu", e.in, {e.out[0]}).set("approximate", how);
}
void write_is_inf(exporter& x, const exported& e) {
  const auto& o = *e.op.get_if<op::is_inf>();
  x.write("IsInf", e.in, {e.out[0]})
      .set("detect_negative", std::int64_t{o.detect_negative})
      .set("detect_positive", std::int64_t{o.detect_positive});
}
void write_convert(exporter& x, const exported& e) {
  const dtype to = e.result().type;
  auto node = x.write("Cast", e.in, {e.out[0]});
  node.set("to", static_cast<std::int64_t>(to_element(to)));
  if (to == dtype::f8e8m0)
    node.set("round_mode", std::string_view("nearest"));
  else if (is_narrow(to) && is_float(to) && bits_of(to) == 8)  // nothing is held to the range that the program did not
    node.set("saturate", std::int64_t{0});
}
void write_clip(exporter& x, const exported& e) {
  x.write("Min", {x.make("Max", {e.in[0], e.in[1]}), e.in[2]}, {e.out[0]});
}
void write_expm1(exporter& x, const exported& e) {
  x.write("Sub", {x.make("Exp", e.in), one(x, e.result().type)}, {e.out[0]});
}
void write_log1p(exporter& x, const exported& e) {
  x.write("Log", {x.make("Add", {e.in[0], one(x, e.result().type)})}, {e.out[0]});
}
void write_square_difference(exporter& x, const exported& e) {
  const std::string gap = x.make("Sub", e.in);
  x.write("Mul", {gap, gap}, {e.out[0]});
}
void write_fmod(exporter& x, const exported& e) { x.write("Mod", e.in, {e.out[0]}).set("fmod", std::int64_t{1}); }
void write_mod(exporter& x, const exported& e) {
  if (is_integer(e.result().type)) return same<"Mod">(x, e);
  const std::string whole = x.make("Floor", {x.make("Div", e.in)});
  x.write("Sub", {e.in[0], x.make("Mul", {whole, e.in[1]})}, {e.out[0]});
}
template <bool Left>
void write_shift(exporter& x, const exported& e) {
  const dtype t = e.result().type;
  const auto direction = std::string_view(Left ? "LEFT" : "RIGHT");
  if (is_unsigned_integer(t)) {
    x.write("BitShift", e.in, {e.out[0]}).set("direction", direction);
    return;
  }
  // the bits of a signed number as an unsigned one; to the right a negative number moves as its complement
  const auto bits = static_cast<dtype>(static_cast<int>(t) - static_cast<int>(dtype::i8) + static_cast<int>(dtype::u8));
  const std::string negative = x.make("Less", {e.in[0], x.scalar(t, 0)}), moved = e.out[0] + "_moved";
  const auto complemented = [&](const std::string& v) {
    return Left ? v : x.make("Where", {negative, x.make("BitwiseNot", {v}), v});
  };
  x.write("BitShift", {x.cast(complemented(e.in[0]), bits), x.cast(e.in[1], bits)}, {moved})
      .set("direction", direction);
  x.write("Identity", {complemented(x.cast(moved, t))}, {e.out[0]});
}

template <fixed_text Name>
void reduced(exporter& x, const exported& e) {
  const ints& axes = e.op.axes();
  names in = e.in;
  if (!axes.empty()) in.push_back(x.integers({axes.data(), axes.size()}));
  x.write(Name.text, in, {e.out[0]}).set("keepdims", std::int64_t{1});
}
// conditions reduce as numbers
template <fixed_text Name>
void reduced_condition(exporter& x, const exported& e) {
  exported inner = e;
  inner.in = {x.cast(e.in[0], dtype::i32)};
  inner.out = {e.out[0] + "_number"};
  reduced<Name>(x, inner);
  x.write("Cast", inner.out, {e.out[0]}).set("to", static_cast<std::int64_t>(element::boolean));
}

}  // namespace

std::span<const export_row> export_pointwise() {
  static constexpr export_row rows[] = {
      {"abs", same<"Abs">},
      {"acos", same<"Acos">},
      {"acosh", same<"Acosh">},
      {"add", same<"Add">},
      {"asin", same<"Asin">},
      {"asinh", same<"Asinh">},
      {"atan", same<"Atan">},
      {"atanh", same<"Atanh">},
      {"bitwise_and", same<"BitwiseAnd">},
      {"bitwise_not", same<"BitwiseNot">},
      {"bitwise_or", same<"BitwiseOr">},
      {"bitwise_xor", same<"BitwiseXor">},
      {"ceil", same<"Ceil">},
      {"celu", with_alpha<op::celu, "Celu">},
      {"clip", write_clip},
      {"convert", write_convert},
      {"cos", same<"Cos">},
      {"cosh", same<"Cosh">},
      {"div", same<"Div">},
      {"elu", with_alpha<op::elu, "Elu">},
      {"equal", same<"Equal">},
      {"erf", same<"Erf">},
      {"exp", same<"Exp">},
      {"expm1", write_expm1},
      {"floor", same<"Floor">},
      {"fmod", write_fmod},
      {"gelu", write_gelu},
      {"greater", same<"Greater">},
      {"greater_or_equal", same<"GreaterOrEqual">},
      {"hard_sigmoid", write_hard_sigmoid},
      {"hard_swish", same<"HardSwish">},
      {"identity", same<"Identity">},
      {"is_inf", write_is_inf},
      {"is_nan", same<"IsNaN">},
      {"leaky_relu", with_alpha<op::leaky_relu, "LeakyRelu">},
      {"less", same<"Less">},
      {"less_or_equal", same<"LessOrEqual">},
      {"log", same<"Log">},
      {"log1p", write_log1p},
      {"logical_and", same<"And">},
      {"logical_not", same<"Not">},
      {"logical_or", same<"Or">},
      {"logical_xor", same<"Xor">},
      {"max", same<"Max">},
      {"min", same<"Min">},
      {"mish", same<"Mish">},
      {"mod", write_mod},
      {"mul", same<"Mul">},
      {"neg", same<"Neg">},
      {"pow", same<"Pow">},
      {"prelu", same<"PRelu">},
      {"recip", same<"Reciprocal">},
      {"reduce_all", reduced_condition<"ReduceMin">},
      {"reduce_any", reduced_condition<"ReduceMax">},
      {"reduce_l1", reduced<"ReduceL1">},
      {"reduce_l2", reduced<"ReduceL2">},
      {"reduce_max", reduced<"ReduceMax">},
      {"reduce_mean", reduced<"ReduceMean">},
      {"reduce_min", reduced<"ReduceMin">},
      {"reduce_prod", reduced<"ReduceProd">},
      {"reduce_sum", reduced<"ReduceSum">},
      {"reduce_sum_square", reduced<"ReduceSumSquare">},
      {"relu", same<"Relu">},
      {"round", same<"Round">},
      {"rsqrt", chain<"Sqrt", "Reciprocal">},
      {"selu", write_selu},
      {"shift_left", write_shift<true>},
      {"shift_right", write_shift<false>},
      {"shrink", write_shrink},
      {"sigmoid", same<"Sigmoid">},
      {"sign", same<"Sign">},
      {"sin", same<"Sin">},
      {"sinh", same<"Sinh">},
      {"softplus", same<"Softplus">},
      {"softsign", same<"Softsign">},
      {"sqrt", same<"Sqrt">},
      {"square_difference", write_square_difference},
      {"sub", same<"Sub">},
      {"tan", same<"Tan">},
      {"tanh", same<"Tanh">},
      {"thresholded_relu", with_alpha<op::thresholded_relu, "ThresholdedRelu">},
      {"where", same<"Where">},
  };
  return rows;
}

}  // namespace kiln::onnx
