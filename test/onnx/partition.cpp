#include "kiln/onnx/partition.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

value_info reals(std::string name, bool has_rank = true) {
  value_info v;
  v.name = std::move(name), v.kind = value_kind::tensor, v.type = element::f32, v.has_rank = has_rank;
  if (has_rank) v.dims = {{-1, "n"}};
  return v;
}

node made(std::string op, std::vector<std::string> in, std::vector<std::string> out) {
  node n;
  n.name = out.front(), n.op_type = std::move(op), n.inputs = std::move(in), n.outputs = std::move(out);
  return n;
}

struct network {
  model of;
  std::vector<value_info> values;
};

// Nodes over x, whose outputs are all declared; the last one's is the model's.
network network_of(std::vector<node> nodes) {
  network n;
  n.of.versions = {{"", 20}};
  n.of.main.inputs = {reals("x")};
  n.of.main.nodes = std::move(nodes);
  for (const node& made : n.of.main.nodes)
    for (const std::string& o : made.outputs) n.values.push_back(reals(o));
  n.of.main.outputs = {n.values.back()};
  return n;
}

TEST(partition, a_model_that_imports_is_one_part) {
  const network n = network_of({made("Neg", {"x"}, {"a"}), made("Abs", {"x"}, {"b"}), made("Add", {"a", "b"}, {"y"})});
  const model_partition p = partition_model(n.of, n.values);
  EXPECT_THAT(p.parts, ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_TRUE(p.left.empty());
}

TEST(partition, parts_are_closed_and_few) {
  // a -> unknown -> c, and a -> c directly: a and c are in two parts, d beside them joins the first
  const network n =
      network_of({made("Neg", {"x"}, {"a"}), made("NoSuchOperator", {"a"}, {"b"}), made("Abs", {"x"}, {"d"}),
                  made("Add", {"a", "b"}, {"c"}), made("Mul", {"c", "d"}, {"y"})});
  const model_partition p = partition_model(n.of, n.values);
  EXPECT_THAT(p.parts, ElementsAre(ElementsAre(0, 2), ElementsAre(3, 4)));
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].node, 1u);
  EXPECT_THAT(p.left[0].why, HasSubstr("NoSuchOperator"));
}

TEST(partition, nodes_that_their_importer_refuses_are_left) {
  network n = network_of({made("Neg", {"x"}, {"a"}), made("Concat", {"a", "a"}, {"b"}), made("Abs", {"b"}, {"y"})});
  const model_partition p = partition_model(n.of, n.values);  // Concat lacks its axis
  EXPECT_THAT(p.parts, ElementsAre(ElementsAre(0), ElementsAre(2)));
  EXPECT_EQ(p.left.at(0).node, 1u);
}

TEST(partition, values_without_a_rank_stay_inside) {
  network n = network_of({made("Neg", {"x"}, {"a"}), made("NoSuchOperator", {"a"}, {"b"}), made("Abs", {"b"}, {"c"}),
                          made("Neg", {"c"}, {"y"})});
  n.values[1] = reals("b", false);  // so that Abs can't read it
  const model_partition p = partition_model(n.of, n.values);
  EXPECT_THAT(p.parts, ElementsAre(ElementsAre(0), ElementsAre(3)));
  EXPECT_THAT(p.left.at(1).why, HasSubstr("no known rank"));
}

TEST(partition, small_parts_and_refused_nodes_are_left) {
  const network n = network_of({made("Neg", {"x"}, {"a"}), made("NoSuchOperator", {"a"}, {"b"}),
                                made("Abs", {"b"}, {"c"}), made("Neg", {"c"}, {"d"}), made("Exp", {"d"}, {"y"})});
  partition_options how;
  how.least_nodes = 2;
  how.refuse = [](const node& one) { return std::string(one.op_type == "Exp" ? "not here" : ""); };
  const model_partition p = partition_model(n.of, n.values, how);
  EXPECT_THAT(p.parts, ElementsAre(ElementsAre(2, 3)));
  ASSERT_EQ(p.left.size(), 3u);
  EXPECT_THAT(p.left[0].why, HasSubstr("at least 2"));
  EXPECT_EQ(p.left[2].why, "not here");
}

TEST(partition, a_part_computes_what_its_nodes_do) {
  const network n =
      network_of({made("Neg", {"x"}, {"a"}), made("NoSuchOperator", {"a"}, {"b"}), made("Add", {"b", "a"}, {"y"})});
  const model part = part_of(n.of, std::vector<std::size_t>{2}, n.values);
  ASSERT_EQ(part.main.inputs.size(), 2u);
  EXPECT_EQ(part.main.inputs[0].name, "b");
  const executable exe = compile(import_model(part).graph, reference_target());
  const auto two = argument::of<float>({2}, std::vector<float>{1, 2});
  EXPECT_THAT(exe.run({{"a", two}, {"b", two}}).front().to<float>(), ElementsAre(2, 4));
}

TEST(partition, a_cycle_is_an_error) {
  const network n = network_of({made("Add", {"x", "y"}, {"a"}), made("Neg", {"a"}, {"y"})});
  EXPECT_THROW(partition_model(n.of, n.values), error);
}

}  // namespace
}  // namespace kiln::onnx
