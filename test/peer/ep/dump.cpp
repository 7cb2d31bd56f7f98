#include "peer/ep/ep_host.hpp"

namespace kiln::peer {
namespace {

using test::attr;
using test::node;
using ::testing::HasSubstr;

// Files that a session writes into the working folder.
class ep_dump : public ep_test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    ep_test::SetUp();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override { std::filesystem::current_path(before_); }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& e : std::filesystem::recursive_directory_iterator(folder_))
      out.push_back(e.path().lexically_relative(folder_).string());
    std::sort(out.begin(), out.end());
    return out;
  }
  test::temporary_folder folder_;

 private:
  std::filesystem::path before_;
};

message branch(const char* op, const char* out) {
  return test::graph({{node(op, {"n"}, {out})}, {}, {}, {test::value_info(out, f32, {"rows", 3})}}, "b");
}

// A node that kiln lacks between others, control flow, and attributes and constants of several kinds; the graph's name
// has characters that file names lack.
message of_all_kinds() {
  return test::model(
      test::graph({{node("Mul", {"x", "w"}, {"m"}), node("LeakyRelu", {"m"}, {"l"}, {attr("alpha", .25f)}),
                    node("Transpose", {"l"}, {"t"}, {attr("perm", std::vector<std::int64_t>{1, 0})}),
                    node("Transpose", {"t"}, {"n"}, {attr("perm", std::vector<std::int64_t>{1, 0})}),
                    node("If", {"c"}, {"f"},
                         {test::graph_attr("then_branch", branch("Abs", "p")),
                          test::graph_attr("else_branch", branch("Neg", "q"))}),
                    node("MurmurHash3", {"f"}, {"h"}, {attr("seed", 7)}, "hash", microsoft),
                    node("Cast", {"h"}, {"k"}, {attr("to", f32)}), node("Add", {"k", "w"}, {"y"})},
                   {test::floats("w", {3}, {2, .5f, 1})},
                   {test::value_info("x", f32, {"rows", 3}), test::value_info("c", boolean, {})},
                   {test::value_info("y", f32, {"rows", 3})}},
                  "../a graph/1"),
      {test::opset(17), test::opset(1, microsoft)});
}

TEST_F(ep_dump, writes_the_graph_and_its_partitions_by_names_that_files_have) {
  const logged_session own(of_all_kinds(), {{"dump_subgraphs", "1"}});
  const std::vector<std::string> found = files();
  ASSERT_EQ(found.size(), 1 + own.of->assigned(ep_host().name).second) << joined(found);
  EXPECT_EQ(found.back(), "___a_graph_1.onnx");
  EXPECT_THAT(own.log, HasSubstr("leaves node 'hash' (MurmurHash3): "));
  const plugin_session whole(ep_host(), of_all_kinds().bytes());
  const plugin_session dumped(ep_host(), folder_ / found.back(), without_plugin);
  EXPECT_EQ(dumped.inputs, whole.inputs);
  EXPECT_EQ(dumped.outputs, whole.outputs);
  for (const bool c : {false, true}) {
    auto given = ep_rows(4);
    given["c"] = argument(literal::scalar(dtype::boolean, c));
    EXPECT_EQ(floats_of(dumped, given), floats_of(whole, given));
  }
  for (std::size_t i = 0; i + 1 < found.size(); ++i) {
    const plugin_session part(ep_host(), folder_ / found[i], without_plugin);
    EXPECT_FALSE(part.outputs.empty()) << found[i];
    EXPECT_EQ(onnx::read_model(found[i]).graph.main().parameters().size(), part.inputs.size()) << found[i];
  }
}

TEST_F(ep_dump, a_folder_that_can_t_be_written_is_a_warning) {
  std::filesystem::create_directory("___a_graph_1.onnx");
  const logged_session own(of_all_kinds(), {{"dump_model_ops", "1"}});
  EXPECT_THAT(own.log, HasSubstr("___a_graph_1.onnx is not written"));
}

TEST_F(ep_dump, writes_nothing_unasked) {
  const logged_session own(of_all_kinds(), {});
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace kiln::peer
