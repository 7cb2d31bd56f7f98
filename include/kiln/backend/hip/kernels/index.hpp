#pragma once
#include "kiln/backend/hip/kernels/elements.hpp"

// Ops that compute where elements come from, one function for the work of one thread: `at` counts the results, the
// numbers come from the op's attributes and its operands' extents. An index outside its extent sets `faults` and counts
// as 0.

namespace kiln::device {

/// A place in `extent` elements; negative indices count from the end.
template <class I>
KILN_FN i64 checked_index(I given, i64 extent, int* faults) {
  const i64 i = static_cast<i64>(given);
  if (i < -extent || i >= extent) {
    *faults = 1;
    return 0;
  }
  return i < 0 ? i + extent : i;
}

/// n: elements behind the axis, indices, extent of the axis.
template <class T, class I>
KILN_FN void gather(T* out, const T* data, const I* indices, const i64* n, i64 at, int* faults) {
  const i64 inner = n[0], count = n[1], extent = n[2];
  const i64 row = at / inner, o = row / count, k = row - o * count;
  out[at] = data[(o * extent + checked_index(indices[k], extent, faults)) * inner + (at - row * inner)];
}

/// n: rank, extent of the axis, then for each dim its extent in the result and its step in the data; the axis is the
/// dim whose step stands apart in n[2], its own being 0.
template <class T, class I>
KILN_FN void gather_elements(T* out, const T* data, const I* indices, const i64* n, i64 at, int* faults) {
  const int rank = static_cast<int>(n[0]);
  i64 rest = at, from = checked_index(indices[at], n[1], faults) * n[2];
  for (int d = rank - 1; d >= 0; --d) {
    const i64 q = rest / n[3 + 2 * d];
    from += (rest - q * n[3 + 2 * d]) * n[4 + 2 * d];
    rest = q;
  }
  out[at] = data[from];
}

/// Where a tuple of indices points. n: length of the tuple, then its extents.
template <class I>
KILN_FN i64 tuple_place(const I* tuple, const i64* n, i64 from, int* faults) {
  for (int d = 0; d < static_cast<int>(n[0]); ++d) from = from * n[1 + d] + checked_index(tuple[d], n[1 + d], faults);
  return from;
}

/// n: elements of a slice, tuples of a batch, then as `tuple_place`.
template <class T, class I>
KILN_FN void gather_nd(T* out, const T* data, const I* indices, const i64* n, i64 at, int* faults) {
  const i64 row = at / n[0];
  const i64 from = tuple_place(indices + row * n[2], n + 2, row / n[1], faults);
  out[at] = data[from * n[0] + (at - row * n[0])];
}

/// n: mode (0 constant, 1 reflect, 2 edge, 3 wrap), rank, then for each dim the result's and the data's extent,
/// elements cropped before, kept, and added before.
template <class T>
KILN_FN void pad(T* out, const T* data, const T* value, const i64* n, i64 at) {
  i64 rest = at, from = 0, step = 1;
  bool inside = true;
  for (int d = static_cast<int>(n[1]) - 1; d >= 0; --d) {
    const i64* m = n + 2 + 5 * d;
    const i64 q = rest / m[0], kept = m[3];
    i64 i = rest - q * m[0] - m[4];
    rest = q;
    if (i < 0 || i >= kept) {
      if (n[0] == 0) {
        inside = false;
      } else if (n[0] == 2 || kept == 1) {
        i = i < 0 ? 0 : kept - 1;
      } else {
        const i64 period = n[0] == 3 ? kept : 2 * (kept - 1), r = (i % period + period) % period;
        i = r < kept ? r : period - r;
      }
    }
    from += (i + m[2]) * step;
    step *= m[1];
  }
  T result{};
  if (inside)
    result = data[from];
  else if (value)
    result = *value;
  out[at] = result;
}

/// n: depth, elements behind the axis.
template <class T, class I>
KILN_FN void one_hot(T* out, const I* indices, const T* values, const i64* n, i64 at) {
  const i64 inner = n[1], row = at / inner, o = row / n[0], k = row - o * n[0];
  const i64 index = static_cast<i64>(indices[o * inner + (at - row * inner)]);
  out[at] = values[index == k || index + n[0] == k ? 1 : 0];
}

/// n: rows, columns, k, upper.
template <class T>
KILN_FN void tri(T* out, const T* in, const i64* n, i64 at) {
  const i64 row = at / n[1], j = at - row * n[1], i = row % n[0];
  out[at] = (n[3] != 0 ? j - i >= n[2] : j - i <= n[2]) ? in[at] : T{};
}

/// n: elements behind the axis, extent of the axis.
template <class T>
KILN_FN void iota(T* out, const i64* n, i64 at) {
  out[at] = stored<T>(at / n[0] % n[1]);
}

/// Combines a value into an element of memory that other threads change too.
template <class T, class Change>
KILN_FN void change_element(T* at, Change change) {
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
template <int Mode, class T>
KILN_FN void apply_update(T* at, T given) {
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

/// As `gather_elements`.
template <int Mode, class T, class I>
KILN_FN void scatter_elements(T* out, int* winners, const I* indices, const T* updates, const i64* n, i64 at,
                              int* faults, bool noting) {
  i64 rest = at, to = checked_index(indices[at], n[1], faults) * n[2];
  for (int d = static_cast<int>(n[0]) - 1; d >= 0; --d) {
    const i64 q = rest / n[3 + 2 * d];
    to += (rest - q * n[3 + 2 * d]) * n[4 + 2 * d];
    rest = q;
  }
  scatter_to<Mode>(out, winners, updates, to, at, noting);
}

/// n: elements of a slice, then as `tuple_place`.
template <int Mode, class T, class I>
KILN_FN void scatter_nd(T* out, int* winners, const I* indices, const T* updates, const i64* n, i64 at, int* faults,
                        bool noting) {
  const i64 row = at / n[0];
  const i64 to = tuple_place(indices + row * n[1], n + 1, 0, faults) * n[0] + (at - row * n[0]);
  scatter_to<Mode>(out, winners, updates, to, at, noting);
}

}  // namespace kiln::device
