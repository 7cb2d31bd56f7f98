#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/node/napi.hpp"

namespace kiln::node {

/// Work that is done off JavaScript's thread, and what becomes of the promise that stands for it.
class job {
 public:
  virtual ~job() = default;
  /// Keeps a value from being collected until the work is done.
  void keep(napi_env env, napi_value v);
  /// Starts the work and gives its promise, which is rejected with what the work or the answer throws.
  static napi_value start(napi_env env, std::unique_ptr<job> work);

 private:
  virtual void work() = 0;                      // on another thread; it may use nothing of JavaScript
  virtual napi_value answer(napi_env env) = 0;  // on JavaScript's thread
  void finish(napi_env env);
  std::string failure_;
  bool failed_ = false;
  std::vector<napi_ref> kept_;
  napi_deferred promise_ = nullptr;
  napi_async_work handle_ = nullptr;
};

}  // namespace kiln::node
