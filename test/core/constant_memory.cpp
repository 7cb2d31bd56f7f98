#include "kiln/core/constant_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using kiln::buffer;
using kiln::constant_memory;

TEST(constant_memory, buffers_lie_one_behind_the_other) {
  constant_memory memory;
  const buffer a = memory.allocate(1000), b = memory.allocate(1), c = memory.allocate(1 << 20);
  EXPECT_EQ(a.size(), 1000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % (2 << 20), 0u) << "regions begin with a page";
  EXPECT_GE(b.data(), a.data() + 1000);
  EXPECT_LE(c.data() - a.data(), 2048) << "small buffers share a page";
  for (const buffer* one : {&a, &b, &c}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one->data()) % 64, 0u);
}

TEST(constant_memory, buffers_outlive_it_and_keep_their_bytes) {
  std::vector<buffer> kept;
  {
    constant_memory memory;
    for (int i = 0; i < 9; ++i) {
      kept.push_back(memory.allocate(std::size_t{20} << 20));  // of several regions
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

TEST(constant_memory, what_went_last_is_used_again_and_holes_leave_others_alone) {
  constant_memory memory;
  buffer first = memory.allocate(100000);
  buffer second = memory.allocate(100000);
  std::memset(first.data(), 1, first.size());
  std::memset(second.data(), 2, second.size());
  const std::byte* const at = second.data();
  first = buffer();  // a hole before the second one
  for (std::size_t i = 0; i < second.size(); ++i) ASSERT_EQ(second.data()[i], std::byte{2}) << i;
  second = buffer();
  EXPECT_EQ(memory.allocate(50).data(), at);
}

TEST(constant_memory, large_buffers_have_memory_of_their_own) {
  constant_memory memory;
  const buffer large = memory.allocate(std::size_t{100} << 20), none = memory.allocate(0);
  EXPECT_EQ(large.size(), std::size_t{100} << 20);
  EXPECT_EQ(none.size(), 0u);
  EXPECT_THROW(memory.allocate(std::size_t{1} << 60), std::exception);
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
