// The last cache, as the kernel's descriptions tell it.
#include "kiln/runtime/cache_size.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace kiln {
namespace {

class cache_size : public testing::Test {
 protected:
  test::temporary_folder folder;
  void describe(int index, int level, const std::string& size, const std::string& processors = "0") const {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level << '\n';
    if (!size.empty()) std::ofstream(cache / "size") << size << '\n';
    std::ofstream(cache / "shared_cpu_list") << processors << '\n';
  }
};

TEST_F(cache_size, is_that_of_the_last_level) {
  describe(0, 1, "32K");
  describe(1, 1, "64K");
  describe(2, 3, "32768K", "0-7");
  describe(3, 2, "1024K", "0,1");
  EXPECT_EQ(last_cache(folder).bytes, std::size_t{32} << 20);
  EXPECT_EQ(last_cache(folder).processors, 8U);
}

TEST_F(cache_size, may_be_in_other_units) {
  describe(0, 2, "3M");
  EXPECT_EQ(last_cache(folder).bytes, std::size_t{3} << 20);
  describe(1, 3, "5000");
  EXPECT_EQ(last_cache(folder).bytes, 5000U);
}

TEST_F(cache_size, is_shared_by_ranges_of_processors) {
  const std::pair<const char*, unsigned> lists[] = {
      {"0", 1}, {"0,1", 2}, {"0-3,8,10-11", 7}, {"0-7,64-71", 16}, {"", 1}};
  for (const auto& [list, count] : lists) {
    describe(0, 3, "1M", list);
    EXPECT_EQ(last_cache(folder).processors, count) << list;
  }
}

TEST_F(cache_size, is_known_without_a_whole_description) {
  const std::size_t usual = last_cache(folder / "missing").bytes;
  EXPECT_GT(usual, 0U);
  EXPECT_LE(usual, std::size_t{32} << 20);
  describe(0, 1, "32K");
  EXPECT_EQ(last_cache(folder).bytes, usual) << "a first level alone";
  describe(1, 3, "");
  EXPECT_EQ(last_cache(folder).bytes, usual) << "no size";
  describe(1, 3, "unknown");
  EXPECT_EQ(last_cache(folder).bytes, usual);
}

}  // namespace
}  // namespace kiln
