#pragma once
#include "kiln/static_program/step/body.hpp"

namespace kiln::aot {

/// A walk over some dims of N operands at once: dims that continue each other for every operand are one.
template <std::size_t N> struct walk {
  ints extent{};
  ints step[N ? N : 1]{};

  constexpr std::int64_t elements() const { return product(extent); }
  /// Extent of the innermost dim, 1 where there is none.
  constexpr std::int64_t inner() const { return extent.empty() ? 1 : extent.back(); }
  constexpr std::int64_t outer() const {
    std::int64_t n = 1;
    for (std::size_t d = 0; d + 1 < extent.size(); ++d) n *= extent[d];
    return n;
  }
  constexpr std::int64_t inner_step(std::size_t k) const { return extent.empty() ? 1 : step[k].back(); }
  /// Whether vectors serve the innermost dim: inputs have steps of 0 or 1, the last `outputs` operands of 1.
  constexpr bool contiguous(std::size_t outputs) const {
    if (extent.empty()) return true;
    for (std::size_t k = 0; k < N; ++k)
      if (inner_step(k) != 1 && (inner_step(k) != 0 || k + outputs >= N)) return false;
    return true;
  }
};

/// The walk over the dims that `use` names of operands with these strides.
template <std::size_t N, class Strides, class Use>
constexpr walk<N> make_walk(const ints& lens, const Strides& strides, Use use) {
  walk<N> w;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    if (lens[d] == 1 || !use(d)) continue;
    bool joins = !w.extent.empty();
    for (std::size_t k = 0; k < N && joins; ++k) joins = w.step[k].back() == strides(k, d) * lens[d];
    if (joins) {
      w.extent.back() *= lens[d];
      for (std::size_t k = 0; k < N; ++k) w.step[k].back() = strides(k, d);
    } else {
      w.extent.push_back(lens[d]);
      for (std::size_t k = 0; k < N; ++k) w.step[k].push_back(strides(k, d));
    }
  }
  return w;
}

/// The dims by falling strides, so that those side by side in memory stand last; equal ones keep their order.
constexpr inline_vector<std::size_t, max_rank> by_falling_strides(const ints& strides) {
  inline_vector<std::size_t, max_rank> order;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    order.push_back(d);
    for (std::size_t k = d; k > 0 && strides[order[k - 1]] < strides[d]; --k) {
      order[k] = order[k - 1];
      order[k - 1] = d;
    }
  }
  return order;
}

/// The walk over all dims in that order of the strides of `out`.
template <std::size_t N, class Strides> constexpr walk<N> make_memory_walk(const place& out, const Strides& strides) {
  const auto order = by_falling_strides(out.strides);
  ints lens;
  for (std::size_t d : order) lens.push_back(out.lens[d]);
  return make_walk<N>(
      lens, [&](std::size_t k, std::size_t d) { return strides(k, order[d]); }, [](std::size_t) { return true; });
}

/// Element offset of operand K at position `flat` of the first `Dims` dims of a walk.
template <const auto& W, std::size_t K, std::size_t Dims> KILN_FN std::int64_t offset_at(std::int64_t flat) {
  std::int64_t o = 0;
  if constexpr (Dims > 0) {
    for (std::size_t d = Dims; d-- > 0;) {
      o += (d == 0 ? flat : flat % W.extent[d]) * W.step[K][d];
      flat /= W.extent[d];
    }
  } else {
    (void)flat;
  }
  return o;
}

/// Element offset of dims [0, Dims) of operand K at a row-major position.
template <class Step, std::size_t K, std::size_t Dims> KILN_FN std::int64_t element_offset(std::int64_t flat) {
  constexpr place p = Step::operand(K);
  std::int64_t o = p.offset;
  for (std::size_t d = Dims; d-- > 0; flat /= p.lens[d]) o += flat % p.lens[d] * p.strides[d];
  return o;
}

/// The position in an extent that an index names (negative ones count from the end), the nearest one where it lies
/// outside: a static program has no way to report an error while it runs. An extent of nothing has none, and ends it.
KILN_FN std::int64_t nearest_index(std::int64_t i, std::int64_t extent) {
  if (extent < 1) __builtin_trap();
  if (i < 0) i += extent;
  return i < 0 ? 0 : i >= extent ? extent - 1 : i;
}

}  // namespace kiln::aot
