#include "kiln/core/page_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "kiln/config.hpp"
#include "kiln/core/buffer.hpp"

namespace kiln {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// Pages of 4 KiB of a range that take memory; 0 where it is not mapped.
std::size_t resident(const std::byte* at, std::size_t bytes) {
  const std::size_t page = 4096, into = (page - reinterpret_cast<std::uintptr_t>(at) % page) % page;
  std::size_t count = 0;
  for (std::size_t k = into; k + page <= bytes;
       k += page) {  // one by one, since a call fails at the first unmapped one
    unsigned char is = 0;
    count += ::mincore(const_cast<std::byte*>(at) + k, page, &is) == 0 && (is & 1) != 0;
  }
  return count;
}
buffer filled(std::size_t bytes, int value) {
  buffer b = buffer::allocate(bytes);
  std::memset(b.data(), value, bytes);
  return b;
}
bool holds(const buffer& b, int value) {
  return std::all_of(b.data(), b.data() + b.size(), [&](std::byte x) { return x == static_cast<std::byte>(value); });
}
long faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

// What a range has in memory once it is no more than `most`, or in the end.
std::size_t resident_at_last(const std::byte* at, std::size_t bytes, std::size_t most) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::size_t found = resident(at, bytes);
  for (; found > most && std::chrono::steady_clock::now() < end; found = resident(at, bytes))
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return found;
}

class pages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "each buffer has memory of its own";
  }
};

TEST_F(pages, freed_memory_serves_the_next_buffers_without_faults) {
  const page_scope scope;
  filled(90 * mib, 1);
  const long before = faults();
  {
    const buffer a = filled(43 * mib, 2), b = filled(46 * mib, 3);
    for (const buffer* x : {&a, &b}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x->data()) % 64, 0u);
    EXPECT_TRUE(holds(a, 2));
    EXPECT_TRUE(holds(b, 3));
  }
  const buffer all = filled(89 * mib, 4);  // neighbors are one room
  EXPECT_TRUE(holds(all, 4));
  EXPECT_LE(faults() - before, 8);
}

TEST_F(pages, the_system_gets_what_is_free_when_the_last_scope_ends) {
  buffer kept, freed;
  const std::byte* at = nullptr;
  {
    const page_scope outer;
    {
      const page_scope inner;
      kept = filled(3 * mib, 1);
      freed = filled(200 * mib, 2);
      at = freed.data();
      freed = buffer();
    }
    EXPECT_GE(resident(at, 200 * mib), 190 * mib / 4096) << "the outer scope keeps them";
  }
  const std::size_t most = (page_scope::kept_free_bytes + 4 * mib) / 4096;
  EXPECT_LE(resident_at_last(at, 200 * mib, most), most);
  EXPECT_TRUE(holds(kept, 1));
}

TEST_F(pages, buffers_outlive_the_scope_and_give_their_memory_back) {
  buffer large;
  {
    const page_scope scope;
    large = filled(120 * mib, 5);
  }
  EXPECT_TRUE(holds(large, 5));
  const std::byte* const at = large.data();
  large = buffer();
  const std::size_t most = (page_scope::kept_free_bytes + 4 * mib) / 4096;
  EXPECT_LE(resident_at_last(at, 120 * mib, most), most);
}

TEST_F(pages, stay_a_moment_for_the_next_scope) {
  for (const bool after_the_scope : {false, true}) {
    buffer first;
    const std::byte* at = nullptr;
    {
      const page_scope scope;
      first = filled(150 * mib, 1);
      at = first.data();
      if (!after_the_scope) first = buffer();
    }
    first = buffer();
    EXPECT_GE(resident(at, 150 * mib), 140 * mib / 4096);
    const page_scope scope;
    EXPECT_TRUE(holds(filled(149 * mib, 2), 2));
  }
}

TEST_F(pages, are_filled_before_they_are_taken) {
  {
    const buffer probe = buffer::allocate(4 * mib);
    if (::madvise(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(probe.data()) / 4096 * 4096), 4096,
                  MADV_POPULATE_WRITE) != 0)
      GTEST_SKIP() << "the system fills no pages";
  }
  const page_scope scope(true);
  const buffer used = filled(page_scope::kept_free_bytes + 40 * mib, 1);  // more than what is kept of earlier ones
  std::size_t found = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<buffer> taken;
  while (found == 0 && std::chrono::steady_clock::now() < end) {
    taken.push_back(buffer::allocate(mib));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    found = resident(taken.back().data(), mib);  // which nobody has written
  }
  EXPECT_GE(found, mib / 4096 - 1);
}

// Pages that are filled while others take, write and give them.
TEST_F(pages, are_filled_while_they_are_used) {
  for (int round = 0; round < 3; ++round) {
    const page_scope scope(true);
    std::vector<buffer> all;
    for (int k = 0; k < 60; ++k) {
      all.push_back(filled(mib + static_cast<std::size_t>(k) * 50000, k));
      if (k % 7 == 6) all[static_cast<std::size_t>(k - 3)] = buffer();
    }
    for (int k = 0; k < 60; ++k)
      EXPECT_TRUE(!all[static_cast<std::size_t>(k)] || holds(all[static_cast<std::size_t>(k)], k));
  }
}

// Buffers smaller than a large page, too: the heap would give up pages of 4 KiB and take them again, and keep those
// between what stays.
TEST_F(pages, hold_buffers_of_less_than_a_large_page) {
  constexpr std::size_t count = 240;
  const auto size = [](std::size_t k) { return (64 + k * 97 % 837) << 10; };  // to 900 KiB
  std::vector<buffer> all(count);
  std::vector<const std::byte*> at(count);
  {
    const page_scope scope;
    const auto fill = [&] {
      for (std::size_t k = 0; k < count; ++k) {
        all[k] = filled(size(k), static_cast<int>(k));
        at[k] = all[k].data();
      }
    };
    fill();
    std::fill(all.begin(), all.end(), buffer());
    const long before = faults();
    fill();
    EXPECT_LE(faults() - before, 64);
    for (std::size_t k = 0; k < count; ++k)
      if (k % 20 != 0) all[k] = buffer();
  }
  constexpr std::size_t most = (page_scope::kept_free_bytes + count / 20 * 4 * mib) / 4096;
  std::size_t kept = 0, freed = 0;  // pages
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    kept = freed = 0;
    for (std::size_t k = 0; k < count; ++k) (k % 20 == 0 ? kept : freed) += resident(at[k], size(k));
  } while (freed > most && std::chrono::steady_clock::now() < end);
  EXPECT_GE(kept, count / 20 * 16);
  EXPECT_LE(freed, most);
  for (std::size_t k = 0; k < count; k += 20) EXPECT_TRUE(holds(all[k], static_cast<int>(k)));
}

TEST_F(pages, several_threads_take_and_give) {
  const page_scope scope;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 40; ++i) {
        const buffer a = filled(mib + static_cast<std::size_t>(i * 50000 + t), t), b = filled(2 * mib, t + 10);
        EXPECT_TRUE(holds(a, t));
        EXPECT_TRUE(holds(b, t + 10));
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace kiln
