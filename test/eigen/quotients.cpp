// Integer quotients, which are computed by way of floats, against the op's own.
#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// Numbers of all magnitudes, and those around which a quotient by way of doubles would first be another.
template <class T> std::vector<T> numbers(std::size_t n, unsigned seed, bool small) {
  using limits = std::numeric_limits<T>;
  std::mt19937_64 random(seed);
  const T edge = static_cast<T>(T{1} << (small ? 50 : 51));
  const std::vector<T> special{0,
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
  std::vector<T> out(n);
  for (T& x : out) {
    const auto shift = static_cast<int>(random() % (small ? 14 : 64)) + (small ? 50 : 0);
    x = random() % 4 == 0 ? special[random() % special.size()] : static_cast<T>(static_cast<T>(random()) >> shift % 64);
  }
  if (small)
    for (T& x : out) x = static_cast<T>(x % edge);
  return out;
}

template <class T> void check(dtype type) {
  for (const bool small : {true, false})  // whole vectors of numbers that doubles hold, and others between them
    for (const std::size_t n : {1U, 7U, 16U, 133U, 5000U}) {
      const std::vector<T> x = numbers<T>(n, 1, small), y = numbers<T>(n, 2, small);
      const auto size = static_cast<std::int64_t>(n);
      const auto in = [&](const std::vector<T>& v, const dims& lens) {
        return argument(literal::of<T>({type, lens}, {v.data(), static_cast<std::size_t>(product(lens).value())}));
      };
      const argument found = compile_eigen([&](builder& b) {
                               const value left = b.input("x", type, {size}), right = b.input("y", type, {size});
                               b.output(b.add(op::div{}, left, right));
                             }).run(std::vector{in(x, {size}), in(y, {size})})[0];
      for (std::size_t k = 0; k < n; ++k)
        ASSERT_EQ(found.as<T>()[k], detail::quotient(x[k], y[k])) << x[k] << " / " << y[k];
      const argument by_one = compile_eigen([&](builder& b) {
                                const value left = b.input("x", type, {size}), one = b.input("y", type, {1});
                                b.output(left / one.broadcast_to({size}));
                              }).run(std::vector{in(x, {size}), in(y, {1})})[0];
      for (std::size_t k = 0; k < n; ++k)
        ASSERT_EQ(by_one.as<T>()[k], detail::quotient(x[k], y[0])) << x[k] << " / " << y[0];
    }
}

TEST(quotients, of_64_bits) {
  check<std::int64_t>(dtype::i64);
  check<std::uint64_t>(dtype::u64);
}
TEST(quotients, of_32_bits) {
  for (const dtype type : {dtype::i32, dtype::u32}) {
    const auto make = [&](builder& b) {
      b.output(b.add(op::div{}, b.input("x", type, {3, 1000}), b.input("y", type, {3, 1000})));
    };
    expect_same(make, random_inputs(make, 5, type == dtype::i32 ? -2147483648.0 : 0, 2147483647.0), {0, 0});
    expect_same(make, random_inputs(make, 7, type == dtype::i32 ? -9 : 0, 9), {0, 0});
  }
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
