#pragma once
#include "kiln/fixed/product_plan.hpp"
#include "kiln/fixed/walk.hpp"

namespace kiln::fixed {

/// Axes of a product as constants: up to the iteration's rank, with the steps of N operands.
template <std::size_t N>
struct axes {
  inline_vector<std::int64_t, max_iteration_rank> extent{}, iteration{};
  inline_vector<std::int64_t, max_iteration_rank> step[N]{};

  constexpr std::size_t size() const { return extent.size(); }
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t e : extent) n *= e;
    return n;
  }
  /// Step of the group as one axis.
  constexpr std::int64_t last(std::size_t k) const { return extent.empty() ? 0 : step[k].back(); }

  static constexpr axes of(const small_vector<axis>& from) {
    axes a;
    for (const axis& x : from) {
      a.extent.push_back(x.extent);
      a.iteration.push_back(x.iteration);
      for (std::size_t k = 0; k < N; ++k) a.step[k].push_back(x.step[k]);
    }
    return a;
  }
};

/// Gathers an operand into rows of `Pitch` elements, zeros where its index lies in the padding. `Shape` names the
/// operand's steps along the dims in the order of the packed form (`nest`, the last `Inner` of which make a packed
/// row), its guards, and `Pitch`.
template <class Shape>
struct packer {
  static constexpr std::size_t guards = Shape::guards.size();
  struct position {
    std::int64_t index[guards ? guards : 1];
  };

  template <std::size_t D, class S>
  static KILN_FN void dim(const S* from, S*& to, position at) {
    constexpr auto& n = Shape::nest;
    if constexpr (D == n.size()) {
      *to++ = inside(at) ? *from : S(0);
    } else if constexpr (D + 1 == n.size()) {
      last<D>(from, to, at);
    } else {
      for (std::int64_t i = 0; i < n.extent[D]; ++i) {
        S* const row = to;
        position here = at;
        each<guards>([&](auto g) { here.index[g] += i * Shape::guards[g].index.coefficient[iteration(D)]; });
        dim<D + 1>(from + i * n.step[Shape::operand][D], to, here);
        if constexpr (D + 1 == n.size() - Shape::row_dims) to = row + Shape::pitch;
      }
    }
  }
  static constexpr std::size_t iteration(std::size_t d) { return static_cast<std::size_t>(Shape::nest.iteration[d]); }

  static KILN_FN bool inside(const position& at) {
    bool ok = true;
    each<guards>([&](auto g) { ok = ok && at.index[g] >= 0 && at.index[g] < Shape::guards[g].limit; });
    return ok;
  }

  template <std::size_t D, class S>
  static KILN_FN void last(const S* from, S*& to, const position& at) {
    constexpr std::int64_t extent = Shape::nest.extent[D], step = Shape::nest.step[Shape::operand][D];
    std::int64_t low = 0, high = extent;
    each<guards>([&](auto g) {
      constexpr std::int64_t c = Shape::guards[g].index.coefficient[iteration(D)], limit = Shape::guards[g].limit;
      const std::int64_t base = at.index[g];
      if constexpr (c == 0) {
        if (base < 0 || base >= limit) high = low;
      } else {
        static_assert(c > 0, "kiln: a padded index grows with its iteration");
        const std::int64_t first = base >= 0 ? 0 : (-base + c - 1) / c,
                           end = limit > base ? (limit - base + c - 1) / c : 0;
        low = low < first ? first : low;
        high = high < end ? high : end;
      }
    });
    if (low >= high) low = high = 0;
    if constexpr (step == 1 && extent <= 64) {
      // one loop of known length, whose loads stay inside the operand
      for (std::int64_t i = 0; i < low; ++i) to[i] = S(0);
      for (std::int64_t i = low; i < high; ++i) to[i] = from[i];
      for (std::int64_t i = high; i < extent; ++i) to[i] = S(0);
    } else {
      for (std::int64_t i = 0; i < extent; ++i) to[i] = i >= low && i < high ? from[i * step] : S(0);
    }
    to += extent;
  }

  /// `start` holds the guarded indices before the dims of `nest`.
  template <class S>
  static void run(const S* from, S* to, const position& start) {
    dim<0>(from, to, start);
  }
};

}  // namespace kiln::fixed
