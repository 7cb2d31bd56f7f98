#include "kiln/interface/onnxruntime/shim/replaced.hpp"

#include <algorithm>
#include <cstring>

#include "kiln/interface/onnxruntime/shim/shim.hpp"

namespace kiln::onnxruntime {

namespace {

/// A function in the place of the slot's, by its signature.
template <std::size_t Index, class Function>
void put(const void** table, slot<Index, Function>, std::type_identity_t<Function>* f) {
  table[Index] = reinterpret_cast<const void*>(f);
}

template <std::size_t Index, class... Args>
OrtStatus* create(std::optional<severity> level, OrtEnv** out, slot<Index, OrtStatus*(Args...)> real, auto... given) {
  OrtStatus* made = nullptr;
  OrtStatus* const failed = shim::instance().guarded([&] {
    made = shim::instance().environment().create(
        [&](OrtEnv** to) { return shim::instance().real()(real, given..., to); }, out, level);
  });
  return failed ? failed : made;
}

void replace_environments(const void** table) {
  put(table, api::create_env,
      [](severity level, const char* id, OrtEnv** out) { return create(level, out, api::create_env, level, id); });
  put(table, api::create_env_with_logger,
      [](OrtLoggingFunction f, void* param, severity level, const char* id, OrtEnv** out) {
        return create(level, out, api::create_env_with_logger, f, param, level, id);
      });
  put(table, api::create_env_with_threads,
      [](severity level, const char* id, const OrtThreadingOptions* threads, OrtEnv** out) {
        return create(level, out, api::create_env_with_threads, level, id, threads);
      });
  put(table, api::create_env_with_logger_and_threads,
      [](OrtLoggingFunction f, void* param, severity level, const char* id, const OrtThreadingOptions* threads,
         OrtEnv** out) {
        return create(level, out, api::create_env_with_logger_and_threads, f, param, level, id, threads);
      });
  put(table, api::create_env_with_options, [](const OrtEnvCreationOptions* how, OrtEnv** out) {
    return create({}, out, api::create_env_with_options, how);
  });
  put(table, api::release_env, [](OrtEnv* env) { shim::instance().environment().release(env); });
}

/// kiln's names, then ONNX Runtime's: providers come in the order of their priority.
std::vector<std::string> all_providers(char** real, int count) {
  std::vector<std::string> names{provider_of("MIGraphX"), provider_of("kiln")};
  for (int i = 0; i < count; ++i)
    if (std::find(names.begin(), names.end(), real[i]) == names.end()) names.emplace_back(real[i]);
  return names;
}

OrtStatus* list_providers(char*** out, int* count) {
  char** real = nullptr;
  int number = 0;
  const function_table& stock = shim::instance().real();
  if (OrtStatus* const failed = stock(api::available_providers, &real, &number)) return failed;
  OrtStatus* const failed = shim::instance().guarded([&] {
    const std::vector<std::string> names = all_providers(real, number);
    *out = new char*[names.size()];
    *count = static_cast<int>(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      (*out)[i] = new char[names[i].size() + 1];
      std::memcpy((*out)[i], names[i].c_str(), names[i].size() + 1);
    }
  });
  OrtStatus* const released = stock(api::release_available_providers, real, number);
  return failed ? failed : released;
}

OrtStatus* release_providers(char** names, int count) {
  for (int i = 0; names && i < count; ++i) delete[] names[i];
  delete[] names;
  return nullptr;
}

OrtStatus* append_by_name(OrtSessionOptions* options, const char* name, const char* const* keys,
                          const char* const* values, std::size_t count) {
  shim& own = shim::instance();
  if (const char* const provider = name ? provider_of(name) : nullptr)
    return own.append(options, provider, keys, values, count);
  return own.real()(api::append_by_name, options, name, keys, values, count);
}

}  // namespace

void replace(const void** table) {
  replace_environments(table);
  put(table, api::available_providers, &list_providers);
  put(table, api::release_available_providers, &release_providers);
  put(table, api::append_migraphx, [](OrtSessionOptions* options, const OrtMIGraphXProviderOptions* given) {
    return shim::instance().append(options, given);
  });
  put(table, api::append_by_name, &append_by_name);
}

}  // namespace kiln::onnxruntime
