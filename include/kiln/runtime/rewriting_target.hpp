#pragma once
#include "kiln/pass/target_passes.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// A target that has programs written in the forms its kernels have: `compile` runs its passes before the others in
/// each round of simplification.
class rewriting_target : public target {
 public:
  virtual std::span<const named_pass<program>> passes() const = 0;
};

/// The passes of a target; none where it has no forms of its own.
inline std::span<const named_pass<program>> passes_of(const target& t) {
  const auto* own = dynamic_cast<const rewriting_target*>(&t);
  return own ? own->passes() : std::span<const named_pass<program>>{};
}

}  // namespace kiln
