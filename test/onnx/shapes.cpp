#include <gtest/gtest.h>

#include <map>

#include "kiln/onnx/import.hpp"
#include "onnx/model_writer.hpp"

namespace kiln::test {
namespace {

dims result_dims(const std::vector<message>& nodes, const std::vector<message>& initializers, const std::vector<dim>& x,
                 std::int64_t version = 17) {
  const auto m = model(graph({nodes, initializers, {value_info("x", 1, x)}, {value_info("y")}}), {opset(version)});
  const program p = onnx::parse_model(m.bytes()).graph;
  return p.main().shape_of(p.main().outputs[0]).lens;
}
const dimension n = dimension::symbol("n", 0), s = dimension::symbol("s", 0);

TEST(shape_arithmetic, a_shape_resolves_to_attributes) {
  // y = reshape(x, [x.shape[0], -1, x.shape[2] / 4])
  const std::vector<message> nodes = {
      node("Shape", {"x"}, {"all"}),
      node("Gather", {"all", "zero"}, {"batch"}),
      node("Gather", {"all", "two"}, {"width"}),
      node("Div", {"width", "four"}, {"part"}),
      node("Unsqueeze", {"batch", "axes"}, {"batch_1"}),
      node("Unsqueeze", {"part", "axes"}, {"part_1"}),
      node("Concat", {"batch_1", "open", "part_1"}, {"to"}, {attr("axis", 0)}),
      node("Reshape", {"x", "to"}, {"y"}),
  };
  const std::vector<message> initializers = {integers("zero", {}, {0}), integers("two", {}, {2}),
                                             integers("four", {}, {4}), integers("axes", {1}, {0}),
                                             integers("open", {1}, {-1})};
  EXPECT_EQ(result_dims(nodes, initializers, {"n", "s", 64}), (dims{n, s * 4, 16}));
}

TEST(shape_arithmetic, reshape_keeps_and_infers) {
  const auto reshaped = [&](const std::vector<std::int64_t>& to, const std::vector<dim>& from) {
    return result_dims({node("Reshape", {"x", "to"}, {"y"})},
                       {integers("to", {static_cast<std::int64_t>(to.size())}, to)}, from);
  };
  EXPECT_EQ(reshaped({0, -1}, {"n", 3, 4}), (dims{n, 12}));
  EXPECT_EQ(reshaped({-1, 8}, {"n", "s", 8}), (dims{n * s, 8}));
  EXPECT_EQ(reshaped({0, 0, 2, -1}, {"n", "s", 8}), (dims{n, s, 2, 4}));
  EXPECT_EQ(reshaped({-1}, {}), (dims{1}));
  EXPECT_THROW(reshaped({-1, -1}, {4}), error);
  EXPECT_THROW(reshaped({3}, {4}), error);
}

TEST(shape_arithmetic, ranges_slices_and_tiles_follow_symbols) {
  const std::vector<message> pick = {node("Shape", {"x"}, {"all"}), node("Gather", {"all", "one"}, {"len"})};
  const std::vector<message> numbers = {
      integers("one", {}, {1}),        integers("zero", {}, {0}),
      integers("two", {}, {2}),        integers("axes", {1}, {0}),
      integers("starts", {1}, {-2}),   integers("ends", {1}, {std::numeric_limits<std::int64_t>::max()}),
      integers("repeats", {2}, {1, 3})};
  auto nodes = pick;
  nodes.push_back(node("Range", {"zero", "len", "two"}, {"y"}));
  EXPECT_EQ(result_dims(nodes, numbers, {"n", "s"}), (dims{(s + 1) / 2}));
  EXPECT_EQ(result_dims({node("Slice", {"x", "starts", "ends", "one_axis"}, {"y"})},
                        {numbers[4], numbers[5], integers("one_axis", {1}, {1})}, {"n", 7}),
            (dims{n, 2}));
  EXPECT_EQ(result_dims({node("Tile", {"x", "repeats"}, {"y"})}, {numbers[6]}, {"n", "s"}), (dims{n, s * 3}));
  EXPECT_EQ(result_dims({node("Tile", {"x", "repeats"}, {"y"})}, {numbers[6]}, {"n", 1}), (dims{n, 3}));
}

TEST(shape_arithmetic, a_symbolic_extent_as_a_float_is_not_rounded) {
  // float(s) / 2 is no integer division: the conversion waits for the run
  const auto m = model(graph(
      {{node("Shape", {"x"}, {"len"}), node("Cast", {"len"}, {"f"}, {attr("to", 1)}), node("Div", {"f", "two"}, {"y"})},
       {floats("two", {}, {2})},
       {value_info("x", 1, {"s"})},
       {value_info("y")}}));
  const program p = onnx::parse_model(m.bytes()).graph;
  EXPECT_EQ(p.main().producer(p.main().outputs[0]).op.name(), "div");
}

TEST(shape_arithmetic, every_shape_of_the_language_model_resolves) {
  const program p = onnx::read_model(KILN_SOURCE_DIR "/examples/models/scripture/model.onnx").graph;
  const module_graph& m = p.main();
  std::map<std::string_view, int> count;
  int ops = 0;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op) continue;
    ++ops;
    ++count[m[i].op.name()];
    // integers are left for token ids, positions and the mask only
    if (m[i].op.name() == "reshape" || m[i].op.name() == "slice" || m[i].op.name() == "concat") {
      EXPECT_FALSE(is_integer(m[i].results[0].type)) << m[i].name.view();
    }
  }
  EXPECT_EQ(count["dot"], 55);  // 945 nodes: 6 layers of 7 projections and 2 products, one head
  EXPECT_EQ(count["gather"], 1);
  EXPECT_LT(ops - count["multibroadcast"], 450);
  const dimension batch = dimension::symbol("batch_size", 0), length = dimension::symbol("sequence_length", 0),
                  past = dimension::symbol("past_sequence_length", 0);
  EXPECT_EQ(m.shape_of(m.outputs[0]), shape(dtype::f32, {batch, length, 2048}));
  EXPECT_EQ(m.shape_of(m.outputs[1]), shape(dtype::f32, {batch, 2, past + length, 32}));
}

}  // namespace
}  // namespace kiln::test
