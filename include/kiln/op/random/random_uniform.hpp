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
    for (std::int64_t k = 0, n = out.size(); k < n;) {
      const std::uint32_t* const bits = source.next();
      for (int j = 0; j < twister::size && k < n; j += 2) out[k++] = static_cast<T>(number(bits[j], bits[j + 1]));
    }
  }

  /// The number that two numbers of the twister make.
  constexpr double number(std::uint32_t first, std::uint32_t second) const {
    const double high_bits = first >> 5, low_bits = second >> 6;
    return low + (high - low) * ((high_bits * 67108864.0 + low_bits) * 0x1p-53);
  }

  /// Numbers of 32 bits, by blocks.
  class twister {
   public:
    static constexpr int size = 624;
    constexpr explicit twister(std::uint32_t seed) {
      state_[0] = seed;
      for (std::uint32_t i = 1; i < std::uint32_t{size}; ++i)
        state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }
    /// The next `size` of them.
    constexpr const std::uint32_t* next() {
      renew<reach>(0, size - reach);
      renew<reach - size>(size - reach, size - 1);
      state_[size] = state_[0];
      renew<reach - size>(size - 1, size);
      for (int i = 0; i < size; ++i) {
        std::uint32_t y = state_[i];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        made_[i] = y ^ y >> 18;
      }
      return made_;
    }

   private:
    static constexpr int reach = 397;
    // Numbers [first, last), each of itself, the next one, and the one `By` places on: none that it reads is nearer
    // than a vector is long.
    template <int By> constexpr void renew(int first, int last) {
      std::uint32_t* const at = state_;
      for (int i = first; i < last; ++i) {
        const std::uint32_t y = (at[i] & 0x80000000u) | (at[i + 1] & 0x7fffffffu);
        at[i] = at[i + By] ^ y >> 1 ^ ((0u - (y & 1)) & 0x9908b0dfu);
      }
    }
    std::uint32_t state_[size + 1] = {}, made_[size] = {};
  };
};

}  // namespace kiln::op
