#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::detail {

/// out[k] along `axis` combines `start` and the elements up to k, or before it when `exclusive`, from the end when
/// `reverse`. Floats are accumulated in double.
template <class T>
constexpr void running(Evaluation auto& e, std::int64_t axis, bool exclusive, bool reverse, int start, auto combine) {
  using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const auto in = e.template in<T>(0);
  const auto out = e.template out<T>();
  const auto s = split_at(in.lens, axis);
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      Acc acc = Acc(start);
      for (std::int64_t k = 0; k < s.extent; ++k) {
        const std::int64_t at = (o * s.extent + (reverse ? s.extent - 1 - k : k)) * s.inner + i;
        const Acc next = combine(acc, static_cast<Acc>(in[at]));
        out[at] = static_cast<T>(exclusive ? acc : next);
        acc = next;
      }
    }
}

}  // namespace kiln::detail
