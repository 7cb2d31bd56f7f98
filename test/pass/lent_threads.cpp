#include "kiln/pass/lent_threads.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <optional>
#include <thread>
#include <type_traits>

#include "kiln/op/ops.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/impl/pair_runs.hpp"

namespace kiln {
namespace {

// As many threads as parts.
void side_by_side(std::int64_t parts, const std::function<void(std::int64_t)>& f) {
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < parts; ++i) threads.emplace_back(f, i);
  for (std::thread& t : threads) t.join();
}

TEST(parts, run_in_the_threads_that_are_lent_and_in_order_without) {
  std::vector<std::int64_t> seen;
  const auto note = [&](std::int64_t i) { seen.push_back(i); };
  detail::for_each_part(3, note);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2}));
  {
    const detail::lent_threads outer([&](std::int64_t n, const auto&) { seen = {n}; });
    {
      const detail::lent_threads inner([&](std::int64_t n, const auto&) { seen = {-n}; });
      detail::for_each_part(5, note);
      EXPECT_EQ(seen, std::vector<std::int64_t>{-5});
    }
    detail::for_each_part(5, note);
    EXPECT_EQ(seen, std::vector<std::int64_t>{5});
  }
  seen.clear();
  detail::for_each_part(2, note);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1}));
}

// Every layout below, in elements of one width at an address that is not aligned.
template <class T> void expect_copies() {
  std::vector<T> numbers(3 * 700 * 601);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<T>((i + 1) * 0x9e3779b97f4a7c15u >> (64 - 8 * sizeof(T)));
  std::vector<std::byte> moved(numbers.size() * sizeof(T) + 1);
  std::memcpy(moved.data() + 1, numbers.data(), moved.size() - 1);
  // rows that begin one element apart, outside, between and inside other dims; reversed ones; others
  const layout layouts[] = {{{601, 700}, {1, 601}, 5},
                            {{601, 3, 700}, {1, 420700, 601}, 0},
                            {{3, 601, 700}, {420700, 1, 601}, 0},
                            {{13, 700, 3, 17}, {1, 601, 420700, 13}, 0},
                            {{601, 700}, {1, -601}, 420099},
                            {{700, 601}, {601, 1}, 7},
                            {{5, 9}, {1, 0}, 3},
                            {{300, 350}, {2, 1202}, 0},
                            {{}, {}, 4},
                            {{3, 0}, {1, 3}, 0}};
  for (const layout& at : layouts) {
    const ints lens = to_ints(at.lens), strides = to_ints(at.strides);
    std::vector<T> found(static_cast<std::size_t>(product(lens)));
    detail::copy_laid_out(at, sizeof(T), moved.data() + 1, reinterpret_cast<std::byte*>(found.data()));
    ints index(lens.size(), 0);
    std::size_t i = 0;
    if (!found.empty()) do {
        std::int64_t o = at.offset.value();
        for (std::size_t d = 0; d < lens.size(); ++d) o += index[d] * strides[d];
        ASSERT_EQ(found[i++], numbers[static_cast<std::size_t>(o)]) << sizeof(T) << " bytes";
      } while (next_index(index, lens));
    EXPECT_EQ(i, found.size());
  }
}

TEST(parts, of_a_laid_out_constant_make_the_whole) {
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    expect_copies<std::uint8_t>();
    expect_copies<std::uint16_t>();
    expect_copies<std::uint32_t>();
    expect_copies<std::uint64_t>();
  }
}

// [7, 50, 601] times one factor for each of 50, at an address that is not aligned
TEST(parts, of_a_folded_constant_make_the_whole) {
  small_vector<float> numbers, factors;
  for (int i = 0; i < 7 * 50 * 601; ++i) numbers.push_back(static_cast<float>(i % 1009));
  for (int i = 0; i < 50; ++i) factors.push_back(static_cast<float>(i - 20));
  const dims full{7, 50, 601};
  std::vector<std::byte> moved(numbers.size() * 4 + 1);
  std::memcpy(moved.data() + 1, numbers.data(), numbers.size() * 4);
  const literal x({dtype::f32, full}, buffer::borrow(moved.data() + 1, moved.size() - 1));
  const literal y = literal::of<float>({dtype::f32, {50}}, factors);
  const literal* const from[] = {&x, &y};
  const layout at[] = {layout::standard(full), {full, {0, 1, 0}, 0}};
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    const auto made = detail::fold_laid_out(op::mul{}, from, at, {dtype::f32, full}).to<float>();
    ASSERT_EQ(made.size(), numbers.size());
    for (std::size_t i = 0; i < made.size(); ++i) ASSERT_EQ(made[i], numbers[i] * factors[i / 601 % 50]) << i;
  }
}

// Bits of what ops of two floats give over runs, beside one element at a time: operands that go on or stay along the
// last dims, neither, or both; runs that are just long enough, and too short; one longer than a part; odd addresses.
TEST(parts, of_two_folded_constants_have_the_bits_of_each_element) {
  constexpr float infinite = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0.0F, -0.0F, 1.0F, -2.5F, infinite, -infinite, none, 1e-40F, 3e38F, 0.3F, 7.0F};
  std::vector<std::byte> moved[2];
  literal of[2];
  for (int k = 0; k < 2; ++k) {
    std::vector<float> numbers(30'000);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = i % 5 == 0 ? special[i / 5 * (k == 0 ? 1u : 7u) % std::size(special)]
                              : static_cast<float>(i * (k == 0 ? 37u : 101u) % 977) / 64 - 7;
    moved[k].resize(numbers.size() * 4 + 1);
    std::memcpy(moved[k].data() + 1, numbers.data(), numbers.size() * 4);
    of[k] = literal({dtype::f32, {30'000}}, buffer::borrow(moved[k].data() + 1, numbers.size() * 4));
  }
  const layout cases[][2] = {{{{7, 5, 601}, {3005, 601, 1}, 0}, {{7, 5, 601}, {0, 1, 0}, 2}},
                             {{{7, 5, 601}, {0, 1, 0}, 3}, {{7, 5, 601}, {3005, 601, 1}, 1}},
                             {{{90, 1, 33, 3}, {99, 5, 3, 1}, 0}, {{90, 1, 33, 3}, {0, 7, 3, 1}, 9}},
                             {{{90, 101}, {1, 90}, 0}, {{90, 101}, {101, 1}, 0}},
                             {{{90, 101}, {1, 90}, 4}, {{90, 101}, {0, 90}, 0}},
                             {{{600, 16}, {17, 1}, 0}, {{600, 16}, {1, 0}, 2}},
                             {{{600, 15}, {17, 1}, 0}, {{600, 15}, {1, 0}, 2}},
                             {{{20, 1000}, {1000, 1}, 0}, {{20, 1000}, {0, 0}, 5}},
                             {{{20, 1000}, {0, 0}, 5}, {{20, 1000}, {0, 0}, 6}},
                             {{{1, 13, 700}, {0, -700, 1}, 8400}, {{1, 13, 700}, {0, 0, 1}, 0}}};
  int ops = 0;
  const auto check = [&]<class Op>(type_tag<Op>) {
    if constexpr (detail::joins_floats<Op>()) {
      static_assert(std::is_empty_v<Op>, "one with fields is checked with others than their defaults");
      ++ops;
      for (const auto& at : cases) {
        const ints lens = to_ints(at[0].lens), strides[] = {to_ints(at[0].strides), to_ints(at[1].strides)};
        const literal* const from[] = {&of[0], &of[1]};
        const literal made = detail::fold_laid_out(Op{}, from, at, {dtype::f32, at[0].lens});
        ints index(lens.size(), 0);
        std::size_t i = 0;
        do {
          float x[2], found;
          for (int k = 0; k < 2; ++k) {
            std::int64_t o = at[k].offset.value();
            for (std::size_t d = 0; d < lens.size(); ++d) o += index[d] * strides[k][d];
            std::memcpy(&x[k], of[k].bytes() + o * 4, 4);
          }
          std::memcpy(&found, made.bytes() + i++ * 4, 4);
          const float expected = Op{}(x[0], x[1]);
          ASSERT_TRUE(std::bit_cast<std::uint32_t>(found) == std::bit_cast<std::uint32_t>(expected) ||
                      (found != found && expected != expected))
              << type_name<Op>() << ": " << x[0] << ", " << x[1] << " give " << found << ", not " << expected;
        } while (next_index(index, lens));
        ASSERT_EQ(static_cast<std::int64_t>(i), product(lens));
      }
    }
  };
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    [&]<class... Ops>(type_list<Ops...>) { (check(type_tag<Ops>{}), ...); }(default_registry::types{});
  }
  EXPECT_EQ(ops, 2 * 11) << "of both rounds";
}

// Several pieces of [700, 3, 311] whose operands lie by columns, one of them or both, at an odd address; and what is
// told of infinite and missing numbers, wherever they are.
TEST(parts, of_constants_by_columns_make_the_whole) {
  const dims full{700, 3, 311};
  const std::size_t n = 700 * 3 * 311;
  std::vector<float> numbers(n);
  for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(i * 37 % 1009) - 500;
  std::vector<std::byte> moved(n * 4 + 1);
  const auto literal_of = [&] {
    std::memcpy(moved.data() + 1, numbers.data(), n * 4);
    return literal({dtype::f32, {static_cast<std::int64_t>(n)}}, buffer::borrow(moved.data() + 1, n * 4));
  };
  const layout by_rows{full, {933, 311, 1}, 0}, by_columns{full, {1, 700, 2100}, 0}, row{full, {0, 0, 1}, 7},
      column{full, {1, 0, 0}, 3};
  const auto place = [](const layout& at, std::int64_t i, std::int64_t j, std::int64_t k) {
    return static_cast<std::size_t>((at.offset + at.strides[0] * i + at.strides[1] * j + at.strides[2] * k).value());
  };
  const layout cases[][2] = {{by_columns, row},     {row, by_columns},     {by_columns, column},
                             {by_columns, by_rows}, {by_rows, by_columns}, {by_columns, by_columns},
                             {by_rows, column}};
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    for (const auto& at : cases) {
      const literal l = literal_of();
      const literal* const from[] = {&l, &l};
      std::optional<bool> finite;
      const literal made = detail::fold_laid_out(op::sub{}, from, at, {dtype::f32, full}, &finite);
      EXPECT_EQ(finite, true);
      const auto found = made.to<float>();
      for (std::int64_t i = 0; i < 700; ++i)
        for (std::int64_t j = 0; j < 3; ++j)
          for (std::int64_t k = 0; k < 311; ++k)
            ASSERT_EQ(found[static_cast<std::size_t>((i * 3 + j) * 311 + k)],
                      numbers[place(at[0], i, j, k)] - numbers[place(at[1], i, j, k)]);
    }
    for (const std::size_t i : {std::size_t{0}, n / 2, n - 1})
      for (const float x : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
        for (const layout& first : {by_rows, by_columns}) {
          const float before = std::exchange(numbers[i], x);
          const literal l = literal_of();
          const literal* const from[] = {&l, &l};
          const layout at[] = {first, row};
          std::optional<bool> finite;
          detail::fold_laid_out(op::add{}, from, at, {dtype::f32, full}, &finite);
          EXPECT_EQ(finite, false) << i;
          numbers[i] = before;
        }
  }
}

// Rows of more than a strip of them, and what a strip leaves: both operands by columns, or one.
TEST(parts, of_long_rows_by_columns_make_the_whole) {
  const std::int64_t rows = 19, last = 2 * 16384 + 37;
  const dims full{rows, last};
  std::vector<float> numbers(static_cast<std::size_t>(rows * last));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 1009) - 500;
  const layout by_rows{full, {last, 1}, 0}, by_columns{full, {1, rows}, 0}, row{full, {0, 1}, 7};
  const layout cases[][2] = {{by_columns, by_columns}, {by_columns, by_rows}, {by_rows, by_columns}, {by_columns, row}};
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    for (const auto& at : cases)
      for (const std::size_t infinite : {std::size_t{0}, numbers.size() - 1, numbers.size()}) {
        std::vector<float> those = numbers;
        if (infinite < those.size()) those[infinite] = std::numeric_limits<float>::infinity();
        const literal l = literal::of<float>({dtype::f32, {rows * last}}, those);
        const literal* const from[] = {&l, &l};
        std::optional<bool> finite;
        const auto found = detail::fold_laid_out(op::add{}, from, at, {dtype::f32, full}, &finite).to<float>();
        EXPECT_EQ(finite, infinite == numbers.size());
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < last; ++j) {
            const auto of = [&](const layout& x) {
              return those[static_cast<std::size_t>((x.offset + x.strides[0] * i + x.strides[1] * j).value())];
            };
            ASSERT_EQ(found[static_cast<std::size_t>(i * last + j)], of(at[0]) + of(at[1])) << i << ", " << j;
          }
      }
  }
}

TEST(parts, of_two_folded_constants_are_runs) {
  const auto runs = [](const dims& lens, const dims& left, const dims& right) {
    const layout at[] = {{lens, left, 0}, {lens, right, 0}};
    return detail::runs_of_pairs(lens, at).length;
  };
  EXPECT_EQ(runs({4096, 4096}, {1, 4096}, {0, 1}), 1);
  EXPECT_EQ(runs({4096, 4096}, {1, 4096}, {1, 4096}), 1);
  EXPECT_EQ(runs({4096, 1, 16}, {17, 0, 1}, {1, 0, 0}), 16);
  EXPECT_EQ(runs({4096, 15}, {16, 1}, {1, 0}), 15);
  EXPECT_EQ(runs({7, 5, 3}, {15, 3, 1}, {0, 3, 1}), 15);
  EXPECT_EQ(runs({7, 5, 3}, {15, 3, 1}, {15, 3, 1}), 105);
}

TEST(parts, of_a_constant_tell_whether_all_of_it_is_finite) {
  const std::int64_t n = 70'003;
  const float infinite = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    std::vector<float> numbers(static_cast<std::size_t>(n), -std::numeric_limits<float>::max());
    const auto finite = [&] {
      return detail::finite_floats(literal(
          {dtype::f32, {n}}, buffer::borrow(reinterpret_cast<const std::byte*>(numbers.data()), numbers.size() * 4)));
    };
    EXPECT_TRUE(finite());
    for (const std::size_t i : {0, 3, 65'535, 65'536, 70'000, 70'002})
      for (const float x : {infinite, -infinite, none}) {
        const float before = std::exchange(numbers[i], x);
        EXPECT_FALSE(finite()) << i;
        numbers[i] = before;
      }
  }
}

}  // namespace
}  // namespace kiln
