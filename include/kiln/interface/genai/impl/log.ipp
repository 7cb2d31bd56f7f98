#include <cstdio>
#include <fstream>
#include <mutex>

#include "kiln/interface/genai/impl/guard.hpp"

namespace kiln::genai {
namespace {

// GenAI's names, those of log_item first and in its order. What the others are about, kiln has no messages of.
constexpr std::string_view names[] = {"warning",
                                      "generate_next_token",
                                      "append_next_tokens",
                                      "hit_eos",
                                      "hit_max_length",
                                      "model_logits",
                                      "enabled",
                                      "ansi_tags",
                                      "model_input_values",
                                      "model_output_shapes",
                                      "model_output_values",
                                      "ort_lib",
                                      "value_stats"};
constexpr std::size_t enabled = 6, count = std::size(names);
static_assert(names[static_cast<std::size_t>(log_item::model_logits)] == "model_logits" && names[enabled] == "enabled");

struct log_state {
  std::mutex mutex;
  std::atomic<bool> on[count] = {true};
  std::ofstream file;
  void (*callback)(const char*, std::size_t) = nullptr;
};
log_state& state() {
  static log_state all;
  return all;
}

}  // namespace

bool logs(log_item kind) { return state().on[enabled] && state().on[static_cast<std::size_t>(kind)]; }

void write_log(log_item kind, std::string_view message) {
  if (!logs(kind)) return;
  const std::string line = std::string(names[static_cast<std::size_t>(kind)]) + ": " + std::string(message) + "\n";
  log_state& to = state();
  std::unique_lock lock(to.mutex);
  if (const auto callback = to.callback) {
    lock.unlock();  // it may change where messages go
    return callback(line.data(), line.size());
  }
  if (to.file.is_open())
    to.file << line << std::flush;
  else
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace kiln::genai

using namespace kiln::genai;

OgaResult* OgaSetLogBool(const char* name, bool value) {
  return guarded([&] {
    const std::string_view wanted = text(name, "the name of a logging option");
    std::string known;
    for (std::size_t k = 0; k < count; ++k) {
      if (names[k] == wanted) {
        state().on[k] = value;
        return;
      }
      known += (k ? ", " : "") + std::string(names[k]);
    }
    raise(kiln::errc::not_found, "logging option '" + std::string(wanted) + "': expected one of " + known);
  });
}

OgaResult* OgaSetLogString(const char* name, const char* value) {
  return guarded([&] {
    const std::string_view wanted = text(name, "the name of a logging option");
    if (wanted != "filename")
      raise(kiln::errc::not_found, "logging option '" + std::string(wanted) + "': expected filename");
    const std::string path(optional_text(value));
    std::ofstream file;
    if (!path.empty()) file.open(path, std::ios::app);
    if (!path.empty() && !file) raise(kiln::errc::io, "logging option 'filename': can't write '" + path + "'");
    const std::lock_guard lock(state().mutex);
    state().file = std::move(file);
    state().callback = nullptr;
  });
}

OgaResult* OgaSetLogCallback(void (*callback)(const char*, size_t)) {
  return guarded([&] {
    const std::lock_guard lock(state().mutex);
    state().callback = callback;
    state().file = {};
  });
}
