// Integer quotients, which are computed by way of floats, against the op's own.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>
#include <type_traits>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// The number of bits below which a quotient by way of doubles is exact, or that has room above it in T.
template <class T> constexpr int edge_bits(bool small) { return std::min<int>(small ? 50 : 51, 8 * sizeof(T) - 2); }

// The ends of a type, and numbers around which a quotient by way of doubles would first be another.
template <class T> std::vector<T> special_numbers(bool small) {
  using limits = std::numeric_limits<T>;
  const T edge = static_cast<T>(std::uint64_t{1} << edge_bits<T>(small));
  return {0,
          1,
          2,
          3,
          static_cast<T>(edge - 1),
          edge,
          static_cast<T>(edge + 1),
          static_cast<T>(0 - edge),
          static_cast<T>(0 - edge - 1),
          static_cast<T>(-1),
          limits::min(),
          limits::max(),
          static_cast<T>(limits::max() - 1),
          static_cast<T>(limits::min() + 1)};
}

// Numbers of all magnitudes, and special ones.
template <class T> std::vector<T> numbers(std::size_t n, unsigned seed, bool small) {
  constexpr int width = 8 * sizeof(T);
  const int bits = edge_bits<T>(small);
  const auto below = static_cast<T>(std::uint64_t{1} << bits);
  std::mt19937_64 random(seed);
  const std::vector<T> special = special_numbers<T>(small);
  std::vector<T> out(n);
  for (T& x : out) {
    const int shift =
        static_cast<int>(random() % static_cast<unsigned>(small ? width - bits : width)) + (small ? bits : 0);
    x = random() % 4 == 0 ? special[random() % special.size()] : static_cast<T>(static_cast<T>(random()) >> shift);
  }
  if (small)
    for (T& x : out) x = static_cast<T>(x % below);
  return out;
}

template <class T> void check(dtype type) {
  SCOPED_TRACE(to_string(type));
  using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto expected = [](T x, T y) { return static_cast<T>(detail::quotient<wide>(x, y)); };
  for (const bool small : {true, false})  // whole vectors of numbers that doubles hold, and others between them
    for (const std::size_t n : {1U, 7U, 16U, 133U, 5000U}) {
      std::vector<T> x = numbers<T>(n, 1, small), y = numbers<T>(n, 2, small);
      const std::vector<T> special = special_numbers<T>(small);
      const std::size_t pairs = special.size() * special.size();
      for (std::size_t k = 0; !small && pairs < n && k < pairs; ++k)  // each by each, but not the first divisor
        x[k + 1] = special[k / special.size()], y[k + 1] = special[k % special.size()];
      const auto size = static_cast<std::int64_t>(n);
      const auto in = [&](const std::vector<T>& v, const dims& lens) {
        argument a(shape{type, lens});
        std::copy_n(v.begin(), a.elements(), a.as<T>().begin());
        return a;
      };
      const argument found = compile_eigen([&](builder& b) {
                               const value left = b.input("x", type, {size}), right = b.input("y", type, {size});
                               b.output(b.add(op::div{}, left, right));
                             }).run(std::vector{in(x, {size}), in(y, {size})})[0];
      for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(found.as<T>()[k], expected(x[k], y[k])) << +x[k] << " / " << +y[k];
      const argument by_one = compile_eigen([&](builder& b) {
                                const value left = b.input("x", type, {size}), one = b.input("y", type, {1});
                                b.output(left / one.broadcast_to({size}));
                              }).run(std::vector{in(x, {size}), in(y, {1})})[0];
      for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(by_one.as<T>()[k], expected(x[k], y[0])) << +x[k] << " / " << +y[0];
    }
}

TEST(quotients, of_64_bits) {
  check<std::int64_t>(dtype::i64);
  check<std::uint64_t>(dtype::u64);
}
TEST(quotients, of_32_bits) {
  check<std::int32_t>(dtype::i32);
  check<std::uint32_t>(dtype::u32);
  for (const dtype type : {dtype::i32, dtype::u32}) {
    const auto make = [&](builder& b) {
      b.output(b.add(op::div{}, b.input("x", type, {3, 1000}), b.input("y", type, {3, 1000})));
    };
    const bool is_signed = type == dtype::i32;
    expect_same(make, random_inputs(make, 5, is_signed ? -0x1p31 : 0, is_signed ? 0x1p31 : 0x1p32), {0, 0});
    expect_same(make, random_inputs(make, 7, is_signed ? -9 : 0, 9), {0, 0});
  }
}
TEST(quotients, of_16_and_8_bits) {
  check<std::int16_t>(dtype::i16);
  check<std::uint16_t>(dtype::u16);
  check<std::int8_t>(dtype::i8);
  check<std::uint8_t>(dtype::u8);
}

// A conversion that is a whole body: its result is stored as it is made, whole stretches at a time.
TEST(conversions, are_those_of_the_op) {
  constexpr dtype all[] = {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::i64, dtype::i32,    dtype::i16,
                           dtype::i8,  dtype::u64, dtype::u32, dtype::u16,  dtype::u8,  dtype::boolean};
  for (const dtype from : all)
    for (const dtype to : all)
      for (const dims& lens : {dims{5}, dims{3, 1031}, dims{2, 20011}}) {
        SCOPED_TRACE(to_string(shape{from, lens}) + " to " + std::string(to_string(to)));
        const auto make = [&](builder& b) { b.output(b.input("x", from, lens).convert(to)); };
        expect_same(make, random_inputs(make, 3, from == dtype::boolean ? 0 : -100, 100), {0, 0});
        const auto turned = [&](builder& b) {
          b.output(b.input("x", from, {lens.back(), 3}).transpose({1, 0}).convert(to).abs());
        };
        if (to != dtype::boolean && !(from == dtype::boolean))
          expect_same(turned, random_inputs(turned, 3, 0, 100), {0, 0});
      }
}

}  // namespace
}  // namespace kiln::testing
