#pragma once
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/host.hpp"
#include "kiln/interface/onnxruntime/shim/abi.hpp"

namespace kiln::onnxruntime {

/// ONNX Runtime's environment, of which a process has one, counted: the references that the program holds, and the
/// plugins that kiln registered in it. They leave it before the program's last reference does.
class environment_of_program {
 public:
  explicit environment_of_program(const OrtApiBase& base) : base_(base), real_(base.GetApi(1)) {}

  /// A reference that the program asks for, made by `make`; `level`, where it is known, is the level of its log lines.
  OrtStatus* create(const std::function<OrtStatus*(OrtEnv**)>& make, OrtEnv** out, std::optional<severity> level);
  /// Gives one of the program's references back.
  void release(OrtEnv* env);
  /// Appends the devices of the provider `name` to a session's options, registering the plugin if nobody did. Where the
  /// program has no environment yet, one is made, and kept until it has.
  void append(OrtSessionOptions* options, const std::string& name, const char* const* keys, const char* const* values,
              std::size_t count);

 private:
  std::vector<const OrtEpDevice*> devices(const std::string& name) const;
  const OrtApiBase& base_;
  const function_table real_;  // what it calls of this table has stood there since the version that brought it
  std::optional<host> host_;
  std::mutex lock_;
  OrtEnv* env_ = nullptr;
  std::size_t held_ = 0;  // references of the program
  bool own_ = false;      // one reference is kiln's
  std::vector<std::string> registered_;
};

}  // namespace kiln::onnxruntime
