#pragma once
#include "kiln/static_program/kernel/attention.hpp"
#include "kiln/static_program/plan/records.hpp"

namespace kiln::aot {

/// How attention of [batch, heads, positions, elements] runs.
constexpr kernels::attention_extents plan_attention(const place& q, const place& k, const place& v, const place& out,
                                                    bool causal) {
  const auto steps = [](const place& p) {
    return kernels::attention_steps{p.strides[0], p.strides[1], p.strides[2], p.strides[3]};
  };
  kernels::attention_extents e;
  e.batch = q.lens[0], e.heads = q.lens[1], e.kv_heads = k.lens[1];
  e.queries = q.lens[2], e.keys = k.lens[2], e.depth = q.lens[3], e.width = v.lens[3];
  e.q = steps(q), e.k = steps(k), e.v = steps(v), e.out = steps(out);
  e.causal = causal;
  return e;
}

}  // namespace kiln::aot
