#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "kiln/config.hpp"
#include "kiln/core/buffer.hpp"
#include "kiln/core/page_memory.hpp"

namespace kiln::testing {

inline constexpr std::size_t mib = std::size_t{1} << 20;

using clock = std::chrono::steady_clock;

inline void wait(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

// Pages of 4 KiB of a range that take memory; 0 where it is not mapped.
inline std::size_t resident(const std::byte* at, std::size_t bytes) {
  const std::size_t page = 4096, into = (page - reinterpret_cast<std::uintptr_t>(at) % page) % page;
  std::size_t count = 0, step = 0;
  for (std::size_t k = into; k + page <= bytes; k += step) {
    unsigned char is[512];  // of many, unless one of them is unmapped, for then a call fails
    step = std::min(bytes - k, std::size(is) * page) / page * page;
    if (::mincore(const_cast<std::byte*>(at) + k, step, is) != 0) {
      step = page;
      if (::mincore(const_cast<std::byte*>(at) + k, step, is) != 0) continue;
    }
    count +=
        static_cast<std::size_t>(std::count_if(is, is + step / page, [](unsigned char x) { return (x & 1) != 0; }));
  }
  return count;
}
inline buffer filled(std::size_t bytes, int value) {
  buffer b = buffer::allocate(bytes);
  std::memset(b.data(), value, bytes);
  return b;
}
inline bool holds(const buffer& b, int value) {
  return std::all_of(b.data(), b.data() + b.size(), [&](std::byte x) { return x == static_cast<std::byte>(value); });
}
inline long faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

// What a range has in memory once it is no more than `most`, or in the end.
inline std::size_t resident_at_last(const std::byte* at, std::size_t bytes, std::size_t most) {
  const auto end = clock::now() + std::chrono::seconds(20);
  std::size_t found = resident(at, bytes);
  for (; found > most && clock::now() < end; found = resident(at, bytes)) wait(std::chrono::milliseconds(50));
  return found;
}

// A program: some memory that a scope fills and that goes with it.
inline void load(std::size_t bytes, bool fills_ahead, bool keeps = false) {
  std::vector<buffer> all;
  {
    const page_scope scope(fills_ahead);
    for (std::size_t k = 0; k < bytes; k += 3 * mib) all.push_back(filled(3 * mib, 1));
    if (!keeps) all.clear();
  }
}

class pages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "each buffer has memory of its own";
  }
};

}  // namespace kiln::testing
