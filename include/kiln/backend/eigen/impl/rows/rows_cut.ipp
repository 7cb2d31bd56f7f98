#include <algorithm>
#include <new>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/pointwise/tile_memory.hpp"
#include "kiln/backend/eigen/impl/rows/row_walk.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/runtime/step_team.hpp"

namespace kiln::eigen {
namespace {

constexpr unsigned most_pieces = 64;
constexpr std::size_t cursor_bytes = padded_bytes(sizeof(block_cursor));

// Whether an operand's elements are one step apart through all folded dims; a factor of each channel in a row of an
// image's channels and pixels is not.
bool follows(const row_loops& loops, std::size_t k) {
  const ints& steps = loops.operand[k].folded;
  for (std::size_t d = 1; d < steps.size(); ++d)
    if (steps[d - 1] != steps[d] * loops.folded[d]) return false;
  return true;
}

// Rows in pieces of whole blocks, the last one of a row aside. Some rows are a group, as many as are still in the
// threads' caches when a level reads them again. Each piece of a group has a cursor, streams and row buffers in
// scratch, and a tile of some elements of each operand that does not follow the row, of which a level writes out (or
// takes from there) so many at a time.
struct pieces {
  std::int64_t piece, of_row, group, tile_elements;
  std::size_t tiles = 0;  // one of each operand that does not follow the row
  std::size_t bytes;

  pieces(const tile_program& p, const row_loops& loops, unsigned threads) {
    constexpr std::int64_t unit = 256, least = 8192, cached = 1 << 20, most = 2048;
    const std::int64_t wanted = std::min(threads, most_pieces), row = loops.row(), inner = loops.folded.back();
    piece = kernels::round_up(std::max(kernels::ceil_div(row, wanted), least), unit);
    of_row = kernels::ceil_div(row, piece);
    tile_elements = inner < most ? most / inner * inner : most;
    for (std::size_t k = 0; k < loops.operand.size(); ++k) tiles += !follows(loops, k);
    bytes = cursor_bytes + 2 * streams_bytes + tiles * tile_bytes() + padded_bytes(p.blocks()->scratch_bytes(piece, 0));
    std::int64_t of_piece = static_cast<std::int64_t>(bytes);
    for (const auto& o : loops.operand)
      of_piece += o.folded[0] == 0 ? 0 : piece * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t each = kernels::ceil_div(threads, of_row);  // rows that keep all threads busy
    group = std::min(loops.rows(), std::max<std::int64_t>(1, cached * threads / (of_piece * of_row) / each) * each);
  }
  std::size_t tile_bytes() const {
    constexpr std::size_t slack = 64;  // what repeats an element may write past the last one
    return padded_bytes(static_cast<std::size_t>(tile_elements) * sizeof(double) + slack);
  }
};

// Calls copy(place, step, done, n) for stretches of the elements [at, at + count) of a row: n of them from `place` on,
// one `step` apart, after `done` others.
template <class Copy>
void each_stretch(const row_loops& loops, const ints& steps, std::int64_t at, std::int64_t count, const Copy& copy) {
  const std::int64_t inner = loops.folded.back();
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t within = (at + done) % inner, some = std::min(inner - within, count - done);
    std::int64_t place = within * steps.back(), outer = (at + done) / inner;
    for (std::size_t d = steps.size() - 1; d-- > 0; outer /= loops.folded[d])
      place += outer % loops.folded[d] * steps[d];
    copy(place, steps.back(), done, some);
    done += some;
  }
}

// A piece of a row: its cursor and streams. Streams of operands that follow the row begin at the piece's first element,
// others at the row's.
class row_piece {
 public:
  row_piece(const tile_program& p, const launch& l, const row_loops& loops, const pieces& cut, std::byte* scratch)
      : p_(p), l_(l), loops_(loops), cut_(cut), scratch_(scratch) {}

  block_cursor& cursor() const { return *std::launder(reinterpret_cast<block_cursor*>(scratch_)); }
  tile_program::stream* streams() const { return reinterpret_cast<tile_program::stream*>(scratch_ + cursor_bytes); }

  void begin(std::int64_t row, std::int64_t from) const {
    constexpr std::int64_t distance = 4096;  // see `row_walk`
    auto& own = *new (scratch_) block_cursor(*p_.blocks(), after_tiles(), cut_.piece, 0);
    for (std::size_t s = 0; s < loops_.operand.size(); ++s) {
      const tensor& t = operand_of(l_, s);
      const ints& kept = loops_.operand[s].kept;
      const std::int64_t inner = kept.empty() ? 1 : loops_.kept.back(), step = loops_.operand[s].folded.back();
      std::int64_t first = outer_offset(loops_, s, row / inner) + (kept.empty() ? 0 : row % inner * kept.back());
      const bool whole = follows(loops_, s);
      if (whole) first += from * step;
      new (streams() + s) tile_program::stream{t.data + first * static_cast<std::int64_t>(size_of(t.type)), step};
      if (whole && step == 1 && !(l_.unread && s >= l_.in.size())) own.fetch_ahead(s, distance);
    }
    own.begin_row(streams());
  }

  // A level over the piece's `count` elements, of the row those from `from` on.
  void run(int level, std::int64_t from, std::int64_t count) const {
    if (!is_apart(level)) return cursor().run(streams(), level, 0, count, l_.unread);
    auto* const now = reinterpret_cast<tile_program::stream*>(scratch_ + cursor_bytes + streams_bytes);
    // results in tiles are read again at once: they stay in the caches
    const bool past_cache = l_.unread && !stores_apart(level);
    for (std::int64_t at = 0; at < count; at += cut_.tile_elements) {
      const std::int64_t some = std::min(cut_.tile_elements, count - at);
      std::size_t tiles = 0;
      for (std::size_t s = 0; s < loops_.operand.size(); ++s) {
        const tile_program::stream& of = streams()[s];
        const std::size_t width = size_of(operand_of(l_, s).type);
        const auto wide = static_cast<std::int64_t>(width);
        if (follows(loops_, s)) {
          new (now + s) tile_program::stream{of.at + at * of.step * wide, of.step};
          continue;
        }
        std::byte* const to = tile(tiles++);
        new (now + s) tile_program::stream{to, 1};
        if (s >= l_.in.size() || (at != 0 && repeats_tile(s))) continue;
        each_stretch(loops_, loops_.operand[s].folded, from + at, some, [&](auto place, auto step, auto done, auto n) {
          copy_elements(width, of.at + place * wide, step, to + done * wide, 1, n);
        });
      }
      cursor().run(now, level, at, some, past_cache);
      for (const auto& store : p_.blocks()->levels()[static_cast<std::size_t>(level)].stores) {
        const std::size_t s = l_.in.size() + store.index, width = size_of(store.type);
        if (follows(loops_, s)) continue;
        const auto wide = static_cast<std::int64_t>(width);
        each_stretch(loops_, loops_.operand[s].folded, from + at, some, [&](auto place, auto step, auto done, auto n) {
          copy_elements(width, now[s].at + done * wide, 1, streams()[s].at + place * wide, step, n);
        });
      }
    }
  }

 private:
  std::byte* tile(std::size_t k) const { return scratch_ + cursor_bytes + 2 * streams_bytes + k * cut_.tile_bytes(); }
  std::byte* after_tiles() const { return tile(cut_.tiles); }
  // Whether a level reads or writes what does not follow the row.
  bool is_apart(int level) const {
    return any_apart(p_.blocks()->levels()[static_cast<std::size_t>(level)].loads, 0) || stores_apart(level);
  }
  bool stores_apart(int level) const {
    return any_apart(p_.blocks()->levels()[static_cast<std::size_t>(level)].stores, l_.in.size());
  }
  template <class Ports> bool any_apart(const Ports& ports, std::size_t first) const {
    return std::any_of(ports.begin(), ports.end(),
                       [&](const block_program::port& s) { return !follows(loops_, first + s.index); });
  }
  // Whether what is written out of an operand stays the same from one time to the next.
  bool repeats_tile(std::size_t s) const {
    const ints& steps = loops_.operand[s].folded;
    return cut_.tile_elements % loops_.folded.back() == 0 &&
           std::all_of(steps.begin(), steps.end() - 1, [](std::int64_t step) { return step == 0; });
  }

  const tile_program& p_;
  const launch& l_;
  const row_loops& loops_;
  const pieces& cut_;
  std::byte* scratch_;
};

}  // namespace

bool cuts_rows(const tile_program& p, const row_loops& loops, unsigned threads) {
  constexpr std::int64_t shortest = 1 << 14;
  if (!p.reduces() || !p.blocks() || !p.blocks()->folds_join() || loops.row() < shortest) return false;
  const std::int64_t rows = loops.rows(), each = threads;
  const bool few_rows = rows < 4 * each;
  bool any_apart = false;
  for (std::size_t k = 0; k < loops.operand.size(); ++k) {
    if (follows(loops, k)) continue;
    const ints& steps = loops.operand[k].folded;
    const bool repeats = std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 0; });
    if (!repeats && !few_rows) return false;  // rows by rows, each stretch where it is
    any_apart = true;
  }
  return any_apart || (threads > 1 && few_rows && rows % each != 0);
}

std::size_t cut_rows_scratch_bytes(const tile_program& p, const row_loops& loops, unsigned threads) {
  const pieces cut(p, loops, threads);
  return static_cast<std::size_t>(cut.group * cut.of_row) * cut.bytes;
}

void run_cut_rows(const tile_program& p, const launch& l, const row_loops& loops) {
  const pieces cut(p, loops, l.pool->size());
  // Piece k of a group.
  const auto piece = [&](std::int64_t k) {
    return row_piece(p, l, loops, cut, l.scratch.data() + static_cast<std::size_t>(k) * cut.bytes);
  };
  // A step is a level of a group; each thread has the same pieces at all levels.
  const std::int64_t levels = p.levels(), groups = kernels::ceil_div(loops.rows(), cut.group);
  const auto first_row = [&](std::int64_t step) { return step / levels * cut.group; };
  const auto pieces_of = [&](std::int64_t step) {
    return std::min(cut.group, loops.rows() - first_row(step)) * cut.of_row;
  };
  const auto parts = static_cast<unsigned>(
      std::min<std::int64_t>({l.pool->size(), pieces_of(0), std::int64_t{step_team::most_parts}}));
  step_team::run(
      *l.pool, parts, groups * levels,
      [&](std::int64_t step, unsigned part) {
        const std::int64_t all = pieces_of(step);
        const auto level = static_cast<int>(step % levels);
        for (std::int64_t k = part * all / parts; k < (part + 1) * all / parts; ++k) {
          const row_piece own = piece(k);
          const std::int64_t from = k % cut.of_row * cut.piece;
          if (level == 0)
            own.begin(first_row(step) + k / cut.of_row, from);
          else
            own.cursor().end_level(own.streams(), level - 1, loops.row());
          own.run(level, from, std::min(cut.piece, loops.row() - from));
        }
        if (l.unread) kiln_eigen_isa()->blocks()->fence();
      },
      [&](std::int64_t step) {
        const auto level = static_cast<int>(step % levels);
        for (std::int64_t first = 0; first < pieces_of(step); first += cut.of_row) {
          stack_list<block_cursor*, most_pieces> of_row;
          for (std::int64_t k = first; k < first + cut.of_row; ++k) of_row.push_back(&piece(k).cursor());
          block_cursor::join_folds({of_row.begin(), of_row.size()}, level);
          // one piece writes what its row has of one element
          if (level + 1 == levels) of_row[0]->end_level(piece(first).streams(), level, loops.row());
        }
      });
}

}  // namespace kiln::eigen
