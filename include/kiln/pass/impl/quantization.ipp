#include "kiln/pass/expand_quantization.hpp"
#include "kiln/pass/impl/pass_lists.hpp"

namespace kiln::detail {

const named_pass<program>& program_expansion() {
  static constexpr named_pass<program> pass{"expand_quantization", [](program& p) { return expand_quantization(p); }};
  return pass;
}

}  // namespace kiln::detail
