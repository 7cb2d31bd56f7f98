#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"
#include "kiln/backend/hip/impl/gemm/with_epilogue.hpp"
#include "kiln/backend/hip/lower.hpp"

namespace kiln::hip {

std::size_t alignment_after(std::size_t aligned, std::size_t bytes, std::span<const std::int64_t> steps) {
  for (const std::int64_t s : steps)
    while (static_cast<std::size_t>(std::abs(s)) * bytes % aligned != 0) aligned /= 2;
  return aligned;
}

std::int64_t take_batch(gemm_problem& p, loop_nest& outer, std::vector<std::array<std::int64_t, 2>>& inner,
                        std::int64_t most) {
  for (std::size_t d = 2; d-- > 0 && !outer.extent.empty();) {
    const batch_parts parts(outer.extent.back(), most / p.batch1);
    if (parts.each <= 1 && outer.extent.back() > 1) break;
    (d == 0 ? p.batch0 : p.batch1) = parts.each;
    for (std::size_t k = 0; k < inner.size(); ++k) {
      std::vector<std::int64_t>& step = outer.step[k];
      inner[k][d] = step.back();
      if (parts.count == 1)
        step.pop_back();
      else
        step.back() *= parts.each;
    }
    if (parts.count > 1) {
      outer.extent.back() = parts.count;
      return parts.last * (d == 0 ? p.batch1 : 1);
    }
    outer.extent.pop_back();
  }
  return 0;
}

std::optional<fused_contraction> read_contraction(const kernel_request& r) {
  auto body = lower::split_contraction(r.whole, r.instruction);
  if (!body && r.instruction.op.is<op::deconvolution>()) body.emplace().op = r.instruction.op;
  if (!body || r.instruction.results.size() != 1) return std::nullopt;
  if (!body->op.info().types.contains(r.inputs[body->operands[0]].type)) return std::nullopt;
  return with_epilogue(std::move(*body));
}

}  // namespace kiln::hip
