#pragma once
#include <limits>

#include "kiln/generate/adapters.hpp"
#include "kiln/generate/generator.hpp"
#include "kiln/interface/genai/impl/values.hpp"
#include "kiln/interface/language_requests.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::genai {

/// A model with what its objects share.
class loaded_model {
 public:
  explicit loaded_model(language::config c);
  const std::shared_ptr<const language::language_model>& decoder() const { return decoder_; }
  const language::config& settings() const { return decoder_->settings(); }
  const char* device() const { return on_gpu_ ? "MIGraphX" : "CPU"; }

 private:
  std::shared_ptr<const language::language_model> decoder_;
  bool on_gpu_ = false;
};
using model_ref = std::shared_ptr<const loaded_model>;

/// The options of a new generator.
struct params_value : language::generator_options {
  model_ref model;
};
/// Tokens in a tensor of integers; `invalid_argument` names a number that is none.
inline language::tokens tokens_of(const argument& numbers) {
  language::tokens out;
  for (const std::int64_t n : numbers.to<std::int64_t>()) {
    if (n < std::numeric_limits<language::token>::min() || n > std::numeric_limits<language::token>::max())
      raise(errc::invalid_argument, "tokens have 32 bits: found " + std::to_string(n));
    out.push_back(static_cast<language::token>(n));
  }
  return out;
}

/// Lets a generator take its next token, and says so in the log.
void generate(language::generator& g);

}  // namespace kiln::genai

struct OgaRuntimeSettings {};
struct OgaConfig {
  kiln::language::config value;
};
struct OgaModel {
  kiln::genai::model_ref value;
};
struct OgaGeneratorParams {
  kiln::genai::params_value value;
};
struct OgaGenerator {
  kiln::genai::model_ref model;
  kiln::language::generator value;
  kiln::language::adapter inputs{};  // given by OgaGenerator_SetModelInput, and taken
  kiln::language::adapter next{};    // and not taken yet
  std::atomic<bool> is_terminated = false;
};
