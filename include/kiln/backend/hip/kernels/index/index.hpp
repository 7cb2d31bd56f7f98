#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/reduce/arguments.hpp"

// Ops that compute where elements come from, one function for the work of one thread: `at` counts the results, in a
// type that holds every place (int where operands are small enough, since divisions of 64 bits are long), `n` are
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

/// Runs of 16 bytes of `count` bytes; the last is shorter.
template <class Index> KILN_FN void copy_run(unsigned char* to, const unsigned char* from, i64 count, Index at) {
  using run = pack<u32, 4>;
  const i64 first = i64(at) * 16;
  if (first + 16 <= count) {
    reinterpret_cast<run*>(to)[at] = reinterpret_cast<const run*>(from)[at];
    return;
  }
  for (i64 i = first; i < count; ++i) to[i] = from[i];
}

template <class T, class I, class Index>
KILN_FN void gather(T* out, const T* data, const I* indices, const gather_sizes& n, Index at, int* faults) {
  const auto inner = static_cast<Index>(n.inner), count = static_cast<Index>(n.indices);
  const Index row = at / inner, o = row / count, k = row - o * count;
  const auto from = static_cast<Index>(checked_index(indices[k], n.extent, faults));
  out[at] = data[(o * static_cast<Index>(n.extent) + from) * inner + (at - row * inner)];
}

/// Where the index of an element points, for element `at` of the indices.
template <int Rank, class I, class Index>
KILN_FN Index element_place(const I* indices, const element_sizes& n, Index at, int* faults) {
  Index rest = at,
        place = static_cast<Index>(checked_index(indices[at], n.axis_extent, faults)) * static_cast<Index>(n.axis_step);
  KILN_UNROLL
  for (int d = Rank - 1; d >= 0; --d) {
    const auto extent = static_cast<Index>(n.dims[d].extent);
    const Index q = d == 0 ? 0 : rest / extent;
    place += (rest - q * extent) * static_cast<Index>(n.dims[d].step);
    rest = q;
  }
  return place;
}
template <int Rank, class T, class I, class Index>
KILN_FN void gather_elements(T* out, const T* data, const I* indices, const element_sizes& n, Index at, int* faults) {
  out[at] = data[element_place<Rank>(indices, n, at, faults)];
}

/// Which slice a tuple of indices names, counted from slice `from` of the dims before.
template <int Length, class I, class Index>
KILN_FN Index tuple_place(const I* tuple, const tuple_sizes& n, Index from, int* faults) {
  KILN_UNROLL
  for (int d = 0; d < Length; ++d)
    from = from * static_cast<Index>(n.extents[d]) + static_cast<Index>(checked_index(tuple[d], n.extents[d], faults));
  return from;
}
template <int Length, class T, class I, class Index>
KILN_FN void gather_nd(T* out, const T* data, const I* indices, const tuple_sizes& n, Index at, int* faults) {
  const auto slice = static_cast<Index>(n.slice);
  const Index row = at / slice;
  const Index from = tuple_place<Length>(indices + row * Length, n, row / static_cast<Index>(n.rows), faults);
  out[at] = data[from * slice + (at - row * slice)];
}

template <int Rank, class T, class Index>
KILN_FN void pad(T* out, const T* data, const T* value, const pad_sizes& n, Index at) {
  Index rest = at, from = 0, step = 1;
  bool inside = true;
  KILN_UNROLL
  for (int d = Rank - 1; d >= 0; --d) {
    const pad_sizes::dim& m = n.dims[d];
    const auto extent = static_cast<Index>(m.out), kept = static_cast<Index>(m.kept);
    const Index q = d == 0 ? 0 : rest / extent;
    Index i = rest - q * extent - static_cast<Index>(m.added);
    rest = q;
    if (i < 0 || i >= kept) {
      if (n.mode == 0) {
        inside = false;
      } else if (n.mode == 2 || kept == 1) {
        i = i < 0 ? 0 : kept - 1;
      } else {
        const Index period = n.mode == 3 ? kept : 2 * (kept - 1), r = (i % period + period) % period;
        i = r < kept ? r : period - r;
      }
    }
    from += (i + static_cast<Index>(m.cropped)) * step;
    step *= static_cast<Index>(m.in);
  }
  T result{};
  if (inside)
    result = data[from];
  else if (value)
    result = *value;
  out[at] = result;
}

template <class T, class I, class Index>
KILN_FN void one_hot(T* out, const I* indices, const T* values, const axis_sizes& n, Index at) {
  const auto inner = static_cast<Index>(n.inner), extent = static_cast<Index>(n.extent);
  const Index row = at / inner, o = row / extent, k = row - o * extent;
  const i64 index = static_cast<i64>(indices[o * inner + (at - row * inner)]);
  out[at] = values[index == k || index + n.extent == k ? 1 : 0];
}

template <class T, class Index> KILN_FN void tri(T* out, const T* in, const tri_sizes& n, Index at) {
  const auto cols = static_cast<Index>(n.cols);
  const Index row = at / cols, j = at - row * cols, i = row % static_cast<Index>(n.rows);
  out[at] = (n.upper != 0 ? j - i >= n.k : j - i <= n.k) ? in[at] : T{};
}

template <class T, class Index> KILN_FN void iota(T* out, const axis_sizes& n, Index at) {
  out[at] = stored<T>(i64(at / static_cast<Index>(n.inner) % static_cast<Index>(n.extent)));
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
    const word made = __builtin_bit_cast(word, parts);
    if (made == old) return;
    const word seen = exchange_if(whole, old, made);
    if (seen == old) return;
    old = seen;
  }
}

/// An update by a scatter's mode (1 add, 2 multiply, 3 least, 4 greatest); integers wrap, a NaN stays.
template <int Mode, class T> KILN_FN void apply_update(T* at, T given) {
  if constexpr (Mode == 1 && adds_at_once<T>)
    if (outweighs_denormals(given)) return add_at_once(at, given);
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

template <int Mode, int Rank, class T, class I, class Index>
KILN_FN void scatter_elements(T* out, int* winners, const I* indices, const T* updates, const element_sizes& n,
                              Index at, int* faults, bool noting) {
  scatter_to<Mode>(out, winners, updates, i64(element_place<Rank>(indices, n, at, faults)), i64(at), noting);
}

template <int Mode, int Length, class T, class I, class Index>
KILN_FN void scatter_nd(T* out, int* winners, const I* indices, const T* updates, const tuple_sizes& n, Index at,
                        int* faults, bool noting) {
  const auto slice = static_cast<Index>(n.slice);
  const Index row = at / slice;
  const Index to = tuple_place<Length>(indices + row * Length, n, Index(0), faults) * slice + (at - row * slice);
  scatter_to<Mode>(out, winners, updates, i64(to), i64(at), noting);
}

/// The same without a combination, in two kernels: each tuple notes its number (from 1) with the slice that it names,
/// then a thread moves a part of an update's slice where its tuple is the last.
template <int Length, class I, class Index>
KILN_FN void note_tuple(int* winners, const I* indices, const tuple_sizes& n, Index at, int* faults) {
  raise_number(winners + tuple_place<Length>(indices + at * Length, n, Index(0), faults), static_cast<int>(at) + 1);
}
template <int Length, class T, class I, class Index>
KILN_FN void scatter_slices(T* out, const int* winners, const I* indices, const T* updates, const tuple_sizes& n,
                            Index at, int* faults) {
  const auto slice = static_cast<Index>(n.slice);
  const Index row = at / slice, to = tuple_place<Length>(indices + row * Length, n, Index(0), faults);
  if (winners[to] == static_cast<int>(row) + 1) out[to * slice + (at - row * slice)] = updates[at];
}

}  // namespace kiln::gpu
