// What the tests of GenAI's C++ interface share: they are linked with libonnxruntime-genai.so alone, and include
// GenAI's headers.
#pragma once
#include <gmock/gmock.h>
#include <ort_genai.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

namespace kiln::genai::testing {

using ids = std::vector<int32_t>;

inline const std::string folder = KILN_SOURCE_DIR "/examples/models/scripture";

/// The trained model of the examples, compiled once.
inline OgaModel& scripture() {
  static const auto model = OgaModel::Create(folder.c_str());
  return *model;
}

/// A prompt and what PyTorch continued it with.
struct golden {
  std::string prompt, text;
  ids prompt_ids, all;
};
inline const std::vector<golden>& goldens() {
  static const auto all = [] {
    std::vector<golden> out;
    for (const auto& g : nlohmann::json::parse(std::ifstream(folder + "/golden.json")))
      out.push_back({g["prompt"], g["text"], g["prompt_ids"].get<ids>(), g["greedy_ids"].get<ids>()});
    return out;
  }();
  return all;
}

inline std::unique_ptr<OgaGeneratorParams> params_of(std::size_t max_length) {
  auto p = OgaGeneratorParams::Create(scripture());
  p->SetSearchOption("max_length", static_cast<double>(max_length));
  return p;
}
inline std::unique_ptr<OgaGenerator> generator_of(const golden& g) {
  auto own = OgaGenerator::Create(scripture(), *params_of(g.all.size()));
  own->AppendTokens(g.prompt_ids);
  return own;
}
inline ids sequence_of(const OgaGenerator& g, std::size_t k = 0) {
  const auto all = g.GetSequence(k);
  return {all.begin(), all.end()};
}
inline ids run_to_end(OgaGenerator& g) {
  while (!g.IsDone()) g.GenerateNextToken();
  return sequence_of(g);
}

/// What a call throws; "no error" where it does not.
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace kiln::genai::testing
