#pragma once
#include "kiln/static_program/plan/product.hpp"
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// Axes of a product as constants: up to the iteration's rank, with the steps of N operands.
template <std::size_t N> struct axes {
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

/// Copies N elements that lie FromStep apart to places ToStep apart, in vectors where both are contiguous; FromStep 0
/// repeats one element.
template <std::int64_t N, std::int64_t FromStep, std::int64_t ToStep, class T>
KILN_FN void copy_run(T* to, const T* from) {
  if constexpr ((FromStep == 1 || FromStep == 0) && ToStep == 1 && std::is_floating_point_v<T> && N >= 4) {
    constexpr int most = native_lanes<T>, size = N >= most ? most : N >= 8 && most > 8 ? 8 : 4;
    using V = vec<T, size>;
    const auto at = [&](std::int64_t i) {
      if constexpr (FromStep == 1)
        return load<V>(from + i);
      else
        return splat<V>(*from);
    };
    constexpr std::int64_t whole = N / size * size;
    for (std::int64_t i = 0; i < whole; i += size) store(to + i, at(i));
    if constexpr (whole != N) store(to + N - size, at(N - size));
  } else {
    for (std::int64_t i = 0; i < N; ++i) to[i * ToStep] = from[i * FromStep];
  }
}

}  // namespace kiln::aot
