#include "tensorflow/graph_text.hpp"

namespace kiln::tensorflow {
namespace {

const std::string one = "dtype: DT_INT32 tensor_shape {} int_val: 1";

// i = 0, x: while i < n: x = x * w, i = i + 1
std::string powers(const std::string& limit, const std::string& op = "While", const std::string& more_condition = "") {
  const std::string functions =
      function("cond", {"i", "n", "x", "w"}, {{"go", more_condition.empty() ? "less:z:0" : "and:z:0"}},
               node("less", "Less", {"i", "n"}) + more_condition) +
      function("body", {"i", "n", "x", "w"},
               {{"i_", "next:z:0"}, {"n_", "n"}, {"x_", "made:z:0"}, {"w_", "same:output:0"}},
               constant("one", one) + node("next", "AddV2", {"i", "one:output:0"}) + node("made", "Mul", {"x", "w"}) +
                   node("same", "Identity", {"w"}));
  return placeholder("x", "2") + integers("i", "0") + limit +
         constant("w", "dtype: DT_FLOAT tensor_shape {} float_val: 2") +
         node("loop", op, {"i", "n", "x", "w"},
              function_attribute("cond", "cond") + function_attribute("body", "body")) +
         node("y", "Identity", {"loop:2"}) + library(functions);
}

TEST(tensorflow_loops, a_loop_runs_until_its_condition_ends_it) {
  for (const std::string op : {"While", "StatelessWhile"})
    EXPECT_THAT(numbers(run(powers(integers("n", "5"), op), {floats({2}, {1, 3})})[0]), ElementsAre(32, 96));
  EXPECT_THAT(numbers(run(powers(integers("n", "0")), {floats({2}, {1, 3})})[0]), ElementsAre(1, 3));
  EXPECT_THAT(numbers(run(powers(integers("n", "-3")), {floats({2}, {1, 3})}, {.outputs = {"loop:2"}})[0]),
              ElementsAre(1, 3));
  // all values of a loop, those that stay too
  const auto all =
      run(powers(integers("n", "3")), {floats({2}, {1, 3})}, {.outputs = {"loop", "loop:1", "loop:2", "loop:3"}});
  EXPECT_EQ(numbers(all[0])[0], 3);
  EXPECT_EQ(numbers(all[1])[0], 3);
  EXPECT_THAT(numbers(all[2]), ElementsAre(8, 24));
  EXPECT_EQ(numbers(all[3])[0], 2);
}

// Loops that share a large condition get one each only as far as the graph's size allows.
TEST(tensorflow_loops, few_bytes_ask_for_little) {
  const std::string one = "dtype: DT_INT32 tensor_shape {} int_val: 1";
  std::string cond = node("less", "Less", {"i", "n"});
  for (int i = 0; i < 2000; ++i) cond += node("c" + std::to_string(i), "Neg", {"x"});
  std::string text = placeholder("x", "2") + integers("i", "0") + integers("n", "3"),
              functions = function("cond", {"i", "n", "x"}, {{"go", "less:z:0"}}, cond);
  for (int k = 0; k < 200; ++k) {
    const std::string name = "body" + std::to_string(k);
    functions += function(
        name, {"i", "n", "x"}, {{"a", "next:z:0"}, {"b", "n"}, {"c", "double:z:0"}},
        constant("one", one) + node("next", "AddV2", {"i", "one:output:0"}) + node("double", "AddV2", {"x", "x"}));
    text += node("y" + std::to_string(k), "While", {"i", "n", "x"},
                 function_attribute("cond", "cond") + function_attribute("body", name));
  }
  EXPECT_THAT(fault(text + library(functions)),
              HasSubstr("function 'cond': the loops of the graph read its functions too often for its size"));
}

TEST(tensorflow_loops, a_limit_may_be_an_input_and_a_condition_anything) {
  const executable e = compile(parse(powers(placeholder("n", "", "DT_INT32"))).graph, eigen_target());
  for (const std::int32_t n : {0, 1, 4}) {
    const std::int32_t list[] = {n};
    const argument limit = argument::of<std::int32_t>({}, std::span<const std::int32_t>(list));
    EXPECT_THAT(numbers(e.run(std::vector{floats({2}, {1, 3}), limit})[0]), ElementsAre(1 << n, 3 << n));
  }
  // as long as no element is 20 or more, too
  const std::string small = constant("most", "dtype: DT_FLOAT tensor_shape {} float_val: 20") +
                            integers("axes", "0", "1") + node("greatest", "Max", {"x", "axes:output:0"}) +
                            node("small", "Less", {"greatest:output:0", "most:output:0"}) +
                            node("and", "LogicalAnd", {"less:z:0", "small:z:0"});
  EXPECT_THAT(numbers(run(powers(integers("n", "9"), "While", small), {floats({2}, {1, 3})})[0]), ElementsAre(8, 24));
  EXPECT_THAT(numbers(run(powers(integers("n", "2"), "While", small), {floats({2}, {1, 3})})[0]), ElementsAre(4, 12));
}

TEST(tensorflow_loops, a_weight_that_stays_is_a_constant_of_the_body) {
  const program p = parse(powers(integers("n", "5"))).graph;
  ASSERT_EQ(p.modules(), 2u);
  // number of the iteration, condition and x; the counter is not read, n and w are constants
  EXPECT_LE(p.module({1}).parameters().size(), 4u);
}

// Rows of x go through a cell: h = tanh(row + h), and all h are stacked.
std::string recurrent(const std::string& n, const std::string& extents, const std::string& index = "time") {
  const std::string functions =
      function("cond", {"time", "n", "h", "out", "in"}, {{"go", "less:z:0"}}, node("less", "Less", {"time", "n"})) +
      function("body", {"time", "n", "h", "out", "in"},
               {{"time_", "next:z:0"}, {"n_", "n"}, {"h_", "h2:y:0"}, {"out_", "set:output_handle:0"}, {"in_", "in"}},
               constant("one", one) + integers("row", "-1", "1") + node("next", "AddV2", {"time", "one:output:0"}) +
                   node("row_at", "TensorListGetItem", {"in", "time", "row:output:0"},
                        attribute("element_dtype", "type: DT_FLOAT")) +
                   node("sum", "AddV2", {"row_at:item:0", "h"}) + node("h2", "Tanh", {"sum:z:0"}) +
                   integers("zero", "0") + node("reversed", "Sub", {"n", "next:z:0"}) +
                   node("set", "TensorListSetItem", {"out", index, "h2:y:0"}));
  return placeholder("x", "3 2") + integers("shape", "-1", "1") + integers("zero", "0") + integers("n", n) +
         node("list", "TensorListFromTensor", {"x", "shape"}) + extents +
         node("out", "TensorListReserve", {"extents", "n"}, attribute("element_dtype", "type: DT_FLOAT")) +
         constant("h", "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 0") +
         node("loop", "While", {"zero", "n", "h", "out", "list"},
              function_attribute("cond", "cond") + function_attribute("body", "body")) +
         node("y", "TensorListStack", {"loop:3", "shape"}) + library(functions);
}

TEST(tensorflow_loops, items_of_lists_are_read_and_stacked) {
  const argument x = floats({3, 2}, {.1f, .2f, .3f, .4f, .5f, .6f});
  std::vector<double> wanted;
  double h[] = {0, 0};
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < 2; ++i) wanted.push_back(h[i] = std::tanh(.1 + .2 * t + .1 * i + h[i]));
  const std::string known = integers("extents", "2", "1"), open = integers("extents", "-1", "1"),
                    unknown = integers("extents", "-1");
  for (const std::string& extents : {known, open, unknown})
    EXPECT_THAT(numbers(run(recurrent("3", extents), {x})[0]),
                ::testing::Pointwise(::testing::DoubleNear(2e-7), wanted));
  // the last one first: item by item, in a tensor
  for (const std::string& extents : {known, open}) {
    const auto made = numbers(run(recurrent("3", extents, "reversed:z:0"), {x})[0]);
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(made[t * 2 + i], wanted[(2 - t) * 2 + i], 2e-7);
  }
  EXPECT_THAT(fault(recurrent("3", unknown, "reversed:z:0")), HasSubstr("'loop' (tensorflow.While)"));
}

TEST(tensorflow_loops, lists_outside_of_loops) {
  const std::string x =
      placeholder("x", "2 3") + integers("shape", "3", "1") + integers("zero", "0") + integers("n", "2");
  const std::string list =
      x + node("list", "TensorListFromTensor", {"x", "shape"}) +
      node("row", "TensorListGetItem", {"list", "zero", "shape"}) +
      node("none", "EmptyTensorList", {"shape", "n"}, attribute("element_dtype", "type: DT_FLOAT")) +
      node("first", "TensorListPushBack", {"none", "row"}) + node("two", "TensorListPushBack", {"first", "row"}) +
      node("last", "TensorListPopBack", {"two", "shape"}) + node("count", "TensorListLength", {"two"}) +
      node("flat", "TensorListConcatV2", {"two", "shape", "zero"}) +
      node("zeros", "TensorListReserve", {"shape", "n"}, attribute("element_dtype", "type: DT_FLOAT")) +
      node("some", "TensorListSetItem", {"zeros", "zero", "row"}) +
      node("empty", "TensorListStack", {"zeros", "shape"});
  const auto out =
      run(list, {counted({2, 3})}, {.outputs = {"two", "last:1", "count", "flat", "flat:1", "some", "empty", "last"}});
  EXPECT_THAT(numbers(out[0]), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(numbers(out[1]), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers(out[2]), ElementsAre(2));
  EXPECT_EQ(out[3].get_shape().lens, (dims{6}));
  EXPECT_THAT(numbers(out[4]), ElementsAre(3, 3));
  EXPECT_THAT(numbers(out[5]), ElementsAre(0, 1, 2, 0, 0, 0));
  EXPECT_THAT(numbers(out[6]), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(out[7].get_shape().lens, (dims{1, 3}));
}

TEST(tensorflow_loops, lists_of_equal_parts) {
  const std::string x = placeholder("x", "6 2") + integers("shape", "2", "1");
  const std::string split =
      x + integers("lengths", "3, 3", "2") + node("y", "TensorListSplit", {"x", "shape", "lengths"});
  const auto out = run(split, {counted({6, 2})});
  EXPECT_EQ(out[0].get_shape().lens, (dims{2, 3, 2}));
  EXPECT_EQ(numbers(out[0])[6], 6);
  EXPECT_THAT(fault(x + integers("lengths", "2, 4", "2") + node("y", "TensorListSplit", {"x", "shape", "lengths"})),
              HasSubstr("parts of several lengths"));
}

TEST(tensorflow_loops, what_is_no_loop_is_refused_by_name) {
  std::string text = powers(integers("n", "5"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    out.replace(out.find(from), from.size(), to);
    return fault(out);
  };
  EXPECT_THAT(changed("input: 'w' attr", "attr"),
              HasSubstr("node 'loop' (While): function 'cond' takes 4 inputs, the loop has 3 values"));
  EXPECT_THAT(changed("value { func { name: 'body'", "value { func { name: 'cond'"),
              HasSubstr("function 'cond' gives 1 values, the loop has 4"));
  EXPECT_THAT(changed("value { func { name: 'cond'", "value { func { name: 'body'"),
              HasSubstr("function 'body' gives no one condition"));
}

}  // namespace
}  // namespace kiln::tensorflow
