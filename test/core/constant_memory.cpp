#include "kiln/core/constant_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "kiln/config.hpp"
#include "kiln/core/error.hpp"

namespace {

using kiln::buffer;
using kiln::constant_memory;

constexpr std::size_t mib = std::size_t{1} << 20;

// Whole pages of 4 KiB within [at, at + bytes) that take memory.
std::size_t resident(const std::byte* at, std::size_t bytes) {
  const std::size_t page = 4096;
  const std::size_t into = (page - reinterpret_cast<std::uintptr_t>(at) % page) % page;
  std::vector<unsigned char> pages((bytes - into) / page);
  if (::mincore(const_cast<std::byte*>(at) + into, pages.size() * page, pages.data()) != 0) return 0;  // unmapped
  return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto p) { return (p & 1) != 0; }));
}

class constant_memory_test : public testing::Test {
 protected:
  void SetUp() override {
    if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "each buffer has memory of its own";
    first_ = memory_.allocate(mib);  // of the heap
  }
  // A buffer filled with a value.
  buffer filled(std::size_t bytes, int value) {
    buffer b = memory_.allocate(bytes);
    std::memset(b.data(), value, bytes);
    return b;
  }
  static void expect_filled(const buffer& b, int value) {
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b.data()[i], static_cast<std::byte>(value)) << i;
  }

  constant_memory memory_;
  buffer first_;
};

TEST_F(constant_memory_test, buffers_behind_the_first_mib_lie_one_behind_the_other) {
  const buffer a = memory_.allocate(1000), b = memory_.allocate(1), c = memory_.allocate(mib);
  EXPECT_EQ(a.size(), 1000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % (2 * mib), 0u) << "regions begin with a page";
  EXPECT_GE(b.data(), a.data() + 1000);
  EXPECT_LE(c.data() - a.data(), 2048) << "small buffers share a page";
  for (const buffer* one : {&a, &b, &c}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one->data()) % 64, 0u);
}

TEST(constant_memory, few_bytes_take_no_page) {
  constant_memory memory;
  const buffer a = memory.allocate(4096), b = memory.allocate(64);
  EXPECT_EQ(a.size() + b.size(), 4096u + 64);
  EXPECT_NE(reinterpret_cast<std::uintptr_t>(a.data()) % (2 * mib), 0u);
}

TEST(constant_memory, buffers_outlive_it_and_keep_their_bytes) {
  std::vector<buffer> kept;
  {
    constant_memory memory;
    for (int i = 0; i < 9; ++i) {
      kept.push_back(memory.allocate(9 * mib));  // of several regions
      std::memset(kept.back().data(), i, 4096);
      std::memset(kept.back().data() + kept.back().size() - 4096, i, 4096);
      memory.allocate(5000);  // gone at once
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(*kept[i].data()), i);
    EXPECT_EQ(static_cast<std::size_t>(kept[i].data()[kept[i].size() - 1]), i);
  }
}

TEST_F(constant_memory_test, rooms_are_used_again) {
  buffer a = filled(100000, 1), b = filled(100000, 2), c = filled(100000, 3);
  const std::byte *const at_a = a.data(), *const at_b = b.data();
  a = buffer();
  expect_filled(b, 2);
  EXPECT_EQ(memory_.allocate(99000).data(), at_a);
  EXPECT_GT(memory_.allocate(150000).data(), c.data()) << "too large for the room";
  b = buffer();
  EXPECT_EQ(memory_.allocate(190000).data(), at_a) << "neighbors are one room";
  a = memory_.allocate(100000);
  EXPECT_EQ(memory_.allocate(100000).data(), at_b);
  expect_filled(c, 3);
}

TEST_F(constant_memory_test, the_system_gets_pages_that_nobody_uses) {
  const std::size_t odd = 3 * mib + 12345;
  buffer a = filled(odd, 1), b = filled(odd, 2), c = filled(odd, 3);
  const std::byte *const at_b = b.data(), *const at_c = c.data();
  EXPECT_GE(resident(at_b, odd), odd / 4096 - 1);
  b = buffer();
  EXPECT_LE(resident(at_b, odd), odd / 4096 - 512) << "a page of 2 MiB lies in it";
  expect_filled(a, 1);
  expect_filled(c, 3);
  c = buffer();
  EXPECT_LE(resident(at_c, odd), 512u) << "what shares a page with others";
  expect_filled(a, 1);
}

TEST_F(constant_memory_test, large_buffers_have_memory_of_their_own) {
  const buffer large = memory_.allocate(100 * mib), none = memory_.allocate(0);
  EXPECT_EQ(large.size(), 100 * mib);
  EXPECT_EQ(none.size(), 0u);
  EXPECT_THROW(memory_.allocate(std::size_t{1} << 60), kiln::error);
}

TEST(constant_memory, serves_several_threads) {
  constant_memory memory;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&memory, t] {
      std::vector<buffer> mine;
      for (int i = 0; i < 300; ++i) {
        mine.push_back(memory.allocate(static_cast<std::size_t>(64 + 37 * i)));
        std::memset(mine.back().data(), t, mine.back().size());
        if (i % 3 == 0) mine.erase(mine.begin());
      }
      for (const buffer& b : mine)
        for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b.data()[i], static_cast<std::byte>(t));
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
