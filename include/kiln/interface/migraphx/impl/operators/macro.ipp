#include <algorithm>

#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Macros: composite operators, most of which ONNX has too. Their operands broadcast.
namespace kiln::migraphx {

namespace {

value_list all_operands(const lowering& c) {
  value_list out;
  for (std::size_t i = 0; i < c.size(); ++i) out.push_back(c.optional_in(i));
  return out;
}

value_list add_gemm(lowering& c) {
  c.expect(2, 3);
  return c.onnx("Gemm", 13, all_operands(c), c.op.values());
}
value_list add_batchnorm(lowering& c) {
  c.expect(5);
  return {c.in(0).batch_norm(c.in(1), c.in(2), c.in(3), c.in(4), c.real("epsilon"))};
}
value_list add_einsum(lowering& c) { return c.onnx("Einsum", 12, all_operands(c), c.op.values()); }
value_list add_celu(lowering& c) {
  c.expect(1);
  return c.onnx("Celu", 12, all_operands(c), c.op.values());
}
value_list add_mean_variance_normalization(lowering& c) {
  c.expect(1);
  return c.onnx("MeanVarianceNormalization", 13, all_operands(c), c.op.values());
}
value_list add_gelu_erf(lowering& c) {
  c.expect(1);
  return c.onnx("Gelu", 20, all_operands(c));
}
value_list add_gelu_tanh(lowering& c) {
  c.expect(1);
  if (c.flag("fast")) return c.onnx("FastGelu", 1, all_operands(c), attributes::object(), "com.microsoft");
  return c.onnx("Gelu", 20, all_operands(c), {{"approximate", "tanh"}});
}
value_list add_gelu_quick(lowering& c) {
  c.expect(1);
  return c.onnx("QuickGelu", 1, all_operands(c), c.op.values(), "com.microsoft");
}

value_list add_layer_norm(lowering& c) {
  c.expect(3);
  return {c.in(0).normalize(c.integers("axes"), c.real("epsilon")) * c.in(1) + c.in(2)};
}

value_list add_clip(lowering& c) {
  c.expect(1, 3);
  value_list in{c.in(0)};
  for (std::size_t i = 1; i < c.size(); ++i) in.push_back(c.has(i) ? c.in(i).reshape({}) : value());
  return c.onnx("Clip", 13, in);
}

value_list add_tile(lowering& c) {
  c.expect(1);
  const std::vector<std::int64_t> repeats = c.long_integers("repeats");
  const value counts =
      c.build.constant(dtype::i64, {static_cast<std::int64_t>(repeats.size())}, std::span<const std::int64_t>(repeats));
  return c.onnx("Tile", 13, {c.in(0), counts});
}

value_list add_composite_convolution(lowering& c) {
  c.expect(2, 3);
  attributes with{{"group", c.integer("group")}, {"auto_pad", c.text("auto_pad")}};
  std::vector<std::int64_t> pads = c.long_integers("paddings");
  if (pads.size() + 2 == c.in(0).rank()) pads.insert(pads.end(), pads.begin(), pads.end());  // the same at both ends
  if (!pads.empty() && c.text("auto_pad") == "NOTSET") with["pads"] = pads;
  for (const char* name : {"strides", "dilations"})
    if (!c.long_integers(name).empty()) with[name] = c.long_integers(name);
  return c.onnx("Conv", 11, all_operands(c), with);
}

template <class F> value_list add_broadcast(lowering& c, F&& f) {
  c.expect(2);
  return {f(c.in(0), c.in(1))};
}
value_list add_add(lowering& c) {
  return add_broadcast(c, [](value a, value b) { return a + b; });
}
value_list add_sub(lowering& c) {
  return add_broadcast(c, [](value a, value b) { return a - b; });
}
value_list add_mul(lowering& c) {
  return add_broadcast(c, [](value a, value b) { return a * b; });
}
value_list add_div(lowering& c) {
  return add_broadcast(c, [](value a, value b) { return a / b; });
}
value_list add_matmul(lowering& c) {
  c.expect(2);
  return c.onnx("MatMul", 13, all_operands(c));
}

constexpr operator_row rows[] = {
    {"add", "", add_add},
    {"batchnorm", "{epsilon: 1e-5}", add_batchnorm},
    {"celu", "{alpha: 1.0}", add_celu},
    {"clip", "", add_clip},
    {"convolution", "{auto_pad: NOTSET, paddings: [], strides: [], dilations: [], group: 1}",
     add_composite_convolution},
    {"div", "", add_div},
    {"dot", "", add_matmul},
    {"einsum", "{equation: ''}", add_einsum},
    {"gelu_erf", "", add_gelu_erf},
    {"gelu_quick", "{alpha: 1.0}", add_gelu_quick},
    {"gelu_tanh", "{fast: false}", add_gelu_tanh},
    {"gemm", "{alpha: 1.0, beta: 1.0, transA: 0, transB: 0}", add_gemm},
    {"layer_norm", "{epsilon: 1e-5, axes: [-1]}", add_layer_norm},
    {"mean_variance_normalization", "{axes: [0, 2, 3]}", add_mean_variance_normalization},
    {"mul", "", add_mul},
    {"sub", "", add_sub},
    {"tile", "{repeats: []}", add_tile},
};

operation operation_of(const macro& m) {
  for (const operator_row& row : rows)
    if (row.name == m.name) return operation::of_row(row, m.options);
  std::string known;
  for (const operator_row& row : rows) known.append(known.empty() ? "" : ", ").append(row.name);
  raise(errc::not_found, "a macro by its name: expected one of " + known + ", found '" + m.name + "'");
}

}  // namespace

std::vector<instruction_ref> module::add_macro(const macro& m, const std::vector<instruction_ref>& inputs,
                                               const std::vector<module*>& modules) {
  return {lower(instructions_.end(), operation_of(m), inputs, modules)};
}

std::vector<instruction_ref> module::insert_macro(instruction_ref before, const macro& m,
                                                  const std::vector<instruction_ref>& inputs,
                                                  const std::vector<module*>& modules) {
  return {lower(place_of(before), operation_of(m), inputs, modules)};
}

}  // namespace kiln::migraphx
