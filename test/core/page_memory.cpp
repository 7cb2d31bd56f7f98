#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/page_cases.hpp"

namespace kiln::testing {
namespace {

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
    clock::time_point freed;
    {
      const page_scope scope(true);
      first = filled(150 * mib, 1);
      at = first.data();
      freed = clock::now();
      if (!after_the_scope) first = buffer();
    }
    first = buffer();
    const std::size_t found = resident(at, 150 * mib);
    if (clock::now() - freed < page_scope::kept_free_for) {  // else the machine is too busy to tell
      EXPECT_GE(found, 140 * mib / 4096);
    }
    const page_scope scope;
    EXPECT_TRUE(holds(filled(149 * mib, 2), 2));
  }
}

// None of what is given later puts them off.
TEST_F(pages, go_in_time_while_others_are_given) {
  std::vector<buffer> all;
  {
    const page_scope scope(true);
    for (int k = 0; k < 100; ++k) all.push_back(filled(4 * mib, k));
  }
  const std::byte *first = all.front().data(), *last = first;
  for (std::size_t k = 0; k < 30; ++k) {
    first = std::min(first, std::as_const(all[k]).data());
    last = std::max(last, std::as_const(all[k]).data() + 4 * mib);
    all[k] = buffer();
  }
  const std::size_t most = (page_scope::kept_free_bytes + 8 * mib) / 4096;
  bool gone = false;
  for (std::size_t k = 30; k < 100 && !gone; ++k) {  // 7 s
    wait(page_scope::kept_free_for / 10);
    all[k] = buffer();
    gone = resident(first, static_cast<std::size_t>(last - first)) <= most;
  }
  EXPECT_TRUE(gone);
}

bool system_fills() {
  const buffer probe = buffer::allocate(4 * mib);
  return ::madvise(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(probe.data()) / 4096 * 4096), 4096,
                   MADV_POPULATE_WRITE) == 0;
}

TEST_F(pages, are_filled_before_they_are_taken) {
  if (!system_fills()) GTEST_SKIP() << "the system fills no pages";
  constexpr std::size_t each = 4 * mib;     // more than the page that its neighbor has touched
  wait(page_scope::kept_free_for * 3 / 2);  // for what earlier cases gave
  for (const bool fills_ahead : {false, true}) {
    const page_scope scope(fills_ahead);
    std::vector<buffer> taken;  // all that is kept of earlier ones and more
    while (taken.size() * each < page_scope::kept_free_bytes + 40 * mib) taken.push_back(filled(each, 1));
    bool found = false;
    const auto end = clock::now() + std::chrono::seconds(fills_ahead ? 20 : 1);
    while (!found && clock::now() < end) {
      wait(std::chrono::milliseconds(50));
      taken.push_back(buffer::allocate(each));
      found = resident(taken.back().data(), each) >= each / 4096 - 1;  // though nobody has written it
      std::memset(taken.back().data(), 1, each);
    }
    EXPECT_EQ(found, fills_ahead);
  }
}

// What is taken is for those who write it, and no scope that has ended wants more.
TEST_F(pages, are_not_filled_in_vain) {
  if (!system_fills()) GTEST_SKIP() << "the system fills no pages";
  const page_scope outer;
  buffer used, large;
  {
    const page_scope inner(true);
    used = filled(page_scope::kept_free_bytes + 40 * mib, 1);
    large = buffer::allocate(700 * mib);
    wait(std::chrono::milliseconds(500));
    EXPECT_LE(resident(large.data(), 700 * mib), 20 * mib / 4096);
  }
  const buffer later = buffer::allocate(500 * mib);
  wait(std::chrono::milliseconds(300));
  EXPECT_LE(resident(later.data(), 500 * mib), 20 * mib / 4096);
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
  const auto end = clock::now() + std::chrono::seconds(20);
  do {
    kept = freed = 0;
    for (std::size_t k = 0; k < count; ++k) (k % 20 == 0 ? kept : freed) += resident(at[k], size(k));
  } while (freed > most && clock::now() < end);
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
}  // namespace kiln::testing
