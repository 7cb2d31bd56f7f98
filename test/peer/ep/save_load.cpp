#include <algorithm>
#include <cstdio>
#include <ctime>

#include "peer/ep/ep_host.hpp"

namespace kiln::peer {
namespace {

using test::attr;
using test::node;
using ::testing::HasSubstr;
using ::testing::Not;
using ep_save_load = ep_test;

// Three partitions around an operator that kiln lacks.
message three_parts(float weight = 2, int opset = 17) {
  std::vector<message> nodes;
  std::string at = "x";
  for (const std::string part : {"a", "b", "c"}) {
    nodes.push_back(node("Mul", {at, "w"}, {part}));
    nodes.push_back(node("Relu", {part}, {part + "r"}));
    if (part == "c") break;
    nodes.push_back(node("MurmurHash3", {part + "r"}, {part + "h"}, {}, "", microsoft));
    nodes.push_back(node("Cast", {part + "h"}, {part + "f"}, {attr("to", f32)}));
    at = part + "f";
  }
  return test::model(test::graph({nodes,
                                  {test::floats("w", {3}, {weight, .5f, 1})},
                                  {test::value_info("x", f32, {"rows", 3})},
                                  {test::value_info("cr", f32, {"rows", 3})}}),
                     {test::opset(opset), test::opset(1, microsoft)});
}

text_pairs saving(const std::filesystem::path& file) {
  return {{"migraphx_save_compiled_model", "1"}, {"migraphx_save_compiled_path", file.string()}};
}
text_pairs loading(const std::filesystem::path& file) {
  return {{"migraphx_load_compiled_model", "True"}, {"migraphx_load_model_path", file.string()}};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

TEST_F(ep_save_load, a_second_start_compiles_none_of_three_partitions) {
  const test::temporary_folder folder;
  const auto file = folder / "m.mxr";
  const logged_session first(three_parts(), saving(file));
  EXPECT_EQ(count(first.log, ": compiled in "), 3u);
  ASSERT_TRUE(std::filesystem::exists(file));
  const logged_session second(three_parts(), loading(file));
  EXPECT_EQ(count(second.log, ": loaded from " + file.string()), 3u) << second.log;
  EXPECT_THAT(second.log, Not(HasSubstr("compiled")));
  EXPECT_EQ(floats_of(*second.of, ep_rows(4)), floats_of(*first.of, ep_rows(4)));
}

// Many small products: with programs for some batches, compiling takes long beside reading the model.
message deep() {
  std::vector<message> nodes, weights;
  std::string at = "x";
  for (int k = 0; k < 64; ++k) {
    const std::string n = std::to_string(k);
    weights.push_back(test::floats("w" + n, {16, 16}, std::vector<float>(256, .01f * static_cast<float>(k + 1))));
    nodes.push_back(node("MatMul", {at, "w" + n}, {"p" + n}));
    nodes.push_back(node("Erf", {"p" + n}, {"e" + n}));
    at = "e" + n;
  }
  return test::model(test::graph(
      {nodes, weights, {test::value_info("x", f32, {"rows", 16})}, {test::value_info(at, f32, {"rows", 16})}}));
}

constexpr const char *process_file = "KILN_EP_TEST_FILE", *process_loads = "KILN_EP_TEST_LOADS";

// In a process of its own: makes a session, and prints its log, the milliseconds it took and the sum of a run.
void make_a_session(const std::string& file) {
  const bool loads = std::getenv(process_loads) != nullptr;
  text_pairs options = loads ? loading(file) : saving(file);
  options.emplace_back("compile_batches", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
  const std::clock_t begin = std::clock();  // of the processor
  const logged_session made(deep(), options);
  const double took = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  double sum = 0;
  for (const float v : floats_of(*made.of, {{"x", testing::random_argument({dtype::f32, {4, 16}}, 7)}})) sum += v;
  std::printf("%sMILLISECONDS %f\nSUM %.17g\n", made.log.c_str(), took, sum);
}

struct process_result {
  std::string log;
  double milliseconds = 0, sum = 0;
};
process_result in_a_process(const std::filesystem::path& file, bool loads) {
  const auto& test = *::testing::UnitTest::GetInstance()->current_test_info();
  const std::string command = std::string(process_file) + "='" + file.string() + "' " +
                              (loads ? process_loads + std::string("=1 ") : "") + "'" +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              "' --gtest_filter=" + test.test_suite_name() + "." + test.name() + " 2>&1";
  process_result out;
  std::FILE* const from = ::popen(command.c_str(), "r");
  char room[4096];
  while (std::fgets(room, sizeof room, from)) out.log += room;
  EXPECT_EQ(::pclose(from), 0) << out.log;
  const auto number = [&](const std::string& name) {
    const std::size_t at = out.log.find(name);
    return at == out.log.npos ? -1 : std::strtod(out.log.c_str() + at + name.size(), nullptr);
  };
  out.milliseconds = number("MILLISECONDS "), out.sum = number("SUM ");
  return out;
}

TEST_F(ep_save_load, a_second_process_compiles_nothing_and_takes_less_time) {
  if (const char* const file_of_process = std::getenv(process_file)) return make_a_session(file_of_process);
  const test::temporary_folder folder;
  const auto file = folder / "m.mxr";
  process_result first = in_a_process(file, false), second = in_a_process(file, true);
  EXPECT_THAT(first.log, HasSubstr(": compiled in "));
  EXPECT_THAT(second.log, AllOf(HasSubstr(": loaded from " + file.string()), Not(HasSubstr("compiled"))));
  EXPECT_EQ(first.sum, second.sum);
  EXPECT_GT(second.milliseconds, 0);
  for (int again = 0; again < 2; ++again) {  // other processes disturb a time
    first.milliseconds = std::min(first.milliseconds, in_a_process(file, false).milliseconds);
    second.milliseconds = std::min(second.milliseconds, in_a_process(file, true).milliseconds);
  }
  EXPECT_LT(second.milliseconds, first.milliseconds);
}

TEST_F(ep_save_load, programs_that_runs_ask_for_are_saved_too) {
  const test::temporary_folder folder;
  const auto file = folder / "m.mxr";
  text_pairs lazy{{"compile_batches", "3"}, {"precompile_at_load", "0"}};
  const auto with = [&](const text_pairs& more) {
    text_pairs out = lazy;
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  const logged_session first(ep_dense(), with(saving(file)));
  const auto expected = floats_of(*first.of, ep_rows(3));
  EXPECT_THAT(joined(ep_lines()), HasSubstr("of rows = 3: compiled in "));
  const logged_session second(ep_dense(), with(loading(file)));
  ep_lines().clear();
  EXPECT_EQ(floats_of(*second.of, ep_rows(3)), expected);
  EXPECT_THAT(joined(ep_lines()), AllOf(HasSubstr("of rows = 3: loaded from "), Not(HasSubstr("compiled"))));
  const logged_session lost(ep_dense(), with(saving(file)));
  std::filesystem::remove_all(file.parent_path());
  ep_lines().clear();
  EXPECT_EQ(floats_of(*lost.of, ep_rows(3)), expected);  // a run is not refused for the file
  EXPECT_THAT(joined(ep_lines()), HasSubstr("a run's program is not saved"));
}

TEST_F(ep_save_load, another_model_or_option_is_compiled_with_the_reason) {
  const test::temporary_folder folder;
  const auto file = folder / "m.mxr";
  { const logged_session first(three_parts(), saving(file)); }
  const auto expect_compiled = [&](const message& model, text_pairs more, const std::string& reason) {
    for (const auto& [name, value] : loading(file)) more.emplace_back(name, value);
    const logged_session again(model, more);
    EXPECT_THAT(again.log, HasSubstr("(" + reason + ": expected")) << again.log;
    EXPECT_EQ(count(again.log, ": compiled in "), 3u);
    text_pairs fresh(more.begin(), more.end() - 2);
    const plugin_session direct(ep_host(), model.bytes(), fresh);
    EXPECT_EQ(floats_of(*again.of, ep_rows(4)), floats_of(direct, ep_rows(4)));
  };
  expect_compiled(three_parts(3), {}, "weights");
  expect_compiled(three_parts(2, 16), {}, "operator sets");
  expect_compiled(three_parts(), {{"migraphx_fp16_enable", "1"}}, "options");
  expect_compiled(three_parts(), {{"threads", "1"}}, "threads");
  expect_compiled(three_parts(), {{"target", "ref"}}, "target");
}

TEST_F(ep_save_load, a_file_that_is_damaged_or_something_else_is_compiled) {
  const test::temporary_folder folder;
  const auto file = folder / "m.mxr";
  const logged_session first(three_parts(), saving(file));
  const std::string whole = file_bytes(file);
  const auto expect_compiled = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    const logged_session again(three_parts(), loading(file));
    EXPECT_GE(count(again.log, ": compiled in "), 1u) << again.log;
    EXPECT_EQ(floats_of(*again.of, ep_rows(4)), floats_of(*first.of, ep_rows(4)));
  };
  for (std::size_t n = 0; n < whole.size(); n += 1 + whole.size() / 23) expect_compiled(whole.substr(0, n));
  const auto flipped = [&](std::size_t at) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ 0x10);
    return other;
  };
  for (std::size_t at = 8; at < whole.size(); at += 397) {
    std::ofstream(file, std::ios::binary) << flipped(at);
    const logged_session again(three_parts(), loading(file));  // zeros between programs may be changed unseen
    EXPECT_EQ(floats_of(*again.of, ep_rows(4)), floats_of(*first.of, ep_rows(4))) << at;
  }
  // the weights of each of the three: what a bit more or less changes without another sign
  std::size_t at = 0;
  for (int program = 0; program < 3; ++program, ++at) {
    at = whole.find(std::string("\0\0\0\x40\0\0\0\x3f\0\0\x80\x3f", 12), at);
    ASSERT_NE(at, whole.npos) << program;
    expect_compiled(flipped(at + 2));
  }
  expect_compiled("something else, and long enough to be a header of compiled programs or of one alone");
}

TEST_F(ep_save_load, a_file_that_is_not_there_is_no_fault) {
  const test::temporary_folder folder;
  const logged_session made(three_parts(), loading(folder / "none.mxr"));
  EXPECT_THAT(made.log, HasSubstr("is not there yet"));
  EXPECT_EQ(count(made.log, ": compiled in "), 3u);
  EXPECT_THAT(ep_fault(three_parts(), saving(folder / "no" / "such" / "folder.mxr")), HasSubstr("can't be written"));
}

TEST_F(ep_save_load, the_path_is_the_original_s_where_none_is_given) {
  const auto here = std::filesystem::current_path();
  const test::temporary_folder folder;
  std::filesystem::current_path(folder);
  { const logged_session made(three_parts(), {{"migraphx_save_compiled_model", "1"}}); }
  const variable set("ORT_MIGRAPHX_LOAD_COMPILED_MODEL", "1");
  const logged_session again(three_parts(), {});
  std::filesystem::current_path(here);
  EXPECT_TRUE(std::filesystem::exists(folder / "compiled_model.mxr"));
  EXPECT_EQ(count(again.log, ": loaded from "), 3u);
}

TEST_F(ep_save_load, force_recompile_writes_it_anew) {
  const test::temporary_folder folder;
  const auto file = folder / "m.mxr";
  { const logged_session first(three_parts(), saving(file)); }
  text_pairs both = saving(file);
  for (const auto& o : loading(file)) both.push_back(o);
  const logged_session kept(three_parts(), both);
  EXPECT_EQ(count(kept.log, ": compiled in "), 0u);
  both.emplace_back("force_recompile", "1");
  const logged_session again(three_parts(), both);
  EXPECT_EQ(count(again.log, ": compiled in "), 3u);
  const logged_session last(three_parts(), loading(file));
  EXPECT_EQ(count(last.log, ": loaded from "), 3u);
}

}  // namespace
}  // namespace kiln::peer
