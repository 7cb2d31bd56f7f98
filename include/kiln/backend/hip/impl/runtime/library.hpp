#pragma once
#include <dlfcn.h>

#include <initializer_list>
#include <string>

#include "kiln/backend/hip/runtime.hpp"

namespace kiln::hip {

/// A shared library, the first of some names that opens. It stays open: drivers do not survive being closed.
class library {
 public:
  explicit library(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (!handle_) continue;
      name_ = name;
      return;
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  void* symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }
  template <class F> bool find(F*& call, const char* name) const {
    call = reinterpret_cast<F*>(symbol(name));
    return call != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
};

std::unique_ptr<runtime_calls> open_amd_runtime();
std::unique_ptr<runtime_calls> open_nvidia_runtime();
std::unique_ptr<compiler_calls> open_amd_compiler();
std::unique_ptr<compiler_calls> open_nvidia_compiler();

}  // namespace kiln::hip
