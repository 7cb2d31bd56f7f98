// Times llama.cpp's library on a GGUF file with several sequences side by side, as its server batches them: each round
// runs the prompts of all of them, then a greedy token of each in every step. Prints one JSON object. Built by
// versus_llama.sh against the headers of the library's release; no part of kiln.
//
//     llama_streams FOLDER_OF_BACKENDS FILE.gguf THREADS STREAMS PROMPT TOKENS ROUNDS
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

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "llama_streams: %s\n", what);
  std::exit(2);
}

void add(llama_batch& b, llama_token t, int position, int sequence, bool is_scored) {
  const int k = b.n_tokens++;
  b.token[k] = t, b.pos[k] = position;
  b.n_seq_id[k] = 1, b.seq_id[k][0] = sequence;
  b.logits[k] = static_cast<std::int8_t>(is_scored);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) fail("FOLDER_OF_BACKENDS FILE.gguf THREADS STREAMS PROMPT TOKENS ROUNDS");
  const int threads = std::atoi(argv[3]), streams = std::atoi(argv[4]), prompt = std::atoi(argv[5]),
            count = std::atoi(argv[6]), rounds = std::atoi(argv[7]);
  // a run has room for 512 tokens: a prompt, or one of each stream
  if (threads < 1 || streams < 1 || prompt < 1 || count < 1 || rounds < 1 || streams > 512 || prompt > 512)
    fail("expected numbers above 0, of STREAMS and PROMPT at most 512");
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all_from_path(argv[1]);
  llama_backend_init();
  llama_model* const model = llama_model_load_from_file(argv[2], llama_model_default_params());
  if (!model) fail("the file is not loaded");
  llama_context_params settings = llama_context_default_params();
  settings.n_ctx = static_cast<std::uint32_t>(streams * (prompt + count + 32));
  settings.n_batch = settings.n_ubatch = 512;
  settings.n_seq_max = static_cast<std::uint32_t>(streams);
  settings.n_threads = settings.n_threads_batch = threads;
  llama_context* const context = llama_init_from_model(model, settings);
  if (!context) fail("no context");
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  llama_batch batch = llama_batch_init(512, 0, 1);

  std::mt19937 random(1);
  std::vector<llama_token> next(static_cast<std::size_t>(streams));
  const auto choose = [&](int row) {
    const float* const logits = llama_get_logits_ith(context, row);
    return static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits);
  };
  double ms = 0, first = 0;
  for (int r = 0; r < rounds + 1; ++r) {
    // the first one warms up, with few
    const int side = r == 0 ? 1 : streams, made = r == 0 ? 2 : count;
    llama_memory_clear(llama_get_memory(context), false);
    const auto begin = clock_type::now();
    for (int s = 0; s < side; ++s) {
      // prompts share a run as far as it has room
      for (int i = 0; i < prompt; ++i)
        add(batch, static_cast<llama_token>(random() % static_cast<unsigned>(vocabulary)), i, s, i + 1 == prompt);
      const bool is_full = batch.n_tokens + prompt > 512 || s + 1 == side;
      if (!is_full) continue;
      if (llama_decode(context, batch) != 0) fail("the prompts");
      for (int k = 0; k < batch.n_tokens; ++k)
        if (batch.logits[k]) next[static_cast<std::size_t>(batch.seq_id[k][0])] = choose(k);
      batch.n_tokens = 0;
    }
    const double prompts = std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
    for (int i = 1; i < made; ++i) {
      batch.n_tokens = 0;
      for (int s = 0; s < side; ++s) add(batch, next[static_cast<std::size_t>(s)], prompt + i - 1, s, true);
      if (llama_decode(context, batch) != 0) fail("a step");
      for (int s = 0; s < side; ++s) next[static_cast<std::size_t>(s)] = choose(s);
    }
    batch.n_tokens = 0;
    if (r == 0) continue;
    ms += std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
    first += prompts;
  }
  std::printf("{\"streams\": %d, \"tokens_per_second\": %.1f, \"prompts_ms\": %.1f}\n", streams,
              1000.0 * streams * count * rounds / ms, first / rounds);
  llama_batch_free(batch);
  llama_free(context);
  llama_model_free(model);
  llama_backend_free();
}
