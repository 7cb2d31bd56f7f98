#pragma once
#include "kiln/backend/hip/kernels/gemm/skinny_gemm.hpp"
#include "kiln/backend/hip/kernels/gemm/staged_lines.hpp"

namespace kiln::gpu {

/// `skinny_gemm` whose weights pass through shared memory, in whole lines of the cache: a multiprocessor takes as
/// long for half a line as for one. Blocks, one a multiprocessor, share the columns evenly and work tile after tile of
/// `Slots.cols()`; warps share the depth. A warp copies the lines that it multiplies itself, to slots of its own, so
/// that it waits for no other until a tile's sums are joined, and keeps all but one of its slots under way, across
/// tiles and, since weights are constant, from before the end of the kernel before. Pieces of odd lines are exchanged
/// by halves, so that eight lanes read different banks. block_x counts blocks.
template <class T, class Weights, staged_lines Slots, class Result>
KILN_FN void skinny_gemm_staged(const matrix_argument<T>& a, const Weights& weights, const Result& result, int rows,
                                int cols, int depth, char* shared) {
  using atom = atom_mma_narrow<T>;
  constexpr int tiles = Slots.tiles, atoms = Slots.height / 8, width = Slots.cols(), warps = Slots.warps,
                slots = Slots.slots;
  constexpr int run = Weights::run, chunk = 4 * run, pieces = Slots.line / 16, chunks = pieces / 4,
                numbers = chunks * chunk;
  constexpr int lines_at_once = warp_lanes / pieces, words = Slots.scale_words;
  static_assert(slots >= 2 && width % lines_at_once == 0);
  static_assert(Weights::block == 0 ? words == 0 : words * 2 * Weights::block == numbers);
  const int warp = thread_index() / warp_lanes, lane = lane_index(), group = lane / 4, along = lane % 4;
  const int first = first_column(cols, Result::width, block_x(), blocks_x()),
            end = first_column(cols, Result::width, block_x() + 1, blocks_x());
  const int per_tile = ((depth + numbers - 1) / numbers + warps - 1) / warps;
  char* const own = shared + warp * (slots * Slots.slot_bytes());
  const auto place = [](int line, int piece) { return line * Slots.line + (piece ^ (line & 1) << 2) * 16; };
  const auto depth_of = [&](int step) { return (warp + step * warps) * numbers; };

  int col_ahead = first, step_ahead = 0, slot_ahead = 0;
  const auto copy_next = [&] {
    const int k = depth_of(step_ahead), piece = lane % pieces;
    char* const to = own + slot_ahead * Slots.slot_bytes();
    if (k + piece * run < depth) KILN_UNROLL
    for (int i = 0; i < width; i += lines_at_once) {
      const int line = i + lane / pieces, col = col_ahead + line;
      if (col < end) copy_async<16>(to + place(line, piece), weights.at(col, k + piece * run));
    }
    if constexpr (words != 0) {  // in braces: NVRTC 13 drops what follows a discarded loop in a lambda
      KILN_UNROLL
      for (int i = 0; i < width * words; i += warp_lanes) {
        const int line = (i + lane) / words, word = (i + lane) % words, col = col_ahead + line,
                  at = k + word * 2 * Weights::block;
        if (col < end && at < depth) copy_async<4>(to + width * Slots.line + (i + lane) * 4, weights.scale_at(col, at));
      }
    }
    copy_commit();
    if (++slot_ahead == slots) slot_ahead = 0;
    if (++step_ahead == per_tile) step_ahead = 0, col_ahead += width;
  };
  KILN_NO_UNROLL
  for (int i = 1; i < slots; ++i) copy_next();
  await_last();

  float* sums_here = reinterpret_cast<float*>(shared + Slots.sums_at());
  float* sums_next = sums_here + Slots.sums();
  int slot = 0;
  for (int col0 = first; col0 < end; col0 += width) {
    typename atom::accumulator sums[tiles][atoms] = {};
    for (int step = 0; step < per_tile; ++step) {
      pack<u32, 4> x[chunks][run / 8][atoms];
      KILN_UNROLL
      for (int c = 0; c < chunks; ++c) KILN_UNROLL
      for (int e = 0; e < run / 8; ++e)
        read_rows<T, Weights>(x[c][e], a, rows, depth, depth_of(step) + c * chunk + along * run, e * 8);
      copy_wait<slots - 2>();
      sync_warp();  // all of this slot is there, and nobody reads the one before it
      copy_next();
      const char* const from = own + slot * Slots.slot_bytes();
      if (++slot == slots) slot = 0;
      KILN_UNROLL
      for (int c = 0; c < chunks; ++c) {
        typename Weights::piece w[tiles * 2];
        const int at = c * chunk + along * run;
        KILN_UNROLL
        for (int i = 0; i < tiles * 2; ++i) {
          const int line = i * 8 + group;
          w[i] = {};
          if (depth_of(step) + at >= depth) continue;
          u32 scale = 0;
          if constexpr (words != 0)
            scale = reinterpret_cast<const u16*>(from + width * Slots.line)[line * (2 * words) + at / Weights::block];
          weights.set(w[i], *reinterpret_cast<const pack<u32, 4>*>(from + place(line, c * 4 + along)), scale);
        }
        KILN_UNROLL
        for (int e = 0; e < run / 8; ++e) multiply_runs<T>(sums, weights, w, x[c][e], e);
      }
    }
    leave_sums<T, width>(sums, sums_here + warp * (Slots.height * few_rows_step(width)));
    join_warps<Weights, Slots.height, width, warps>(result, sums_here, rows, col0, end);
    float* const other = sums_here;  // which nobody reads any more when the next tile's sums are joined
    sums_here = sums_next, sums_next = other;
  }
}

}  // namespace kiln::gpu
