#pragma once
#include "kiln/pass/target_passes.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// A target that has programs written in the forms its kernels have.
class rewriting_target : public target {
 public:
  virtual target_passes passes() const = 0;
};

/// The passes of a target; none where it has no forms of its own.
inline target_passes passes_of(const target& t) {
  const auto* own = dynamic_cast<const rewriting_target*>(&t);
  return own ? own->passes() : target_passes();
}

}  // namespace kiln
