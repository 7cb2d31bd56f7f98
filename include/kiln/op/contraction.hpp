#pragma once
#include "kiln/op/evaluation.hpp"

namespace kiln {

/// Most dims of a contraction's iteration space.
inline constexpr std::size_t max_iteration_rank = 14;

/// One index of an operand as an affine function of the iteration: constant + sum of coefficient * iteration index.
struct affine {
  inline_vector<std::int64_t, max_iteration_rank> coefficient{};
  std::int64_t constant = 0;
};
/// How an operand is indexed: one affine function for each of its dims.
using access = inline_vector<affine, max_rank>;

/// A sum of products as data: out[out(i)] = sum over the reduced iteration of lhs[lhs(i)] * rhs[rhs(i)]. Reads outside
/// an operand are zero (padding).
struct contraction {
  dtype type = dtype::f32;                                 ///< of the result
  dims out_lens{};                                         ///< extents of the result
  inline_vector<dimension, max_iteration_rank> extents{};  ///< iteration space; the last `reduced` are summed
  std::size_t reduced = 0;
  access lhs{}, rhs{}, out{};

  /// A plain index: the iteration dim itself.
  constexpr affine index(std::size_t iteration) const { return index(iteration, 1, 0); }
  /// coefficient * iteration + constant.
  constexpr affine index(std::size_t iteration, std::int64_t coefficient, std::int64_t constant) const {
    affine a;
    a.coefficient.resize(extents.size());
    a.coefficient[iteration] = coefficient;
    a.constant = constant;
    return a;
  }
  /// The index that always reads element 0 (a broadcast extent of 1).
  constexpr affine first() const {
    affine a;
    a.coefficient.resize(extents.size());
    return a;
  }
};

namespace detail {

// An access against concrete extents: element steps per iteration dim, and the dims that need a bounds check.
struct linear_access {
  inline_vector<std::int64_t, max_iteration_rank> step{};
  std::int64_t offset = 0;
  struct guard {
    affine index;
    std::int64_t limit = 0;
  };
  inline_vector<guard, max_rank> guards{};
};

constexpr linear_access linearize(const access& a, const ints& lens,
                                  const inline_vector<std::int64_t, max_iteration_rank>& extents) {
  linear_access out;
  out.step.resize(extents.size());
  const ints strides = row_major(lens);
  for (std::size_t d = 0; d < a.size(); ++d) {
    std::int64_t low = a[d].constant, high = low;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      out.step[i] += a[d].coefficient[i] * strides[d];
      const std::int64_t reach = a[d].coefficient[i] * (extents[i] - 1);
      (reach < 0 ? low : high) += reach;
    }
    out.offset += a[d].constant * strides[d];
    if (low < 0 || high >= lens[d]) out.guards.push_back({a[d], lens[d]});
  }
  return out;
}

// Narrows [low, high) of the innermost iteration to where the guarded indices are inside their operand.
constexpr void clip(const linear_access& a, const inline_vector<std::int64_t, max_iteration_rank>& at,
                    std::size_t inner, std::int64_t& low, std::int64_t& high) {
  for (const auto& g : a.guards) {
    std::int64_t base = g.index.constant;
    for (std::size_t i = 0; i < inner; ++i) base += g.index.coefficient[i] * at[i];
    const std::int64_t c = g.index.coefficient[inner];
    if (c == 0) {
      if (base < 0 || base >= g.limit) high = low;
      continue;
    }
    while (low < high && (base + c * low < 0 || base + c * low >= g.limit)) ++low;
    while (low < high && (base + c * (high - 1) < 0 || base + c * (high - 1) >= g.limit)) --high;
  }
}

}  // namespace detail

/// The reference computation every contraction shares. Float sums are kept in double and rounded once; `outside` is
/// what the left operand holds beyond its extents.
template <class T> constexpr void evaluate_contraction(const contraction& c, evaluation& e, T outside = T(0)) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const auto lhs = e.in<T>(0), rhs = e.in<T>(1);
  const auto out = e.out<T>();
  inline_vector<std::int64_t, max_iteration_rank> extents, at;
  for (dimension d : c.extents) extents.push_back(d.value());
  at.resize(extents.size());
  const auto l = detail::linearize(c.lhs, lhs.lens, extents), r = detail::linearize(c.rhs, rhs.lens, extents),
             o = detail::linearize(c.out, out.lens, extents);
  const std::size_t outer = extents.size() - c.reduced, inner = extents.size() - 1;
  for (std::int64_t i = 0; i < out.size(); ++i) out[i] = T(0);
  for (std::size_t d = 0; d < extents.size(); ++d)
    if (extents[d] == 0) return;
  const auto offset = [&](const detail::linear_access& a, std::size_t upto) {
    std::int64_t n = a.offset;
    for (std::size_t d = 0; d < upto; ++d) n += a.step[d] * at[d];
    return n;
  };
  const auto advance = [&](std::size_t from, std::size_t to) {
    for (std::size_t d = to; d-- > from;) {
      if (++at[d] < extents[d]) return true;
      at[d] = 0;
    }
    return false;
  };
  do {
    Sum sum = Sum(0);
    do {
      std::int64_t low = 0, high = extents[inner];
      detail::clip(r, at, inner, low, high);
      const std::int64_t first = low, last = high;
      detail::clip(l, at, inner, low, high);
      if (outside != T(0)) {
        const std::int64_t row = offset(r, inner);
        for (std::int64_t k = first; k < last; ++k)
          if (k < low || k >= high) sum += static_cast<Sum>(outside) * static_cast<Sum>(rhs[row + k * r.step[inner]]);
      }
      std::int64_t a = offset(l, inner) + low * l.step[inner], b = offset(r, inner) + low * r.step[inner];
      for (std::int64_t k = low; k < high; ++k, a += l.step[inner], b += r.step[inner])
        sum += static_cast<Sum>(lhs[a]) * static_cast<Sum>(rhs[b]);
    } while (advance(outer, inner));
    out[offset(o, outer)] = static_cast<T>(sum);
  } while (advance(0, outer));
}

}  // namespace kiln
