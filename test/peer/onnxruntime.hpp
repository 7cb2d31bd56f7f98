#pragma once
#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/argument.hpp"
#include "kiln/onnx/element.hpp"
#include "kiln/onnx/tensor.hpp"

/// ONNX Runtime through its C API, loaded at run time: what kiln's results and times are compared with.
namespace kiln::peer {

/// The library that cmake/peer.sh put into the build tree, if it is there.
inline std::optional<std::string> library() {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(KILN_SOURCE_DIR) / "build" / "peer";
  if (!fs::exists(root)) return std::nullopt;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(root))
    if (e.path().filename() == "libonnxruntime.so.1" && e.path().string().find("linux/") != std::string::npos &&
        dlopen(e.path().c_str(), RTLD_NOW | RTLD_LOCAL))
      return e.path().string();
  return std::nullopt;
}

/// Places of functions in the API's table; they never change (onnxruntime_c_api.h: entries are only appended).
enum class slot : std::size_t {
  error_message = 2,
  create_env = 3,
  create_session = 7,
  create_session_from_array = 8,
  run = 9,
  create_options = 10,
  set_optimization_level = 23,
  set_threads = 24,
  input_count = 30,
  output_count = 31,
  input_name = 36,
  output_name = 37,
  run_options = 39,
  tensor_of_data = 49,
  tensor_data = 51,
  element_type = 60,
  rank = 61,
  extents = 62,
  type_and_shape = 65,
  cpu_memory = 69,
  allocator = 78,
  adapter_of_bytes = 281,
  add_adapter = 283,
  register_library = 301,
  devices = 303,
  append_provider = 304,
  device_provider = 312,
};

/// The API's table of functions; a call throws what its status says.
class api {
 public:
  explicit api(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(dlerror());
    using base = const struct { void** (*table)(std::uint32_t); }*;
    table_ = reinterpret_cast<base (*)()>(dlsym(handle, "OrtGetApiBase"))()->table(24);
    if (!table_) throw std::runtime_error(path + " is older than ONNX Runtime 1.24");
  }
  template <class... Args> void call(slot s, Args... args) const {
    void* status = reinterpret_cast<void* (*)(Args...)>(table_[static_cast<std::size_t>(s)])(args...);
    if (status)
      throw std::runtime_error(
          reinterpret_cast<const char* (*)(void*)>(table_[static_cast<std::size_t>(slot::error_message)])(status));
  }
  /// A function that returns its answer.
  template <class T, class... Args> T ask(slot s, Args... args) const {
    return reinterpret_cast<T (*)(Args...)>(table_[static_cast<std::size_t>(s)])(args...);
  }
  /// A call whose last argument receives the answer.
  template <class T = void*, class... Args> T get(slot s, Args... args) const {
    T out{};
    call(s, args..., &out);
    return out;
  }

 private:
  void** table_;
};

/// A model in ONNX Runtime on the CPU with every optimization on; it lives until the program ends. `plugin` is the
/// library of kiln's execution provider, with options, where that is to run the model.
class session {
 public:
  using options_of_plugin = std::vector<std::pair<std::string, std::string>>;
  session(const std::string& library, std::span<const std::byte> model, int threads = 2, const std::string& plugin = {},
          const options_of_plugin& with = {})
      : session(library, threads, plugin, with, [&](const api& a, void* env, const void* options) {
          return a.get(slot::create_session_from_array, env, static_cast<const void*>(model.data()), model.size(),
                       options);
        }) {}
  /// Of a model's file.
  session(const std::string& library, const std::filesystem::path& model, int threads)
      : session(library, threads, {}, {}, [&](const api& a, void* env, const void* options) {
          return a.get(slot::create_session, env, model.c_str(), options);
        }) {}
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }

  /// Lets all further runs use the adapter of a file's bytes.
  void use_adapter(std::span<const std::byte> file) {
    if (!run_options_) run_options_ = api_.get(slot::run_options);
    void* adapter = api_.get(slot::adapter_of_bytes, static_cast<const void*>(file.data()), file.size(),
                             static_cast<void*>(nullptr));
    api_.call(slot::add_adapter, run_options_, adapter);
  }

  /// Inputs and outputs that stay where they are from run to run, as in a program that measures.
  class binding {
   public:
    binding(const session& s, const std::map<std::string, argument>& given) : s_(s), made_(s.outputs_.size(), nullptr) {
      for (const std::string& name : s.inputs_) {
        in_.push_back(name.c_str());
        held_.push_back(given.at(name).contiguous());
      }
      for (argument& a : held_) values_.push_back(s.to_value(a));
      for (const std::string& name : s.outputs_) out_.push_back(name.c_str());
    }
    void run() {
      s_.api_.call(slot::run, s_.session_, s_.run_options_, in_.data(), values_.data(), in_.size(), out_.data(),
                   out_.size(), made_.data());
    }
    std::vector<argument> results() const {
      std::vector<argument> results;
      for (void* v : made_) results.push_back(s_.to_argument(v));
      return results;
    }

   private:
    const session& s_;
    std::vector<const char*> in_, out_;
    std::vector<argument> held_;
    std::vector<void*> values_, made_;
  };

  /// Outputs in the model's order for inputs by name.
  std::vector<argument> run(const std::map<std::string, argument>& given) const {
    binding bound(*this, given);
    bound.run();
    return bound.results();
  }

 private:
  template <class Create>
  session(const std::string& library, int threads, const std::string& plugin, const options_of_plugin& with,
          Create&& create)
      : api_(library), memory_(api_.get(slot::cpu_memory, 1, 0)), allocator_(api_.get(slot::allocator)) {
    void* env = api_.get(slot::create_env, 3, "kiln");
    void* options = api_.get(slot::create_options);
    api_.call(slot::set_threads, options, threads);
    api_.call(slot::set_optimization_level, options, 99);
    if (!plugin.empty()) append(plugin, env, options, with);
    session_ = create(api_, env, options);
    for (std::size_t i = 0; i < api_.get<std::size_t>(slot::input_count, session_); ++i)
      inputs_.emplace_back(api_.get<char*>(slot::input_name, session_, i, allocator_));
    for (std::size_t i = 0; i < api_.get<std::size_t>(slot::output_count, session_); ++i)
      outputs_.emplace_back(api_.get<char*>(slot::output_name, session_, i, allocator_));
  }
  void append(const std::string& plugin, void* env, void* options, const options_of_plugin& with) {
    const std::string name = "KilnExecutionProvider";
    static std::once_flag registered;
    std::call_once(registered, [&] { api_.call(slot::register_library, env, name.c_str(), plugin.c_str()); });
    void* const* all = nullptr;
    std::size_t count = 0;
    api_.call(slot::devices, env, &all, &count);
    std::vector<void*> own;
    for (std::size_t i = 0; i < count; ++i)
      if (name == api_.ask<const char*>(slot::device_provider, all[i])) own.push_back(all[i]);
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : with) keys.push_back(key.c_str()), values.push_back(value.c_str());
    api_.call(slot::append_provider, options, env, own.data(), own.size(), keys.data(), values.data(), keys.size());
  }
  void* to_value(argument& a) const {
    std::vector<std::int64_t> lens;
    for (const dimension& d : a.get_shape().lens) lens.push_back(d.value());
    const std::size_t bytes = static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type);
    return api_.get(slot::tensor_of_data, memory_, static_cast<void*>(a.data()), bytes, lens.data(), lens.size(),
                    static_cast<int>(onnx::to_element(a.get_shape().type)));
  }
  argument to_argument(void* value) const {
    void* info = api_.get(slot::type_and_shape, value);
    const auto type = onnx::to_dtype(static_cast<onnx::element>(api_.get<int>(slot::element_type, info)));
    std::vector<std::int64_t> lens(api_.get<std::size_t>(slot::rank, info));
    api_.call(slot::extents, info, lens.data(), lens.size());
    shape s{type.value(), {}};
    for (const std::int64_t n : lens) s.lens.push_back(n);
    return argument(s, api_.get(slot::tensor_data, value)).copy();
  }

  api api_;
  void *memory_, *allocator_, *session_ = nullptr, *run_options_ = nullptr;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace kiln::peer
