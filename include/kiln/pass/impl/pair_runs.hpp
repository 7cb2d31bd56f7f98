#pragma once
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "kiln/core/layout.hpp"
#include "kiln/core/simd.hpp"
#include "kiln/graph/operation.hpp"

// Pointwise ops of two floats over constants, a run of elements at a time.
namespace kiln::detail {

/// An operand of a run: elements one after the other, at any address, or one for all.
struct run_operand {
  const std::byte* at;
  bool goes_on;
};

/// The trailing dims of a result along which each of two operands goes on by one element, or stays: one run.
struct runs_of_pairs {
  std::int64_t length = 1;
  bool goes_on[2] = {};
  ints outer, strides[2];  ///< the extents of the other dims, and each operand's strides there

  runs_of_pairs(const dims& lens, std::span<const layout> at) {
    std::size_t d = lens.size();
    bool decided = false;
    for (; d > 0; --d) {
      if (lens[d - 1] == dimension(1)) continue;
      const bool starts = !std::exchange(decided, true);
      bool joins = true;
      for (std::size_t k = 0; k < 2; ++k) {
        const bool next = at[k].strides[d - 1] == dimension(length), same = at[k].strides[d - 1] == dimension(0);
        joins = joins && (starts ? next || same : goes_on[k] ? next : same);
        if (starts) goes_on[k] = next;
      }
      if (!joins) break;
      length *= lens[d - 1].value();
    }
    for (std::size_t k = 0; k < d; ++k) {
      outer.push_back(lens[k].value());
      for (std::size_t i = 0; i < 2; ++i) strides[i].push_back(at[i].strides[k].value());
    }
  }
};

/// Goes over a run of `count` elements.
using pair_run = void (*)(const void* op, run_operand a, run_operand b, float* to, std::int64_t count);

template <class Op> constexpr bool joins_floats() {
  using floats = vec<float, 4>;
  if constexpr (pointwise<Op>) {
    if constexpr (call_arity<Op>() == 2 && condition_args_of<Op>() == 0 &&
                  (types_of<Op>().mask & dtypes::floats.mask) != 0)
      return std::is_same_v<std::invoke_result_t<const Op&, floats, floats>, floats> &&
             std::is_same_v<std::invoke_result_t<const Op&, float, float>, float>;
  }
  return false;
}

template <class Op> void run_pairs(const void* held, run_operand a, run_operand b, float* to, std::int64_t count) {
  using floats = vec<float, 4>;
  const Op& op = *static_cast<const Op*>(held);
  const auto one = [](const std::byte* at) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return x;
  };
  const auto over = [&](auto&& left, auto&& right) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) store(to + i, op(left(i, floats()), right(i, floats())));
    for (; i < count; ++i) to[i] = op(left(i, 0.0F), right(i, 0.0F));
  };
  const auto along = [&](run_operand r) {
    return [=]<class V>(std::int64_t i, V v) {
      std::memcpy(&v, r.at + i * static_cast<std::int64_t>(sizeof(float)), sizeof v);
      return v;
    };
  };
  const auto same = [&](run_operand r) {
    return [x = one(r.at)]<class V>(std::int64_t, V) {
      if constexpr (std::is_same_v<V, float>)
        return x;
      else
        return broadcast<V>(x);
    };
  };
  if (a.goes_on)
    b.goes_on ? over(along(a), along(b)) : over(along(a), same(b));
  else
    b.goes_on ? over(same(a), along(b)) : over(same(a), same(b));
}

template <class... Ops> pair_run pair_run_among(const operation& op, type_list<Ops...>) {
  pair_run found = nullptr;
  const auto look = [&]<class Op>(type_tag<Op>) {
    if constexpr (joins_floats<Op>())
      if (op.is<Op>()) found = run_pairs<Op>;
  };
  (look(type_tag<Ops>{}), ...);
  return found;
}

/// How an op of two floats goes over a run; null for any other op.
inline pair_run pair_run_of(const operation& op) { return pair_run_among(op, default_registry::types{}); }

}  // namespace kiln::detail
