#include <functional>

#include "kiln/interface/onnxruntime/node/impl/tensors.hpp"
#include "kiln/interface/onnxruntime/node/job.hpp"

// The addon of Node: functions that kiln's package for JavaScript calls, and nobody else. Each takes its arguments as
// the package makes them, and answers a promise.

namespace kiln::node {

namespace {

using shared_session = std::shared_ptr<Ort::Session>;

texts_by_name pairs_of(napi_env env, napi_value v, std::string_view name) {
  texts_by_name out;
  const std::vector<std::string> flat = texts_of(env, v, name);
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2) out.emplace_back(flat[i], flat[i + 1]);
  return out;
}

/// What JavaScript holds of a session; a run holds the session itself, so that it may be disposed of meanwhile.
shared_session& held(napi_env env, napi_value v) {
  void* data = nullptr;
  if (kind_of(env, v) != value_kind::external || napi_get_value_external(env, v, &data) != 0)
    throw std::invalid_argument("this is no session of kiln's");
  return *static_cast<shared_session*>(data);
}
shared_session session_of(napi_env env, napi_value v) {
  shared_session out = held(env, v);
  if (!out) throw std::invalid_argument("the session has been released");
  return out;
}

class creation : public job {
 public:
  session_request from;

 private:
  void work() override { made_ = std::make_shared<Ort::Session>(make_session(from)); }
  napi_value answer(napi_env env) override {
    const auto list = [&](const std::vector<std::string>& names, auto&& type) {
      std::vector<napi_value> out;
      for (std::size_t i = 0; i < names.size(); ++i) out.push_back(describe(env, names[i], type(i)));
      return to_array(env, out);
    };
    const napi_value inputs = list(made_->GetInputNames(), [&](std::size_t i) { return made_->GetInputTypeInfo(i); });
    const napi_value outputs =
        list(made_->GetOutputNames(), [&](std::size_t i) { return made_->GetOutputTypeInfo(i); });
    napi_value handle = nullptr;
    auto held = std::make_unique<shared_session>(std::move(made_));
    check(napi_create_external(
              env, held.get(), [](napi_env, void* data, void*) { delete static_cast<shared_session*>(data); }, nullptr,
              &handle),
          "holding a session");
    static_cast<void>(held.release());
    return to_object(env, {{"handle", handle}, {"inputs", inputs}, {"outputs", outputs}});
  }
  shared_session made_;
};

class one_run : public job {
 public:
  shared_session in;
  std::vector<given_tensor> inputs;
  std::vector<std::string> output_names;
  std::vector<std::pair<std::size_t, given_tensor>> into;  // outputs that the program has memory for
  texts_by_name settings;

 private:
  void work() override {
    Ort::RunOptions how;
    node::apply(how, settings);
    std::vector<const char*> given_names, wanted;
    for (given_tensor& t : inputs) {
      given_names.push_back(t.name.c_str());
      given_.push_back(to_value(t));
    }
    for (const std::string& name : output_names) wanted.push_back(name.c_str());
    results_ = std::vector<Ort::Value>(wanted.size());
    for (auto& [index, t] : into) results_[index] = to_value(t);
    in->Run(how, given_names.data(), given_.data(), given_.size(), wanted.data(), results_.data(), wanted.size());
  }
  napi_value answer(napi_env env) override {
    std::vector<napi_value> out;
    napi_value nothing = nullptr;
    check(napi_get_null(env, &nothing), "null");
    std::vector<bool> there(results_.size());
    for (const auto& [index, t] : into) there[index] = true;
    for (std::size_t i = 0; i < results_.size(); ++i)
      out.push_back(there[i] ? nothing : from_value(env, results_[i], output_names[i]));
    return to_array(env, out);
  }
  std::vector<Ort::Value> given_, results_;
};

/// create(path or bytes, settings, options of the provider): {handle, inputs, outputs}
napi_value create(napi_env env, std::span<const napi_value> given) {
  auto work = std::make_unique<creation>();
  if (kind_of(env, given[0]) == value_kind::string) {
    work->from.path = text_of(env, given[0], "the model's path");
    if (work->from.path.empty()) throw std::invalid_argument("the model's path is empty");
  } else {
    work->from.bytes = bytes_of(env, given[0], "the model").bytes;
    work->keep(env, given[0]);
  }
  work->from.settings = pairs_of(env, given[1], "session options");
  work->from.provider = pairs_of(env, given[2], "options of the provider");
  return job::start(env, std::move(work));
}

/// run(handle, names, tensors, names of outputs, tensors or nulls, settings): tensors, null where the program gave one
napi_value run(napi_env env, std::span<const napi_value> given) {
  auto work = std::make_unique<one_run>();
  work->in = session_of(env, given[0]);
  const auto read = [&](napi_value tensor, const std::string& name) {
    work->keep(env, tensor);
    return read_tensor(env, tensor, name);
  };
  const std::vector<std::string> names = texts_of(env, given[1], "names of inputs");
  const std::vector<napi_value> tensors = items_of(env, given[2], "inputs");
  for (std::size_t i = 0; i < std::min(names.size(), tensors.size()); ++i)
    work->inputs.push_back(read(tensors[i], names[i]));
  work->output_names = texts_of(env, given[3], "names of outputs");
  const std::vector<napi_value> into = items_of(env, given[4], "outputs");
  for (std::size_t i = 0; i < std::min(into.size(), work->output_names.size()); ++i)
    if (kind_of(env, into[i]) != value_kind::null) work->into.emplace_back(i, read(into[i], work->output_names[i]));
  work->settings = pairs_of(env, given[5], "run options");
  return job::start(env, std::move(work));
}

/// endProfiling(handle): the path of the file
napi_value end_profiling(napi_env env, std::span<const napi_value> given) {
  Ort::AllocatorWithDefaultOptions allocator;
  return to_value(env, std::string_view(session_of(env, given[0])->EndProfilingAllocated(allocator).get()));
}

/// dispose(handle): runs under way end first
napi_value dispose(napi_env env, std::span<const napi_value> given) {
  held(env, given[0]).reset();
  napi_value out = nullptr;
  check(napi_get_undefined(env, &out), "undefined");
  return out;
}

using function = napi_value (*)(napi_env, std::span<const napi_value>);

/// A function for JavaScript: what it throws is thrown there.
template <function F, std::size_t Arguments> napi_value call(napi_env env, napi_callback_info info) {
  try {
    std::size_t count = Arguments;
    napi_value given[Arguments] = {};
    check(napi_get_cb_info(env, info, &count, given, nullptr, nullptr), "reading arguments");
    return F(env, std::span<const napi_value>(given));
  } catch (const std::exception& e) {
    bool pending = false;
    if (napi_is_exception_pending(env, &pending) != 0 || !pending) napi_throw_error(env, nullptr, e.what());
    return nullptr;
  }
}

void add(napi_env env, napi_value to, const char* name, napi_callback f) {
  napi_value made = nullptr;
  check(napi_create_function(env, name, static_cast<std::size_t>(-1), f, nullptr, &made), "making a function");
  check(napi_set_named_property(env, to, name, made), "exporting a function");
}

}  // namespace

}  // namespace kiln::node

extern "C" [[gnu::visibility("default")]] napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  using namespace kiln::node;
  try {
    add(env, exports, "create", &call<&create, 3>);
    add(env, exports, "run", &call<&run, 6>);
    add(env, exports, "endProfiling", &call<&end_profiling, 1>);
    add(env, exports, "dispose", &call<&dispose, 1>);
  } catch (const std::exception& e) {
    napi_throw_error(env, nullptr, e.what());
  }
  return exports;
}
extern "C" [[gnu::visibility("default")]] std::int32_t node_api_module_get_api_version_v1() { return 8; }
