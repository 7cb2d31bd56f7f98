#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kiln/interface/onnxruntime/node/napi.hpp"

namespace kiln::node {

/// A value that is not collected while this lives, on JavaScript's thread.
class kept_value {
 public:
  kept_value(napi_env env, napi_value v);
  ~kept_value();
  kept_value(kept_value&& other) noexcept : env_(other.env_), reference_(std::exchange(other.reference_, nullptr)) {}
  kept_value& operator=(kept_value&&) = delete;

 private:
  napi_env env_;
  napi_ref reference_ = nullptr;
};

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
  void run();
  void fail(std::string reason);
  void finish(napi_env env);
  std::string failure_;
  bool failed_ = false;
  std::vector<kept_value> kept_;
  napi_deferred promise_ = nullptr;
  napi_async_work handle_ = nullptr;
};

}  // namespace kiln::node
