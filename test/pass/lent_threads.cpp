#include "kiln/pass/lent_threads.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "kiln/op/ops.hpp"
#include "kiln/pass/constants.hpp"

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

// rows that begin one element apart, outside, between and inside other dims; reversed ones; others
TEST(parts, of_a_laid_out_constant_make_the_whole) {
  small_vector<float> numbers;
  for (int i = 0; i < 3 * 700 * 601; ++i) numbers.push_back(static_cast<float>(i));
  std::vector<std::byte> moved(numbers.size() * 4 + 1);
  std::memcpy(moved.data() + 1, numbers.data(), numbers.size() * 4);
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
  for (const bool threads : {false, true}) {
    std::optional<detail::lent_threads> lent;
    if (threads) lent.emplace(side_by_side);
    for (const layout& at : layouts) {
      const ints lens = to_ints(at.lens), strides = to_ints(at.strides);
      std::vector<float> found(static_cast<std::size_t>(product(lens)));
      detail::copy_laid_out(at, 4, moved.data() + 1, reinterpret_cast<std::byte*>(found.data()));
      ints index(lens.size(), 0);
      std::size_t i = 0;
      if (!found.empty()) do {
          std::int64_t o = at.offset.value();
          for (std::size_t d = 0; d < lens.size(); ++d) o += index[d] * strides[d];
          ASSERT_EQ(found[i++], numbers[static_cast<std::size_t>(o)]);
        } while (next_index(index, lens));
      EXPECT_EQ(i, found.size());
    }
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
