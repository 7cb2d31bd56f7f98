#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// The oracle: every op runs through its own reference computation, one instruction at a time, without fusion.
class reference_target final : public target {
 public:
  std::string_view name() const override { return "reference"; }
  bool fuses() const override { return false; }
  std::unique_ptr<kernel> make_kernel(const kernel_request&) const override { return nullptr; }
};

}  // namespace kiln
