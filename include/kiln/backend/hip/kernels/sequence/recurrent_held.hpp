#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"
#include "kiln/backend/hip/kernels/sequence/sequence.hpp"

namespace kiln::gpu {

/// Waits for all threads of a group of blocks that share a recurrence; after it all see what they wrote.
template <int Blocks> KILN_FN void sync_group() {
#if KILN_NVIDIA
  if constexpr (Blocks > 1) return sync_cluster();
#else
  static_assert(Blocks == 1);
#endif
  sync_block();
}
/// Copies 16 bytes of this block's shared memory to that of block `rank` of the group.
template <int Blocks> KILN_FN void send_to_group(void* to, const void* from, [[maybe_unused]] int rank) {
#if KILN_NVIDIA
  if constexpr (Blocks > 1) return write_block(shared_of_block(to, rank), from);
#endif
  *static_cast<pack<u32, 4>*>(to) = *static_cast<const pack<u32, 4>*>(from);
}

template <class V> KILN_FN V fused(V a, V b, V c) {
  if constexpr (elementary::same<V, float>)
    return KILN_LIBM(fmaf)(a, b, c);
  else
    return KILN_LIBM(fma)(a, b, c);
}

/// A recurrence in one launch, in the type that its values are computed in. The blocks of a cluster divide the hidden
/// state of some batch entries, as in `recur_in_cluster`: each holds its units' columns of the recurrence matrix, in
/// registers and, what these have no room for, in shared memory. A thread sums a part of the depth for one column and
/// all entries. A gated unit whose reset comes before the product sends the reset states before its last product.
template <class Cell, held_shape Tile, class T, class I>
KILN_FN void recur_with_held_matrix(const cell_step<Cell, T, I>& s, char* shared) {
  using V = typename cell_step<Cell, T, I>::V;
  static_assert(sizeof(V) == Tile.value_bytes);
  constexpr int gates = Cell::gates, hidden = Tile.hidden, units = Tile.units(), lines = Tile.lines();
  constexpr int entries = Tile.entries, deep = Tile.deep(), held = Tile.held(), wide = Tile.wide();
  constexpr int threads = Tile.threads(), run = held_shape::run, each = (units * entries + threads - 1) / threads;
  constexpr bool two = Cell::kind == 1 && !Cell::linear_reset;
  using piece = pack<V, run>;
  V* const states = reinterpret_cast<V*>(shared);        // two, by turns
  V* const resets = states + 2 * entries * wide;         // with `two`
  V* const slice = resets + (two ? entries * wide : 0);  // what the block's units become
  V* const partial = slice + entries * units;            // by part, entry and column
  piece* const matrix =
      reinterpret_cast<piece*>(partial + Tile.parts * entries * lines);  // by run of depths and thread
  const int rank = block_x() % Tile.blocks, entry0 = block_x() / Tile.blocks * entries, me = thread_index();
  const int part = me / lines, column = me % lines, gate = column / units, unit0 = rank * units;
  const int batch = static_cast<int>(s.n.batch), steps = static_cast<int>(s.n.steps);

  const auto weight = [&](int d) {
    const int k = part * deep + d, unit = unit0 + column % units;
    return gate < gates && k < hidden && unit < hidden ? value_of(s.recurrence[(i64(k) * gates + gate) * hidden + unit])
                                                       : V(0);
  };
  V kept[held];
  KILN_UNROLL
  for (int d = 0; d < held; ++d) kept[d] = weight(d);
  for (int d = held; d < deep; d += run) {
    piece p;
    KILN_UNROLL
    for (int i = 0; i < run; ++i) p.at[i] = weight(d + i);
    matrix[(d - held) / run * threads + me] = p;
  }
  for (int at = me; at < (two ? 3 : 2) * entries * wide; at += threads) {
    const int n = at / wide, k = at % wide;
    states[at] =
        n < entries && k < hidden && entry0 + n < batch ? value_of(s.first[i64(entry0 + n) * hidden + k]) : V(0);
  }

  // the units that this thread finishes
  V state[each] = {}, cell[each] = {}, bias[each][gates] = {}, peepholes[each][3] = {};
  T given[each][gates] = {};
  int own[each] = {};
  const auto item_of = [&](int i) { return me + i * threads; };
  const auto unit_of = [&](int i) { return unit0 + item_of(i) % units; };
  const auto slot_of = [&](int i) { return item_of(i) / units; };
  const auto exists = [&](int i) { return slot_of(i) < entries && entry0 + slot_of(i) < batch && unit_of(i) < hidden; };
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
    state[i] = value_of(s.first[i64(b) * hidden + j]);
    KILN_UNROLL
    for (int g = 0; g < gates; ++g) bias[i][g] = value_of(s.bias[g * hidden + j]);
    if constexpr (Cell::kind == 2) {
      cell[i] = value_of(s.first_cell[i64(b) * hidden + j]);
      KILN_UNROLL
      for (int g = 0; g < 3; ++g) peepholes[i][g] = value_of(s.peepholes[g * hidden + j]);
    }
    ask(i, 0);
  }
  sync_group<Tile.blocks>();

  // this thread's part of the product of states with its column, where that is of a gate from `first` to `end`
  const auto multiply = [&](const V* with, int first, int end) {
    if (gate < first || gate >= end) return;
    V sums[entries] = {};
    const V* const from = with + part * deep;
    const auto add = [&](int d, const piece& w) {
      KILN_UNROLL
      for (int e = 0; e < entries; ++e) {
        const piece x = *reinterpret_cast<const piece*>(from + e * wide + d);
        KILN_UNROLL
        for (int i = 0; i < run; ++i) sums[e] = fused(w.at[i], x.at[i], sums[e]);
      }
    };
    KILN_UNROLL
    for (int d = 0; d < held; d += run) {
      piece w;
      KILN_UNROLL
      for (int i = 0; i < run; ++i) w.at[i] = kept[d + i];
      add(d, w);
    }
    for (int d = held; d < deep; d += run) add(d, matrix[(d - held) / run * threads + me]);
    KILN_UNROLL
    for (int e = 0; e < entries; ++e) partial[(part * entries + e) * lines + column] = sums[e];
  };
  const auto sum_of = [&](int i, int g) {
    V sum = bias[i][g];
    KILN_UNROLL
    for (int p = 0; p < Tile.parts; ++p)
      sum += partial[(p * entries + slot_of(i)) * lines + g * units + item_of(i) % units];
    return sum;
  };
  // has every block know what the units of this one become
  const auto send = [&](V* to) {
    sync_block();
    constexpr int sent = 16 / sizeof(V), pieces = units / sent;
    for (int at = me; at < pieces * entries * Tile.blocks; at += threads) {
      const int which = at % (pieces * entries), n = which / pieces, k = which % pieces * sent;
      send_to_group<Tile.blocks>(to + n * wide + unit0 + k, slice + n * units + k, at / (pieces * entries));
    }
    sync_group<Tile.blocks>();
  };

  for (int step = 0; step < steps; ++step) {
    V update[each] = {};
    V* const now = states + step % 2 * entries * wide;
    multiply(now, 0, two ? 2 : gates);
    sync_block();
    if constexpr (two) {
      KILN_UNROLL
      for (int i = 0; i < each; ++i) {
        if (slot_of(i) >= entries) continue;
        if (exists(i)) update[i] = s.template call<0>(sum_of(i, 0) + value_of(given[i][0]));
        slice[item_of(i)] = exists(i) ? s.template call<0>(sum_of(i, 1) + value_of(given[i][1])) * state[i] : V(0);
      }
      send(resets);
      multiply(resets, 2, 3);
      sync_block();
    }
    KILN_UNROLL
    for (int i = 0; i < each; ++i) {
      if (slot_of(i) >= entries) continue;
      if (exists(i)) {
        const bool runs = step < own[i];
        const i64 place = runs ? place_of(i, step) : i64(step) * batch + entry0 + slot_of(i);
        if (runs) {
          if constexpr (two) {
            state[i] = s.blend(update[i], sum_of(i, 2) + value_of(given[i][2]), state[i]);
          } else {
            V all[gates], in[gates];
            KILN_UNROLL
            for (int g = 0; g < gates; ++g) all[g] = sum_of(i, g), in[g] = value_of(given[i][g]);
            state[i] = s.finish(all, in, state[i], cell[i], peepholes[i]);
          }
        }
        s.y[place * hidden + unit_of(i)] = stored<T>(runs ? state[i] : V(0));
        ask(i, step + 1);
      }
      slice[item_of(i)] = state[i];
    }
    send(states + (step + 1) % 2 * entries * wide);
  }
  KILN_UNROLL
  for (int i = 0; i < each; ++i) {
    if (!exists(i)) continue;
    const i64 at = i64(entry0 + slot_of(i)) * hidden + unit_of(i);
    s.last[at] = stored<T>(state[i]);
    if constexpr (Cell::kind == 2) s.last_cell[at] = stored<T>(cell[i]);
  }
}

}  // namespace kiln::gpu
