#pragma once
#include <ort_genai_c.h>

#include <atomic>

#include "kiln/interface/caller.hpp"

namespace kiln::genai {

using namespace caller;

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

}  // namespace kiln::genai

struct OgaResult {
  std::string text;
};
