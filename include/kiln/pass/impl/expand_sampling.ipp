#include "kiln/pass/expand_sampling.hpp"

#include "kiln/graph/module.hpp"

namespace kiln {

std::optional<program> without_sampling(const program& p) {
  bool found = false;
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
      const auto& ins = p.module({k})[i];
      found =
          found || (ins.kind == instruction_kind::op && (ins.op.is<op::resample>() || ins.op.is<op::grid_sample>()));
    }
  if (!found) return std::nullopt;
  program out = p;
  expand_sampling(out);
  return out;
}

}  // namespace kiln
