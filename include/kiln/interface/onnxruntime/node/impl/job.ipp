#include "kiln/interface/onnxruntime/node/job.hpp"

#include "kiln/interface/onnxruntime/node/values.hpp"

namespace kiln::node {

kept_value::kept_value(napi_env env, napi_value v) : env_(env) {
  check(napi_create_reference(env, v, 1, &reference_), "keeping a value");
}
kept_value::~kept_value() {
  if (reference_) napi_delete_reference(env_, reference_);
}

void job::keep(napi_env env, napi_value v) { kept_.emplace_back(env, v); }

void job::fail(std::string reason) {
  failed_ = true;
  failure_ = std::move(reason);
}

void job::run() {
  try {
    work();
  } catch (const std::exception& e) {
    fail(e.what());
  } catch (...) {
    fail("an exception of an unknown type");
  }
}

napi_value job::start(napi_env env, std::unique_ptr<job> work) {
  const napi_value name = to_value(env, "kiln");
  napi_value promise = nullptr;
  check(napi_create_promise(env, &work->promise_, &promise), "making a promise");
  const auto execute = [](napi_env, void* data) { static_cast<job*>(data)->run(); };
  const auto complete = [](napi_env env, napi_status status, void* data) {
    const std::unique_ptr<job> self(static_cast<job*>(data));
    if (status != 0) self->fail("the job was canceled");  // then `execute` has not run
    self->finish(env);
  };
  if (napi_create_async_work(env, nullptr, name, execute, complete, work.get(), &work->handle_) != 0 ||
      napi_queue_async_work(env, work->handle_) != 0) {
    work->fail("Node-API: starting a job failed");
    work->finish(env);
  } else {
    static_cast<void>(work.release());  // `complete` owns it
  }
  return promise;
}

void job::finish(napi_env env) {
  napi_value result = nullptr;
  try {
    if (!failed_) result = answer(env);
  } catch (const std::exception& e) {
    fail(e.what());
  }
  // a process that ends answers every call with an error, and nobody waits for the promise
  if (failed_) {
    napi_value message = nullptr, thrown = nullptr;
    if (napi_create_string_utf8(env, failure_.c_str(), failure_.size(), &message) == 0 &&
        napi_create_error(env, nullptr, message, &thrown) == 0)
      napi_reject_deferred(env, promise_, thrown);
  } else {
    napi_resolve_deferred(env, promise_, result);
  }
  if (handle_) napi_delete_async_work(env, handle_);
}

}  // namespace kiln::node
