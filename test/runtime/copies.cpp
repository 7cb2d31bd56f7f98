// Copies between layouts: transpositions by squares and in parts, repeated elements, long runs.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

// Copies what has these extents and strides, in elements, to a tensor that is dense but for a gap after each step of
// dim `apart`, and looks at every element.
void expect_copied(dtype t, const ints& lens, const ints& strides, std::size_t apart = max_rank) {
  const std::size_t width = size_of(t);
  std::int64_t last = 0, all = 1;
  for (std::size_t d = 0; d < lens.size(); ++d) last += (lens[d] - 1) * strides[d], all *= lens[d];
  std::vector<std::byte> from(static_cast<std::size_t>(last + 1) * width);
  std::uint32_t state = 1;
  for (std::byte& x : from) x = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24);
  ints steps(lens.size(), 1);
  std::int64_t room = 1;
  for (std::size_t d = lens.size(); d-- > 0; room *= lens[d]) steps[d] = room += d == apart ? 3 : 0;
  std::vector<std::byte> to(static_cast<std::size_t>(room) * width + 1, std::byte{0x5a});
  thread_pool pool(2);
  for (thread_pool* p : {&pool, static_cast<thread_pool*>(nullptr)}) {
    copy_tensor(tensor{from.data(), t, lens, strides}, tensor{to.data(), t, lens, steps}, p);
    ints at(lens.size(), 0);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < all; ++i) {
      std::int64_t source = 0, result = 0;
      for (std::size_t d = 0; d < lens.size(); ++d) source += at[d] * strides[d], result += at[d] * steps[d];
      wrong += std::memcmp(to.data() + static_cast<std::size_t>(result) * width,
                           from.data() + static_cast<std::size_t>(source) * width, width) != 0;
      for (std::size_t d = lens.size(); d-- > 0;) {
        if (++at[d] < lens[d]) break;
        at[d] = 0;
      }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(to.back(), std::byte{0x5a});
    if (apart < lens.size()) {  // the gap after the first step
      EXPECT_EQ(to[static_cast<std::size_t>(steps[apart] - 1) * width], std::byte{0x5a});
    }
    std::fill(to.begin(), to.end() - 1, std::byte{0x5a});
  }
}

TEST(copies, of_every_layout_have_every_element) {
  struct layout {
    ints lens, strides;
  };
  const layout layouts[] = {
      {{33, 700}, {1, 33}},                     // few long rows of a transposition
      {{700, 33}, {1, 700}},                    // many short ones
      {{3, 1500}, {1, 3}},                      // too few for a square
      {{4, 1501}, {1, 4}},                      // and a power of two
      {{3, 1500}, {1, 5}},                      // of wider pixels
      {{1700, 3}, {1, 1700}},                   // planes to pixels
      {{1501, 4}, {1, 1600}},                   // of a larger image
      {{2, 2, 300, 27}, {2, 1, 108, 4}},        // spaces to depth, by a stride
      {{2, 2, 300, 27}, {54, 1, 108, 2}},       // spaces to depth
      {{150, 170}, {1, 151}},                   // of a wider matrix
      {{37, 171}, {1, 40}},                     // that no square divides
      {{15, 90}, {1, 21}},                      // with fewer rows than a square
      {{2, 33, 11, 60}, {21780, 1, 1980, 33}},  // channels last to first
      {{40, 20, 24}, {480, 1, 20}},             // many small ones
      {{40, 20, 16}, {320, 1, 20}},             // that are interleaved
      {{100'000}, {1}},
      {{70'000}, {0}},  // one run, one element
      {{5, 30'000}, {30'010, 1}},
      {{7, 400}, {1, 0}},
      {{9, 3}, {1, 0}},
      {{6, 2, 17}, {2, 1, 0}},
      {{40, 50}, {200, 3}},
  };
  for (const layout& l : layouts)
    for (const dtype t : {dtype::u8, dtype::i16, dtype::f32, dtype::i64}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << " of " << l.lens[0] << " and " << l.strides[0]);
      expect_copied(t, l.lens, l.strides);
    }
}

// Tiles: dims that repeat what is inside of them, at any place, beside others; where their results lie apart nothing
// between is written.
TEST(copies, of_rows_that_several_dims_repeat) {
  const struct {
    ints lens, strides;
  } layouts[] = {
      {{2, 3, 3, 33, 2, 35}, {0, 33 * 35, 0, 35, 0, 1}},  // tiles of three axes
      {{5, 4, 2, 3}, {0, 3, 0, 1}},                       // of short rows
      {{2, 3, 2, 5, 2, 7}, {0, 35, 0, 7, 1, 0}},          // whose elements repeat, too
      {{3, 2, 90, 400}, {400, 0, 1200, 1}},               // rows apart
      {{2, 3, 300, 401}, {0, 0, 401, 1}},                 // beyond what is copied again
      {{7, 2, 11, 13}, {0, 143, 13, 1}},                  // outermost alone
      {{7, 2, 11, 13}, {0, 1, 26, 2}},                    // of elements apart
      {{2, 2, 2, 2, 2, 2, 2, 9}, {0, 36, 0, 18, 0, 9, 0, 1}},
  };
  for (const auto& l : layouts)
    for (const dtype t : {dtype::u8, dtype::i16, dtype::f32, dtype::i64}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << " of rank " << l.lens.size() << " and " << l.lens[0]);
      expect_copied(t, l.lens, l.strides);
      for (std::size_t d = 0; d + 1 < l.lens.size(); ++d) expect_copied(t, l.lens, l.strides, d);
    }
}

TEST(copies, between_pixels_and_planes_of_any_count) {
  for (std::int64_t n = 2; n < 17; ++n)
    for (const std::int64_t pixels : {15, 16, 17, 47, 331})
      for (const dtype t : {dtype::u8, dtype::i16, dtype::f32, dtype::i64}) {
        SCOPED_TRACE(::testing::Message() << to_string(t) << ", " << pixels << " of " << n);
        expect_copied(t, {pixels, n}, {1, pixels});
        expect_copied(t, {n, pixels}, {1, n});
      }
}

TEST(copies, repeat_elements_whose_bytes_are_equal_and_others) {
  thread_pool pool(2);
  for (const std::int64_t count : {255, 256, 257, 1000})
    for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x0101010101010101},
                                      std::uint64_t{0x0100010001000100}, std::uint64_t{1}})
      for (const dtype t : {dtype::u8, dtype::i16, dtype::f32, dtype::i64}) {
        const std::size_t width = size_of(t), bytes = static_cast<std::size_t>(count) * width;
        std::uint64_t from = value;
        std::vector<std::byte> to(bytes + 1, std::byte{0x5a});
        copy_tensor(tensor{reinterpret_cast<std::byte*>(&from), t, {count}, {0}}, tensor{to.data(), t, {count}, {1}},
                    &pool);
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < bytes; k += width) wrong += std::memcmp(to.data() + k, &from, width) != 0;
        EXPECT_EQ(wrong, 0) << to_string(t) << " " << value << " " << count;
        EXPECT_EQ(to.back(), std::byte{0x5a});
      }
}

}  // namespace
}  // namespace kiln
