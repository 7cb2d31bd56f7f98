#pragma once
#include <gtest/gtest.h>

#include "kiln/onnx/import.hpp"
#include "onnx/evaluate.hpp"
#include "onnx/model_writer.hpp"

/// Runs one ONNX operator through the importer.
namespace kiln::test {

struct given {
  std::vector<std::int64_t> lens{};
  std::vector<float> values{};
  bool constant = false;
};
inline given constant(const std::vector<std::int64_t>& lens, const std::vector<float>& values) {
  return {lens, values, true};
}

struct outcome {
  ints lens;
  std::vector<float> values{};
  friend bool operator==(const outcome&, const outcome&) = default;
  friend void PrintTo(const outcome& o, std::ostream* out) {
    *out << "[";
    for (const auto d : o.lens) *out << d << " ";
    *out << "]:";
    for (const float v : o.values) *out << " " << v;
  }
};

struct operator_call {
  std::string op;
  std::int64_t version = 17;
  std::vector<message> attributes{};
  std::string domain{};
  std::size_t outputs = 1;
  int type = 1;  ///< element type of the inputs that are not constants of shape arithmetic
};

// Runs a model of one node; constants of integers (shapes, axes) come as `numbers`.
inline outcome compute(const operator_call& call, const std::vector<given>& inputs,
                       const std::vector<message>& numbers = {}, std::size_t output = 0) {
  graph_parts parts;
  strings names, results;
  small_vector<argument> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    names.push_back(name);
    if (inputs[i].constant) {
      parts.initializers.push_back(floats(name, inputs[i].lens, inputs[i].values));
      continue;
    }
    parts.inputs.push_back(value_info(name, call.type, {inputs[i].lens.begin(), inputs[i].lens.end()}));
    const shape s{*onnx::to_dtype(static_cast<onnx::element>(call.type)), to_dims(inputs[i].lens)};
    arguments.push_back(argument(literal::of<float>(s, inputs[i].values)));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    names.push_back("number" + std::to_string(i));
    parts.initializers.push_back(numbers[i]);
  }
  for (std::size_t k = 0; k < call.outputs; ++k) results.push_back("out" + std::to_string(k));
  parts.nodes.push_back(node(call.op, names, results, call.attributes, "", call.domain));
  parts.outputs.push_back(value_info(results[output]));
  std::vector<message> opsets = {opset(call.version)};
  if (!call.domain.empty()) opsets.push_back(opset(1, call.domain));
  const program p = onnx::parse_model(model(graph(parts), opsets).bytes()).graph;
  const argument out = evaluate(p, arguments)[0];
  outcome o{to_ints(out.get_shape().lens), {}};
  for (const float v : out.to<float>()) o.values.push_back(v);
  return o;
}
inline message number(int position, const std::vector<std::int64_t>& values) {
  return integers("number" + std::to_string(position), {static_cast<std::int64_t>(values.size())}, values);
}
inline void expect_near(const outcome& got, const outcome& wanted, float tolerance = 1e-5f) {
  EXPECT_EQ(got.lens, wanted.lens);
  ASSERT_EQ(got.values.size(), wanted.values.size());
  for (std::size_t i = 0; i < got.values.size(); ++i) EXPECT_NEAR(got.values[i], wanted.values[i], tolerance) << i;
}
using many = std::vector<std::int64_t>;

}  // namespace kiln::test
