#pragma once
#include "kiln/core/literal.hpp"
#include "kiln/generate/weights/weight_table.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::language::detail {

/// A matrix [rows, depth] of GGML's blocks in the form of `op::block_dequantize` along the rows, which loses nothing:
///
/// | blocks | numbers | scales | zero points |
/// |---|---|---|---|
/// | Q4_0 | 4 bits, blocks of 32 | f16, as stored | 8 |
/// | Q8_0 | i8, blocks of 32 | f16, as stored | 0 |
/// | Q4_K | 4 bits, blocks of 32 | f32: product of the two that are stored | f32 |
/// | Q5_K | u8, blocks of 32 | f32 | f32 |
/// | Q6_K | i8, blocks of 16 | f32 | 0 |
struct stored_blocks {
  op::block_dequantize op;
  literal numbers, scales, zeros;
  bool has_zeros = false;
};

/// The rows that a file has in another order: in heads of `depth` rows, row 2 i + s of a head is kept as row
/// s * depth / 2 + i. 0: rows stay where they are.
struct row_order {
  std::int64_t depth = 0;
  std::int64_t source_of(std::int64_t row) const {
    if (depth == 0) return row;
    const std::int64_t in_head = row % depth, half = depth / 2;
    return row - in_head + in_head % half * 2 + in_head / half;
  }
};

/// Repacks blocks by the threads of a pool, and gives the pages of a mapped file back.
stored_blocks repack(const weight_entry& e, row_order order, thread_pool& pool);

/// A matrix's rows in order, copied.
buffer rows_in_order(const weight_entry& e, row_order order);

/// A plain tensor with its rows in order, which shares the file's memory where they stay.
literal plain_literal(const weight_entry& e, row_order order);

/// The numbers of a small tensor of floats; empty where it is no such one.
std::vector<float> plain_numbers(const weight_entry& e);

}  // namespace kiln::language::detail
