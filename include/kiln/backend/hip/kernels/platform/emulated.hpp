#pragma once
#include <cstring>

#include "kiln/backend/hip/kernels/platform/storage_types.hpp"
#include "kiln/core/half.hpp"
#include "kiln/core/math/exp.hpp"
#include "kiln/core/math/log.hpp"

// The device's instructions for a program that runs tile kernels on the CPU, one coroutine a lane, as tests do.
// Included by platform.hpp.

namespace kiln::gpu {

/// The lane that runs now and what it waits for: whoever runs the lanes defines these.
struct emulated_lane {
  int thread = 0, block_x = 0, block_y = 0, blocks_x = 1;
};
extern emulated_lane now;
void wait_for_block();
void wait_for_warp();
/// Lets the other lanes go on before this one does.
void wait_for_others();
/// One slot a thread of the block, which its warp reads after a wait.
std::byte* exchange_slot(int thread);
inline constexpr int exchange_bytes = 256;

inline void let_next_begin() {}
inline void await_last() {}
inline int thread_index() { return now.thread; }
inline int lane_index() { return now.thread % warp_lanes; }
inline int block_x() { return now.block_x; }
inline int block_y() { return now.block_y; }
inline int blocks_x() { return now.blocks_x; }
inline void sync_block() { wait_for_block(); }
inline void sync_warp() { wait_for_warp(); }
inline void fence_device() {}
inline int atomic_add(int* at, int by) {
  const int old = *at;
  *at += by;
  return old;
}
/// What the lane `lane_index() ^ mask` passed.
template <class T> T shuffle_xor(T x, int mask) {
  static_assert(sizeof(T) <= exchange_bytes);
  std::memcpy(exchange_slot(now.thread), &x, sizeof x);
  wait_for_warp();
  std::memcpy(&x, exchange_slot(now.thread ^ mask), sizeof x);
  wait_for_warp();
  return x;
}
inline float bits_as_float(u32 x) { return std::bit_cast<float>(x); }
inline float float_of_half(u16 bits) { return half_value(bits); }
inline u16 half_of_float(float x) { return half_bits(x); }
inline u16 bfloat_of_float(float x) { return bfloat16_bits(x); }
template <class T> u32 two_narrow(float low, float high) {
  const auto one = [](float x) -> u32 { return elementary::same<T, f16> ? half_of_float(x) : bfloat_of_float(x); };
  return one(low) | one(high) << 16;
}
template <class F> u32 two_halves(u32 pair) {
  const auto one = [](u32 byte) -> u32 {
    F x;
    x.bits = static_cast<unsigned char>(byte);
    return half_of_float(static_cast<float>(x));
  };
  return one(pair) | one(pair >> 8) << 16;
}
inline float greater_or_nan(float a, float b) { return a > b || a != a ? a : b; }
inline float log2_device(float x) { return kiln::log2(x); }
inline float exp2_device(float x) { return x < -150 ? 0.0f : kiln::exp(x * 0.69314718f); }

template <int Bytes> void copy_async(void* to, const void* from, int valid) {
  std::memset(to, 0, Bytes);
  std::memcpy(to, from, static_cast<std::size_t>(valid));
}
template <int Bytes> void copy_async(void* to, const void* from) { std::memcpy(to, from, Bytes); }
inline void prefetch(const void*) {}
inline void read_once(u32 (&to)[4], const void* from) { std::memcpy(to, from, sizeof to); }
inline u32 pick_bytes(u32 low, u32 high, int which) {
  u32 to = 0;
  for (int i = 0; i < 4; ++i) {
    const int from = which >> 4 * i & 7;
    to |= ((from < 4 ? low : high) >> from % 4 * 8 & 0xff) << 8 * i;
  }
  return to;
}
/// One operation on each of the two elements of a register.
template <class T, class Value> u32 on_pairs(Value value) {
  const auto one = [](u32 word, int i) {
    const u16 bits = static_cast<u16>(word >> 16 * i);
    return elementary::same<T, f16> ? float_of_half(bits) : bits_as_float(static_cast<u32>(bits) << 16);
  };
  return two_narrow<T>(value([&](u32 w) { return one(w, 0); }), value([&](u32 w) { return one(w, 1); }));
}
template <class T> u32 multiply_pairs(u32 a, u32 b) {
  return on_pairs<T>([&](auto of) { return of(a) * of(b); });
}
// exact in float: factors and sums of 16-bit floats that kernels of stored numbers have
template <class T> u32 fma_pairs(u32 a, u32 b, u32 c) {
  return on_pairs<T>([&](auto of) { return of(a) * of(b) + of(c); });
}
inline void copy_commit() {}
template <int Pending> void copy_wait() {}

}  // namespace kiln::gpu
