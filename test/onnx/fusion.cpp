// The pipeline on imported models: how many kernels are left, and that they still compute the recorded outputs.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/pass/pipeline.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
const fs::path models = fs::path(KILN_SOURCE_DIR) / "examples/models";

program optimized(const std::string& model) {
  program p = onnx::read_model((models / model / "model.onnx").string()).graph;
  optimize(p, {.verify = true});
  return p;
}

// The program with its symbols replaced by the sizes of these inputs.
void bind_sizes(program& p, const std::vector<literal>& inputs) {
  bindings sizes;
  const auto parameters = p.main().parameters();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t d = 0; d < inputs[i].get_shape().rank(); ++d)
      if (const dimension n = p.main().shape_of(parameters[i]).lens[d]; is_symbol(n))
        sizes.bind(n, inputs[i].get_shape().lens[d].value());
  for (std::uint32_t k = 0; k < p.modules(); ++k) {
    auto& m = p.module({k});
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      for (shape& s : m[i].results)
        for (dimension& d : s.lens) d = sizes.evaluate(d);
      if (m[i].kind == instruction_kind::op) m[i].op.substitute(sizes);
      if (m[i].kind != instruction_kind::literal || !m[i].constant.has_symbols()) continue;
      auto values = m[i].constant.to<dimension>();
      for (dimension& d : values) d = sizes.evaluate(d);
      m[i].constant = literal::of_dimensions(m[i].results[0].lens, values, m[i].results[0].type);
    }
  }
}

literal read(const fs::path& file) { return onnx::read_tensor(file.string()).value.to_literal(); }

// Greatest difference of each output from the recorded one, relative to its greatest magnitude.
double worst_output(program p, const fs::path& data) {
  std::vector<literal> inputs;
  for (std::size_t i = 0; i < p.main().parameters().size(); ++i)
    inputs.push_back(read(data / ("input_" + std::to_string(i) + ".pb")));
  bind_sizes(p, inputs);
  const auto outputs = evaluate_module(p, {0}, inputs);
  double worst = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto expected = read(data / ("output_" + std::to_string(k) + ".pb")).to<double>(),
               found = outputs[k].to<double>();
    if (expected.size() != found.size()) return INFINITY;
    double most = 1e-6, apart = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      most = std::max(most, std::fabs(expected[i]));
      apart = std::max(apart, std::fabs(expected[i] - found[i]));
    }
    worst = std::max(worst, apart / most);
  }
  return worst;
}

std::map<std::string, int> kernels(const program& p) {
  std::map<std::string, int> out;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::op) {
      const auto* f = p.main()[i].op.get_if<op::fused>();
      ++out[f ? std::string(to_string(f->kind)) : std::string(p.main()[i].op.name())];
    }
  return out;
}

TEST(fusion_of_models, digits) {
  const program p = optimized("digits");
  EXPECT_LE(kernel_count(p), 8u);
  auto steps = kernels(p);
  EXPECT_EQ(steps["contraction"], 5);  // every convolution and product with its bias and activation
  EXPECT_EQ(steps["reduce"], 1);       // softmax
  EXPECT_EQ(steps["pointwise"], 0);
  EXPECT_LE(worst_output(p, models / "digits/test_data_set_0"), 1e-4);
}

TEST(fusion_of_models, scripture) {
  const program p = optimized("scripture");
  EXPECT_LE(kernel_count(p), 110u);
  auto steps = kernels(p);
  EXPECT_EQ(steps["attention"], 6);
  EXPECT_EQ(steps["reduce"], 13);                      // one RMS norm each
  EXPECT_EQ(steps["dot"] + steps["contraction"], 31);  // six layers of qkv, output, gate, up, down, and the head
  EXPECT_EQ(steps["pointwise"], 14);                   // two rotary embeddings a layer, the mask, the angles
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    if (p.main()[i].kind != instruction_kind::op || !p.main()[i].op.is<op::attention>()) continue;
    EXPECT_EQ(p.main().shape_of(p.main()[i].inputs[1]).lens[1], dimension(2));  // keys are not repeated for groups
    EXPECT_EQ(p.main().shape_of(p.main()[i].inputs[3]).lens[1], dimension(1));  // nor masks for heads
  }
  EXPECT_LE(worst_output(p, models / "scripture/test_data_set_0"), 1e-4);
  EXPECT_LE(worst_output(p, models / "scripture/test_data_set_1"), 1e-4);
}

}  // namespace
}  // namespace kiln::test
