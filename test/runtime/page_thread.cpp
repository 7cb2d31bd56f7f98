// What thread a large executable leaves when it goes.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "kiln/config.hpp"
#include "kiln/core/page_memory.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

std::ptrdiff_t threads_here() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

TEST(page_thread, is_left_by_large_executables_of_several_threads) {
  if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "each buffer has memory of its own";
  const std::ptrdiff_t before = threads_here();
  for (const unsigned threads : {1U, 2U}) {
    compile_options o;
    o.threads = threads;
    std::optional<executable> e = compile_eigen(
        [](builder& b) {
          const std::vector<float> numbers(std::size_t{4096} * 4096, 0.125f);
          b.output(b.input("x", dtype::f32, {1, 4096}).dot(b.constant<float>(dtype::f32, {4096, 4096}, numbers)));
        },
        o);
    const auto freed = std::chrono::steady_clock::now();
    e.reset();
    const std::ptrdiff_t after = threads_here();
    if (threads == 1 || std::chrono::steady_clock::now() - freed < page_scope::kept_free_for) {
      EXPECT_EQ(after, before + (threads == 1 ? 0 : 1));
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (threads_here() != before && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(threads_here(), before);
  }
}

}  // namespace
}  // namespace kiln::testing
