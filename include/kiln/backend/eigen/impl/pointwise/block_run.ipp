#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/pointwise/tile_memory.hpp"
#include "kiln/backend/eigen/rows.hpp"

namespace kiln::eigen {

using kernels::block_advance;
using kernels::block_width;

namespace {

constexpr std::int64_t no_fetch = std::numeric_limits<std::int64_t>::min();

std::size_t block_bytes() { return static_cast<std::size_t>(kiln_eigen_isa()->blocks()->lanes[1]) * sizeof(float); }

std::size_t row_buffer_bytes(std::int64_t row, std::int64_t strip) {
  const auto elements = static_cast<std::size_t>(row) * static_cast<std::size_t>(std::max<std::int64_t>(1, strip));
  return padded_bytes(elements * sizeof(float)) + block_bytes();
}

bool is_aligned(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) % 64 == 0; }

float element_value(dtype t, const std::byte* at) {
  if (t == dtype::boolean) return from_bits<float>(*reinterpret_cast<const bool*>(at) ? 0xffff'ffffU : 0U);
  return visit_storage(t, [&]<class S>(type_tag<S>) { return convert_value<float>(*reinterpret_cast<const S*>(at)); });
}

}  // namespace

std::int64_t block_program::strip_for(std::int64_t row) const {
  const std::int64_t *lanes = kiln_eigen_isa()->blocks()->lanes, each = static_cast<std::int64_t>(sizeof(float));
  constexpr std::int64_t cache = 1 << 19;
  return row * lanes[1] * each * static_cast<std::int64_t>(row_buffers_.size()) <= cache ? lanes[1] : lanes[0];
}

std::int64_t block_program::row_stride(std::int64_t row) { return (row + 15) / 16 * 16; }

std::int64_t block_program::batch_for(std::int64_t row) const {
  // Bytes of rows that stay in L1 together with their results, their factors and the next rows: with twice as many,
  // norms of long rows took 1.4 times as long.
  constexpr std::int64_t cached = 1 << 13;
  return std::clamp<std::int64_t>(cached / (row * static_cast<std::int64_t>(sizeof(float))), 1,
                                  kiln_eigen_isa()->blocks()->lanes[1]);
}

std::size_t block_program::scratch_bytes(std::int64_t row, std::int64_t strip) const {
  const std::size_t block = block_bytes(), rows = row_buffer_bytes(row, strip);
  return 2 * padded_bytes(places_ * sizeof(std::byte*)) +
         padded_bytes((parameters_ + results_) * sizeof(std::int64_t)) +
         (1 + slots_ + per_row_places_.size() + parameters_ + results_) * block + row_buffers_.size() * rows + 64;
}

block_cursor::block_cursor(const block_program& p, std::byte* scratch, std::int64_t row, std::int64_t strip)
    : p_(p), machine_(*kiln_eigen_isa()->blocks()), block_(block_bytes()) {
  const auto carve = [&](std::size_t bytes) {
    std::byte* at = scratch;
    scratch += bytes;
    return at;
  };
  frame_.at = reinterpret_cast<std::byte**>(carve(padded_bytes(p.places_ * sizeof(std::byte*))));
  home_ = reinterpret_cast<std::byte**>(carve(padded_bytes(p.places_ * sizeof(std::byte*))));
  const std::size_t streams = p.parameters_ + p.results_;
  ahead_ = reinterpret_cast<std::int64_t*>(carve(padded_bytes(streams * sizeof(std::int64_t))));
  std::fill_n(ahead_, streams, no_fetch);
  frame_.spare = reinterpret_cast<float*>(carve(block_));
  frame_.varied = strip != 0;
  std::byte* const slots = carve(p.slots_ * block_);
  for (std::size_t k = 0; k < p.slot_places_.size(); ++k)
    frame_.at[k] = p.slot_places_[k] ? slots + (p.slot_places_[k] - 1U) * block_ : slots;
  for (std::uint16_t place : p.per_row_places_) frame_.at[place] = carve(block_);
  const auto* const constants = reinterpret_cast<const float*>(p.constants_.data());
  for (const auto& [place, at] : p.constant_places_)  // steps only read them
    frame_.at[place] = reinterpret_cast<std::byte*>(const_cast<float*>(constants + at));
  staging_ = carve((p.parameters_ + p.results_) * block_);
  const std::size_t rows = row_buffer_bytes(row, strip);
  for (std::uint16_t place : p.row_buffers_) home_[place] = carve(rows);
}

void block_cursor::start_folds() {
  for (const auto& level : p_.levels_)
    for (const auto& f : level.folds) f.steps->start(f.op.data(), reinterpret_cast<float*>(frame_.at[f.place]));
}

void block_cursor::run_per_row(int level, std::int64_t rows) {
  const std::size_t w = rows > machine_.lanes[0] ? 1 : 0;
  const auto& code = p_.levels_[static_cast<std::size_t>(level)].per_row[w];
  if (!code.empty()) machine_.run[w](code.data(), frame_, {});
}

void block_cursor::begin_row(const tile_program::stream* streams) {
  for (const auto& s : p_.per_row_parameters_)
    machine_.fill(reinterpret_cast<float*>(frame_.at[s.place]), element_value(s.type, streams[s.index].at));
  start_folds();
  wide_ran_ = false;
  run_per_row(0, 1);
}

// One block of `count` elements that starts at element `from` of the streams, through staging blocks. Row buffers
// are where their places say.
void block_cursor::staged(const tile_program::stream* streams, const block_program::level& l, block_width w,
                          std::int64_t from, std::int64_t count, const std::int64_t* offsets) {
  const auto address = [&](std::size_t stream, dtype t) {
    const std::int64_t elements = from * streams[stream].step + (offsets ? offsets[stream] : 0);
    return streams[stream].at + elements * static_cast<std::int64_t>(size_of(t));
  };
  const bool full = count == machine_.lanes[static_cast<std::size_t>(w)];
  for (const auto& s : l.loads) {
    std::byte* const at = address(s.index, s.type);
    std::byte*& place = frame_.at[s.place];
    if (full && streams[s.index].step == 1) {
      place = at;
      continue;
    }
    place = staging_ + s.index * block_;
    copy_elements(size_of(s.type), at, streams[s.index].step, place, 1, count);
    if (s.type == dtype::boolean && !full)  // what is no bool isn't read as one
      std::memset(place + count, 0, static_cast<std::size_t>(machine_.lanes[1] - count));
  }
  for (const auto& s : l.stores) {
    const std::size_t stream = p_.parameters_ + s.index;
    frame_.at[s.place] = full && streams[stream].step == 1 ? address(stream, s.type) : staging_ + stream * block_;
  }
  frame_.valid = count;
  const auto width = static_cast<std::size_t>(w);
  machine_.run[width](l.code[width].data(), frame_, {});
  for (const auto& s : l.stores) {
    const std::size_t stream = p_.parameters_ + s.index;
    if (frame_.at[s.place] == staging_ + stream * block_)
      copy_elements(size_of(s.type), frame_.at[s.place], 1, address(stream, s.type), streams[stream].step, count);
  }
}

block_cursor::fetch_list block_cursor::find_fetches(const tile_program::stream* streams, int level,
                                                    std::int64_t elements) const {
  fetch_list found;
  if (!fetches_) return found;
  const auto& levels = p_.levels_;
  const auto& own = levels[static_cast<std::size_t>(level)];
  const auto add = [&](const block_program::port& s, std::size_t stream, block_program::level::share of) {
    if (!fetches_rows_) of = {0, 8};
    if (ahead_[stream] == no_fetch || of.first == of.last || found.count == most_streams) return;
    const auto width = static_cast<std::int64_t>(size_of(s.type));
    found.each[found.count] = (of.last - of.first) * width;
    found.of[found.count++] = {streams[stream].at + ahead_[stream] + of.first * elements * width / 8, 0};
  };
  for (const auto& s : fetches_rows_ ? p_.full_parameters_ : own.loads) add(s, s.index, own.of_parameters);
  for (const auto& s : fetches_rows_ ? levels[levels.size() - 2].stores : own.stores)
    add(s, p_.parameters_ + s.index, own.of_results);
  return found;
}

void block_cursor::run_loop(const tile_program::stream* streams, int level, bool aligned_stores,
                            kernels::block_rows& over) {
  const auto& l = p_.levels_[static_cast<std::size_t>(level)];
  fetch_list fetches = find_fetches(streams, level, over.elements * std::max<std::int64_t>(1, over.rows));
  fetches.set(machine_.lanes[0]);
  over.fetches = fetches.of;
  over.fetch_count = fetches.count;
  const std::size_t variant = aligned_stores ? 1 : 0;
  l.loop[variant](l.code[1 + variant].data(), frame_, over);
}

void block_cursor::run(const tile_program::stream* streams, int level, std::int64_t at, std::int64_t n,
                       bool past_cache) {
  const auto& l = p_.levels_[static_cast<std::size_t>(level)];
  bool contiguous = true, aligned_stores = past_cache;
  for (std::uint16_t place : l.kept) frame_.at[place] = home_[place] + at * 4;
  for (const auto& s : l.loads) {
    const auto& stream = streams[s.index];
    contiguous = contiguous && stream.step == 1;
    frame_.at[s.place] = stream.at;
  }
  for (const auto& s : l.stores) {
    const auto& stream = streams[p_.parameters_ + s.index];
    contiguous = contiguous && stream.step == 1;
    frame_.at[s.place] = stream.at;
    aligned_stores = aligned_stores && is_aligned(stream.at);
  }
  wide_ran_ = wide_ran_ || n >= machine_.lanes[1];
  if (!contiguous) return run_uneven(streams, l, at, n);
  if (l.loop[0]) {
    kernels::block_rows over{n, 0, l.moves[1].data(), l.moves[1].size()};
    return run_loop(streams, level, aligned_stores, over);
  }
  fetch_list fetches = find_fetches(streams, level, n);
  const bool overlaps = may_overlap(streams, l);
  std::int64_t from = 0;
  for (const std::size_t w : {1U, 0U}) {
    const std::int64_t lanes = machine_.lanes[w];
    if (w == 0 && overlaps && last_block(streams, l, 1, from, n)) return;
    if (n - from < lanes) continue;
    fetches.set(lanes);
    const std::size_t variant = w == 1 && aligned_stores ? 2 : w;
    const std::int64_t blocks = (n - from) >> std::countr_zero(static_cast<std::uint64_t>(lanes));
    frame_.valid = lanes;
    machine_.run[w](l.code[variant].data(), frame_,
                    {blocks, l.moves[w].data(), l.moves[w].size(), fetches.of, fetches.count});
    from += blocks * lanes;
  }
  if (from == n || (overlaps && last_block(streams, l, 0, from, n))) return;
  for (std::uint16_t place : l.kept) frame_.at[place] = home_[place] + (at + from) * 4;
  staged(streams, l, block_width::narrow, from, n - from, nullptr);
}

void block_cursor::end_level(const tile_program::stream* streams, int level, std::int64_t row) {
  for (const auto& f : p_.levels_[static_cast<std::size_t>(level)].folds) {
    auto* const block = reinterpret_cast<float*>(frame_.at[f.place]);
    const std::size_t vectors = wide_ran_ ? static_cast<std::size_t>(machine_.lanes[1] / machine_.lanes[0]) : 1;
    if (row != 0) {
      f.steps->join(f.op.data(), block, vectors, row);
    } else {  // what nothing gives depends on the dtype
      f.op.table().finish(f.op.data(), f.type, block, 0);
      machine_.fill(block, block[0]);
    }
  }
  run_per_row(level + 1, 1);
  if (static_cast<std::size_t>(level) + 2 != p_.levels_.size()) return;
  for (const auto& s : p_.per_row_results_)
    scatter(s.type, frame_.at[s.place], streams[p_.parameters_ + s.index].at, 1, 1);
}

// One level of a strip: element by element of the rows, a block across them.
void block_cursor::strip_level(const tile_program::stream* streams, const block_program::level& l, std::int64_t count,
                               const row_loops& loops) {
  const std::size_t w = count == machine_.lanes[1] ? 1 : 0;
  const bool whole = count == machine_.lanes[w];
  const std::int64_t row = loops.row();
  block_advance moves[most_streams];
  std::size_t moved = 0;
  bool direct = whole && loops.folded.size() == 1 && l.loads.size() + l.stores.size() + l.kept.size() <= most_streams;
  const auto add = [&](std::uint16_t place, std::byte* first, std::int64_t bytes) {
    frame_.at[place] = first;
    if (moved < most_streams) moves[moved++] = {place, bytes};
  };
  for (std::uint16_t place : l.kept) add(place, home_[place], machine_.lanes[w] * 4);
  const auto add_stream = [&](const block_program::port& s, std::size_t stream) {
    direct = direct && streams[stream].step == 1;
    const std::int64_t step = loops.folded.size() == 1 ? loops.operand[stream].folded[0] : 0;
    add(s.place, streams[stream].at, step * static_cast<std::int64_t>(size_of(s.type)));
  };
  for (const auto& s : l.loads) add_stream(s, s.index);
  for (const auto& s : l.stores) add_stream(s, p_.parameters_ + s.index);
  if (direct) {
    frame_.valid = machine_.lanes[w];
    machine_.run[w](l.code[w].data(), frame_, {row, moves, moved});
    return;
  }
  ints at(loops.folded.size(), 0);
  std::int64_t offsets[most_streams];
  for (std::int64_t f = 0; f < row; ++f) {
    for (std::size_t k = 0; k < p_.parameters_ + p_.results_; ++k) {
      offsets[k] = 0;
      for (std::size_t d = 0; d < at.size(); ++d) offsets[k] += at[d] * loops.operand[k].folded[d];
    }
    for (std::uint16_t place : l.kept) frame_.at[place] = home_[place] + f * machine_.lanes[w] * 4;
    staged(streams, l, static_cast<block_width>(w), 0, count, offsets);
    next_index(at, loops.folded);
  }
}

void block_cursor::set_lanes(const block_program::port& s, const std::byte* from, std::int64_t step,
                             std::int64_t count) {
  auto* const lanes = reinterpret_cast<float*>(frame_.at[s.place]);
  machine_.fill(lanes, 0);
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = element_value(s.type, from + i * step);
}

void block_cursor::batch(const tile_program::stream* streams, const std::int64_t* rows, std::int64_t count,
                         std::int64_t row, bool past_cache) {
  for (const auto& s : p_.per_row_parameters_) set_lanes(s, streams[s.index].at, rows[s.index], count);
  run_per_row(0, count);
  for (std::size_t level = 0; level + 1 < p_.levels_.size(); ++level) {
    const block_program::level& l = p_.levels_[level];
    block_advance moves[most_streams];
    std::size_t moved = 0;
    bool aligned_stores = past_cache;
    const auto add = [&](std::uint16_t place, std::byte* first, std::int64_t bytes) {
      frame_.at[place] = first;
      moves[moved++] = {place, bytes};
    };
    for (std::uint16_t place : l.kept) add(place, home_[place], block_program::row_stride(row) * 4);
    for (const auto& s : l.loads) add(s.place, streams[s.index].at, rows[s.index]);
    for (const auto& s : l.stores) {
      const std::size_t stream = p_.parameters_ + s.index;
      add(s.place, streams[stream].at, rows[stream]);
      aligned_stores = aligned_stores && is_aligned(streams[stream].at) && rows[stream] % 64 == 0;
    }
    kernels::block_rows over{row, count, moves, moved};
    run_loop(streams, static_cast<int>(level), aligned_stores, over);
    run_per_row(static_cast<int>(level) + 1, count);
  }
  for (const auto& s : p_.per_row_results_) {
    const std::size_t stream = p_.parameters_ + s.index;
    scatter(s.type, frame_.at[s.place], streams[stream].at, rows[stream] / static_cast<std::int64_t>(size_of(s.type)),
            count);
  }
}

void block_cursor::strip(const tile_program::stream* streams, std::int64_t count, const row_loops& loops) {
  const auto floats = [&](std::uint16_t place) { return reinterpret_cast<float*>(frame_.at[place]); };
  for (const auto& s : p_.per_row_parameters_)
    set_lanes(s, streams[s.index].at, streams[s.index].step * static_cast<std::int64_t>(size_of(s.type)), count);
  start_folds();
  run_per_row(0, count);
  const std::int64_t row = loops.row();
  for (std::size_t level = 0; level + 1 < p_.levels_.size(); ++level) {
    const block_program::level& l = p_.levels_[level];
    strip_level(streams, l, count, loops);
    for (const auto& f : l.folds)
      if (row != 0)
        f.steps->finish(f.op.data(), floats(f.place), count, row);
      else  // what nothing gives depends on the dtype
        for (std::int64_t i = 0; i < count; ++i) f.op.table().finish(f.op.data(), f.type, floats(f.place) + i, 0);
    run_per_row(static_cast<int>(level) + 1, count);
  }
  for (const auto& s : p_.per_row_results_) {
    const auto& to = streams[p_.parameters_ + s.index];
    scatter(s.type, frame_.at[s.place], to.at, to.step, count);
  }
}

}  // namespace kiln::eigen
