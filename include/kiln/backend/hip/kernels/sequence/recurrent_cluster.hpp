#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"
#include "kiln/backend/hip/kernels/sequence/sequence.hpp"

namespace kiln::gpu {

#if KILN_NVIDIA
/// A recurrence of 16-bit floats in one launch, from sm_90 on. The blocks of a cluster divide the hidden state of
/// `cluster_entries` batch entries: each holds its units' columns of the recurrence matrix in registers, as factors of
/// mma, and sends what its units become to the shared memory of all, which holds the whole state in 16 bits. What a
/// unit adds to (its cell, or its own state in a gated unit) stays in 32 bits.
template <class Cell, cluster_shape Tile, class T, class I>
KILN_FN void recur_in_cluster(const cell_step<Cell, T, I>& s, char* shared) {
  constexpr int gates = Cell::gates, hidden = Tile.hidden, units = Tile.units(), groups = Tile.groups();
  constexpr int deep = Tile.deep(), row = Tile.state_step(), line = Tile.partial_step(), entries = cluster_entries;
  constexpr int threads = Tile.threads(), each = (units * entries + threads - 1) / threads;
  static_assert(Cell::kind != 1 || Cell::linear_reset);
  T* const states = reinterpret_cast<T*>(shared);
  T* const slice = states + 2 * entries * row;
  float* const partial = reinterpret_cast<float*>(slice + entries * units);
  const int rank = block_x() % Tile.blocks, entry0 = block_x() / Tile.blocks * entries;
  const int warp = thread_index() / 32, lane = lane_index(), group = warp % groups, split = warp / groups;
  const int batch = static_cast<int>(s.n.batch), steps = static_cast<int>(s.n.steps);

  // lane l has rows l / 4 and l / 4 + 8 of a factor, at depths 2 (l % 4), the next one, and both 8 further
  u32 matrix[gates][deep][4];
  KILN_UNROLL
  for (int g = 0; g < gates; ++g) KILN_UNROLL
  for (int d = 0; d < deep; ++d) KILN_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int unit = rank * units + group * 16 + lane / 4 + i % 2 * 8;
    const i64 k = (split * deep + d) * 16 + lane % 4 * 2 + i / 2 * 8;
    const T* at = s.recurrence + (k * gates + g) * hidden + unit;
    matrix[g][d][i] = at[0].bits | static_cast<u32>(at[gates * hidden].bits) << 16;
  }
  for (int at = thread_index(); at < entries * hidden; at += threads) {
    const int n = at / hidden, k = at % hidden;
    states[n * row + k] = entry0 + n < batch ? s.first[(entry0 + n) * hidden + k] : T{};
  }

  // the units that this thread finishes
  float state[each] = {}, cell[each] = {}, bias[each][gates] = {}, peepholes[each][3] = {};
  T given[each][gates] = {};
  int own[each] = {};
  const auto unit_of = [&](int i) { return rank * units + (thread_index() + i * threads) % units; };
  const auto slot_of = [&](int i) { return (thread_index() + i * threads) / units; };
  const auto exists = [&](int i) { return slot_of(i) < entries && entry0 + slot_of(i) < batch; };
  const auto place_of = [&](int i, int step) {
    return (Cell::reverse ? i64(own[i]) - 1 - step : step) * batch + entry0 + slot_of(i);
  };
  const auto ask = [&](int i, int step) {
    if (!exists(i) || step >= own[i]) return;
    const T* in = s.x + place_of(i, step) * (gates * hidden) + unit_of(i);
    KILN_UNROLL
    for (int g = 0; g < gates; ++g) given[i][g] = in[g * hidden];
  };
  KILN_UNROLL
  for (int i = 0; i < each; ++i) {
    if (!exists(i)) continue;
    const int b = entry0 + slot_of(i), j = unit_of(i);
    const i64 length = static_cast<i64>(s.lengths[b]);
    own[i] = length < 0 ? 0 : length < steps ? static_cast<int>(length) : steps;
    state[i] = value_of(s.first[b * hidden + j]);
    KILN_UNROLL
    for (int g = 0; g < gates; ++g) bias[i][g] = value_of(s.bias[g * hidden + j]);
    if constexpr (Cell::kind == 2) {
      cell[i] = value_of(s.first_cell[b * hidden + j]);
      KILN_UNROLL
      for (int g = 0; g < 3; ++g) peepholes[i][g] = value_of(s.peepholes[g * hidden + j]);
    }
    ask(i, 0);
  }
  sync_cluster();

  for (int step = 0; step < steps; ++step) {
    const T* now = states + step % 2 * entries * row + lane / 4 * row + split * deep * 16 + lane % 4 * 2;
    float sums[gates][4] = {};
    KILN_UNROLL
    for (int d = 0; d < deep; ++d) {
      const u32 b[2] = {*reinterpret_cast<const u32*>(now + d * 16), *reinterpret_cast<const u32*>(now + d * 16 + 8)};
      KILN_UNROLL
      for (int g = 0; g < gates; ++g) multiply_mma<T>(sums[g], matrix[g][d], b);
    }
    KILN_UNROLL
    for (int g = 0; g < gates; ++g) KILN_UNROLL
    for (int i = 0; i < 4; ++i)
      partial[((split * gates + g) * entries + lane % 4 * 2 + i % 2) * line + group * 16 + lane / 4 + i / 2 * 8] =
          sums[g][i];
    sync_block();
    KILN_UNROLL
    for (int i = 0; i < each; ++i) {
      if (slot_of(i) >= entries) continue;
      const int slot = slot_of(i), j = unit_of(i);
      if (exists(i)) {
        if (step < own[i]) {
          float all[gates];
          KILN_UNROLL
          for (int g = 0; g < gates; ++g) {
            all[g] = bias[i][g];
            KILN_UNROLL
            for (int k = 0; k < Tile.splits; ++k)
              all[g] += partial[((k * gates + g) * entries + slot) * line + j - rank * units];
          }
          float in[gates];
          KILN_UNROLL
          for (int g = 0; g < gates; ++g) in[g] = value_of(given[i][g]);
          state[i] = s.finish(all, in, state[i], cell[i], peepholes[i]);
        }
      }
      slice[slot * units + j - rank * units] = stored<T>(state[i]);
    }
    sync_block();
    T* const next = states + (step + 1) % 2 * entries * row + rank * units;
    for (int to = warp; to < Tile.blocks; to += threads / 32)
      for (int piece = lane; piece < units; piece += 32) {  // of 8 elements
        const int n = piece / (units / 8), k = piece % (units / 8) * 8;
        write_block(shared_of_block(next + n * row + k, to), slice + n * units + k);
      }
    arrive_in_cluster();
    // memory is not waited for: the blocks of a cluster need shared memory alone
    KILN_UNROLL
    for (int i = 0; i < each; ++i) {
      if (!exists(i)) continue;
      const bool runs = step < own[i];
      const i64 place = runs ? place_of(i, step) : i64(step) * batch + entry0 + slot_of(i);
      s.y[place * hidden + unit_of(i)] = stored<T>(runs ? state[i] : 0.0f);
      ask(i, step + 1);
    }
    await_cluster();
  }
  KILN_UNROLL
  for (int i = 0; i < each; ++i) {
    if (!exists(i)) continue;
    const i64 at = i64(entry0 + slot_of(i)) * hidden + unit_of(i);
    s.last[at] = stored<T>(state[i]);
    if constexpr (Cell::kind == 2) s.last_cell[at] = stored<T>(cell[i]);
  }
}
#endif

}  // namespace kiln::gpu
