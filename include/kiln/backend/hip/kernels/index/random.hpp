#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/elements.hpp"

namespace kiln::gpu {

/// Numbers of a Mersenne twister (Matsumoto and Nishimura 1998), 53 bits each, by one block: a word of the next state
/// needs the words 1 and 397 after it, so that 227 can be made at a time.
template <int Lanes, class T> KILN_FN void random_uniform(T* out, const random_sizes& n, int lane) {
  constexpr int size = 624, reach = 397, together = size - reach;
  static_assert(together <= Lanes);
  KILN_SHARED u32 state[size];
  if (lane == 0) {
    state[0] = static_cast<u32>(n.seed);
    for (int i = 1; i < size; ++i) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + static_cast<u32>(i);
  }
  const auto drawn = [&](int i) {
    u32 y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  };
  for (i64 done = 0; done < n.count; done += size / 2) {
    for (int from = 0; from < size; from += together) {
      sync_block();
      const int i = from + lane;
      const bool mine = lane < together && i < size;
      u32 next = 0;
      if (mine) {
        const u32 y = (state[i] & 0x80000000u) | (state[(i + 1) % size] & 0x7fffffffu);
        next = state[(i + reach) % size] ^ (y >> 1) ^ ((y & 1u) != 0 ? 0x9908b0dfu : 0u);
      }
      sync_block();
      if (mine) state[i] = next;
    }
    sync_block();
    for (int i = lane; i < size / 2 && done + i < n.count; i += Lanes) {
      const double high_bits = drawn(2 * i) >> 5, low_bits = drawn(2 * i + 1) >> 6;
      out[done + i] = stored<T>(n.low + (n.high - n.low) * ((high_bits * 67108864.0 + low_bits) / 9007199254740992.0));
    }
  }
}

}  // namespace kiln::gpu
