#include "kiln/pass/expand_block_dequantize.hpp"

#include "kiln/graph/module.hpp"

namespace kiln {

std::optional<program> without_block_dequantize(const program& p,
                                                small_vector<std::uint32_t> (*kept)(const module_graph&)) {
  bool found = false;
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
      const auto& ins = p.module({k})[i];
      found = found || (ins.kind == instruction_kind::op && ins.op.is<op::block_dequantize>());
    }
  if (!found) return std::nullopt;
  program out = p;
  run_on_modules<detail::block_expander>("expand_block_dequantize", out, true, kept);
  return out;
}

}  // namespace kiln
