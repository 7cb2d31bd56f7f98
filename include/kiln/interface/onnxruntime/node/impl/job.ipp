#include "kiln/interface/onnxruntime/node/job.hpp"

#include "kiln/interface/onnxruntime/node/values.hpp"

namespace kiln::node {

void job::keep(napi_env env, napi_value v) {
  napi_ref kept = nullptr;
  check(napi_create_reference(env, v, 1, &kept), "keeping a value");
  kept_.push_back(kept);
}

napi_value job::start(napi_env env, std::unique_ptr<job> work) {
  napi_value promise = nullptr;
  check(napi_create_promise(env, &work->promise_, &promise), "making a promise");
  const auto execute = [](napi_env, void* data) {
    auto& self = *static_cast<job*>(data);
    try {
      self.work();
    } catch (const std::exception& e) {
      self.failed_ = true;
      self.failure_ = e.what();
    }
  };
  const auto complete = [](napi_env env, napi_status, void* data) {
    const std::unique_ptr<job> self(static_cast<job*>(data));
    self->finish(env);
  };
  check(napi_create_async_work(env, nullptr, to_value(env, "kiln"), execute, complete, work.get(), &work->handle_),
        "making a job");
  check(napi_queue_async_work(env, work->handle_), "starting a job");
  static_cast<void>(work.release());  // `complete` owns it
  return promise;
}

void job::finish(napi_env env) {
  napi_value result = nullptr;
  try {
    if (!failed_) result = answer(env);
  } catch (const std::exception& e) {
    failed_ = true;
    failure_ = e.what();
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
  for (const napi_ref kept : kept_) napi_delete_reference(env, kept);
  napi_delete_async_work(env, handle_);
}

}  // namespace kiln::node
