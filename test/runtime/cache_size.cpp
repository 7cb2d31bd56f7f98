// The size of the last cache, as the kernel's descriptions tell it.
#include "kiln/runtime/cache_size.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace kiln {
namespace {

class cache_size : public testing::Test {
 protected:
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  void SetUp() override { std::filesystem::remove_all(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void describe(int index, int level, const std::string& size) const {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level << '\n';
    std::ofstream(cache / "size") << size << '\n';
  }
};

TEST_F(cache_size, is_that_of_the_last_level) {
  describe(0, 1, "32K");
  describe(1, 1, "64K");
  describe(2, 3, "32768K");
  describe(3, 2, "1024K");
  EXPECT_EQ(last_cache_bytes(folder), std::size_t{32} << 20);
}

TEST_F(cache_size, may_be_in_other_units) {
  describe(0, 2, "3M");
  EXPECT_EQ(last_cache_bytes(folder), std::size_t{3} << 20);
  describe(1, 3, "5000");
  EXPECT_EQ(last_cache_bytes(folder), 5000U);
}

TEST_F(cache_size, is_known_without_a_description) {
  EXPECT_GT(last_cache_bytes(folder), 0U);
  describe(0, 3, "unknown");
  EXPECT_EQ(last_cache_bytes(folder), last_cache_bytes(folder / "missing"));
}

}  // namespace
}  // namespace kiln
