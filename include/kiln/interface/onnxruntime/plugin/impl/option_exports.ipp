#include <cstdlib>
#include <cstring>
#include <new>

#include "kiln/core/error.hpp"
#include "kiln/interface/onnxruntime/options_c.h"
#include "kiln/interface/onnxruntime/provider_options.hpp"

extern "C" {

[[gnu::visibility("default")]] const char* kiln_onnxruntime_option_table() {
  try {
    static const std::string text = kiln::onnxruntime::provider_option_table_json();
    return text.c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}

[[gnu::visibility("default")]] int kiln_onnxruntime_resolved_options(const char* const* keys, const char* const* values,
                                                                     std::size_t count, char** text) {
  if (!text) return 1;
  *text = nullptr;
  try {
    if (count != 0 && (!keys || !values)) kiln::raise(kiln::errc::invalid_argument, "keys and values are null");
    std::vector<std::pair<std::string, std::string>> given;
    for (std::size_t i = 0; i < count; ++i) {
      if (!keys[i] || !values[i])
        kiln::raise(kiln::errc::invalid_argument,
                    "option " + std::to_string(i) +
                        (keys[i] ? " (" + std::string(keys[i]) + ") has no value" : " has no key") + ": found null");
      given.emplace_back(keys[i], values[i]);
    }
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
