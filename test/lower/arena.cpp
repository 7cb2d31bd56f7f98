#include "kiln/lower/arena.hpp"

#include <gtest/gtest.h>

#include "kiln/core/small_vector.hpp"

namespace kiln::testing {
namespace {

struct lived {
  std::int64_t bytes;
  int first, last;
  std::int64_t offset = -1;
};

struct buffers {
  small_vector<lived> all;
  std::uint32_t beside[2] = {99, 99};  // two that never meet

  constexpr std::int64_t bytes(std::uint32_t b) const { return all[b].bytes; }
  constexpr std::int64_t& offset(std::uint32_t b) { return all[b].offset; }
  constexpr bool meet(std::uint32_t a, std::uint32_t b) const {
    if ((a == beside[0] && b == beside[1]) || (b == beside[0] && a == beside[1])) return false;
    return all[a].last >= all[b].first && all[b].last >= all[a].first;
  }
  constexpr std::int64_t place(std::int64_t from = 0) {
    small_vector<std::uint32_t> order;
    for (std::uint32_t b = 0; b < all.size(); ++b) order.push_back(b);
    return lower::place_arena({order.data(), order.size()}, *this, from);
  }
  constexpr bool placed(std::initializer_list<std::int64_t> at) const {
    for (std::uint32_t b = 0; b < all.size(); ++b)
      if (all[b].offset != at.begin()[b]) return false;
    return true;
  }
};

// A chain: two values live at a time, and the greatest ones decide.
static_assert([] {
  buffers chain{{{10, 0, 1}, {100, 1, 2}, {100, 2, 3}, {20, 3, 4}}};
  return chain.place() == 200 && chain.placed({100, 0, 100, 0});
}());

// The lowest gap that is wide enough, the gap's whole width included.
static_assert([] {
  buffers gap{{{50, 0, 9}, {40, 0, 1}, {30, 0, 9}, {40, 2, 3}, {20, 5, 6}}};
  return gap.place() == 120 && gap.placed({0, 50, 90, 50, 50});
}());

// A buffer whose offset is below that of a larger one is met, too.
static_assert([] {
  buffers below{{{50, 0, 1}, {40, 0, 9}, {30, 2, 9}, {10, 2, 9}}};
  return below.place() == 90 && below.placed({0, 50, 0, 30});
}());

// Values that live together share nothing; of equal ones the first comes first; empty ones take no room.
static_assert([] {
  buffers all{{{8, 0, 2}, {8, 0, 2}, {0, 0, 2}, {8, 2, 3}}};
  return all.place() == 24 && all.offset(0) == 0 && all.offset(1) == 8 && all.offset(3) == 16;
}());

// Buffers that an executor says never meet share memory although their lives overlap; what both meet is apart.
static_assert([] {
  buffers all{{{8, 0, 2}, {4, 1, 3}, {4, 0, 3}}, {0, 1}};
  return all.place() == 12 && all.placed({0, 0, 8});
}());

// Offsets begin at the floor, and a buffer after a lower end meets it there.
static_assert([] {
  buffers all{{{8, 0, 1}, {8, 2, 3}}};
  return all.place(64) == 72 && all.placed({64, 64});
}());
static_assert(buffers{}.place(7) == 7);

// As at run time: no two that meet overlap, and the end is that of the last one.
TEST(arena, buffers_that_meet_do_not_overlap) {
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  for (int round = 0; round < 50; ++round) {
    buffers b;
    for (int k = 0; k < 40; ++k) {
      const int first = static_cast<int>(draw(60));
      b.all.push_back({static_cast<std::int64_t>(draw(9) * draw(70)), first, first + static_cast<int>(draw(8))});
    }
    const std::int64_t end = b.place(64);
    std::int64_t last = 64;
    for (std::uint32_t x = 0; x < b.all.size(); ++x) {
      EXPECT_GE(b.offset(x), 64);
      last = std::max(last, b.offset(x) + b.bytes(x));
      for (std::uint32_t y = 0; y < x; ++y)
        if (b.meet(x, y) && b.bytes(x) != 0 && b.bytes(y) != 0) {
          EXPECT_TRUE(b.offset(x) + b.bytes(x) <= b.offset(y) || b.offset(y) + b.bytes(y) <= b.offset(x));
        }
    }
    EXPECT_EQ(end, last);
  }
}

}  // namespace
}  // namespace kiln::testing
