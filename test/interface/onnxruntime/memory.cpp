#include <gmock/gmock.h>

#include <cstdlib>

#include "kiln/core/buffer.hpp"
#include "kiln/core/error.hpp"
#include "kiln/core/memory_source.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

TEST(memory_source, counts_what_buffers_of_a_scope_take_up_to_a_limit) {
  memory_settings how;
  how.limit = 10000;
  const auto source = std::make_shared<memory_source>(how);
  buffer kept;
  {
    const memory_scope scope(source);
    kept = buffer::allocate(4000);
    EXPECT_GE(source->bytes(), 4000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept.data()) % 64, 0u);
    try {
      buffer::allocate(8000);
      FAIL() << "beyond the limit";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::limit);
      EXPECT_THAT(e.what(), ::testing::HasSubstr("at most 10000 bytes"));
    }
    const memory_scope none(nullptr);
    buffer::allocate(80000);
  }
  buffer::allocate(80000);
  EXPECT_GE(source->bytes(), 4000u);
  kept = buffer();
  EXPECT_EQ(source->bytes(), 0u);
  EXPECT_GE(source->peak(), 4000u);
}

TEST(memory_source, powers_of_two_serve_what_does_not_stay) {
  memory_settings how;
  how.powers_of_two = true;
  const auto source = std::make_shared<memory_source>(how);
  const memory_scope scope(source);
  const buffer b = buffer::allocate(5000);
  EXPECT_EQ(source->bytes(), 8192u);
  const memory_scope reserved(source, true);
  const buffer c = buffer::allocate(5000);
  EXPECT_LT(source->bytes(), 8192u + 8192u);
}

TEST(memory_source, what_fits_alone_is_taken_as_it_is) {
  memory_settings how;
  how.powers_of_two = true, how.limit = 10000;
  const auto source = std::make_shared<memory_source>(how);
  const memory_scope scope(source);
  const auto taken = [&] { return source->bytes(); };
  buffer b = buffer::allocate(5200);
  EXPECT_EQ(taken(), 8192u);  // the next power of two fits
  b = buffer();
  b = buffer::allocate(9000);  // 16384 would not
  EXPECT_GE(taken(), 9000u);
  EXPECT_LE(taken(), 10000u);
  EXPECT_THROW(buffer::allocate(2000), error);
  const buffer rest = buffer::allocate(600);  // 1024 would not
  EXPECT_LE(taken(), 10000u);
}

int emptied = 0;

TEST(memory_source, a_cache_is_emptied_where_what_stays_goes) {
  memory_settings how;
  how.alloc = [](std::size_t n) { return std::malloc(n); };
  how.free = [](void* p) { std::free(p); };
  how.empty_cache = [] { ++emptied; };
  const auto source = std::make_shared<memory_source>(how);
  {
    const memory_scope scope(source);
    buffer::allocate(100);
  }
  EXPECT_EQ(emptied, 0);
  {
    const memory_scope scope(source, true);
    buffer::allocate(100);
  }
  EXPECT_EQ(emptied, 1);
}

TEST(memory_source, a_job_s_threads_take_from_the_caller_s) {
  const auto source = std::make_shared<memory_source>(memory_settings{});
  thread_pool pool(3);
  std::vector<buffer> made(64);
  {
    const memory_scope scope(source);
    pool.parallel_for(64,
                      [&](std::int64_t i, unsigned) { made[static_cast<std::size_t>(i)] = buffer::allocate(1000); });
  }
  EXPECT_GE(source->bytes(), 64u * 1000);
  pool.parallel_for(64, [&](std::int64_t i, unsigned) { made[static_cast<std::size_t>(i)] = buffer::allocate(1000); });
  EXPECT_EQ(source->bytes(), 0u);
}

}  // namespace
}  // namespace kiln
