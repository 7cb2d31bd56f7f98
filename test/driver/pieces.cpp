#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "driver/cases.hpp"
#include "driver/files.hpp"
#include "driver/isolate.hpp"
#include "driver/statistics.hpp"
#include "kiln/core/error.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::driver {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class folder : public testing::Test {
 protected:
  void touch(const std::string& name) { root_.write(name, name); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  test::temporary_folder root_;
};

TEST(statistics, are_order_statistics) {
  const statistics odd = summarize({3, 1, 2}), even = summarize({4, 1, 3, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.p95, 3);
  EXPECT_EQ(even.median, 2.5);
  std::vector<double> many;
  for (int i = 100; i > 0; --i) many.push_back(i);
  EXPECT_EQ(summarize(many).p95, 95);
  EXPECT_EQ(summarize({}).median, 0);
}

TEST(isolate, returns_the_report) {
  std::string report(100'000, 'x');
  report.push_back('\n');
  const isolated r = isolate([&] { return report; }, 0);
  EXPECT_EQ(r.report, report);
  EXPECT_THAT(r.failure, IsEmpty());
}

TEST(isolate, turns_a_crash_into_a_failure) {
  const isolated r = isolate(
      []() -> std::string {
        ::signal(SIGSEGV, SIG_DFL);
        ::raise(SIGSEGV);
        return "";
      },
      0);
  EXPECT_THAT(r.failure, HasSubstr("signal 11"));
}

TEST(isolate, turns_exceptions_exits_and_time_limits_into_failures) {
  EXPECT_EQ(isolate([]() -> std::string { throw std::runtime_error("why"); }, 0).failure, "why");
  EXPECT_THAT(isolate([]() -> std::string { ::_exit(3); }, 0).failure, HasSubstr("exit status 3"));
  int waits = 0;
  const isolated r = isolate([]() -> std::string { return ::sleep(60), ""; }, 0.5, [&] { ++waits; });
  EXPECT_THAT(r.failure, HasSubstr("within 0.5 s"));
  EXPECT_GT(waits, 0);
}

TEST_F(folder, cases_are_found_once_and_in_order) {
  touch("a/model.onnx");
  for (int k : {10, 9, 0}) touch("a/test_data_set_" + std::to_string(k) + "/input_0.pb");
  touch("a/test_data_set_9/input_10.pb");
  touch("a/test_data_set_9/input_2.pb");
  touch("a/test_data_set_9/input_x.pb");
  touch("a/test_data_set_9/output_0.pb");
  touch("a/test_data_set_x/input_0.pb");
  touch("b/model.onnx");
  const auto found = find_cases({at("b"), at("a/"), at("a"), at("b/../a//"), at("a/.")});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "b");
  EXPECT_EQ(found[1].name, "a");
  ASSERT_EQ(found[1].sets.size(), 3u);
  EXPECT_EQ(found[1].sets[0].name, "test_data_set_0");
  EXPECT_EQ(found[1].sets[1].name, "test_data_set_9");
  EXPECT_EQ(found[1].sets[2].name, "test_data_set_10");
  ASSERT_EQ(found[1].sets[1].inputs.size(), 3u);
  EXPECT_EQ(found[1].sets[1].inputs[1].filename(), "input_2.pb");
  EXPECT_EQ(found[1].sets[1].inputs[2].filename(), "input_10.pb");
  EXPECT_EQ(found[1].sets[1].outputs.size(), 1u);
}

TEST_F(folder, every_wrong_folder_is_named) {
  touch("empty/note");
  try {
    find_cases({at("empty"), at("none")});
    FAIL();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("empty: no model.onnx"));
    EXPECT_THAT(e.what(), HasSubstr("none: no such folder"));
  }
}

TEST_F(folder, files_of_a_group_appear_together_or_not_at_all) {
  const auto write = [](const std::string& name) { std::ofstream(name) << "text"; };
  {
    file_group files;
    files.add(at("one"), write);
    EXPECT_THROW(files.add(at("two"), [](const std::string&) { raise(errc::io, "disk"); }), error);
  }
  EXPECT_TRUE(fs::is_empty(root_.path()));
  file_group files;
  files.add(at("one"), write);
  EXPECT_FALSE(fs::exists(at("one")));
  files.commit();
  EXPECT_EQ(read_file(at("one")).size(), 4u);
}

TEST_F(folder, unreadable_files_are_named) {
  EXPECT_THROW(read_file(at("none")), error);
  EXPECT_THROW(read_file(root_.path().string()), error);
  EXPECT_THROW(write_file(at("no/such/folder/file"), "x"), error);
  touch("file");
  EXPECT_THROW(make_folder(at("file/below")), error);
}

}  // namespace
}  // namespace kiln::driver
