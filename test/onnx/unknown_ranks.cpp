#include "onnx/dynamic_model.hpp"

// Tensors whose rank only a run knows: what follows from several of them, and nodes that some ranks do not suit.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using lens = std::vector<std::int64_t>;

message lists(std::string_view name) {
  return message().text(1, name).add(2, message().add(4, message().add(1, message().add(1, message().number(1, 1)))));
}
/// A model over a list of tensors of any rank, and indices of it.
message over_list(std::vector<message> nodes, const strings& indices, const strings& outputs,
                  std::vector<message> constants = {}) {
  graph_parts parts;
  parts.nodes = std::move(nodes);
  parts.initializers = std::move(constants);
  parts.inputs.push_back(lists("s"));
  for (const auto& p : indices) parts.inputs.push_back(value_info(p, 7, {}));
  for (const auto& o : outputs) parts.outputs.push_back(of_any_rank(o));
  return model_of(parts, 18);
}
message taken(const std::string& index, const std::string& to) { return node("SequenceAt", {"s", index}, {to}); }
argument three_ranks() {
  const std::vector<argument> items{reals({}, {2}), reals({2}, {3, 4}), reals({2, 2}, {1, 2, 3, 5})};
  return sequence_argument(std::vector<argument>(items));
}

TEST(unknown_ranks, several_that_do_not_meet_do_not_multiply) {
  std::vector<message> nodes;
  strings indices, sums;
  std::vector<argument> given{three_ranks()};
  for (int k = 0; k < 4; ++k) {
    const std::string n = std::to_string(k);
    indices.push_back("p" + n);
    sums.push_back("sum" + n);
    given.push_back(whole({}, {k % 3}));
    nodes.push_back(taken("p" + n, "x" + n));
    nodes.push_back(node("Neg", {"x" + n}, {"y" + n}));
    nodes.push_back(node("ReduceSum", {"y" + n}, {"sum" + n}, {attr("keepdims", 0)}));
  }
  nodes.push_back(node("Sum", sums, {"z"}));
  const message m = over_list(nodes, indices, {"z"});
  EXPECT_LT(onnx::parse_model(m.bytes()).graph.modules(), 4u * 20u);
  EXPECT_THAT(floats_of(run_on_targets(m, given)[0]), ElementsAre(-22));
}

TEST(unknown_ranks, each_output_has_its_own) {
  const message m = over_list({taken("p", "x"), taken("q", "y"), taken("r", "z"), node("Neg", {"x"}, {"a"}),
                               node("Relu", {"y"}, {"b"}), node("Abs", {"z"}, {"c"})},
                              {"p", "q", "r"}, {"a", "b", "c"});
  EXPECT_LT(onnx::parse_model(m.bytes()).graph.modules(), 60u);
  const auto out = run_on_targets(m, {three_ranks(), whole({}, {0}), whole({}, {1}), whole({}, {2})});
  EXPECT_EQ(lens_of(out[0]), lens{});
  EXPECT_EQ(lens_of(out[1]), lens{2});
  EXPECT_EQ(lens_of(out[2]), (lens{2, 2}));
}

// Of rank 1 or 2, by a condition of its own.
message chosen(const std::string& name) {
  const message flat = graph({{node("Squeeze", {"w", "last"}, {"a"})}, {}, {}, {of_any_rank("a")}}),
                as_is = graph({{node("Neg", {"w"}, {"b"})}, {}, {}, {of_any_rank("b")}});
  return node("If", {"c" + name}, {name}, {graph_attr("then_branch", flat), graph_attr("else_branch", as_is)});
}
message over_choices(std::vector<message> nodes, const strings& names, const std::string& output) {
  graph_parts parts;
  for (const auto& n : names) {
    parts.nodes.push_back(chosen(n));
    parts.inputs.push_back(value_info("c" + n, 9, {}));
  }
  for (message& n : nodes) parts.nodes.push_back(std::move(n));
  parts.initializers = {integers("last", {1}, {1})};
  parts.inputs.push_back(value_info("w", 1, {2, 1}));
  parts.outputs = {of_any_rank(output)};
  return model_of(parts, 18);
}

TEST(unknown_ranks, what_meets_is_built_for_each_pair) {
  const message m =
      over_choices({node("Add", {"x", "y"}, {"a"}), node("Mul", {"a", "z"}, {"b"})}, {"x", "y", "z"}, "b");
  const message lists = over_list({taken("p", "x"), taken("q", "y"), taken("r", "z"), node("Add", {"x", "y"}, {"a"}),
                                   node("Mul", {"a", "z"}, {"b"})},
                                  {"p", "q", "r"}, {"b"});
  EXPECT_LT(onnx::parse_model(lists.bytes()).graph.modules(), 450u);
  const auto run = [&](bool x, bool y, bool z) {
    return run_model(m, {truth(x), truth(y), truth(z), reals({2, 1}, {1, 2})})[0];
  };
  EXPECT_THAT(floats_of(run(true, true, true)), ElementsAre(2, 8));
  EXPECT_THAT(floats_of(run(false, true, false)), ElementsAre(0, -1, 2, 0));
  EXPECT_EQ(lens_of(run(false, false, true)), (lens{2, 2}));
}

// The same tensor on two ways, one of which meets another tensor.
TEST(unknown_ranks, what_belongs_together_is_told_apart_together) {
  const message m =
      over_choices({node("Neg", {"x"}, {"n"}), node("Relu", {"n"}, {"r"}), node("Size", {"n"}, {"count"}),
                    node("Add", {"r", "y"}, {"a"}), node("Sub", {"a", "n"}, {"b"}), node("Sub", {"b", "x"}, {"c"}),
                    node("Cast", {"count"}, {"size"}, {attr("to", 1)}), node("Add", {"c", "size"}, {"d"})},
                   {"x", "y"}, "d");
  EXPECT_LT(onnx::parse_model(m.bytes()).graph.modules(), 15u);
  EXPECT_THAT(floats_of(run_model(m, {truth(true), truth(false), reals({2, 1}, {1, -2})})[0]), ElementsAre(1, 3, 4, 6));
}

TEST(unknown_ranks, where_one_rank_fits_there_is_nothing_to_tell_apart) {
  const message m = over_list({taken("p", "x"), node("Transpose", {"x"}, {"t"}, {attr("perm", lens{1, 0})}),
                               taken("q", "y"), node("MatMul", {"t", "y"}, {"z"})},
                              {"p", "q"}, {"z"});
  EXPECT_THAT(floats_of(run_on_targets(m, {three_ranks(), whole({}, {2}), whole({}, {1})})[0]), ElementsAre(15, 26));
  const message chain =
      over_list({taken("p", "x"), node("Transpose", {"x"}, {"t"}, {attr("perm", lens{1, 0})})}, {"p"}, {"t"});
  EXPECT_EQ(onnx::parse_model(chain.bytes()).graph.modules(), 1u);
}

// One after the other, each with the ranks that do not suit it.
TEST(unknown_ranks, a_chain_of_choices_is_built_once_a_link) {
  std::vector<message> nodes;
  std::string before = "start";
  for (int k = 0; k < 12; ++k) {
    const std::string n = std::to_string(k);
    nodes.push_back(node("SequenceAt", {"s", before}, {"x" + n}));
    nodes.push_back(node("Transpose", {"x" + n}, {"t" + n}, {attr("perm", lens{1, 0})}));
    nodes.push_back(node("ReduceMax", {"t" + n}, {"m" + n}, {attr("keepdims", 0)}));
    nodes.push_back(node("Cast", {"m" + n}, {"next" + n}, {attr("to", 7)}));
    before = "next" + n;
  }
  nodes.push_back(node("Identity", {before}, {"y"}));
  const message m = over_list(nodes, {"start"}, {"y"});
  const std::vector<argument> all(6, reals({1, 1}, {5}));
  EXPECT_THAT(floats_of(run_on_targets(m, {sequence_argument(all), whole({}, {0})})[0]), ElementsAre(5));
}

TEST(unknown_ranks, faults_of_ranks_that_do_not_fit_are_no_faults) {
  std::vector<message> nodes{taken("p", "x")};
  strings turned;
  for (int k = 0; k < 70; ++k) {
    turned.push_back("t" + std::to_string(k));
    nodes.push_back(node("Transpose", {"x"}, {turned.back()}, {attr("perm", lens{1, 0})}));
  }
  nodes.push_back(node("Sum", turned, {"y"}));
  const message m = over_list(nodes, {"p"}, {"y"});
  EXPECT_THAT(floats_of(run_on_targets(m, {three_ranks(), whole({}, {2})})[0]), ElementsAre(70, 210, 140, 350));
  EXPECT_THROW(run_on_targets(m, {three_ranks(), whole({}, {1})}), error);
  // what is wrong beside them is told all the same
  nodes.push_back(node("Transpose", {"w"}, {"u"}, {attr("perm", lens{3, 0})}, "wrong"));
  nodes.push_back(node("Mystery", {"w"}, {"v"}));
  const std::string why = failure(over_list(nodes, {"p"}, {"y", "u", "v"}, {floats("w", {1, 1}, {1})}), {});
  EXPECT_THAT(why, HasSubstr("'wrong'"));
  EXPECT_THAT(why, HasSubstr("Mystery"));
  EXPECT_THAT(why, Not(HasSubstr("Transpose) ")));
}

TEST(unknown_ranks, nodes_that_no_rank_suits_are_named) {
  const message m = over_list({taken("p", "x"), node("Transpose", {"x"}, {"t"}, {attr("perm", lens{1, 0})}, "turn"),
                               node("Transpose", {"t"}, {"u"}, {attr("perm", lens{2, 1, 0})}, "turn_again")},
                              {"p"}, {"u"});
  EXPECT_THAT(failure(m, {}), HasSubstr("turn"));
}

}  // namespace
}  // namespace kiln::test
