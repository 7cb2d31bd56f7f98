#pragma once
#include "kiln/lower/row_body.hpp"
#include "kiln/static_program/plan/records.hpp"

namespace kiln::aot {

constexpr std::optional<lower::row_op> row_op_of(const node& n) {
  if (n.op == node::parameter) return lower::row_op::parameter;
  return n.op == node::literal ? std::optional(lower::row_op::literal) : lower::row_op_of(n.kind);
}
constexpr const ints& lens_of(const node& n) { return n.lens; }

/// Bytes of a row buffer of `elements` elements, of whichever type.
constexpr std::int64_t row_buffer_bytes(std::int64_t elements) { return (elements * 8 + 63) / 64 * 64; }

}  // namespace kiln::aot
