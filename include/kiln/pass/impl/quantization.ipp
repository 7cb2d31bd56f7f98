#include "kiln/pass/expand_quantization.hpp"
#include "kiln/pass/impl/pass_lists.hpp"

namespace kiln::detail {

const named_pass<program>* program_expansion(const program& p) {
  static constexpr named_pass<program> pass{"expand_quantization", [](program& p) { return expand_quantization(p); }};
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    if (has_quantization(p.module({k}))) return &pass;
  return nullptr;
}

}  // namespace kiln::detail
