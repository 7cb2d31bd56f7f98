#include "kiln/onnx/impl/export/exporter.hpp"

// Pointwise ops and reductions.
namespace kiln::onnx {

namespace {

template <fixed_text First, fixed_text Second> void chain(exporter& x, const exported& e) {
  x.write(Second.text, {x.make(First.text, e.in)}, e.out);
}
std::string one(exporter& x, dtype t, double v = 1) { return x.scalar(t, v); }

template <class Op, fixed_text Name> void with_alpha(exporter& x, const exported& e) {
  x.write(Name.text, e.in, e.out).set("alpha", static_cast<float>(e.as<Op>().alpha));
}
void write_selu(exporter& x, const exported& e) {
  const auto& o = e.as<op::selu>();
  x.write("Selu", e.in, e.out).set("alpha", static_cast<float>(o.alpha)).set("gamma", static_cast<float>(o.gamma));
}
void write_hard_sigmoid(exporter& x, const exported& e) {
  const auto& o = e.as<op::hard_sigmoid>();
  x.write("HardSigmoid", e.in, e.out).set("alpha", static_cast<float>(o.alpha)).set("beta", static_cast<float>(o.beta));
}
void write_shrink(exporter& x, const exported& e) {
  const auto& o = e.as<op::shrink>();
  x.write("Shrink", e.in, e.out).set("lambd", o.lambd).set("bias", o.bias);
}
void write_gelu(exporter& x, const exported& e) {
  const std::string_view how = e.as<op::gelu>().tanh_approximation ? "tanh" : "none";
  x.write("Gelu", e.in, e.out).set("approximate", how);
}
void write_is_inf(exporter& x, const exported& e) {
  const auto& o = e.as<op::is_inf>();
  x.write("IsInf", e.in, e.out)
      .set("detect_negative", std::int64_t{o.detect_negative})
      .set("detect_positive", std::int64_t{o.detect_positive});
}
void write_convert(exporter& x, const exported& e) {
  const dtype to = e.result().type;
  auto node = x.write("Cast", e.in, e.out);
  node.set("to", static_cast<std::int64_t>(to_element(to)));
  if (to == dtype::f8e8m0)
    node.set("round_mode", std::string_view("nearest"));
  else if (is_narrow(to) && is_float(to) && bits_of(to) == 8)  // the program saturates where it means to
    node.set("saturate", std::int64_t{0});
}
void write_clip(exporter& x, const exported& e) { x.write("Min", {x.make("Max", {e.in[0], e.in[1]}), e.in[2]}, e.out); }
void write_expm1(exporter& x, const exported& e) {
  x.write("Sub", {x.make("Exp", e.in), one(x, e.result().type)}, e.out);
}
void write_log1p(exporter& x, const exported& e) {
  x.write("Log", {x.make("Add", {e.in[0], one(x, e.result().type)})}, e.out);
}
void write_square_difference(exporter& x, const exported& e) {
  const std::string gap = x.make("Sub", e.in);
  x.write("Mul", {gap, gap}, e.out);
}
void write_fmod(exporter& x, const exported& e) { x.write("Mod", e.in, e.out).set("fmod", std::int64_t{1}); }
void write_mod(exporter& x, const exported& e) {
  if (is_integer(e.result().type)) return write_same<"Mod">(x, e);
  const std::string whole = x.make("Floor", {x.make("Div", e.in)});
  x.write("Sub", {e.in[0], x.make("Mul", {whole, e.in[1]})}, e.out);
}
template <bool Left> void write_shift(exporter& x, const exported& e) {
  const dtype t = e.result().type;
  const auto direction = std::string_view(Left ? "LEFT" : "RIGHT");
  if (is_unsigned_integer(t)) {
    x.write("BitShift", e.in, e.out).set("direction", direction);
    return;
  }
  // signed numbers are shifted as unsigned ones of the same bits; to the right, negative ones as their complement
  const auto bits = static_cast<dtype>(static_cast<int>(t) - static_cast<int>(dtype::i8) + static_cast<int>(dtype::u8));
  const std::string negative = x.make("Less", {e.in[0], x.scalar(t, 0)}), moved = e.out[0] + "_moved";
  const auto complemented = [&](const std::string& v) {
    return Left ? v : x.make("Where", {negative, x.make("BitwiseNot", {v}), v});
  };
  x.write("BitShift", {x.cast(complemented(e.in[0]), bits), x.cast(e.in[1], bits)}, {moved})
      .set("direction", direction);
  x.write("Identity", {complemented(x.cast(moved, t))}, e.out);
}

template <fixed_text Name> void reduced(exporter& x, const exported& e) {
  const ints& axes = e.op.axes();
  names in = e.in;
  if (!axes.empty()) in.push_back(x.integers({axes.data(), axes.size()}));
  x.write(Name.text, in, e.out).set("keepdims", std::int64_t{1});
}
// ONNX reduces numbers, not conditions
template <fixed_text Name> void reduced_condition(exporter& x, const exported& e) {
  exported inner = e;
  inner.in = {x.cast(e.in[0], dtype::i32)};
  inner.out = {e.out[0] + "_number"};
  reduced<Name>(x, inner);
  x.write("Cast", inner.out, e.out).set("to", static_cast<std::int64_t>(element::boolean));
}

}  // namespace

std::span<const op_exporter> export_same() {
  static constexpr op_exporter table[] = {
      {"abs", write_same<"Abs">},
      {"acos", write_same<"Acos">},
      {"acosh", write_same<"Acosh">},
      {"add", write_same<"Add">},
      {"asin", write_same<"Asin">},
      {"asinh", write_same<"Asinh">},
      {"atan", write_same<"Atan">},
      {"atanh", write_same<"Atanh">},
      {"bitwise_and", write_same<"BitwiseAnd">},
      {"bitwise_not", write_same<"BitwiseNot">},
      {"bitwise_or", write_same<"BitwiseOr">},
      {"bitwise_xor", write_same<"BitwiseXor">},
      {"ceil", write_same<"Ceil">},
      {"cos", write_same<"Cos">},
      {"cosh", write_same<"Cosh">},
      {"div", write_same<"Div">},
      {"equal", write_same<"Equal">},
      {"erf", write_same<"Erf">},
      {"exp", write_same<"Exp">},
      {"floor", write_same<"Floor">},
      {"greater", write_same<"Greater">},
      {"greater_or_equal", write_same<"GreaterOrEqual">},
      {"hard_swish", write_same<"HardSwish">},
      {"identity", write_same<"Identity">},
      {"is_nan", write_same<"IsNaN">},
      {"less", write_same<"Less">},
      {"less_or_equal", write_same<"LessOrEqual">},
      {"log", write_same<"Log">},
      {"logical_and", write_same<"And">},
      {"logical_not", write_same<"Not">},
      {"logical_or", write_same<"Or">},
      {"logical_xor", write_same<"Xor">},
      {"max", write_same<"Max">},
      {"min", write_same<"Min">},
      {"mish", write_same<"Mish">},
      {"mul", write_same<"Mul">},
      {"neg", write_same<"Neg">},
      {"pow", write_same<"Pow">},
      {"prelu", write_same<"PRelu">},
      {"recip", write_same<"Reciprocal">},
      {"relu", write_same<"Relu">},
      {"round", write_same<"Round">},
      {"sigmoid", write_same<"Sigmoid">},
      {"sign", write_same<"Sign">},
      {"sin", write_same<"Sin">},
      {"sinh", write_same<"Sinh">},
      {"softplus", write_same<"Softplus">},
      {"softsign", write_same<"Softsign">},
      {"sqrt", write_same<"Sqrt">},
      {"sub", write_same<"Sub">},
      {"tan", write_same<"Tan">},
      {"tanh", write_same<"Tanh">},
      {"where", write_same<"Where">},
  };
  return table;
}

std::span<const op_exporter> export_pointwise() {
  static constexpr op_exporter table[] = {
      {"celu", with_alpha<op::celu, "Celu">},
      {"clip", write_clip},
      {"convert", write_convert},
      {"elu", with_alpha<op::elu, "Elu">},
      {"expm1", write_expm1},
      {"fmod", write_fmod},
      {"gelu", write_gelu},
      {"hard_sigmoid", write_hard_sigmoid},
      {"is_inf", write_is_inf},
      {"leaky_relu", with_alpha<op::leaky_relu, "LeakyRelu">},
      {"log1p", write_log1p},
      {"mod", write_mod},
      {"rsqrt", chain<"Sqrt", "Reciprocal">},
      {"selu", write_selu},
      {"shift_left", write_shift<true>},
      {"shift_right", write_shift<false>},
      {"shrink", write_shrink},
      {"square_difference", write_square_difference},
      {"thresholded_relu", with_alpha<op::thresholded_relu, "ThresholdedRelu">},
  };
  return table;
}

std::span<const op_exporter> export_reductions() {
  static constexpr op_exporter table[] = {
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
  };
  return table;
}

}  // namespace kiln::onnx
