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
  const auto file = ep_folder("ep_save") / "m.mxr";
  const logged_session first(three_parts(), saving(file));
  EXPECT_EQ(count(first.log, ": compiled in "), 3u);
  ASSERT_TRUE(std::filesystem::exists(file));
  const logged_session second(three_parts(), loading(file));
  EXPECT_EQ(count(second.log, ": loaded from " + file.string()), 3u) << second.log;
  EXPECT_THAT(second.log, Not(HasSubstr("compiled")));
  EXPECT_EQ(floats_of(*second.of, ep_rows(4)), floats_of(*first.of, ep_rows(4)));
}

TEST_F(ep_save_load, another_model_or_option_is_compiled_with_the_reason) {
  const auto file = ep_folder("ep_other") / "m.mxr";
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
  const auto file = ep_folder("ep_damaged") / "m.mxr";
  const logged_session first(three_parts(), saving(file));
  const std::string whole = file_bytes(file);
  const auto expect_compiled = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    const logged_session again(three_parts(), loading(file));
    EXPECT_GE(count(again.log, ": compiled in "), 1u) << again.log;
    EXPECT_EQ(floats_of(*again.of, ep_rows(4)), floats_of(*first.of, ep_rows(4)));
  };
  for (std::size_t n = 0; n < whole.size(); n += 1 + whole.size() / 23) expect_compiled(whole.substr(0, n));
  for (std::size_t at = 8; at < 4096 + 200; at += 397) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ 0x10);
    std::ofstream(file, std::ios::binary) << other;
    const logged_session again(three_parts(), loading(file));  // zeros between programs may be changed unseen
    EXPECT_EQ(floats_of(*again.of, ep_rows(4)), floats_of(*first.of, ep_rows(4)));
  }
  expect_compiled("something else, and long enough to be a header of compiled programs or of one alone");
}

TEST_F(ep_save_load, a_file_that_is_not_there_is_no_fault) {
  const auto folder = ep_folder("ep_missing");
  const logged_session made(three_parts(), loading(folder / "none.mxr"));
  EXPECT_THAT(made.log, HasSubstr("is not there yet"));
  EXPECT_EQ(count(made.log, ": compiled in "), 3u);
  EXPECT_THAT(ep_fault(three_parts(), saving(folder / "no" / "such" / "folder.mxr")), HasSubstr("can't be written"));
}

TEST_F(ep_save_load, the_path_is_the_original_s_where_none_is_given) {
  const auto here = std::filesystem::current_path();
  const auto folder = ep_folder("ep_default");
  std::filesystem::current_path(folder);
  { const logged_session made(three_parts(), {{"migraphx_save_compiled_model", "1"}}); }
  const variable set("ORT_MIGRAPHX_LOAD_COMPILED_MODEL", "1");
  const logged_session again(three_parts(), {});
  std::filesystem::current_path(here);
  EXPECT_TRUE(std::filesystem::exists(folder / "compiled_model.mxr"));
  EXPECT_EQ(count(again.log, ": loaded from "), 3u);
}

TEST_F(ep_save_load, force_recompile_writes_it_anew) {
  const auto file = ep_folder("ep_force") / "m.mxr";
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
