#pragma once
#include "kiln/static_program/plan/conv_nhwc.hpp"
#include "kiln/static_program/plan/generic.hpp"
#include "kiln/static_program/plan/row_records.hpp"
#include "kiln/static_program/plan/winograd_nchw.hpp"

namespace kiln::aot {

/// The bytes of memory of its own that a step takes: `op` is the product of its body, or what it is alone.
template <class Operation>
constexpr std::int64_t scratch_bytes(step_kind kind, std::span<const node> nodes, const Operation& op,
                                     std::span<const place> in, std::span<const place> results) {
  if (kind == step_kind::reduce) {
    const auto rows = lower::find_row_body(nodes, std::span<const std::uint32_t>()).value();
    return rows.buffers * row_buffer_bytes(rows.row_elements());
  }
  if (kind == step_kind::other) return generic_bytes(op, in, results);
  if (kind == step_kind::pointwise || kind == step_kind::copy) return 0;
  const place& out = results[0];
  const lower::contraction_split split = split_of(nodes);
  const std::size_t left = split.operands[0], right = split.operands[1];
  if (kind == step_kind::product) {
    const shape operands[] = {{in[left].type, to_dims(in[left].lens)}, {in[right].type, to_dims(in[right].lens)}};
    return product_elements(op.maps(operands).value(), nodes, in, out) *
           static_cast<std::int64_t>(size_of(in[left].type));
  }
  const auto* conv = op.template get_if<op::convolution>();
  if (kind == step_kind::winograd_nchw) return plan_winograd_nchw(*conv, in[left], in[right], out).memory() * 4;
  const kernels::window_extents windows =
      conv ? plan_windows(*conv, in[left], in[right], out) : plan_rows(nodes, in, out);
  if (kind == step_kind::windows) return windows.memory() * 4;
  return kind == step_kind::winograd_nhwc ? plan_winograd_nhwc(windows).memory() * 4 : 0;
}

}  // namespace kiln::aot
