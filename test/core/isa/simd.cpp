#include "kiln/core/simd.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kiln/core/half.hpp"
#include "kiln/core/simd/nearest.hpp"

namespace {

static_assert(kiln::is_vec<kiln::vec<float, 4>> && kiln::lanes<kiln::vec<std::uint8_t, 16>> == 16);
static_assert(std::is_same_v<kiln::element_t<kiln::vec<double, 2>>, double> && kiln::lanes<float> == 1);
static_assert(sizeof(kiln::native_vec<float>) == kiln::native_bytes &&
              kiln::native_lanes<double> * 8 == kiln::native_bytes);
static_assert(std::is_same_v<kiln::rebind_t<kiln::vec<float, 4>, std::uint16_t>, kiln::vec<std::uint16_t, 4>>);
static_assert(std::is_same_v<kiln::mask_t<float>, bool> && sizeof(kiln::mask_t<kiln::vec<double, 4>>) == 32);

template <class T> class vectors : public testing::Test {};
using elements =
    testing::Types<float, double, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(vectors, elements);

// Partial access touches exactly n elements: the others sit beyond a guard value that must survive.
TYPED_TEST(vectors, partial_access_touches_n_elements) {
  using V = kiln::native_vec<TypeParam>;
  constexpr int n_max = kiln::lanes<V>;
  std::vector<TypeParam> from(n_max);
  for (int i = 0; i < n_max; ++i) from[static_cast<std::size_t>(i)] = static_cast<TypeParam>(i + 1);
  for (int n = 0; n <= n_max; ++n) {
    std::vector<TypeParam> exact(from.begin(), from.begin() + n);  // a read beyond it is the sanitizer's
    exact.shrink_to_fit();
    const V v = kiln::load_n<V>(exact.data(), n);
    for (int i = 0; i < n_max; ++i)
      ASSERT_EQ(v[i], i < n ? static_cast<TypeParam>(i + 1) : TypeParam(0)) << n << " " << i;
    std::vector<TypeParam> to(n_max + 1, TypeParam(99));
    kiln::store_n(to.data(), kiln::load<V>(from.data()), n);
    for (int i = 0; i <= n_max; ++i)
      ASSERT_EQ(to[static_cast<std::size_t>(i)], i < n ? static_cast<TypeParam>(i + 1) : TypeParam(99))
          << n << " " << i;
  }
}

TYPED_TEST(vectors, loads_and_stores_take_any_alignment) {
  using V = kiln::native_vec<TypeParam>;
  constexpr std::size_t n = kiln::lanes<V>;
  std::vector<TypeParam> from(n + 1), to(n + 1);
  for (std::size_t i = 0; i <= n; ++i) from[i] = static_cast<TypeParam>(i);
  kiln::store(to.data() + 1, kiln::load<V>(from.data() + 1));
  for (std::size_t i = 1; i <= n; ++i) EXPECT_EQ(to[i], from[i]);
  alignas(64) TypeParam streamed[n];
  kiln::stream(streamed, kiln::load<V>(from.data() + 1));
  kiln::stream_fence();
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(streamed[i], from[i + 1]);
  EXPECT_EQ(kiln::broadcast<V>(TypeParam(7))[n - 1], TypeParam(7));
}

TYPED_TEST(vectors, reductions) {
  using V = kiln::native_vec<TypeParam>;
  V v{};
  for (int i = 0; i < kiln::lanes<V>; ++i) v[i] = static_cast<TypeParam>(i % 5 + 1);
  TypeParam sum = 0, product = 1;
  for (int i = 0; i < kiln::lanes<V>; ++i)
    sum = static_cast<TypeParam>(sum + v[i]), product = static_cast<TypeParam>(product * v[i]);
  EXPECT_EQ(kiln::reduce_add(v), sum);
  EXPECT_EQ(kiln::reduce_mul(v), product);
  for (int at = 0; at < kiln::lanes<V>; ++at) {
    V w = v;
    w[at] = TypeParam(100);
    EXPECT_EQ(kiln::reduce_max(w), TypeParam(100));
    w[at] = TypeParam(0);
    EXPECT_EQ(kiln::reduce_min(w), TypeParam(0));
  }
}

TEST(simd, reductions_propagate_nan) {
  using V = kiln::native_vec<float>;
  for (int at = 0; at < kiln::lanes<V>; ++at) {
    V v = kiln::splat<V>(1);
    v[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(kiln::reduce_max(v)) && std::isnan(kiln::reduce_min(v)) && std::isnan(kiln::reduce_add(v)))
        << at;
  }
}

TEST(simd, halves_join_and_convert) {
  using V = kiln::vec<float, 8>;
  const V v = {0, 1, 2, 3, -4.7f, 5.5f, 6, 7};
  const auto back = kiln::join(kiln::lower_half(v), kiln::upper_half(v));
  const auto integers = kiln::convert<kiln::vec<std::int32_t, 8>>(v);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(back[i], v[i]);
    EXPECT_EQ(integers[i], static_cast<int>(v[i]));
  }
  EXPECT_EQ(kiln::upper_half(v)[0], v[4]);
}

// Every 16-bit pattern widens as the scalar conversion does.
template <class V> void check_widening() {
  constexpr int n = kiln::lanes<V>;
  std::uint16_t bits[n];
  for (std::uint32_t base = 0; base < 65536; base += n) {
    for (int i = 0; i < n; ++i) bits[i] = static_cast<std::uint16_t>(base + static_cast<std::uint32_t>(i));
    const V h = kiln::load_half<V>(bits), b = kiln::load_bfloat16<V>(bits);
    for (int i = 0; i < n; ++i) {
      const float expected = kiln::half_value(bits[i]);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(h[i])) << bits[i];
      else
        ASSERT_EQ(std::bit_cast<std::uint32_t>(float(h[i])), std::bit_cast<std::uint32_t>(expected)) << bits[i];
      ASSERT_EQ(std::bit_cast<std::uint32_t>(float(b[i])), std::uint32_t{bits[i]} << 16);
    }
  }
}

// Narrowing rounds as the scalar conversion does: random floats, ties, neighbors of ties, overflow, denormals, NaN.
template <class V> void check_narrowing() {
  constexpr std::size_t n = kiln::lanes<V>;
  std::vector<float> xs = {0.0f,     -0.0f,           65504,      65519.996f, 65520,    -65536,
                           1e30f,    INFINITY,        -INFINITY,  NAN,        0x1p-14f, 0x1p-24f,
                           0x1p-25f, 0x1.000002p-25f, 0x1.8p-24f, 3e38f,      3.4e38f,  1e-40f};
  for (std::uint32_t h = 0; h < 0x7c00; h += 7) {
    const float here = kiln::half_value(static_cast<std::uint16_t>(h)),
                next = kiln::half_value(static_cast<std::uint16_t>(h + 1));
    const float tie = here + (next - here) / 2;
    for (const float x : {here, tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e9f), -tie}) xs.push_back(x);
  }
  for (std::uint64_t b = 0; b < (std::uint64_t{1} << 32); b += 65521)
    xs.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
  while (xs.size() % n) xs.push_back(1);
  for (std::size_t i = 0; i < xs.size(); i += n) {
    std::uint16_t h[n], b[n];
    kiln::store_half(h, kiln::load<V>(&xs[i]));
    kiln::store_bfloat16(b, kiln::load<V>(&xs[i]));
    for (std::size_t lane = 0; lane < n; ++lane) {
      const float x = xs[i + lane];
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(kiln::half_value(h[lane])) && std::isnan(kiln::bfloat16_value(b[lane])));
      } else {
        ASSERT_EQ(h[lane], kiln::half_bits(x)) << x;
        ASSERT_EQ(b[lane], kiln::bfloat16_bits(x)) << x;
      }
    }
  }
}

TEST(simd, narrow_floats_of_the_native_width) {
  check_widening<kiln::native_vec<float>>();
  check_narrowing<kiln::native_vec<float>>();
}

TEST(simd, narrow_floats_of_other_widths) {
  check_widening<kiln::vec<float, 4>>();
  check_narrowing<kiln::vec<float, 4>>();
  check_widening<kiln::vec<float, 32>>();
  check_narrowing<kiln::vec<float, 32>>();
}

// Bit by bit what `round` gives: ties, the sign of zero, what has no fraction, infinities and NaN.
template <class T> void check_nearest() {
  using V = kiln::native_vec<T>;
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr std::size_t n = kiln::lanes<V>;
  constexpr T end = T(1) / std::numeric_limits<T>::epsilon(), inf = std::numeric_limits<T>::infinity();
  std::vector<T> xs = {
      0, inf, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::max(), end, end / 2 - T(0.5)};
  for (int k = 0; k < 40; ++k) xs.insert(xs.end(), {T(k) / 4, T(k) * T(0.37), std::nextafter(T(k) / 2, inf)});
  for (std::size_t k = xs.size(); k-- > 0;) xs.push_back(-xs[k]);
  while (xs.size() % n) xs.push_back(T(2.5));
  for (std::size_t i = 0; i < xs.size(); i += n) {
    const V found = kiln::nearest(kiln::load<V>(&xs[i]));
    for (std::size_t lane = 0; lane < n; ++lane)
      ASSERT_EQ(std::bit_cast<U>(static_cast<T>(found[lane])), std::bit_cast<U>(kiln::round(xs[i + lane])))
          << xs[i + lane];
  }
}

TEST(simd, nearest_whole_numbers) {
  check_nearest<float>();
  check_nearest<double>();
}

}  // namespace
