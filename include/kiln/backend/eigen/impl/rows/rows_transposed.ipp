#include <algorithm>

#include "kiln/backend/eigen/impl/pointwise/tile_memory.hpp"
#include "kiln/backend/eigen/impl/rows/row_walk.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

constexpr std::int64_t tile_columns = 512, line = 64;

bool is_transposed(const tile_program& p, const row_loops& loops, std::size_t operand, std::size_t dim) {
  const auto& o = loops.operand[operand];
  return operand < p.parameters() && o.kept[dim] == 1 && o.folded[0] != 0 && o.folded[0] != 1;
}

// Its elements are apart along a row, which repeats along the dim: a tile copies it once.
bool is_repeated(const tile_program& p, const row_loops& loops, std::size_t operand, std::size_t dim) {
  const auto& o = loops.operand[operand];
  return operand < p.parameters() && o.kept[dim] == 0 && o.folded[0] != 0 && o.folded[0] != 1;
}

std::size_t row_bytes(const transposed_operands& t, dtype type) {
  return padded_bytes(static_cast<std::size_t>(t.columns) * size_of(type));
}
std::size_t tile_bytes(const transposed_operands& t, dtype type) {
  return padded_bytes(static_cast<std::size_t>(t.rows * t.columns) * size_of(type));
}

}  // namespace

std::optional<transposed_operands> find_transposed(const tile_program& p, const row_loops& loops) {
  constexpr std::int64_t shortest = 16, least = 4096;
  if (p.reduces() || loops.folded.size() != 1 || loops.row() < shortest || loops.rows() * loops.row() < least)
    return {};
  for (std::size_t k = 0; k < p.parameters(); ++k)
    for (std::size_t d = loops.kept.size(); d-- > 0;)
      if (loops.kept[d] >= shortest && is_transposed(p, loops, k, d))
        return transposed_operands{d, std::min(loops.kept[d], line / std::min<std::int64_t>(4, p.width())),
                                   std::min(loops.row(), tile_columns)};
  return {};
}

std::size_t transposed_scratch_bytes(const tile_program& p, const row_loops& loops, const transposed_operands& t) {
  std::size_t bytes = p.scratch_bytes(t.columns);
  for (std::size_t k = 0; k < p.parameters(); ++k)
    if (is_transposed(p, loops, k, t.dim))
      bytes += tile_bytes(t, dtype::f64);
    else if (is_repeated(p, loops, k, t.dim))
      bytes += row_bytes(t, dtype::f64);
  return bytes;
}

void run_transposed(const tile_program& p, const launch& l, const row_loops& loops, const transposed_operands& t) {
  const std::int64_t along = loops.kept[t.dim], row_tiles = (along + t.rows - 1) / t.rows;
  const std::int64_t column_tiles = (loops.row() + t.columns - 1) / t.columns;
  const std::size_t each = transposed_scratch_bytes(p, loops, t), count = loops.operand.size();
  ints outer = loops.kept;
  outer.erase(t.dim);
  const auto body = [&](std::int64_t task, unsigned worker) {
    // along the dim first: the lines of such operands are shared by tiles that follow each other
    const std::int64_t row = task % row_tiles * t.rows, column = task / row_tiles % column_tiles * t.columns;
    const std::int64_t rows = std::min(t.rows, along - row), columns = std::min(t.columns, loops.row() - column);
    std::byte* scratch = l.scratch.data() + worker * each;
    stack_list<tensor, row_loops::most_operands> operands;
    for (std::size_t k = 0; k < count; ++k) {
      const auto& o = loops.operand[k];
      std::int64_t offset = row * o.kept[t.dim] + column * o.folded[0], rest = task / column_tiles / row_tiles;
      for (std::size_t d = loops.kept.size(); d-- > 0;) {
        if (d == t.dim) continue;
        offset += rest % loops.kept[d] * o.kept[d];
        rest /= loops.kept[d];
      }
      const tensor& whole = operand_of(l, k);
      const tensor part{whole.data + offset * static_cast<std::int64_t>(size_of(whole.type)),
                        whole.type,
                        {rows, columns},
                        {o.kept[t.dim], o.folded[0]}};
      if (is_repeated(p, loops, k, t.dim)) {
        const tensor one{scratch, whole.type, {columns}, {1}};
        copy_tensor({part.data, whole.type, {columns}, {o.folded[0]}}, one, nullptr);
        operands.push_back({scratch, whole.type, {rows, columns}, {0, 1}});
        scratch += row_bytes(t, whole.type);
        continue;
      }
      if (!is_transposed(p, loops, k, t.dim)) {
        operands.push_back(part);
        continue;
      }
      operands.push_back({scratch, whole.type, {rows, columns}, {t.columns, 1}});
      copy_tensor(part, operands[k], nullptr);
      scratch += tile_bytes(t, whole.type);
    }
    launch piece = l;
    piece.in = {operands.begin(), l.in.size()};
    piece.out = {operands.begin() + l.in.size(), l.out.size()};
    row_loops tile;
    tile.kept = {rows};
    tile.folded = {columns};
    for (const tensor& o : operands) tile.operand.push_back({{o.strides[0]}, {o.strides[1]}});
    row_walk(p, piece, tile, scratch).run(0, rows, 0, columns);
  };
  const std::int64_t tasks = product(outer) * row_tiles * column_tiles;
  if (tasks == 1)
    body(0, 0);
  else
    l.pool->parallel_for(tasks, body);
}

}  // namespace kiln::eigen
