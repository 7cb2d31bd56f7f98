#pragma once
#include <bit>
#include <cstdint>

namespace kiln {

/// Bits of IEEE binary16 nearest to `value` (ties to even; overflow to infinity).
constexpr std::uint16_t half_bits(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (x >> 16) & 0x8000u, mag = x & 0x7fffffffu;
  if (mag > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((mag >> 13) & 0x3ffu));
  if (mag >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (mag < 0x33000001u) return static_cast<std::uint16_t>(sign);
  const std::uint32_t exponent = mag >> 23;
  std::uint32_t mantissa = mag & 0x7fffffu, shift = 13, base = (exponent - 112) << 10;
  if (exponent < 113) {  // a denormal half: the hidden bit becomes explicit
    mantissa |= 0x800000u;
    shift = 126 - exponent;
    base = 0;
  }
  const std::uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), tie = 1u << (shift - 1);
  return static_cast<std::uint16_t>(sign | (base + kept + (rest > tie || (rest == tie && (kept & 1u)))));
}

/// The value of IEEE binary16 bits.
constexpr float half_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

/// Bits of bfloat16 nearest to `value` (ties to even).
constexpr std::uint16_t bfloat16_bits(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((x >> 16) | 0x40u);
  return static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

/// The value of bfloat16 bits.
constexpr float bfloat16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// A float of 16 bits as storage; arithmetic happens in float. `Bits` encodes the nearest one, `Value` decodes.
template <std::uint16_t Bits(float), float Value(std::uint16_t)> struct float_of_16_bits {
  std::uint16_t bits = 0;
  constexpr float_of_16_bits() = default;
  constexpr explicit float_of_16_bits(float value) : bits(Bits(value)) {}
  constexpr explicit operator float() const { return Value(bits); }
  friend constexpr bool operator==(float_of_16_bits a, float_of_16_bits b) { return float(a) == float(b); }
};

/// IEEE binary16.
using half = float_of_16_bits<half_bits, half_value>;
/// Brain floating point: the upper half of a float.
using bfloat16 = float_of_16_bits<bfloat16_bits, bfloat16_value>;

static_assert(half(1.0f).bits == 0x3c00 && half(65504.0f).bits == 0x7bff && half(65520.0f).bits == 0x7c00);
static_assert(half(0x1p-24f).bits == 1 && half(0x1p-25f).bits == 0 && float(half(0x1.8p-24f)) == 0x1p-23f);
static_assert(float(bfloat16(1.00390625f)) == 1.0f && float(bfloat16(1.01171875f)) == 1.015625f);

}  // namespace kiln
