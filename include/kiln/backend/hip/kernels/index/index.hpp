#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

// Ops that compute where elements come from, one function for the work of one thread: `at` counts the results, `n` are
// numbers from the op's attributes and its operands' extents. An index outside its extent sets `faults` and counts as
// 0.

namespace kiln::gpu {

/// A place in `extent` elements; negative indices count from the end.
template <class I> KILN_FN i64 checked_index(I given, i64 extent, int* faults) {
  const i64 i = static_cast<i64>(given);
  if (i < -extent || i >= extent) {
    *faults = 1;
    return 0;
  }
  return i < 0 ? i + extent : i;
}

template <class T, class I>
KILN_FN void gather(T* out, const T* data, const I* indices, const gather_sizes& n, i64 at, int* faults) {
  const i64 row = at / n.inner, o = row / n.indices, k = row - o * n.indices;
  out[at] = data[(o * n.extent + checked_index(indices[k], n.extent, faults)) * n.inner + (at - row * n.inner)];
}

/// Where the index of an element points, for element `at` of the indices.
template <class I> KILN_FN i64 element_place(const I* indices, const element_sizes& n, i64 at, int* faults) {
  i64 rest = at, place = checked_index(indices[at], n.axis_extent, faults) * n.axis_step;
  for (int d = static_cast<int>(n.rank) - 1; d >= 0; --d) {
    const i64 q = rest / n.dims[d].extent;
    place += (rest - q * n.dims[d].extent) * n.dims[d].step;
    rest = q;
  }
  return place;
}
template <class T, class I>
KILN_FN void gather_elements(T* out, const T* data, const I* indices, const element_sizes& n, i64 at, int* faults) {
  out[at] = data[element_place(indices, n, at, faults)];
}

/// Which slice a tuple of indices names, counted from slice `from` of the dims before.
template <class I> KILN_FN i64 tuple_place(const I* tuple, const tuple_sizes& n, i64 from, int* faults) {
  for (int d = 0; d < static_cast<int>(n.length); ++d)
    from = from * n.extents[d] + checked_index(tuple[d], n.extents[d], faults);
  return from;
}
template <class T, class I>
KILN_FN void gather_nd(T* out, const T* data, const I* indices, const tuple_sizes& n, i64 at, int* faults) {
  const i64 row = at / n.slice;
  const i64 from = tuple_place(indices + row * n.length, n, row / n.rows, faults);
  out[at] = data[from * n.slice + (at - row * n.slice)];
}

template <class T> KILN_FN void pad(T* out, const T* data, const T* value, const pad_sizes& n, i64 at) {
  i64 rest = at, from = 0, step = 1;
  bool inside = true;
  for (int d = static_cast<int>(n.rank) - 1; d >= 0; --d) {
    const pad_sizes::dim& m = n.dims[d];
    const i64 q = rest / m.out, kept = m.kept;
    i64 i = rest - q * m.out - m.added;
    rest = q;
    if (i < 0 || i >= kept) {
      if (n.mode == 0) {
        inside = false;
      } else if (n.mode == 2 || kept == 1) {
        i = i < 0 ? 0 : kept - 1;
      } else {
        const i64 period = n.mode == 3 ? kept : 2 * (kept - 1), r = (i % period + period) % period;
        i = r < kept ? r : period - r;
      }
    }
    from += (i + m.cropped) * step;
    step *= m.in;
  }
  T result{};
  if (inside)
    result = data[from];
  else if (value)
    result = *value;
  out[at] = result;
}

template <class T, class I>
KILN_FN void one_hot(T* out, const I* indices, const T* values, const axis_sizes& n, i64 at) {
  const i64 row = at / n.inner, o = row / n.extent, k = row - o * n.extent;
  const i64 index = static_cast<i64>(indices[o * n.inner + (at - row * n.inner)]);
  out[at] = values[index == k || index + n.extent == k ? 1 : 0];
}

template <class T> KILN_FN void tri(T* out, const T* in, const tri_sizes& n, i64 at) {
  const i64 row = at / n.cols, j = at - row * n.cols, i = row % n.rows;
  out[at] = (n.upper != 0 ? j - i >= n.k : j - i <= n.k) ? in[at] : T{};
}

template <class T> KILN_FN void iota(T* out, const axis_sizes& n, i64 at) {
  out[at] = stored<T>(at / n.inner % n.extent);
}

/// Combines a value into an element of memory that other threads change too.
template <class T, class Change> KILN_FN void change_element(T* at, Change change) {
  using word = typename elementary::unsigned_of<sizeof(T) == 8 ? 8 : 4>::type;
  const u64 address = reinterpret_cast<u64>(at), within = address % sizeof(word);
  word* const whole = reinterpret_cast<word*>(address - within);
  word old = *whole;
  for (;;) {
    pack<T, sizeof(word) / sizeof(T)> parts = __builtin_bit_cast(decltype(parts), old);
    T& part = parts.at[within / sizeof(T)];
    part = stored<T>(change(value_of(part)));
    const word made = __builtin_bit_cast(word, parts), seen = exchange_if(whole, old, made);
    if (seen == old) return;
    old = seen;
  }
}

/// An update by a scatter's mode (1 add, 2 multiply, 3 least, 4 greatest); integers wrap, a NaN stays.
template <int Mode, class T> KILN_FN void apply_update(T* at, T given) {
  const auto update = value_of(given);
  using V = decltype(value_of(given));
  change_element(at, [&](V old) -> V {
    if constexpr (is_bool<V>) return Mode == 1 || Mode == 4 ? old || update : old && update;
    if constexpr (Mode == 1) return old + update;
    if constexpr (Mode == 2) return old * update;
    if (update != update) return update;
    return (Mode == 3 ? update < old : update > old) ? update : old;
  });
}

/// A scatter's second kernel: with mode 0 the last update of an element wins, so each notes its number first.
template <int Mode, class T>
KILN_FN void scatter_to(T* out, int* winners, const T* updates, i64 to, i64 at, bool noting) {
  if constexpr (Mode != 0)
    apply_update<Mode>(out + to, updates[at]);
  else if (noting)
    raise_number(winners + to, static_cast<int>(at) + 1);
  else if (winners[to] == static_cast<int>(at) + 1)
    out[to] = updates[at];
}

template <int Mode, class T, class I>
KILN_FN void scatter_elements(T* out, int* winners, const I* indices, const T* updates, const element_sizes& n, i64 at,
                              int* faults, bool noting) {
  scatter_to<Mode>(out, winners, updates, element_place(indices, n, at, faults), at, noting);
}

template <int Mode, class T, class I>
KILN_FN void scatter_nd(T* out, int* winners, const I* indices, const T* updates, const tuple_sizes& n, i64 at,
                        int* faults, bool noting) {
  const i64 row = at / n.slice;
  const i64 to = tuple_place(indices + row * n.length, n, 0, faults) * n.slice + (at - row * n.slice);
  scatter_to<Mode>(out, winners, updates, to, at, noting);
}

}  // namespace kiln::gpu
