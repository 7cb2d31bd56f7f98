#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/pointwise/tile_memory.hpp"

namespace kiln::eigen {

using kernels::block_advance;
using kernels::block_width;

// Whether a level may compute some elements twice: no fold counts them, and no result is where an operand was.
bool block_cursor::may_overlap(const tile_program::stream* streams, const block_program::level& l) const {
  if (!l.folds.empty() || !l.kept.empty()) return false;
  for (const auto& s : l.stores)
    for (const auto& load : l.loads)
      if (streams[p_.parameters_ + s.index].at == streams[load.index].at) return false;
  return true;
}

// The rest of n elements from `from` on by the block of width w that ends with them. False, and nothing done, where
// they are none, too many, or fill such blocks; streams are contiguous or repeated.
bool block_cursor::last_block(const tile_program::stream* streams, const block_program::level& l, std::size_t w,
                              std::int64_t from, std::int64_t n) {
  const std::int64_t lanes = machine_.lanes[w], rest = n - from;
  if (n < lanes || rest >= lanes || rest <= (w == 1 ? machine_.lanes[0] : 0)) return false;
  const auto place = [&](const block_program::port& s, const tile_program::stream& stream) {
    if (stream.step != 0) frame_.at[s.place] = stream.at + (n - lanes) * static_cast<std::int64_t>(size_of(s.type));
  };
  for (const auto& s : l.loads) place(s, streams[s.index]);
  for (const auto& s : l.stores) place(s, streams[p_.parameters_ + s.index]);
  frame_.valid = lanes;
  machine_.run[w](l.code[w].data(), frame_, {});
  return true;
}

// Where some operands are repeated or strided.
void block_cursor::run_uneven(const tile_program::stream* streams, const block_program::level& l, std::int64_t at,
                              std::int64_t n) {
  block_advance moves[2][most_streams];
  std::size_t count = 0;
  bool direct = l.loads.size() + l.stores.size() + l.kept.size() <= most_streams;
  const auto add = [&](std::uint16_t place, std::size_t width) {
    if (count == most_streams) return;
    for (std::size_t w = 0; w < 2; ++w) moves[w][count] = {place, machine_.lanes[w] * static_cast<std::int64_t>(width)};
    ++count;
  };
  for (std::uint16_t place : l.kept) add(place, 4);
  for (const auto& s : l.loads) {
    const auto& stream = streams[s.index];
    if (stream.step == 1) {
      add(s.place, size_of(s.type));
    } else if (stream.step == 0) {
      std::byte* const block = staging_ + s.index * block_;
      if (s.type == dtype::f32)
        machine_.fill(reinterpret_cast<float*>(block), *reinterpret_cast<const float*>(stream.at));
      else
        copy_elements(size_of(s.type), stream.at, 0, block, 1, machine_.lanes[1]);
      frame_.at[s.place] = block;
    } else {
      direct = false;
    }
  }
  for (const auto& s : l.stores) {
    direct = direct && streams[p_.parameters_ + s.index].step == 1;
    add(s.place, size_of(s.type));
  }
  const bool overlaps = direct && may_overlap(streams, l);
  fetch_list fetches = find_fetches(streams, static_cast<int>(&l - p_.levels_.data()), n);
  std::int64_t from = 0;
  for (const std::size_t w : {1U, 0U}) {
    const std::int64_t lanes = machine_.lanes[w];
    if (w == 0 && overlaps && last_block(streams, l, 1, from, n)) return;
    if (n - from < lanes) continue;
    const std::int64_t blocks = (n - from) / lanes;
    frame_.valid = lanes;
    if (direct) {
      fetches.set(lanes);
      machine_.run[w](l.code[w].data(), frame_, {blocks, moves[w], count, fetches.of, fetches.count});
    } else {
      for (std::int64_t b = 0; b < blocks; ++b) {
        for (std::uint16_t place : l.kept) frame_.at[place] = home_[place] + (at + from + b * lanes) * 4;
        staged(streams, l, static_cast<block_width>(w), from + b * lanes, lanes, nullptr);
      }
    }
    from += blocks * lanes;
  }
  if (from == n || (overlaps && last_block(streams, l, 0, from, n))) return;
  for (std::uint16_t place : l.kept) frame_.at[place] = home_[place] + (at + from) * 4;
  staged(streams, l, block_width::narrow, from, n - from, nullptr);
}

bool block_program::folds_join() const {
  for (const level& l : levels_)
    for (const fold& f : l.folds)
      if (f.steps->prepares) return false;
  return true;
}

void block_cursor::join_folds(std::span<block_cursor* const> pieces, int level) {
  const block_program::level& l = pieces[0]->p_.levels_[static_cast<std::size_t>(level)];
  const isa_table& isa = *kiln_eigen_isa();
  for (const auto& f : l.folds) {
    const auto block = [&](const block_cursor* c) { return reinterpret_cast<float*>(c->frame_.at[f.place]); };
    const fold_function fold = isa.fold(f.op.table().index);
    float total = 0;
    f.op.table().start(f.op.data(), dtype::f32, reinterpret_cast<std::byte*>(&total));
    for (const block_cursor* c : pieces) fold(f.op.data(), block(c), pieces[0]->machine_.lanes[1], &total);
    for (block_cursor* c : pieces) {
      f.steps->start(f.op.data(), block(c));
      block(c)[0] = total;
    }
  }
}

}  // namespace kiln::eigen
