// Ops along an axis, lane by lane, in each way that rows are divided among threads.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/reduce/axis.hpp"

using namespace kiln::gpu;

namespace {

constexpr i64 outer = 2;

std::vector<float> few_values(i64 n, bool with_nans) {
  std::mt19937 engine(11);
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) {
    x = static_cast<float>(static_cast<int>(engine() % 7) - 3);
    if (with_nans && engine() % 40 == 0) x = std::numeric_limits<float>::quiet_NaN();
  }
  return v;
}

// Blocks of 256 threads as the device's launch has them: rows in neighboring threads, or blocks of rows side by side.
template <int Across, int Parts, class Body> void run_rows(i64 inner, Body body) {
  constexpr int threads = 256, lanes = Across * Parts;
  const i64 work = outer * (Across > 1 ? (inner + Across - 1) / Across : inner);
  run_grid(static_cast<int>((work * lanes + threads - 1) / threads), 1, threads, 0, [&](char*) {
    const i64 row = block_x() * (threads / lanes) + thread_index() / lanes;
    if (row < work) body(row, thread_index() % lanes);
  });
}

template <bool Greatest, bool Last, int Across, int Parts> void check_extreme(i64 extent, i64 inner, bool nans) {
  SCOPED_TRACE(std::to_string(extent) + " " + std::to_string(inner));
  const std::vector<float> in = few_values(outer * extent * inner, nans);
  std::vector<i64> found(static_cast<std::size_t>(outer * inner), -1);
  run_rows<Across, Parts>(inner, [&](i64 row, int lane) {
    arg_extreme<Greatest, Last, Across, Parts>(found.data(), in.data(), extent, inner, row, lane);
  });
  for (i64 row = 0; row < outer * inner; ++row) {
    const auto at = [&](i64 k) {
      return in[static_cast<std::size_t>((row / inner * extent + k) * inner + row % inner)];
    };
    i64 best = 0;
    for (i64 k = 1; k < extent; ++k) {
      const float x = at(k), y = at(best);
      const bool equal = std::isnan(x) ? std::isnan(y) : x == y;
      const bool over = !equal && !std::isnan(y) && (std::isnan(x) || (Greatest ? x > y : x < y));
      if (over || (Last && equal)) best = k;
    }
    ASSERT_EQ(found[static_cast<std::size_t>(row)], best) << "row " << row;
  }
}

TEST(axis, the_position_of_the_best_element) {
  check_extreme<true, false, 1, 1>(9, 3, true);
  check_extreme<true, true, 1, 32>(301, 1, true);
  check_extreme<false, false, 1, 32>(31, 1, false);
  check_extreme<true, false, 1, 256>(5000, 1, false);
  check_extreme<false, true, 1, 256>(4100, 1, true);
  check_extreme<true, false, 32, 8>(120, 45, true);
  check_extreme<false, true, 32, 8>(16, 33, false);
}

template <bool Product, bool Exclusive, bool Reverse, int Across, int Parts> void check_running(i64 extent, i64 inner) {
  SCOPED_TRACE(std::to_string(extent) + " " + std::to_string(inner));
  std::vector<long long> in(static_cast<std::size_t>(outer * extent * inner)), found(in.size(), -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<long long>(i * 37 % 11) * (Product ? 2 : 1) + 1;
  run_rows<Across, Parts>(inner, [&](i64 row, int lane) {
    running<Product, Exclusive, Reverse, Across, Parts>(found.data(), in.data(), extent, inner, row, lane);
  });
  for (i64 row = 0; row < outer * inner; ++row) {
    u64 sum = Product ? 1 : 0;
    for (i64 n = 0; n < extent; ++n) {
      const i64 k = Reverse ? extent - 1 - n : n;
      const auto at = static_cast<std::size_t>((row / inner * extent + k) * inner + row % inner);
      const u64 x = static_cast<u64>(in[at]), next = Product ? sum * x : sum + x;
      ASSERT_EQ(static_cast<u64>(found[at]), Exclusive ? sum : next) << "row " << row << ", element " << k;
      sum = next;
    }
  }
}

TEST(axis, running_sums_and_products) {
  check_running<false, false, false, 1, 1>(21, 3);
  check_running<true, true, true, 1, 1>(8, 2);
  check_running<false, false, false, 1, 256>(700, 1);
  check_running<false, true, true, 1, 256>(256, 1);
  check_running<true, false, true, 1, 256>(513, 1);
  check_running<false, false, false, 32, 8>(90, 40);
  check_running<true, true, false, 32, 8>(17, 32);
  check_running<false, true, true, 32, 8>(100, 35);
}

}  // namespace
