#pragma once
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

namespace kiln::hip {

/// A contraction with its epilogue as a pointwise body; empty where kernels don't compute that.
inline std::optional<fused_contraction> with_epilogue(lower::contraction_body<module_graph> body) {
  fused_contraction out{std::move(body)};
  if (!out.body.has_epilogue()) return out;
  out.epilogue = row_program::make(out.body.epilogue);
  if (!out.epilogue || out.epilogue->reduces || out.epilogue->values[out.epilogue->parameters[0]].index != 0)
    return std::nullopt;
  return out;
}

}  // namespace kiln::hip
