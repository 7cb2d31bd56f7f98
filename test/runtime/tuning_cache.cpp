// Choices that outlive a process: what is kept is found, others' entries stay, damage costs only what it hit.
#include "kiln/runtime/tuning_cache.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "kiln/runtime/kept_files.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::testing {
namespace {

class tuning_cache_file : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(file, std::ios::binary) << text; }
  test::temporary_folder folder;
  std::filesystem::path file = folder / "tuned.tsv";
};

TEST_F(tuning_cache_file, what_is_kept_is_found_by_another) {
  tuning_cache(file).keep("a machine, a\tproblem\n", "winograd 4x4");
  tuning_cache later(file);
  EXPECT_EQ(later.find("a machine, a\tproblem\n"), "winograd 4x4");
  EXPECT_EQ(later.find("another problem"), std::nullopt);
  later.keep("a machine, a\tproblem\n", "images");
  EXPECT_EQ(tuning_cache(file).find("a machine, a\tproblem\n"), "images");
  EXPECT_EQ(later.remark(), "");
}

TEST_F(tuning_cache_file, without_a_file_choices_stay_in_memory) {
  tuning_cache cache{std::filesystem::path()};
  cache.keep("problem", "rows");
  EXPECT_EQ(cache.find("problem"), "rows");
  EXPECT_EQ(cache.remark(), "");
}

TEST_F(tuning_cache_file, writers_keep_what_others_wrote_meanwhile) {
  tuning_cache one(file), other(file);
  EXPECT_EQ(one.find("x"), std::nullopt);  // both have read the empty file
  EXPECT_EQ(other.find("x"), std::nullopt);
  one.keep("x", "1");
  other.keep("y", "2");
  one.keep("z", "3");
  tuning_cache after(file);
  EXPECT_EQ(after.find("x"), "1");
  EXPECT_EQ(after.find("y"), "2");
  EXPECT_EQ(after.find("z"), "3");
  EXPECT_EQ(one.find("y"), "2");
}

TEST_F(tuning_cache_file, nothing_is_lost_or_torn_between_threads) {
  constexpr int writers = 4, each = 25;
  std::vector<std::thread> all;
  for (int w = 0; w < writers; ++w)
    all.emplace_back([&, w] {
      tuning_cache own(file);
      for (int k = 0; k < each; ++k) own.keep(std::to_string(w) + "." + std::to_string(k), "choice");
    });
  for (std::thread& t : all) t.join();
  tuning_cache after(file);
  for (int w = 0; w < writers; ++w)
    for (int k = 0; k < each; ++k) EXPECT_EQ(after.find(std::to_string(w) + "." + std::to_string(k)), "choice");
  EXPECT_EQ(after.remark(), "");
}

TEST_F(tuning_cache_file, damage_costs_only_the_lines_it_hit) {
  tuning_cache cache(file);
  for (const char* key : {"a", "b", "c"}) cache.keep(key, "planes");
  std::string text = read_file(file);
  text[text.find("\tb\t") + 4] ^= 1;       // inside a choice
  write(text.substr(0, text.size() - 3));  // and the end is missing
  tuning_cache damaged(file);
  EXPECT_EQ(damaged.find("a"), "planes");
  EXPECT_EQ(damaged.find("b"), std::nullopt);
  EXPECT_EQ(damaged.find("c"), std::nullopt);
  EXPECT_THAT(damaged.remark(), ::testing::HasSubstr("2 damaged lines of " + file.string()));
  damaged.keep("d", "rows");
  tuning_cache mended(file);
  EXPECT_EQ(mended.find("a"), "planes");
  EXPECT_EQ(mended.find("d"), "rows");
  EXPECT_EQ(mended.remark(), "");
}

TEST_F(tuning_cache_file, a_foreign_file_is_left_alone) {
  const std::string text = "somebody's notes\n\twith tabs\t\n";
  write(text);
  tuning_cache cache(file);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  EXPECT_THAT(cache.remark(), ::testing::HasSubstr("is not a file of tuned kernels"));
  cache.keep("a", "rows");
  EXPECT_EQ(cache.find("a"), "rows");
  EXPECT_EQ(read_file(file), text);
}

TEST_F(tuning_cache_file, a_folder_or_an_unwritable_place_costs_a_remark) {
  std::filesystem::create_directories(file);
  tuning_cache folder_there(file);
  folder_there.keep("a", "rows");
  EXPECT_EQ(folder_there.find("a"), "rows");
  EXPECT_THAT(folder_there.remark(), ::testing::HasSubstr("is no file"));
  tuning_cache nowhere("/proc/kiln/tuned.tsv");
  nowhere.keep("a", "rows");
  EXPECT_THAT(nowhere.remark(), ::testing::HasSubstr("can't be written"));
}

TEST_F(tuning_cache_file, entries_of_another_version_say_nothing_and_are_replaced) {
  write("kiln tuned kernels 0\n00000000\ta\trows\n");
  tuning_cache cache(file);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  EXPECT_EQ(cache.remark(), "");
  cache.keep("b", "rows");
  EXPECT_EQ(tuning_cache(file).find("b"), "rows");
}

}  // namespace
}  // namespace kiln::testing
