#pragma once
#include <ort_genai_c.h>

#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "kiln/generate/generator.hpp"
#include "kiln/interface/caller.hpp"
#include "kiln/text/guidance/guide.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::genai {

using namespace caller;
using language::token;
using language::tokens;

/// A model with what its objects share.
class loaded_model {
 public:
  explicit loaded_model(language::config c);
  const std::shared_ptr<const language::language_model>& decoder() const { return decoder_; }
  const language::config& settings() const { return decoder_->settings(); }
  const char* device() const { return on_gpu_ ? "MIGraphX" : "CPU"; }
  /// Read from the model's folder when it is first asked for.
  const language::tokenizer& tokenizer() const;
  /// The bytes of the tokens, sorted when they are first asked for.
  const language::guide_vocabulary& vocabulary() const;

 private:
  std::shared_ptr<const language::language_model> decoder_;
  bool on_gpu_ = false;
  mutable std::mutex mutex_;
  mutable std::optional<language::tokenizer> tokenizer_;
  mutable std::optional<language::guide_vocabulary> vocabulary_;
};
using model_ref = std::shared_ptr<const loaded_model>;

/// The GPU that OgaSetCurrentGpuDeviceId chose.
std::atomic<unsigned>& current_gpu();

/// The result for the exception that is being handled. Without memory for it, one that nobody owns.
OgaResult* result_of_exception() noexcept;
/// What every function that can fail is: runs `body`, and turns what it throws into a result. No exception leaves.
template <class Body> OgaResult* guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return result_of_exception();
  }
}
/// Hands out a new object; null where there is an error.
template <class Handle, class Make> OgaResult* made(Handle** out, Make&& make) noexcept {
  return guarded([&] {
    Handle*& to = given(out, "the place of the new object");
    to = nullptr;
    to = make();
  });
}
/// Writes a value that is asked for.
template <class T, class Ask> OgaResult* told(T* out, Ask&& ask) noexcept {
  return guarded([&] {
    T& to = given(out, "the place of the result");
    to = ask();
  });
}
/// A text from the caller.
inline const char* text(const char* from, const char* what) { return not_null(from, what); }
/// The same; null is an empty one.
inline std::string_view optional_text(const char* from) { return from ? from : ""; }
/// A text that the caller gives to OgaDestroyString.
const char* new_string(std::string_view from);

/// Kinds of messages, as OgaSetLogBool names them, for those that kiln writes.
enum class log_item { warning, generate_next_token, append_next_tokens, hit_eos, hit_max_length, model_logits };
/// Whether messages of a kind are wanted.
bool logs(log_item kind);
/// Writes a message to where messages go.
void write_log(log_item kind, std::string_view message);

/// The options of a new generator.
struct generator_options {
  model_ref model;
  language::search_options search;
  std::optional<language::guide> guide;
};
/// A generator as the options say.
language::generator generator_of(const generator_options& o);
/// Lets a generator take its next token, and says so in the log.
void generate(language::generator& g);

}  // namespace kiln::genai

struct OgaResult {
  std::string text;
};
struct OgaSequences {
  std::vector<kiln::language::tokens> lists;
};
struct OgaStringArray {
  std::vector<std::string> texts;
};
struct OgaTensor {
  kiln::argument value;
};
struct OgaNamedTensors {
  std::map<std::string, kiln::argument, std::less<>> all;
};
struct OgaRuntimeSettings {};
struct OgaConfig {
  kiln::language::config value;
};
struct OgaModel {
  kiln::genai::model_ref value;
};
struct OgaGeneratorParams {
  kiln::genai::generator_options value;
};
struct OgaGenerator {
  kiln::genai::model_ref model;
  kiln::language::generator value;
  std::atomic<bool> is_terminated = false;
};
