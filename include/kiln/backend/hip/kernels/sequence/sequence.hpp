#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/sequence/arguments.hpp"
#include "kiln/op/sequence/activation.hpp"

// Recurrences over a sequence: one launch a step, or one thread a column of a state. See op/sequence.

namespace kiln::gpu {

/// How a cell is stepped: op::recurrent's attributes. `kind` 0 is a plain cell, 1 a gated unit, 2 long short-term
/// memory.
template <int Kind, op::cell_function F0, op::cell_function F1, op::cell_function F2, bool Reverse, bool LinearReset,
          bool Coupled>
struct cell {
  static constexpr int kind = Kind, gates = Kind == 0 ? 1 : Kind == 1 ? 3 : 4;
  static constexpr op::cell_function functions[3] = {F0, F1, F2};
  static constexpr bool reverse = Reverse, linear_reset = LinearReset, coupled = Coupled;
};

/// Where a cell works; `room` holds `cell_states` values for each unit of each batch entry.
template <class Cell, class T, class I> struct cell_step {
  using V = decltype(value_of(T{}));
  static constexpr int across = cell_units, parts = cell_threads;
  T *y, *last, *last_cell;
  V* room;
  const T *x, *recurrence, *bias, *first;
  const I* lengths;
  const T *first_cell, *peepholes;
  const recurrent_sizes& n;

  KILN_FN i64 units() const { return n.batch * n.hidden; }
  KILN_FN V* state(i64 step) const { return room + step % 2 * units(); }
  KILN_FN V* cells() const { return room + 2 * units(); }
  KILN_FN V* updates() const { return room + 3 * units(); }
  KILN_FN V* resets() const { return room + 4 * units(); }

  template <int F> KILN_FN V call(V v) const {
    const V bound = static_cast<V>(n.clip);
    const V held = v > bound ? bound : v < -bound ? -bound : v;
    if constexpr (sizeof(T) == 2 && Cell::functions[F] == op::cell_function::sigmoid) return short_sigmoid(held);
    if constexpr (sizeof(T) == 2 && Cell::functions[F] == op::cell_function::tanh)
      return 2 * short_sigmoid(2 * held) - 1;
    return kiln::detail::applied(Cell::functions[F], static_cast<float>(n.alpha[F]), static_cast<float>(n.beta[F]),
                                 held);
  }
  /// A unit's next state, of its gates' sums with biases, what the operand gives each gate, its state before, and the
  /// state and peepholes of its cell, which becomes the next one. In a gated unit the reset comes after the product.
  KILN_FN V finish(const V (&sums)[Cell::gates], const V (&in)[Cell::gates], V mine, V& own_cell,
                   const V (&peepholes)[3]) const {
    if constexpr (Cell::kind == 0) {
      return call<0>(sums[0] + in[0]);
    } else if constexpr (Cell::kind == 2) {
      const V old = own_cell, enters = call<0>(sums[0] + in[0] + peepholes[0] * old);
      const V stays = Cell::coupled ? V(1) - enters : call<0>(sums[2] + in[2] + peepholes[2] * old);
      own_cell = stays * old + enters * call<1>(sums[3] + in[3]);
      return call<0>(sums[1] + in[1] + peepholes[1] * own_cell) * call<2>(own_cell);
    } else {
      return blend(call<0>(sums[0] + in[0]), sums[2] * call<0>(sums[1] + in[1]) + in[2], mine);
    }
  }
  /// A gated unit's next state: `mine` as far as it is kept, and of the rest a new one.
  KILN_FN V blend(V keep, V fresh, V mine) const { return (V(1) - keep) * call<1>(fresh) + keep * mine; }
  /// What comes before the first step, one element a thread.
  KILN_FN void begin(i64 at) const {
    state(0)[at] = value_of(first[at]);
    last[at] = first[at];
    if constexpr (Cell::kind == 2) {
      cells()[at] = value_of(first_cell[at]);
      last_cell[at] = first_cell[at];
    }
  }
  /// Adds the products of a state with a unit's columns of gates `First`, `First` + 1, …, in every part of the block.
  template <int First, int Count> KILN_FN void add_products(V (&sums)[Count], const V* with, i64 unit, int part) const {
    const i64 hidden = n.hidden;
    const T* column = recurrence + First * hidden + unit;
    V own[Count] = {};
    for (i64 k = part; k < hidden; k += parts) {
      const V s = with[k];
      KILN_UNROLL
      for (int g = 0; g < Count; ++g) own[g] += s * value_of(column[(k * Cell::gates + g) * hidden]);
    }
    KILN_SHARED V shared[parts * across];
    KILN_UNROLL
    for (int g = 0; g < Count; ++g)
      sums[g] += join_columns<parts, across>(own[g], shared, [](V a, V b) { return a + b; });
  }
  /// A block's `across` units of one batch entry, by `parts` threads each, `lane` counting all of them. A gated unit
  /// whose reset comes before the product takes two launches a step: with `Gates` it works the gates alone, without it
  /// the rest.
  template <bool Gates> KILN_FN void advance(i64 row, int lane) const {
    constexpr bool two = Cell::kind == 1 && !Cell::linear_reset;
    const i64 steps = n.steps, batch = n.batch, hidden = n.hidden, step = n.step,
              blocks = (hidden + across - 1) / across;
    const i64 b = row / blocks, wanted = (row - b * blocks) * across + lane % across;
    const i64 j = wanted < hidden ? wanted : hidden - 1, at = b * hidden + j;
    const int part = lane / across;
    const bool writes = part == 0 && wanted < hidden;
    i64 own = static_cast<i64>(lengths[b]);
    own = own < 0 ? 0 : own < steps ? own : steps;
    const V *before = state(step) + b * hidden, mine = before[j];
    if (step >= own) {
      if (writes && !Gates) y[(step * batch + b) * hidden + j] = stored<T>(V(0)), state(step + 1)[at] = mine;
      return;
    }
    const i64 place = (Cell::reverse ? own - 1 - step : step) * batch + b;
    const T* in = x + place * (Cell::gates * hidden) + j;
    const auto given = [&](int gate) { return value_of(in[gate * hidden]); };
    const auto offset = [&](int gate) { return value_of(bias[gate * hidden + j]); };
    V made;
    if constexpr (two) {
      if constexpr (Gates) {
        V sums[2] = {given(0) + offset(0), given(1) + offset(1)};
        add_products<0>(sums, before, j, part);
        if (writes) updates()[at] = call<0>(sums[0]), resets()[at] = call<0>(sums[1]) * mine;
        return;
      } else {
        V sums[1] = {offset(2)};
        add_products<2>(sums, resets() + b * hidden, j, part);
        made = blend(updates()[at], sums[0] + given(2), mine);
      }
    } else {
      V sums[Cell::gates], from[Cell::gates], held = V(0), peep[3] = {};
      for (int g = 0; g < Cell::gates; ++g) sums[g] = offset(g), from[g] = given(g);
      add_products<0>(sums, before, j, part);
      if constexpr (Cell::kind == 2) {
        held = cells()[at];
        for (int g = 0; g < 3; ++g) peep[g] = value_of(peepholes[g * hidden + j]);
      }
      made = finish(sums, from, mine, held, peep);
      if constexpr (Cell::kind == 2) {
        sync_block();
        if (writes) cells()[at] = held, last_cell[at] = stored<T>(held);
      }
    }
    if (!writes) return;
    state(step + 1)[at] = made;
    y[place * hidden + j] = last[at] = stored<T>(made);
  }
};

/// One column of one head's state through all steps; op::linear_attention. `state` has room for every head's.
template <bool Corrects, class T, class V>
KILN_FN void linear_attention(T* y, T* last, V* state, const T* q, const T* k, const T* v, const T* first,
                              const T* decay, const T* beta, const linear_attention_sizes& n, i64 at) {
  const i64 steps = n.steps, heads = n.heads, own = n.own_heads, depth = n.depth, width = n.width, each = heads / own;
  const i64 entry = at / width, w = at - entry * width, b = entry / own, h = entry - b * own;
  const i64 base = entry * depth * width + w;
  V* const s = state + base;
  for (i64 d = 0; d < depth; ++d) s[d * width] = value_of(first[base + d * width]);
  for (i64 t = 0; t < steps; ++t) {
    const i64 place = (b * steps + t) * own + h;
    V held = V(0);
    for (i64 d = 0; d < depth; ++d) {
      s[d * width] *= value_of(decay[place * depth + d]);
      if constexpr (Corrects) held += s[d * width] * value_of(k[place * depth + d]);
    }
    V write = value_of(v[place * width + w]);
    if constexpr (Corrects) write = value_of(beta[place]) * (write - held);
    for (i64 d = 0; d < depth; ++d) s[d * width] += value_of(k[place * depth + d]) * write;
    for (i64 r = 0; r < each; ++r) {
      const i64 row = (b * steps + t) * heads + h * each + r;
      V sum = V(0);
      for (i64 d = 0; d < depth; ++d) sum += value_of(q[row * depth + d]) * s[d * width];
      y[row * width + w] = stored<T>(static_cast<V>(n.scale) * sum);
    }
  }
  for (i64 d = 0; d < depth; ++d) last[base + d * width] = stored<T>(s[d * width]);
}

/// The same for `Lanes` / `Parts` neighboring columns by a block: `Parts` threads side by side hold a column, each of
/// them `Each` of its depths in registers, d = part, part + Parts, …
template <bool Corrects, int Parts, int Each, int Lanes, class T>
KILN_FN void linear_attention_columns(T* y, T* last, const T* q, const T* k, const T* v, const T* first, const T* decay,
                                      const T* beta, const linear_attention_sizes& n, i64 row, int lane) {
  using V = decltype(value_of(T{}));
  constexpr int columns = Lanes / Parts;
  const i64 steps = n.steps, heads = n.heads, own = n.own_heads, depth = n.depth, width = n.width, each = heads / own;
  const i64 runs = (width + columns - 1) / columns, entry = row / runs, b = entry / own, h = entry - b * own;
  const int part = lane % Parts;
  const i64 wanted = (row - entry * runs) * columns + lane / Parts, w = wanted < width ? wanted : width - 1;
  const bool writes = wanted < width;
  const i64 base = entry * depth * width + w;
  const auto add = [](V x, V z) { return x + z; };
  const auto read = [&](V(&to)[Each], const T* from, i64 step) {
    KILN_UNROLL
    for (int i = 0; i < Each; ++i) to[i] = part + i * Parts < depth ? value_of(from[(part + i * Parts) * step]) : V(0);
  };
  V s[Each], keys[Each], decays[Each], queries[Each], value = V(0), rate = V(0);
  read(s, first + base, width);
  const auto ask = [&](i64 t) {
    const i64 place = (b * steps + t) * own + h;
    read(keys, k + place * depth, 1);
    read(decays, decay + place * depth, 1);
    read(queries, q + ((b * steps + t) * heads + h * each) * depth, 1);
    value = value_of(v[place * width + w]);
    if constexpr (Corrects) rate = value_of(beta[place]);
  };
  if (steps > 0) ask(0);
  for (i64 t = 0; t < steps; ++t) {
    V write = value, sum = V(0);
    KILN_UNROLL
    for (int i = 0; i < Each; ++i) s[i] *= decays[i];
    if constexpr (Corrects) {
      V held = V(0);
      KILN_UNROLL
      for (int i = 0; i < Each; ++i) held += s[i] * keys[i];
      write = rate * (value - join_lanes<Parts>(held, static_cast<V*>(nullptr), add));
    }
    KILN_UNROLL
    for (int i = 0; i < Each; ++i) {
      s[i] += keys[i] * write;
      sum += queries[i] * s[i];
    }
    if (t + 1 < steps) ask(t + 1);  // memory is not waited for: the sums come between
    const i64 from = (b * steps + t) * heads + h * each;
    for (i64 r = 0;;) {
      sum = join_lanes<Parts>(sum, static_cast<V*>(nullptr), add);
      if (writes && part == 0) y[(from + r) * width + w] = stored<T>(static_cast<V>(n.scale) * sum);
      if (++r == each) break;
      V other[Each];
      read(other, q + (from + r) * depth, 1);
      sum = V(0);
      KILN_UNROLL
      for (int i = 0; i < Each; ++i) sum += other[i] * s[i];
    }
  }
  if (!writes) return;
  KILN_UNROLL
  for (int i = 0; i < Each; ++i)
    if (part + i * Parts < depth) last[base + (part + i * Parts) * width] = stored<T>(s[i]);
}

}  // namespace kiln::gpu
