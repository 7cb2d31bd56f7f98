#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "kiln/interface/onnxruntime/shim/environment.hpp"
#include "kiln/interface/onnxruntime/shim/stock.hpp"

namespace kiln::onnxruntime {

/// The provider that programs mean by a name of kiln's or of MIGraphX's, null where a name is none of theirs.
const char* provider_of(std::string_view name);

/// What stands in front of a stock ONNX Runtime: its own functions, but for those that reach kiln's plugin.
class shim {
 public:
  /// The one of the process, made when it is first asked for; it is never destroyed.
  static shim& instance();

  /// The table of functions of a version, null where ONNX Runtime has no such version. Where no ONNX Runtime was found,
  /// every function of the table that returns a status returns one that says so.
  const void* const* api(std::uint32_t version) noexcept;
  const char* version() const;
  /// A function that the stock library exports, null where it does not.
  void* exported(const char* name) const;

  /// Appends kiln's provider to a session's options.
  OrtStatus* append(OrtSessionOptions* options, std::string_view provider, const char* const* keys,
                    const char* const* values, std::size_t count) noexcept;
  OrtStatus* append(OrtSessionOptions* options, const OrtMIGraphXProviderOptions* given) noexcept;
  OrtStatus* append(OrtSessionOptions* options, int device) noexcept;
  OrtStatus* status(status_code code, const std::string& message) const;
  /// Runs a body; what it throws, and a missing ONNX Runtime, become the status.
  OrtStatus* guarded(const std::function<void()>& body) const noexcept;

  environment_of_program& environment() { return *environment_; }
  /// The stock library's own functions; there only where one was found.
  const function_table& real() const { return *real_; }

 private:
  shim();
  stock stock_;
  std::optional<function_table> real_;
  std::optional<environment_of_program> environment_;
  std::mutex lock_;
  std::map<const void*, std::unique_ptr<const void*[]>> tables_;  // by the table that was copied
};

}  // namespace kiln::onnxruntime
