// The best elements of rows, lane by lane, beside a stable sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "emulated_device.hpp"
#include "kiln/backend/hip/impl/index/topk_plan.hpp"
#include "kiln/backend/hip/kernels/reduce/select_least.hpp"

using namespace kiln::gpu;

namespace {

// Values of which many are equal, and the least, the greatest, zeros of both signs and NaNs where there are such.
template <class T> std::vector<T> values_of(i64 n, bool many) {
  std::mt19937_64 engine(7);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) {
    const u64 r = engine();
    if constexpr (kiln::elementary::same<T, f16>) {
      x = f16{static_cast<u16>(many ? r : 0x3c00 + r % 3)};
    } else if constexpr (is_real<T>) {
      const T special[] = {T(0),
                           -T(0),
                           std::numeric_limits<T>::quiet_NaN(),
                           -std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::denorm_min(),
                           -std::numeric_limits<T>::denorm_min()};
      x = r % 4 == 0 ? special[r / 4 % 8] : static_cast<T>(static_cast<i64>(r / 8)) * (many ? T(1e-9) : T(0));
    } else {
      x = static_cast<T>(many ? r : r % 5);
    }
  }
  return v;
}

template <bool Greatest, class T> std::vector<i64> expected_places(const T* row, i64 extent, i64 inner) {
  std::vector<i64> at(static_cast<std::size_t>(extent));
  std::iota(at.begin(), at.end(), i64{0});
  std::stable_sort(at.begin(), at.end(), [&](i64 a, i64 b) {
    const auto x = value_of(row[a * inner]), y = value_of(row[b * inner]);
    if (x != x || y != y) return x != x && y != y ? false : (x != x) == Greatest;
    return Greatest ? x > y : x < y;
  });
  return at;
}

template <bool Greatest, class T>
void expect_best(const std::vector<T>& in, const std::vector<T>& values, const std::vector<i64>& positions, i64 extent,
                 i64 inner, i64 count) {
  const topk_sizes n{extent, inner, count, 0, 0, 0, 0, 0};
  for (i64 row = 0; row < static_cast<i64>(in.size()) / extent; ++row) {
    const T* from = in.data() + row_start(n, row, extent);
    const std::vector<i64> expected = expected_places<Greatest>(from, extent, inner);
    for (i64 k = 0; k < count; ++k) {
      const auto at = static_cast<std::size_t>(row_start(n, row, count) + k * inner);
      ASSERT_EQ(positions[at], expected[static_cast<std::size_t>(k)]) << "row " << row << ", result " << k;
      ASSERT_EQ(std::memcmp(&values[at], from + positions[at] * inner, sizeof(T)), 0);
    }
  }
}

constexpr int lanes = 32;

// Rows of tiles of 64 as the device's launches work them, or counted.
template <class T, class E, bool Greatest, int Kept>
void check(i64 extent, i64 inner, i64 count, bool many = true, bool counted = false) {
  constexpr int tile = 64;
  const i64 outer = 3, rows = outer * inner;
  const std::vector<T> in = values_of<T>(rows * extent, many);
  std::vector<T> values(static_cast<std::size_t>(rows * count));
  std::vector<i64> positions(values.size(), -1);
  topk_sizes n{extent, inner, count, (extent + tile - 1) / tile, std::min<i64>(count, tile), 0, 0, 0};
  if (counted) {
    for (i64 row = 0; row < rows; ++row)
      for (int lane = 0; lane < lanes; ++lane)
        best_of_short<Greatest, lanes>(values.data(), positions.data(), in.data(), n, row, lane);
  } else if (n.runs == 1) {
    run_grid(static_cast<int>(rows), 1, lanes, 0, [&](char*) {
      best_of_row<Greatest, tile, Kept, lanes, E>(values.data(), positions.data(), in.data(), n, block_x(),
                                                  thread_index());
    });
  } else {
    const kiln::hip::topk_halves room(n, rows);
    std::vector<E> runs(static_cast<std::size_t>(room.first + room.second), E{});
    run_grid(static_cast<int>(rows * n.runs), 1, lanes, 0, [&](char*) {
      best_of_tile<Greatest, tile, Kept, lanes>(runs.data(), in.data(), n, block_x(), thread_index());
    });
    n.to = room.first;
    while (n.runs > 1) {
      n.kept = std::min(2 * n.length, count);
      const i64 pairs = (n.runs + 1) / 2;
      ASSERT_LE(rows * pairs * n.kept, n.to == 0 ? room.first : room.second);
      for (i64 at = rows * pairs * 2 * n.length; at-- > 0;) merge_runs(runs.data(), n, at);
      n.runs = pairs, n.length = n.kept;
      std::swap(n.from, n.to);
    }
    for (i64 at = 0; at < rows * count; ++at)
      write_best(values.data(), positions.data(), in.data(), runs.data(), n, at);
  }
  expect_best<Greatest>(in, values, positions, extent, inner, count);
}

TEST(device_topk, rows_of_one_tile) {
  check<float, u64, true, 8>(64, 1, 5);
  check<float, u64, false, 1>(50, 3, 1);
  check<float, u64, true, 64>(61, 1, 61, false);
  check<f16, u64, true, 64>(64, 2, 40);
  check<double, wide_entry, false, 16>(64, 1, 16);
}

TEST(device_topk, rows_of_several_tiles) {
  check<float, u64, true, 8>(64 * 5 + 3, 1, 7);
  check<float, u64, false, 64>(64 * 5 + 3, 2, 60, false);
  check<float, u64, true, 1>(64 * 4, 1, 1, false);
  check<double, wide_entry, true, 32>(65, 1, 20, false);
  // more than a tile sorts: of an odd number of runs, and of whole rows
  check<float, u64, false, 64>(64 * 7 - 1, 1, 150);
  check<float, u64, true, 64>(64 * 3 + 1, 2, 64 * 3 + 1, false);
  check<float, u64, true, 64>(64 * 5, 1, 64 * 5);
}

TEST(device_topk, integers_of_every_width) {
  check<signed char, u64, true, 16>(64 * 2 + 9, 1, 16);
  check<unsigned char, u64, false, 16>(64 * 2 + 9, 1, 16);
  check<int, u64, true, 64>(130, 1, 130);
  check<unsigned, u64, false, 64>(130, 1, 130);
  check<i64, wide_entry, false, 64>(130, 1, 130);
  check<u64, wide_entry, true, 64>(130, 1, 130);
}

TEST(device_topk, short_rows_are_counted) {
  check<float, u64, true, 1>(47, 2, 9, true, true);
  check<int, u64, false, 1>(33, 1, 33, false, true);
  check<double, u64, false, 1>(33, 1, 33, false, true);
}

// Rows of which a block reads parts; then runs, until a row is one part: blocks of `lanes` threads, `Rows` neighboring
// rows at once.
template <class T, class E, bool Greatest, int Kept, int Rows>
void check_selected(i64 extent, i64 inner, i64 count, i64 part, const std::vector<T>& in) {
  constexpr int room = 4 * Kept < 64 ? 64 : 4 * Kept, wide_lanes = 64;
  const i64 rows = static_cast<i64>(in.size()) / extent, outer = rows / inner;
  std::vector<T> values(static_cast<std::size_t>(rows * count));
  std::vector<i64> positions(values.size(), -1);
  part_sizes n{extent, inner, count, extent, (extent + part - 1) / part, part, 0, 0};
  const i64 half = rows * n.parts * count;
  std::vector<E> runs(static_cast<std::size_t>(2 * half), E{});
  run_grid(static_cast<int>(outer * ((inner + Rows - 1) / Rows) * n.parts), 1, wide_lanes, 0, [&](char*) {
    select_part<Greatest, Kept, room, Rows, wide_lanes>(values.data(), positions.data(), runs.data(), in.data(), n,
                                                        block_x(), thread_index());
  });
  while (n.parts > 1) {
    n.entries = n.parts * count, n.from = n.to, n.to = half - n.from;
    n.parts = (n.entries + part - 1) / part;
    run_grid(static_cast<int>(rows * n.parts), 1, wide_lanes, 0, [&](char*) {
      select_runs<Kept, room, wide_lanes>(values.data(), positions.data(), runs.data(), in.data(), n, block_x(),
                                          thread_index());
    });
  }
  expect_best<Greatest>(in, values, positions, extent, inner, count);
}
template <class T, class E, bool Greatest, int Kept, int Rows>
void check_selected(i64 extent, i64 inner, i64 count, i64 part, bool many = true) {
  check_selected<T, E, Greatest, Kept, Rows>(extent, inner, count, part, values_of<T>(3 * inner * extent, many));
}

TEST(device_topk, few_of_long_rows_are_selected) {
  check_selected<float, u64, true, 8, 1>(1500, 1, 5, 1500);
  check_selected<float, u64, false, 1, 1>(700, 3, 1, 700);
  check_selected<f16, u64, true, 64, 1>(900, 2, 33, 900);
  check_selected<double, wide_entry, false, 16, 1>(800, 1, 16, 800);
  check_selected<unsigned char, u64, true, 16, 1>(2000, 1, 9, 2000, false);
  check_selected<float, u64, true, 16, 1>(30, 2, 16, 30);  // fewer than its room
}
TEST(device_topk, parts_of_rows_are_selected_from_again) {
  check_selected<float, u64, true, 8, 1>(3001, 1, 5, 300);
  check_selected<float, u64, false, 16, 1>(2050, 2, 16, 90, false);
  check_selected<i64, wide_entry, true, 32, 1>(1030, 1, 20, 103);  // the last part has fewer than are wanted
  check_selected<float, u64, true, 4, 8>(600, 9, 3, 130);
}
TEST(device_topk, neighboring_rows_are_selected_from_at_once) {
  check_selected<float, u64, true, 8, 8>(500, 8, 5, 500);
  check_selected<float, u64, false, 16, 8>(301, 21, 11, 301);
  check_selected<double, wide_entry, true, 4, 8>(200, 10, 4, 200, false);
}
// Every element comes before all before it, or after, or is equal: rooms overflow again and again, or never.
TEST(device_topk, rows_in_order_are_selected_from) {
  for (const int step : {1, 0, -1}) {
    SCOPED_TRACE(step);
    std::vector<int> in(3 * 2000);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) * step;
    check_selected<int, u64, true, 16, 1>(2000, 1, 10, 2000, in);
    check_selected<int, u64, true, 8, 8>(200, 10, 8, 100, in);
  }
}

TEST(device_topk, plans_of_selections_cover_all_rows) {
  struct sizes {
    i64 outer, extent, inner, count;
  };
  for (const sizes s : {sizes{1999, 2003, 1, 5},
                        {1, 2003, 1999, 5},
                        {1, 3999971, 1, 900},
                        {80, 50257, 1, 50},
                        {1, 100000000, 1, 1},
                        {3, 70001, 9, 1000},
                        {2, 9000, 1, 128}})
    for (const i64 bytes : {8, 16}) {
      SCOPED_TRACE(std::to_string(s.extent) + " " + std::to_string(s.count));
      const kiln::hip::selection_plan p(s.outer, s.extent, s.inner, s.count, bytes);
      if (4 * p.kept * bytes > 32768) continue;
      ASSERT_FALSE(p.levels.empty());
      EXPECT_LE(p.room * p.rows * bytes, 32768);
      EXPECT_GE(p.kept, s.count);
      EXPECT_EQ(p.levels.back().sizes.parts, 1);
      i64 entries = s.extent, last_to = -1, rows = s.outer * ((s.inner + p.rows - 1) / p.rows);
      for (const auto& l : p.levels) {
        const part_sizes& n = l.sizes;
        EXPECT_EQ(n.entries, entries);
        EXPECT_GE(n.parts * n.part, entries);
        EXPECT_LT((n.parts - 1) * n.part, entries);
        EXPECT_EQ(l.blocks, rows * n.parts);
        rows = s.outer * s.inner;
        if (last_to >= 0) {
          EXPECT_EQ(n.from, last_to);
        }
        entries = n.parts * s.count;
        if (n.parts == 1) break;
        last_to = n.to;
        EXPECT_LE(n.to + s.outer * s.inner * entries, p.entries);
        if (&l != &p.levels.front()) {
          EXPECT_TRUE(n.to + s.outer * s.inner * entries <= n.from || n.from + s.outer * s.inner * n.entries <= n.to);
        }
      }
    }
  EXPECT_TRUE(kiln::hip::selection_plan(0, 5000, 1, 5, 8).levels.empty());
  EXPECT_TRUE(kiln::hip::selection_plan(3, 5000, 1, 0, 8).levels.empty());
  EXPECT_TRUE(kiln::hip::selection_plan(3, 5000, 1, 2000, 8).levels.empty());
  EXPECT_TRUE(kiln::hip::selection_plan(3, 500, 1, 100, 8).levels.empty());
}

}  // namespace
