#pragma once
#include "kiln/interface/onnxruntime/host.hpp"
#include "peer/onnxruntime.hpp"

/// Programs of ONNX Runtime that use kiln's plugin.
namespace kiln::peer {

namespace ort = kiln::onnxruntime;
using text_pairs = std::vector<std::pair<std::string, std::string>>;

inline constexpr ort::slot<316, const OrtHardwareDevice*(const OrtEpDevice*)> device_hardware;

/// ONNX Runtime with the plugin registered.
class plugin_host {
  template <class Line> static OrtEnv* make_env(const ort::host& of, Line line) {
    OrtEnv* out = nullptr;
    of.call(ort::api::create_env_with_log, line, nullptr, ort::severity::verbose, "kiln", &out);
    return out;
  }

 public:
  explicit plugin_host(std::string name = "KilnExecutionProvider", std::string path = own_path())
      : runtime(*base()),
        name(std::move(name)),
        path(std::move(path)),
        env(runtime.get<OrtEnv*>(ort::api::create_env, ort::severity::error, "kiln")) {
    add();
  }
  /// With a function that gets the lines of the log, where the process has no ONNX Runtime yet.
  explicit plugin_host(void (*line)(void*, ort::severity, const char*, const char*, const char*, const char*))
      : runtime(*base()), name("KilnExecutionProvider"), path(own_path()), env(make_env(runtime, line)) {
    add();
  }
  plugin_host(const plugin_host&) = delete;
  plugin_host& operator=(const plugin_host&) = delete;
  ~plugin_host() {
    remove();
    runtime.call(ort::api::release_env, env);
  }
  void add() const { runtime.call(ort::api::register_library, env, name.c_str(), path.c_str()); }
  void remove() const { runtime.call(ort::api::unregister_library, env, name.c_str()); }
  /// Devices that the plugin offers.
  std::vector<const OrtEpDevice*> devices() const { return devices(only); }
  std::vector<const OrtEpDevice*> devices(std::optional<ort::hardware> kind) const {
    const OrtEpDevice* const* all = nullptr;
    std::size_t count = 0;
    runtime.call(ort::api::ep_devices, env, &all, &count);
    std::vector<const OrtEpDevice*> out;
    for (std::size_t i = 0; i < count; ++i)
      if (name == runtime.call(ort::api::device_ep_name, all[i]) &&
          (!kind || *kind == runtime.call(ort::api::hardware_type, runtime.call(device_hardware, all[i]))))
        out.push_back(all[i]);
    return out;
  }

  /// What sessions get of the plugin's devices; all, if it is not set.
  std::optional<ort::hardware> only;
  const ort::host runtime;
  const std::string name, path;
  OrtEnv* const env;

 private:
  static std::string own_path() { return KILN_BINARY_DIR "/lib/libkiln_onnxruntime_ep.so"; }
  static const OrtApiBase* base() {
    void* const handle = dlopen(library().value().c_str(), RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"))();
  }
};

/// Says that a session has ONNX Runtime's own provider alone.
inline constexpr struct without_plugin_type {
} without_plugin;

/// A session whose first provider is the plugin.
class plugin_session {
 public:
  /// Of a model in a file, without the plugin.
  plugin_session(const plugin_host& in, const std::filesystem::path& model, without_plugin_type)
      : plugin_session(
            in, {}, {},
            [&](OrtSessionOptions* how) {
              in.runtime.call(ort::api::create_session, in.env, model.c_str(), how, &session_);
            },
            false) {}
  plugin_session(const plugin_host& in, std::span<const std::byte> model, const text_pairs& options = {},
                 const text_pairs& entries = {})
      : plugin_session(in, options, entries, [&](OrtSessionOptions* how) {
          in.runtime.call(ort::api::create_session_from_array, in.env, model.data(), model.size(), how, &session_);
        }) {}
  /// Of a model in a file.
  plugin_session(const plugin_host& in, const std::filesystem::path& model, const text_pairs& options = {},
                 const text_pairs& entries = {})
      : plugin_session(in, options, entries, [&](OrtSessionOptions* how) {
          in.runtime.call(ort::api::create_session, in.env, model.c_str(), how, &session_);
        }) {}
  plugin_session(const plugin_session&) = delete;
  plugin_session& operator=(const plugin_session&) = delete;
  ~plugin_session() {
    ort_.call(ort::api::release_memory_info, memory_);
    ort_.call(ort::api::release_session, session_);
  }

  OrtSession* handle() const { return session_; }
  /// Outputs in the model's order for inputs by name; `bound` gives memory to outputs by name.
  std::vector<argument> run(const std::map<std::string, argument>& given,
                            const std::map<std::string, argument>& bound = {}) const {
    std::vector<const char*> in, out;
    std::vector<argument> held;
    std::vector<OrtValue*> values, made;
    for (const std::string& n : inputs) {
      in.push_back(n.c_str());
      held.push_back(given.at(n).contiguous());
      values.push_back(value_of(held.back()));
    }
    for (const std::string& n : outputs) {
      out.push_back(n.c_str());
      const auto found = bound.find(n);
      if (found != bound.end()) held.push_back(found->second);
      made.push_back(found == bound.end() ? nullptr : value_of(held.back()));
    }
    ort_.call(ort::api::run, session_, nullptr, in.data(), values.data(), in.size(), out.data(), out.size(),
              made.data());
    std::vector<argument> results;
    for (OrtValue* v : made) results.push_back(argument_of(v));
    for (auto* list : {&values, &made})
      for (OrtValue* v : *list) ort_.call(ort::api::release_value, v);
    return results;
  }

  /// How many nodes, and in how many parts, a provider was given.
  std::pair<std::size_t, std::size_t> assigned(std::string_view provider) const {
    const OrtEpAssignedSubgraph* const* parts = nullptr;
    std::size_t count = 0, nodes = 0, own = 0;
    ort_.call(ort::api::assigned_subgraphs, session_, &parts, &count);
    for (std::size_t i = 0; i < count; ++i) {
      if (provider != ort_.get<const char*>(ort::api::assigned_ep, parts[i])) continue;
      const OrtEpAssignedNode* const* all = nullptr;
      std::size_t n = 0;
      ort_.call(ort::api::assigned_nodes, parts[i], &all, &n);
      nodes += n, ++own;
    }
    return {nodes, own};
  }

  std::vector<std::string> inputs, outputs;

 private:
  template <class Create>
  plugin_session(const plugin_host& in, const text_pairs& options, const text_pairs& entries, Create&& create,
                 bool is_plugged = true)
      : ort_(in.runtime) {
    auto* const how = ort_.get<OrtSessionOptions*>(ort::api::create_session_options);
    ort_.call(ort::api::set_intra_op_threads, how, 2);
    ort_.call(ort::api::add_session_entry, how, "session.record_ep_graph_assignment_info", "1");
    for (const auto& [key, value] : entries)
      if (key == "profile")  // not an entry of ONNX Runtime's
        ort_.call(ort::api::enable_profiling, how, value.c_str());
      else
        ort_.call(ort::api::add_session_entry, how, key.c_str(), value.c_str());
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : options) keys.push_back(key.c_str()), values.push_back(value.c_str());
    const auto devices = in.devices();
    if (is_plugged)
      ort_.call(ort::api::append_provider, how, in.env, devices.data(), devices.size(), keys.data(), values.data(),
                keys.size());
    try {
      create(how);
    } catch (...) {
      ort_.call(ort::api::release_session_options, how);
      throw;
    }
    ort_.call(ort::api::release_session_options, how);
    read_names(inputs, ort::api::session_input_count, ort::api::session_input_name);
    read_names(outputs, ort::api::session_output_count, ort::api::session_output_name);
    memory_ = ort_.get<OrtMemoryInfo*>(ort::api::cpu_memory, 1, 0);
  }

  template <class Count, class Name> void read_names(std::vector<std::string>& to, Count count, Name name) {
    auto* const allocator = ort_.get<OrtAllocator*>(ort::api::default_allocator);
    for (std::size_t i = 0; i < ort_.get<std::size_t>(count, session_); ++i) {
      char* const text = ort_.get<char*>(name, session_, i, allocator);
      to.emplace_back(text);
      ort_.call(ort::api::free, allocator, text);
    }
  }
  OrtValue* value_of(argument& a) const {
    std::vector<std::int64_t> extents;
    for (const dimension& d : a.get_shape().lens) extents.push_back(d.value());
    const std::size_t bytes = static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type);
    return ort_.get<OrtValue*>(ort::api::tensor_of_data, memory_, static_cast<void*>(a.data()), bytes, extents.data(),
                               extents.size(), static_cast<int>(onnx::to_element(a.get_shape().type)));
  }
  argument argument_of(OrtValue* v) const {
    auto* const info = ort_.get<OrtTensorTypeAndShapeInfo*>(ort::api::tensor_info_of_value, v);
    shape s{*onnx::to_dtype(static_cast<onnx::element>(ort_.get<int>(ort::api::element_type, info))), {}};
    std::vector<std::int64_t> extents(ort_.get<std::size_t>(ort::api::rank, info));
    ort_.call(ort::api::extents, info, extents.data(), extents.size());
    ort_.call(ort::api::release_tensor_info, info);
    for (const std::int64_t n : extents) s.lens.push_back(n);
    return argument(s, ort_.get<void*>(ort::api::tensor_data, v)).copy();
  }

  const ort::host& ort_;
  OrtSession* session_ = nullptr;
  OrtMemoryInfo* memory_ = nullptr;
};

}  // namespace kiln::peer
