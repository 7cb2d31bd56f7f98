#pragma once
#include <span>
#include <string>

#include "kiln/generate/impl/join_rows.hpp"
#include "kiln/op/nn/block_attention.hpp"

namespace kiln::language::detail {

struct page_plan;

/// The input of a joined program for a device: `op::block_attention`'s table of sequences.
inline constexpr std::string_view table_input = "kiln.table";

/// Words of a table's row before the addresses of blocks, for layers of at most that many key heads.
constexpr std::int64_t table_head(std::int64_t kv_heads) { return op::block_attention::counters + kv_heads; }

/// Makes the attentions of a joined program `op::block_attention`, which reads a table in place of the address of a
/// batch, and computes in the type that blocks are stored in. Sets the plan's `row_tokens` and `table_head`. A row's
/// tokens, times the heads that share keys, fit the target's `tile_rows` (`block_reader`). Where the
/// blocks' type is not the model's, the reason is returned and the program stays as it is.
std::string use_block_tables(program& p, std::span<const joined_layer> layers, std::int64_t tile_rows, page_plan& plan);

}  // namespace kiln::language::detail
