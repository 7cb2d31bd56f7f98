// Times llama.cpp's library on a GGUF file: prompts of random tokens and greedy steps after them, as `kiln genai bench`
// does it, and prints one JSON object with its columns. Built by versus_llama.sh against the headers of the library's
// release; no part of kiln.
//
//     llama_steps FOLDER_OF_BACKENDS FILE.gguf THREADS PROMPT STEPS REPETITIONS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace {

using clock_type = std::chrono::steady_clock;

double ms_since(clock_type::time_point t) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - t).count();
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "llama_steps: %s\n", what);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) fail("FOLDER_OF_BACKENDS FILE.gguf THREADS PROMPT STEPS REPETITIONS");
  const int threads = std::atoi(argv[3]), prompt = std::atoi(argv[4]), steps = std::atoi(argv[5]),
            repetitions = std::atoi(argv[6]);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();

  const auto begin = clock_type::now();
  llama_model* const model = llama_model_load_from_file(argv[2], llama_model_default_params());
  if (!model) fail("the file is not loaded");
  llama_context_params settings = llama_context_default_params();
  settings.n_ctx = static_cast<std::uint32_t>(prompt + steps + 64);
  settings.n_batch = settings.n_ubatch = static_cast<std::uint32_t>(prompt);
  settings.n_threads = settings.n_threads_batch = threads;
  llama_context* const context = llama_init_from_model(model, settings);
  if (!context) fail("no context");
  const double load = ms_since(begin);
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));

  const auto next = [&] {
    const float* const logits = llama_get_logits_ith(context, -1);
    return static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits);
  };
  std::mt19937 random(1);
  std::vector<llama_token> tokens(static_cast<std::size_t>(prompt));
  for (llama_token& t : tokens) t = static_cast<llama_token>(random() % static_cast<unsigned>(vocabulary));
  std::vector<double> prompts, each;
  for (int r = 0; r < repetitions + 1; ++r) {  // one to warm up
    llama_memory_clear(llama_get_memory(context), false);
    auto from = clock_type::now();
    if (llama_decode(context, llama_batch_get_one(tokens.data(), prompt)) != 0) fail("the prompt");
    llama_token t = next();
    const double first = ms_since(from);
    from = clock_type::now();
    for (int i = 0; i < steps; ++i) {
      if (llama_decode(context, llama_batch_get_one(&t, 1)) != 0) fail("a step");
      t = next();
    }
    if (r == 0) continue;
    prompts.push_back(first);
    each.push_back(ms_since(from) / steps);
  }
  std::printf("{\"load_ms\": %.1f, \"prompt_ms\": %.2f, \"step_ms\": %.3f}\n", load, median(prompts), median(each));
  llama_free(context);
  llama_model_free(model);
  llama_backend_free();
}
