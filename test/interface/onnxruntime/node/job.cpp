// Jobs of the addon over a Node-API of the test's own: those that cannot start, are canceled or throw end with a
// rejected promise, and give back everything that they held.
#include "kiln/interface/onnxruntime/node/job.hpp"

#include <cstdio>
#include <functional>

#include "kiln/interface/onnxruntime/node/impl/job.ipp"
#include "kiln/interface/onnxruntime/node/impl/values.ipp"

namespace {

int failures = 0;
void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED: %s\n", what);
}

// What the faked calls are to do, and what they were asked for.
struct {
  int create_status = 0, queue_status = 0;
  int references = 0, works = 0, resolved = 0, rejected = 0;
  std::string message;
  void (*execute)(napi_env, void*) = nullptr;
  void (*complete)(napi_env, napi_status, void*) = nullptr;
  void* data = nullptr;
} node;

char something;
template <typename T> napi_status give(T* out) {
  *out = reinterpret_cast<T>(&something);
  return 0;
}

struct task : kiln::node::job {
  task(std::function<void()> f, bool& answered, bool& destroyed)
      : f_(std::move(f)), answered_(answered), destroyed_(destroyed) {}
  ~task() override { destroyed_ = true; }

 private:
  void work() override { f_(); }
  napi_value answer(napi_env) override {
    answered_ = true;
    return nullptr;
  }
  std::function<void()> f_;
  bool &answered_, &destroyed_;
};

/// Starts a job that keeps two values, and ends it with `status` unless it could not start.
void check_job(const char* name, std::function<void()> work, napi_status status, const std::string& message) {
  node.references = node.works = node.resolved = node.rejected = 0;
  node.message.clear();
  bool answered = false, destroyed = false;
  auto made = std::make_unique<task>(std::move(work), answered, destroyed);
  made->keep(nullptr, nullptr);
  made->keep(nullptr, nullptr);
  expect(node.references == 2, "values are kept");
  expect(kiln::node::job::start(nullptr, std::move(made)) != nullptr, "there is a promise");
  if (node.create_status == 0 && node.queue_status == 0) {
    if (status == 0) node.execute(nullptr, node.data);
    node.complete(nullptr, status, node.data);
  }
  std::printf("%s: %s\n", name, node.message.empty() ? "resolved" : node.message.c_str());
  expect(node.message == message, "the promise has the reason");
  expect(node.rejected == (message.empty() ? 0 : 1) && node.resolved + node.rejected == 1, "the promise ends once");
  expect(answered == message.empty(), "only a job that has run answers");
  expect(destroyed && node.references == 0 && node.works == 0, "everything is given back");
}

}  // namespace

extern "C" {
napi_status napi_create_reference(napi_env, napi_value, std::uint32_t, napi_ref* out) {
  ++node.references;
  return give(out);
}
napi_status napi_delete_reference(napi_env, napi_ref) { return --node.references, 0; }
napi_status napi_create_promise(napi_env, napi_deferred* out, napi_value* promise) {
  give(promise);
  return give(out);
}
napi_status napi_resolve_deferred(napi_env, napi_deferred, napi_value) { return ++node.resolved, 0; }
napi_status napi_reject_deferred(napi_env, napi_deferred, napi_value) { return ++node.rejected, 0; }
napi_status napi_create_async_work(napi_env, napi_value, napi_value, void (*execute)(napi_env, void*),
                                   void (*complete)(napi_env, napi_status, void*), void* data, napi_async_work* out) {
  if (node.create_status != 0) return node.create_status;
  node.execute = execute, node.complete = complete, node.data = data;
  ++node.works;
  return give(out);
}
napi_status napi_queue_async_work(napi_env, napi_async_work) { return node.queue_status; }
napi_status napi_delete_async_work(napi_env, napi_async_work) { return --node.works, 0; }
napi_status napi_create_string_utf8(napi_env, const char* text, std::size_t length, napi_value* out) {
  if (const std::string made(text, length); made != "kiln") node.message = made;
  return give(out);
}
napi_status napi_create_error(napi_env, napi_value, napi_value, napi_value* out) { return give(out); }
// what values.ipp calls beside, and jobs do not
napi_status napi_typeof(napi_env, napi_value, napi_valuetype*) { return 1; }
napi_status napi_get_value_string_utf8(napi_env, napi_value, char*, std::size_t, std::size_t*) { return 1; }
napi_status napi_get_value_double(napi_env, napi_value, double*) { return 1; }
napi_status napi_is_array(napi_env, napi_value, bool*) { return 1; }
napi_status napi_get_array_length(napi_env, napi_value, std::uint32_t*) { return 1; }
napi_status napi_get_element(napi_env, napi_value, std::uint32_t, napi_value*) { return 1; }
napi_status napi_is_typedarray(napi_env, napi_value, bool* out) { return *out = true, 0; }
// an array of a kind that Node-API has no number for
napi_status napi_get_typedarray_info(napi_env, napi_value, napi_typedarray_type*, std::size_t* length, void** data,
                                     napi_value*, std::size_t*) {
  *length = 1, *data = &something;
  return 0;
}
napi_status napi_create_double(napi_env, double, napi_value*) { return 1; }
napi_status napi_create_array_with_length(napi_env, std::size_t, napi_value*) { return 1; }
napi_status napi_set_element(napi_env, napi_value, std::uint32_t, napi_value) { return 1; }
napi_status napi_create_arraybuffer(napi_env, std::size_t, void** data, napi_value*) { return *data = &something, 1; }
napi_status napi_create_object(napi_env, napi_value*) { return 1; }
napi_status napi_set_named_property(napi_env, napi_value, const char*, napi_value) { return 1; }
}

int main() {
  const auto nothing = [] {};
  check_job("runs", nothing, 0, "");
  check_job(
      "throws", [] { throw std::runtime_error("no such model"); }, 0, "no such model");
  check_job(
      "throws no std::exception", [] { throw 7; }, 0, "an exception of an unknown type");
  check_job("is canceled", nothing, 11, "the job was canceled");
  node.queue_status = 9;
  check_job("is not queued", nothing, 0, "Node-API: starting a job failed");
  node.queue_status = 0, node.create_status = 9;
  check_job("is not made", nothing, 0, "Node-API: starting a job failed");
  try {
    kiln::node::bytes_of(nullptr, nullptr, "the model");
    expect(false, "an array of an unknown kind is refused");
  } catch (const std::invalid_argument& e) {
    expect(std::string(e.what()).starts_with("the model must be a typed array of"), "the refusal names the value");
  }
  {  // a job that is given up before its start
    bool answered = false, destroyed = false;
    node.references = 0;
    auto made = std::make_unique<task>(nothing, answered, destroyed);
    made->keep(nullptr, nullptr);
    made.reset();
    expect(node.references == 0, "what a job kept is given back without a start");
  }
  if (failures == 0) std::puts("ok");
  return failures == 0 ? 0 : 1;
}
