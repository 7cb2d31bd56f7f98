// The best elements of rows, lane by lane, beside a stable sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "emulated_device.hpp"
#include "kiln/backend/hip/impl/index/topk_plan.hpp"
#include "kiln/backend/hip/kernels/reduce/topk.hpp"

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
  for (i64 row = 0; row < rows; ++row) {
    const T* from = in.data() + row_start(n, row, extent);
    const std::vector<i64> expected = expected_places<Greatest>(from, extent, inner);
    for (i64 k = 0; k < count; ++k) {
      const auto at = static_cast<std::size_t>(row_start(n, row, count) + k * inner);
      ASSERT_EQ(positions[at], expected[static_cast<std::size_t>(k)]) << "row " << row << ", result " << k;
      ASSERT_EQ(std::memcmp(&values[at], from + positions[at] * inner, sizeof(T)), 0);
    }
  }
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

}  // namespace
