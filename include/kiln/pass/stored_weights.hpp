#pragma once
#include "kiln/graph/module.hpp"
#include "kiln/op/linear/dot.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/pass/fusion_group.hpp"

namespace kiln {

/// The right operand of a matrix product as numbers stored in blocks along its depth, seen through views.
struct stored_weights {
  op::block_dequantize op;
  small_vector<value_id> operands;           ///< data, scales and perhaps zero points
  small_vector<std::uint32_t> instructions;  ///< the views, from the product on, and then the op
  std::int64_t depth = 0, columns = 0;
  bool depth_last = false;  ///< whether the depth is the last dim of the numbers, else the first of two
  /// Operands are [columns, blocks, numbers of a block] or [columns, blocks, 1] rather than of two dims.
  bool in_blocks = false;
  /// So they are, and the matrix has of each 32 numbers of 4 bits those at even places first, and then the others.
  bool split_nibbles = false;
};

/// Bits of one number of such weights.
constexpr std::int64_t stored_bits(const op::block_dequantize& op, dtype data) {
  return op.bits == 8 ? bits_of(data) : op.bits;
}

namespace detail {

/// Whether elements lie as [columns, blocks, 2, 16] where the last two dims of [columns, blocks, 32] are pairs of
/// adjacent ones.
constexpr bool lies_split(const layout& at, const dims& numbers) {
  return at.lens == dims{numbers[0], numbers[1], 2, 16} && at.offset == dimension(0) &&
         at.strides == dims{numbers[1] * 32, 32, 1, 2};
}

}  // namespace detail

/// What `rhs` is if it is one such matrix of type `t`, the same for the whole batch, whose blocks are whole 32-bit
/// words.
template <class Module>
constexpr std::optional<stored_weights> find_stored_weights(const Module& m, value_id rhs, dtype t = dtype::f32) {
  stored_weights out;
  const shape& matrix = m.shape_of(rhs);
  const std::size_t rank = matrix.rank();
  if (rank < 2 || matrix.type != t) return std::nullopt;
  value_id v = rhs;
  for (; is_kind(m, v.instruction, op_kind::view); v = m.producer(v).inputs[0]) {
    if (out.instructions.size() == 16) return std::nullopt;
    out.instructions.push_back(v.instruction);
  }
  const auto& made = m.producer(v);
  const auto* stored = made.kind == instruction_kind::op ? made.op.template get_if<op::block_dequantize>() : nullptr;
  const shape& numbers = m.shape_of(v);
  if (!stored || (numbers.rank() != 2 && numbers.rank() != 3) || !numbers.is_constant()) return std::nullopt;
  dims lens = numbers.lens;
  std::int64_t along = normal_axis(stored->axis, lens.size());
  if (lens.size() == 3) {  // blocks are a dim of their own
    if (along != 2 || !(lens[2] == dimension(stored->block)) || made.inputs.size() != 2) return std::nullopt;
    const dimension room = m.shape_of(made.inputs[0]).lens[2] * dimension(fields_per_byte(stored->bits));
    if (!(room == lens[2])) return std::nullopt;  // `extent` leaves some of each block's bytes out
    lens = {lens[0], lens[1] * lens[2]}, along = 1;
    out.in_blocks = true;
  }
  layout at = layout::standard(numbers.lens);
  for (std::size_t k = out.instructions.size(); k-- > 0;) {
    const auto next = m[out.instructions[k]].op.map(at);
    if (next) {
      at = *next;
      continue;
    }
    out.split_nibbles = out.in_blocks && stored->bits == 4 && stored->block == 32 &&
                        m[out.instructions[k]].results[0].lens == lens && detail::lies_split(at, numbers.lens);
    if (!out.split_nibbles) return std::nullopt;
    at = layout::standard(lens);
  }
  for (std::size_t d = 0; d + 2 < rank; ++d)
    if (!(at.lens[d] == dimension(1)) && !(at.strides[d] == dimension(0))) return std::nullopt;
  const auto is = [&](std::size_t d, std::size_t of) {
    return at.lens[rank - 2 + d] == lens[of] &&
           (at.lens[rank - 2 + d] == dimension(1) || at.strides[rank - 2 + d] == (of == 1 ? dimension(1) : lens[1]));
  };
  const auto axis = static_cast<std::size_t>(along);
  if (!(at.offset == dimension(0)) || !is(0, axis) || !is(1, 1 - axis)) return std::nullopt;
  out.op = *stored;
  for (const value_id i : made.inputs) out.operands.push_back(i);
  out.instructions.push_back(v.instruction);
  out.depth_last = axis == 1;
  out.depth = lens[axis].value(), out.columns = lens[1 - axis].value();
  if (stored->block * stored_bits(*stored, m.shape_of(out.operands[0]).type) % 32 != 0) return std::nullopt;
  return out;
}

}  // namespace kiln
