// Kernels that find how many results there are, run lane by lane beside the ops' own computations.
#include "kiln/backend/hip/kernels/index/select.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/index/boxes.hpp"
#include "kiln/backend/hip/kernels/index/index.hpp"
#include "kiln/core/argument.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/dynamic/selection.hpp"

namespace kiln::testing {
namespace {

using namespace kiln::gpu;

template <class F> void each_block(i64 blocks, int lanes, F&& f) {
  run_grid(static_cast<int>(blocks), 1, lanes, 0, [&](char*) { f(block_x(), thread_index()); });
}

// Every `apart`-th element is not zero; a float's zeros have either sign, and a NaN is none.
template <class T> std::vector<T> sparse(i64 n, i64 apart) {
  std::vector<T> x(static_cast<std::size_t>(n), T(0));
  for (i64 k = 0; k < n; ++k)
    if (apart != 0 && k % apart == apart - 1)
      x[static_cast<std::size_t>(k)] = k % 2 == 0 ? T(1) : static_cast<T>(NAN);
    else if (k % 3 == 0)
      x[static_cast<std::size_t>(k)] = static_cast<T>(-0.0);
  return x;
}

std::vector<i64> counts_of(const std::vector<float>& x, const select_sizes& n) {
  std::vector<i64> counts(static_cast<std::size_t>(1 + n.tiles), -7);
  each_block(n.tiles, 256, [&](i64 row, int lane) { count_tile<256>(counts.data(), x.data(), n, row, lane); });
  each_block(1, 256, [&](i64, int lane) { sum_counts<256>(counts.data(), n.tiles, lane); });
  return counts;
}
select_sizes sizes_of(const dims& lens) {
  select_sizes n{1, 0, {}};
  for (std::size_t d = 0; d < lens.size(); ++d) n.lens[d] = lens[d].value(), n.total *= n.lens[d];
  n.tiles = (n.total + select_tile - 1) / select_tile;
  return n;
}

template <int Rank, class Index> void check_nonzero(const dims& lens, i64 apart) {
  const select_sizes n = sizes_of(lens);
  const std::vector<float> x = sparse<float>(n.total, apart);
  const argument given = argument::of<float>(lens, std::span(x));
  const argument expected = op::nonzero{}.produce({&given, 1})[0];
  const std::vector<i64> counts = counts_of(x, n);
  ASSERT_EQ(counts[0], expected.get_shape().lens[1].value());
  std::vector<i64> out(static_cast<std::size_t>(Rank * counts[0]), -7);
  each_block(n.tiles, 256, [&](i64 row, int lane) {
    nonzero_tile<Rank, 256, Index>(out.data(), counts.data(), x.data(), n, row, lane);
  });
  for (std::size_t k = 0; k < out.size(); ++k) ASSERT_EQ(out[k], expected.as<std::int64_t>()[k]) << k;
}
TEST(device_selection, nonzero) {
  check_nonzero<1, int>({5}, 2);
  check_nonzero<1, i64>({2 * select_tile}, 1);
  check_nonzero<3, int>({7, 31, 37}, 3);
  check_nonzero<3, i64>({5, 641, 3}, 700);
  check_nonzero<2, int>({60, 50}, 0);
  check_nonzero<2, int>({0, 5}, 1);
}
TEST(device_selection, counts_of_many_tiles) {
  const select_sizes n{0, 1000, {}};
  std::vector<i64> counts{-7};
  for (i64 k = 0; k < n.tiles; ++k) counts.push_back(k % 7);
  const std::vector<i64> before = counts;
  each_block(1, 256, [&](i64, int lane) { sum_counts<256>(counts.data(), n.tiles, lane); });
  i64 sum = 0;
  for (std::size_t k = 1; k < counts.size(); ++k) {
    ASSERT_EQ(counts[k], sum) << k;
    sum += before[k];
  }
  EXPECT_EQ(counts[0], sum);
}

TEST(device_selection, places_of_slices) {
  const i64 extent = 2500;
  const select_sizes n = sizes_of({extent});
  const std::vector<float> holds = sparse<float>(extent, 3);
  const std::vector<i64> counts = counts_of(holds, n);
  std::vector<int> places(static_cast<std::size_t>(counts[0]), -7);
  each_block(n.tiles, 256,
             [&](i64 row, int lane) { places_tile<256>(places.data(), counts.data(), holds.data(), n, row, lane); });
  std::size_t at = 0;
  for (std::size_t k = 0; k < holds.size(); ++k)
    if (holds[k] != 0) {
      ASSERT_EQ(places[at++], static_cast<int>(k));
    }
  EXPECT_EQ(at, places.size());
}

template <class T> void check_range(T start, T limit, T delta) {
  const auto one = [](T v) { return argument::of<T>({}, std::span<const T>(&v, 1)); };
  const argument in[] = {one(start), one(limit), one(delta)};
  const argument expected = op::progression{}.produce(in)[0];
  i64 count = -7;
  count_range(&count, start, limit, delta);
  ASSERT_EQ(count, expected.get_shape().lens[0].value());
  std::vector<T> out(static_cast<std::size_t>(count));
  for (i64 at = 0; at < count; ++at) range_element(out.data(), start, delta, at);
  for (std::size_t k = 0; k < out.size(); ++k) ASSERT_EQ(out[k], expected.as<T>()[k]) << k;
}
TEST(device_selection, ranges) {
  check_range<float>(0.5f, 10, 0.7f);
  check_range<double>(3, -2, -0.25);
  check_range<float>(3, 3, 1);
  check_range<std::int64_t>(5, 100, 7);
  check_range<std::int64_t>(5, 100, -7);
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  check_range<std::int64_t>(least, most, most / 3);
  check_range<std::int64_t>(most, least, least);
  check_range<std::int32_t>(-2000000000, 2000000000, 1500000000);
  check_range<unsigned char>(3, 250, 100);
  const auto count_of = [](auto start, auto limit, auto delta) {
    i64 count = 0;
    count_range(&count, start, limit, delta);
    return count;
  };
  EXPECT_EQ(count_of(1.0f, 2.0f, 0.0f), range_without_step);
  EXPECT_EQ(count_of(1, 2, 0), range_without_step);
  EXPECT_EQ(count_of(1.0f, 2.0f, 1e-30f), range_without_end);
  EXPECT_EQ(count_of(1.0f, NAN, 1.0f), range_without_end);
  EXPECT_GT(count_of(std::int64_t{0}, most, std::int64_t{1}), most_of_range);
}

template <bool Centered, bool Least, int Lanes = 64> void check_boxes(i64 boxes, i64 most) {
  const i64 batches = 2, classes = 3;
  const box_sizes n{batches, classes, boxes, batches * classes};
  std::vector<float> corners = random_values<float>(static_cast<std::size_t>(batches * boxes * 4), 5),
                     scores = random_values<float>(static_cast<std::size_t>(batches * classes * boxes), 6);
  for (std::size_t k = 0; k < scores.size(); k += 11) scores[k] = k % 2 == 0 ? 0.0f : -0.0f;
  const float overlap = 0.25f, least = -0.5f;
  const auto one = [](auto v) { return argument::of<decltype(v)>({1}, std::span<const decltype(v)>(&v, 1)); };
  const argument in[] = {argument::of<float>({batches, boxes, 4}, std::span<const float>(corners)),
                         argument::of<float>({batches, classes, boxes}, std::span<const float>(scores)),
                         one(std::int64_t{most}), one(overlap), one(least)};
  op::non_max_suppression op;
  op.centered = Centered, op.has_least_score = Least;
  const argument expected = op.produce(in)[0];
  std::vector<int> kept(scores.size());
  std::vector<i64> counts(static_cast<std::size_t>(1 + n.tiles));
  each_block(n.tiles, Lanes, [&](i64 row, int lane) {
    suppress_boxes<Centered, Least, Lanes>(kept.data(), counts.data(), corners.data(), scores.data(), &most, &overlap,
                                           &least, n, row, lane);
  });
  each_block(1, 256, [&](i64, int lane) { sum_counts<256>(counts.data(), n.tiles, lane); });
  ASSERT_EQ(counts[0], expected.get_shape().lens[0].value());
  std::vector<i64> out(static_cast<std::size_t>(3 * counts[0]), -7);
  each_block(n.tiles, 32,
             [&](i64 row, int lane) { write_boxes<32>(out.data(), kept.data(), counts.data(), n, row, lane); });
  for (std::size_t k = 0; k < out.size(); ++k) ASSERT_EQ(out[k], expected.as<std::int64_t>()[k]) << k;
}
TEST(device_selection, boxes_that_overlap_no_better_one) {
  check_boxes<false, true>(100, 1000);
  check_boxes<true, false>(77, 5);
  check_boxes<false, false>(130, 1000);
  check_boxes<true, true>(1, 0);
  check_boxes<false, false>(0, 5);
  check_boxes<false, false>(400, 90);  // several times as many as a block looks at together
  check_boxes<false, true>(330, 1000);
  check_boxes<false, false, 256>(400, 90);
  check_boxes<false, true, 256>(330, 1000);
}

// What an instruction adds that takes denormals for 0, and what is exchanged.
static_assert(outweighs_denormals(0x1p-102f) && outweighs_denormals(-1.0f) &&
              outweighs_denormals(std::numeric_limits<float>::quiet_NaN()));
static_assert(!outweighs_denormals(0x1.fffffep-103f) && !outweighs_denormals(-0x1p-149f) && !outweighs_denormals(0.0f));
static_assert(outweighs_denormals(0) && outweighs_denormals(0x1p-1074));
TEST(device_scatters, denormals_add_up) {
  float at = 0x1p-149f;
  for (int k = 0; k < 5; ++k) apply_update<1>(&at, 0x1p-148f);
  EXPECT_EQ(at, 11 * 0x1p-149f);
}

// Of tuples that name one slice the last is kept, whatever the order of threads.
TEST(device_scatters, the_last_tuple_of_a_slice_is_kept) {
  constexpr int slice = 3, tuples = 4;
  const i64 indices[tuples] = {2, -1, 0, 2};
  const tuple_sizes n{slice, 1, {5}};
  std::vector<float> updates(tuples * slice), out(5 * slice, -1);
  for (std::size_t k = 0; k < updates.size(); ++k) updates[k] = static_cast<float>(k);
  std::vector<int> winners(5, 0);
  int faults = 0;
  for (int at = tuples; at-- > 0;) note_tuple<1>(winners.data(), indices, n, at, &faults);
  EXPECT_EQ(winners, (std::vector<int>{3, 0, 4, 0, 2}));
  for (int at = 0; at < tuples * slice; ++at)
    scatter_slices<1>(out.data(), winners.data(), indices, updates.data(), n, at, &faults);
  EXPECT_EQ(out, (std::vector<float>{6, 7, 8, -1, -1, -1, 9, 10, 11, -1, -1, -1, 3, 4, 5}));
  EXPECT_EQ(faults, 0);
}

}  // namespace
}  // namespace kiln::testing
