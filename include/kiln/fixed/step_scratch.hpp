#pragma once
#include "kiln/fixed/filtering_plan.hpp"
#include "kiln/fixed/generic_plan.hpp"
#include "kiln/fixed/image_plan.hpp"
#include "kiln/fixed/reduce_plan.hpp"

namespace kiln::fixed {

/// The bytes of memory of its own that a step takes: `op` is the product of its body, or what it is alone.
template <class Operation>
constexpr std::int64_t scratch_bytes(step_kind kind, std::span<const node> nodes, const Operation& op,
                                     std::span<const place> in, std::span<const place> results) {
  if (kind == step_kind::reduce) {
    const reduce_plan p = plan_reduce(nodes);
    return p.slots * ((p.row_elements() * 8 + 63) / 64 * 64);
  }
  if (kind == step_kind::other) return generic_bytes(op, in, results);
  if (kind == step_kind::pointwise || kind == step_kind::copy) return 0;
  const place& out = results[0];
  const auto [left, right] = product_operands(nodes);
  if (kind == step_kind::product) {
    const shape operands[] = {{in[left].type, to_dims(in[left].lens)}, {in[right].type, to_dims(in[right].lens)}};
    return product_elements(op.maps(operands).value(), nodes, in, out) *
           static_cast<std::int64_t>(size_of(in[left].type));
  }
  const auto* conv = op.template get_if<op::convolution>();
  if (kind == step_kind::filtering) return plan_filtering(*conv, in[left], in[right], out).memory() * 4;
  const kernels::window_extents windows =
      conv ? plan_windows(*conv, in[left], in[right], out) : plan_rows(nodes, in, out);
  if (kind == step_kind::windows) return windows.memory() * 4;
  return kind == step_kind::image_filtering ? plan_image_filtering(windows).memory() * 4 : 0;
}

}  // namespace kiln::fixed
