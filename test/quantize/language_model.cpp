#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/quantize/int4.hpp"

// A trained language model with weights of 4 bits writes and expects what it did before.
namespace kiln::test {
namespace {

using namespace quantize;
using ids = std::vector<std::int64_t>;
using nlohmann::json;
const std::string folder = KILN_SOURCE_DIR "/examples/models/scripture/";

argument row(const ids& values) {
  return argument::of<std::int64_t>({1, static_cast<std::int64_t>(values.size())}, values);
}

// The inputs of the whole text at once.
sample whole(const ids& tokens) {
  ids positions, seen(tokens.size(), 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(static_cast<std::int64_t>(i));
  sample out{{"input_ids", row(tokens)}, {"position_ids", row(positions)}, {"attention_mask", row(seen)}};
  for (int layer = 0; layer < 6; ++layer)
    for (const char* part : {"key", "value"})
      out["past_key_values." + std::to_string(layer) + "." + part] = argument(shape(dtype::f32, {1, 2, 0, 32}));
  return out;
}

class scripture {
 public:
  explicit scripture(const program& p) : run_(compile(p, eigen_target())) {}

  // Among how many equally likely tokens each one would be as unexpected.
  double perplexity(const ids& tokens) const {
    const std::vector<float> logits = logits_of(tokens);
    double sum = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const float* const at = &logits[i * words];
      double all = 0;
      for (std::size_t w = 0; w < words; ++w) all += std::exp(static_cast<double>(at[w]) - at[0]);
      sum += std::log(all) - (static_cast<double>(at[static_cast<std::size_t>(tokens[i + 1])]) - at[0]);
    }
    return std::exp(sum / static_cast<double>(tokens.size() - 1));
  }
  // Text as the model would write it, by chance.
  ids written(std::int64_t first, std::size_t count, unsigned seed) const {
    std::mt19937 engine(seed);
    ids tokens{first};
    while (tokens.size() < count) {
      const std::vector<float> logits = logits_of(tokens);
      std::vector<double> likely;
      for (std::size_t w = 0; w < words; ++w) likely.push_back(std::exp(logits[logits.size() - words + w]));
      tokens.push_back(std::discrete_distribution<std::int64_t>(likely.begin(), likely.end())(engine));
    }
    return tokens;
  }

 private:
  static constexpr std::size_t words = 2048;
  std::vector<float> logits_of(const ids& tokens) const {
    const auto made = run_.run(whole(tokens));
    for (std::size_t k = 0; k < made.size(); ++k)
      if (run_.outputs()[k].name == "logits") {
        const auto values = made[k].to<float>();
        return {values.begin(), values.end()};
      }
    throw std::runtime_error("no logits");
  }
  executable run_;
};

TEST(language_model, four_bits_in_blocks_of_32_keep_its_text) {
  const json golden = json::parse(std::ifstream(folder + "golden.json"));
  const program p = prepared(onnx::read_model(folder + "model.onnx").graph);
  const scripture exact(p);
  std::vector<ids> texts, aside;
  for (unsigned k = 0; k < 8; ++k) texts.push_back(exact.written(40 + 37 * k, 90, k));
  for (unsigned k = 0; k < 4; ++k) aside.push_back(exact.written(60 + 51 * k, 90, 100 + k));
  for (const json& g : golden) aside.push_back(g["greedy_ids"].get<ids>());
  double before = 0;
  for (const ids& t : aside) before += std::log(exact.perplexity(t)) / static_cast<double>(aside.size());
  for (const weight_method m : {weight_method::gptq, weight_method::hqq}) {
    std::size_t given = 0;
    const calibration_data data = [&]() -> std::optional<sample> {
      return given < texts.size() ? std::optional(whole(texts[given++])) : std::nullopt;
    };
    const scripture stored(to_int4(p, {.method = m}, data, eigen_target()).graph);
    double after = 0;
    for (const ids& t : aside) after += std::log(stored.perplexity(t)) / static_cast<double>(aside.size());
    RecordProperty(std::string(to_string(m)), std::to_string(std::exp(after - before)));
    EXPECT_LT(std::exp(after - before), 1.02) << to_string(m);
  }
}

}  // namespace
}  // namespace kiln::test
