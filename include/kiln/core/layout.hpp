#pragma once
#include "kiln/core/shape.hpp"

namespace kiln {

/// Where the elements of a value are stored in a buffer: extents, strides (in elements, 0 for a broadcast dim, negative
/// for a reversed one) and the offset of element 0. A view op maps one layout to another without touching data.
struct layout {
  dims lens;
  dims strides;
  dimension offset = 0;

  static constexpr layout standard(const dims& lens) { return {lens, row_major(lens), 0}; }
  constexpr bool is_standard() const { return offset == dimension(0) && dense(); }
  /// Row-major without gaps; the offset is free. Strides of extents 1 do not matter.
  constexpr bool dense() const {
    dimension step = 1;
    for (std::size_t i = lens.size(); i-- > 0;) {
      if (lens[i] == dimension(1)) continue;
      if (!(strides[i] == step)) return false;
      step = step * lens[i];
    }
    return true;
  }
  friend constexpr bool operator==(const layout&, const layout&) = default;
};

/// Whether `b` is a known multiple of `a`.
constexpr bool divides(dimension a, dimension b) { return !(a == dimension(0)) && b / a * a == b; }

/// Reinterprets a layout under new extents with the same element count, or nullopt where that needs a copy. Groups of
/// old and new dims with equal products must be contiguous inside (the rule of numpy's no-copy reshape).
constexpr std::optional<layout> reshape_layout(const layout& in, const dims& lens) {
  if (in.lens == lens) return in;
  layout old;  // without extents of 1, whose strides say nothing
  old.offset = in.offset;
  for (std::size_t i = 0; i < in.lens.size(); ++i) {
    if (in.lens[i] == dimension(1)) continue;
    old.lens.push_back(in.lens[i]);
    old.strides.push_back(in.strides[i]);
  }
  layout out{lens, dims(lens.size(), dimension(1)), in.offset};
  std::size_t i = 0, j = 0;
  while (i < old.lens.size() || j < lens.size()) {
    if (j < lens.size() && lens[j] == dimension(1)) {
      ++j;
      continue;
    }
    if (i == old.lens.size() || j == lens.size()) {
      // what remains on one side only is a product of 1, or the element count is zero
      for (; j < lens.size(); ++j) out.strides[j] = 1;
      return product(in.lens) == product(lens) ? std::optional(out) : std::nullopt;
    }
    std::size_t i1 = i + 1, j1 = j + 1;
    dimension from = old.lens[i], to = lens[j];
    while (!(from == to)) {
      // the smaller side takes its next dim; between symbolic products "smaller" means "divides"
      const bool grow_from = from.is_constant() && to.is_constant() ? from.raw() < to.raw() : divides(from, to);
      if (grow_from && i1 < old.lens.size())
        from *= old.lens[i1++];
      else if (!grow_from && j1 < lens.size())
        to *= lens[j1++];
      else
        return std::nullopt;
    }
    for (std::size_t k = i; k + 1 < i1; ++k)
      if (!(old.strides[k] == old.strides[k + 1] * old.lens[k + 1])) return std::nullopt;
    dimension step = old.strides[i1 - 1];
    for (std::size_t k = j1; k-- > j;) {
      out.strides[k] = step;
      step = step * lens[k];
    }
    i = i1, j = j1;
  }
  return out;
}

static_assert(layout::standard({2, 3, 4}).strides == dims{12, 4, 1});
static_assert(reshape_layout(layout::standard({2, 3, 4}), {6, 4})->strides == dims{4, 1});
static_assert(reshape_layout({{2, 3}, {1, 2}, 0}, {6}) == std::nullopt);
static_assert(reshape_layout({{2, 3}, {1, 2}, 0}, {2, 1, 3})->strides == dims{1, 1, 2});
static_assert(reshape_layout(layout::standard({}), {1, 1})->lens == dims{1, 1});

}  // namespace kiln
