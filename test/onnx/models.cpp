#include <gtest/gtest.h>

#include <filesystem>

#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "onnx/evaluate.hpp"

namespace kiln::test {
namespace {

const std::string models = KILN_SOURCE_DIR "/examples/models/";

// Largest difference from the expected outputs, relative to each output's largest element.
double worst_difference(const program& p, const std::string& set) {
  const auto file = [&](const char* kind, std::size_t k) {
    return models + set + "/" + kind + "_" + std::to_string(k) + ".pb";
  };
  small_vector<argument> inputs;
  while (std::filesystem::exists(file("input", inputs.size())))
    inputs.push_back(onnx::read_tensor(file("input", inputs.size())).value);
  const auto outputs = evaluate(p, inputs);
  double worst = 0;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const argument wanted = onnx::read_tensor(file("output", k)).value;
    EXPECT_EQ(outputs[k].get_shape(), wanted.get_shape()) << "output " << k;
    const auto x = outputs[k].to<double>(), y = wanted.to<double>();
    double gap = 0, most = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      gap = std::max(gap, std::abs(x[i] - y[i]));
      most = std::max(most, std::abs(y[i]));
    }
    worst = std::max(worst, gap / most);
  }
  return worst;
}

TEST(imported_model, digits_gives_the_saved_probabilities) {
  const program p = onnx::read_model(models + "digits/model.onnx").graph;
  EXPECT_LT(worst_difference(p, "digits/test_data_set_0"), 1e-5);
}

TEST(imported_model, one_import_of_scripture_serves_prefill_and_decode) {
  const program p = onnx::read_model(models + "scripture/model.onnx").graph;
  EXPECT_LT(worst_difference(p, "scripture/test_data_set_0"), 1e-5);
  EXPECT_LT(worst_difference(p, "scripture/test_data_set_1"), 1e-5);
}

TEST(imported_model, metadata_is_kept) {
  const onnx::imported m = onnx::read_model(models + "digits/model.onnx");
  EXPECT_EQ(m.versions, (onnx::opsets{{"", 17}}));
  EXPECT_NE(m.producer.find("pytorch"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
