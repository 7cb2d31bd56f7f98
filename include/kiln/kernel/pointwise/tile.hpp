#pragma once
#include "kiln/core/simd.hpp"
#include "kiln/op/table.hpp"

namespace kiln::kernels {

using float_vec = vec<float, native_lanes<float>>;
using float_mask = decltype(float_vec{} < float_vec{});

/// A vector of bytes as 32-bit integers. (g++ 12 widens bytes one by one.)
template <class Byte> KILN_FN vec<std::int32_t, native_lanes<float>> load_bytes(const Byte* p) {
  using V = vec<std::int32_t, native_lanes<float>>;
#if KILN_HAS_MXCSR
  if constexpr (native_bytes >= 32) {
    struct [[gnu::may_alias]] stored {
      char of[native_lanes<float>];
    };
    const auto& bytes = *reinterpret_cast<const stored*>(p);
    V y;
    if constexpr (std::is_signed_v<Byte>)
      asm("vpmovsxbd %1, %0" : "=v"(y) : "m"(bytes));
    else
      asm("vpmovzxbd %1, %0" : "=v"(y) : "m"(bytes));
    return y;
  }
#endif
  using plain = std::conditional_t<std::is_signed_v<Byte>, std::int8_t, std::uint8_t>;
  return convert<V>(load<vec<plain, native_lanes<float>>>(reinterpret_cast<const plain*>(p)));
}

/// A mask from n bools (0 or 1), n at most one vector.
inline float_mask load_mask(const bool* p, int n) {
  constexpr int lanes = native_lanes<float>;
  if (n == lanes) return load_bytes(reinterpret_cast<const std::uint8_t*>(p)) != 0;
  std::uint8_t bytes[lanes] = {};
  __builtin_memcpy(bytes, p, static_cast<std::size_t>(n));
  return load_bytes(bytes) != 0;
}
inline void store_mask(bool* p, float_mask m, int n) {
  constexpr int lanes = native_lanes<float>;
  const vec<std::int8_t, lanes> bytes = __builtin_convertvector(m & 1, vec<std::int8_t, lanes>);
  __builtin_memcpy(p, &bytes, static_cast<std::size_t>(n));
}

/// Pointwise op over n contiguous floats.
template <class Op, std::size_t... C, std::size_t... I>
void pointwise_tile(const Op& op, const void* const* in, void* out, std::int64_t n, std::index_sequence<C...>,
                    std::index_sequence<I...>) {
  constexpr int lanes = native_lanes<float>;
  const auto block = [&](std::int64_t at, int count, auto load_values) {
    const auto result = op(load_mask(static_cast<const bool*>(in[C]) + at, count)...,
                           load_values(static_cast<const float*>(in[sizeof...(C) + I]) + at, count)...);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(result)>, float_vec>)
      store_n(static_cast<float*>(out) + at, result, count);
    else
      store_mask(static_cast<bool*>(out) + at, result, count);
  };
  std::int64_t at = 0;
  for (; at + lanes <= n; at += lanes) {
    const auto result = op(load_mask(static_cast<const bool*>(in[C]) + at, lanes)...,
                           load<float_vec>(static_cast<const float*>(in[sizeof...(C) + I]) + at)...);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(result)>, float_vec>)
      store(static_cast<float*>(out) + at, result);
    else
      store_mask(static_cast<bool*>(out) + at, result, lanes);
  }
  if (at < n)
    block(at, static_cast<int>(n - at), [](const float* p, int count) { return load_n<float_vec>(p, count); });
}

template <class Op> void pointwise_tile_of(const void* op, const void* const* in, void* out, std::int64_t n) {
  constexpr auto arity = static_cast<std::size_t>(detail::call_arity<Op>()),
                 c = static_cast<std::size_t>(detail::condition_args_of<Op>());
  pointwise_tile(*static_cast<const Op*>(op), in, out, n, std::make_index_sequence<c>{},
                 std::make_index_sequence<arity - c>{});
}

/// Folds n contiguous floats into acc. Four independent partial results keep the adder busy and the error small.
template <class Op> void fold_tile_of(const void* data, const float* in, std::int64_t n, float* acc) {
  const Op& op = *static_cast<const Op*>(data);
  constexpr int lanes = native_lanes<float>;
  const auto prepared = [&](auto x) {
    if constexpr (requires { op.prepare(x); })
      return op.prepare(x);
    else
      return x;
  };
  std::int64_t at = 0;
  float total = *acc;
  if (n >= lanes) {
    float_vec part[4];
    for (float_vec& p : part) p = broadcast<float_vec>(identity_of<float>(op));
    for (; at + 4 * lanes <= n; at += 4 * lanes)
      for (int k = 0; k < 4; ++k) part[k] = op.combine(part[k], prepared(load<float_vec>(in + at + k * lanes)));
    for (; at + lanes <= n; at += lanes) part[0] = op.combine(part[0], prepared(load<float_vec>(in + at)));
    float_vec all = op.combine(op.combine(part[0], part[1]), op.combine(part[2], part[3]));
    for (int k = 0; k < lanes; ++k) total = op.combine(total, static_cast<float>(all[k]));
  }
  for (; at < n; ++at) total = op.combine(total, prepared(in[at]));
  *acc = total;
}

}  // namespace kiln::kernels
