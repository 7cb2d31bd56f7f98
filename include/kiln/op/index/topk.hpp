#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// The `k` greatest (or least) elements along `axis` and their i64 indices, as two results (ONNX TopK), best first
/// whether or not `sorted` asks for it. Of equal elements the one with the lower index comes first; a NaN is greater
/// than any number.
struct topk {
  dimension k = 1;
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  static constexpr auto types = dtypes::numbers;

  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::axis_fault(in, axis, types)) return *f;
    dims lens = in[0].lens;
    dimension& extent = lens[static_cast<std::size_t>(normal_axis(axis, in[0].rank()))];
    const auto fits = at_most(k, extent), positive = at_most(0, k);
    if ((fits && !*fits) || (positive && !*positive))
      return fault::of(errc::shape_mismatch, "k lies between 0 and the extent of the axis", extent, k);
    extent = k;
    shapes out;
    out.push_back(shape{in[0].type, lens});
    out.push_back(shape{dtype::i64, lens});
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    const auto values = e.template out<T>(0);
    const auto indices = e.template out<std::int64_t>(1);
    const auto s = detail::split_at(in.lens, axis);
    const std::int64_t n = e.number(k);
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t i = 0; i < s.inner; ++i) {
        const auto element = [&](std::int64_t at) { return in[(o * s.extent + at) * s.inner + i]; };
        const auto slot = [&](std::int64_t at) -> std::int64_t& { return indices[(o * n + at) * s.inner + i]; };
        select(s.extent, n, slot,
               [&](std::int64_t a, std::int64_t b) { return before<T>(element(a), a, element(b), b); });
        for (std::int64_t at = 0; at < n; ++at) values[(o * n + at) * s.inner + i] = element(slot(at));
      }
  }

 private:
  template <class T> constexpr bool before(T x, std::int64_t x_index, T y, std::int64_t y_index) const {
    const bool x_nan = x != x, y_nan = y != y;
    const bool greater = x_nan ? !y_nan : x > y, less = y_nan ? !x_nan : x < y;
    if (greater || less) return greater == largest;
    return x_index < y_index;
  }
  // Leaves the n best of [0, extent) in the slots, best first: a heap with its worst at the root takes every candidate,
  // then gives up its worst from the back. The slots are the result itself, so no memory is needed.
  template <class Slot, class Before>
  static constexpr void select(std::int64_t extent, std::int64_t n, Slot slot, Before before) {
    if (n == 0) return;
    const auto sink = [&](std::int64_t at, std::int64_t size) {
      const std::int64_t moving = slot(at);
      for (std::int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && before(slot(child), slot(child + 1))) ++child;
        if (!before(moving, slot(child))) break;
        slot(at) = slot(child);
        at = child;
      }
      slot(at) = moving;
    };
    for (std::int64_t at = 0; at < n; ++at) slot(at) = at;
    for (std::int64_t at = n / 2; at-- > 0;) sink(at, n);
    for (std::int64_t at = n; at < extent; ++at)
      if (before(at, slot(0))) {
        slot(0) = at;
        sink(0, n);
      }
    for (std::int64_t size = n; --size > 0;) {
      const std::int64_t worst = slot(0);
      slot(0) = slot(size);
      slot(size) = worst;
      sink(0, size);
    }
  }
};

}  // namespace kiln::op
