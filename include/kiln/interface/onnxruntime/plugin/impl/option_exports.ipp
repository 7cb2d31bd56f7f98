#include <cstdlib>
#include <cstring>
#include <new>

#include "kiln/interface/onnxruntime/options_c.h"
#include "kiln/interface/onnxruntime/provider_options.hpp"

extern "C" {

[[gnu::visibility("default")]] const char* kiln_onnxruntime_option_table() {
  static const std::string text = kiln::onnxruntime::provider_option_table_json();
  return text.c_str();
}

[[gnu::visibility("default")]] int kiln_onnxruntime_resolved_options(const char* const* keys, const char* const* values,
                                                                     std::size_t count, char** text) {
  *text = nullptr;
  try {
    std::vector<std::pair<std::string, std::string>> given;
    for (std::size_t i = 0; i < count; ++i) given.emplace_back(keys[i], values[i]);
    *text = strdup(
        kiln::onnxruntime::provider_options_json(kiln::onnxruntime::read_provider_options(given, [](const char* n) {
          return std::getenv(n);
        })).c_str());
    return *text ? 0 : 1;
  } catch (const std::exception& e) {
    *text = strdup(e.what());
    return 1;
  }
}

[[gnu::visibility("default")]] void kiln_onnxruntime_free(char* text) { std::free(text); }
}
