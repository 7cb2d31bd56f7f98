#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Numbers in [low, high) from a Mersenne twister (Matsumoto and Nishimura 1998) of 53 bits a number, row-major from
/// the seed on: every run gives the same ones. Without operands.
struct random_uniform {
  dims lens{};
  double low = 0, high = 1;
  std::uint32_t seed = 0;
  dtype type = dtype::f32;
  static constexpr auto types = dtypes::floats;
  static constexpr bool pure = false;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (!in.empty()) return detail::wrong_operand_count(0, in.size());
    if (!types.contains(type)) return fault::of(errc::unsupported, "dtype of the result", "a float", type);
    return shape{type, lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<T>();
    twister source(seed);
    for (std::int64_t k = 0, n = out.size(); k < n; ++k) {
      const double high_bits = source.next() >> 5, low_bits = source.next() >> 6;
      out[k] = static_cast<T>(low + (high - low) * ((high_bits * 67108864.0 + low_bits) / 9007199254740992.0));
    }
  }

 private:
  class twister {
   public:
    constexpr explicit twister(std::uint32_t seed) {
      state_[0] = seed;
      for (std::uint32_t i = 1; i < size; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }
    constexpr std::uint32_t next() {
      if (at_ == size) refill();
      std::uint32_t y = state_[at_++];
      y ^= y >> 11;
      y ^= y << 7 & 0x9d2c5680u;
      y ^= y << 15 & 0xefc60000u;
      return y ^ y >> 18;
    }

   private:
    static constexpr std::uint32_t size = 624, reach = 397;
    constexpr void refill() {
      for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % size] & 0x7fffffffu);
        state_[i] = state_[(i + reach) % size] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0u);
      }
      at_ = 0;
    }
    std::uint32_t state_[size] = {};
    std::uint32_t at_ = size;
  };
};

}  // namespace kiln::op
