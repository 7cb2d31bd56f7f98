#include "tensorflow/graph_text.hpp"

namespace kiln::tensorflow {
namespace {

TEST(tensorflow_import, names_and_order_are_those_of_the_graph) {
  const std::string text = placeholder("b", "2") + placeholder("a", "2") + node("sum", "AddV2", {"a:0", "b", "^note"}) +
                           node("note", "NoOp", {}) + node("check/Assert/AssertGuard", "Switch", {"a"}) +
                           node("twice", "AddV2", {"sum", "sum"}) + node("alone", "Neg", {"a"});
  const onnx::imported made = parse(text);
  const executable e = compile(program(made.graph), eigen_target());
  ASSERT_EQ(e.inputs().size(), 2u);
  EXPECT_EQ(e.inputs()[0].name, "b");
  EXPECT_EQ(e.inputs()[1].name, "a");
  ASSERT_EQ(e.outputs().size(), 2u);
  EXPECT_EQ(e.outputs()[0].name, "twice");
  EXPECT_EQ(e.outputs()[1].name, "alone");
  const auto out = e.run(std::vector{floats({2}, {1, 2}), floats({2}, {10, 20})});
  EXPECT_THAT(numbers(out[0]), ElementsAre(22, 44));
  EXPECT_THAT(numbers(out[1]), ElementsAre(-10, -20));
}

TEST(tensorflow_import, outputs_are_those_asked_for) {
  const std::string text = placeholder("x", "4 2") + constant("axis", "dtype: DT_INT32 tensor_shape {} int_val: 0") +
                           node("parts", "Split", {"axis", "x"}, attribute("num_split", "i: 2")) +
                           node("y", "Neg", {"parts"});
  const auto out = run(text, {counted({4, 2})}, {.outputs = {"parts:1", "y:0"}});
  EXPECT_THAT(numbers(out[0]), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(numbers(out[1]), ElementsAre(0, -1, -2, -3));
  EXPECT_THAT(fault(text, {.outputs = {"z"}}), HasSubstr("output 'z'"));
  EXPECT_THAT(fault(text, {.outputs = {"parts:2"}}), HasSubstr("parts:2"));
}

TEST(tensorflow_import, open_extents_are_symbols_unless_told) {
  const std::string text = placeholder("x", "-1 3") + node("y", "Relu", {"x"});
  const executable open = compile(parse(text).graph, eigen_target());
  import_options replaced, named;
  replaced.common.shapes = {{"x", {7, 2}}};
  replaced.common.shapes_replace_declared = true;
  named.common.dimensions = {{"x.0", 6}};
  EXPECT_FALSE(open.inputs()[0].type.is_constant());
  for (const std::int64_t n : {1, 5})
    EXPECT_EQ(open.run(std::vector{counted({n, 3})})[0].get_shape().lens, (dims{n, 3}));
  EXPECT_EQ(compile(parse(text, {.open_extent = 4}).graph, eigen_target()).inputs()[0].type.lens, (dims{4, 3}));
  EXPECT_EQ(compile(parse(text, replaced).graph, eigen_target()).inputs()[0].type.lens, (dims{7, 2}));
  EXPECT_EQ(compile(parse(text, named).graph, eigen_target()).inputs()[0].type.lens, (dims{6, 3}));
}

// One element for each layout: a mean over 2x2 of channels that are far apart.
TEST(tensorflow_import, each_node_states_its_layout) {
  const auto pool = [](const std::string& layout) {
    const bool last = layout != "NCHW";
    const std::string list = last ? "list { i: 1 i: 2 i: 2 i: 1 }" : "list { i: 1 i: 1 i: 2 i: 2 }";
    return attribute("ksize", list) + attribute("strides", list) + attribute("padding", "s: 'VALID'") +
           (layout.empty() ? "" : attribute("data_format", "s: '" + layout + "'"));
  };
  const argument x = counted({1, 2, 2, 2});
  const std::vector<double> last{3, 4}, first{1.5, 5.5};
  const auto made = [&](const std::string& layout, const import_options& how = {}) {
    return numbers(run(placeholder("x", "1 2 2 2") + node("y", "AvgPool", {"x"}, pool(layout)), {x}, how)[0]);
  };
  EXPECT_EQ(made("NHWC"), last);
  EXPECT_EQ(made("NCHW"), first);
  EXPECT_EQ(made(""), last);
  EXPECT_EQ(made("NHWC", {.layout = data_format::nchw}), last);
  const std::string unsaid =
      placeholder("x", "1 2 2 2") +
      node("y", "AvgPool", {"x"},
           attribute("ksize", "list { i: 1 i: 1 i: 2 i: 2 }") + attribute("strides", "list { i: 1 i: 1 i: 2 i: 2 }") +
               attribute("padding", "s: 'VALID'"));
  EXPECT_EQ(numbers(run(unsaid, {x}, {.layout = data_format::nchw})[0]), first);
  const std::string bias = placeholder("x", "1 2 1 2") +
                           constant("b", "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [10, 20]");
  const auto biased = [&](const std::string& layout) {
    return numbers(run(bias + node("y", "BiasAdd", {"x", "b"}, attribute("data_format", "s: '" + layout + "'")),
                       {counted({1, 2, 1, 2})})[0]);
  };
  EXPECT_THAT(biased("NHWC"), ElementsAre(10, 21, 12, 23));
  EXPECT_THAT(biased("NCHW"), ElementsAre(10, 11, 22, 23));
}

TEST(tensorflow_import, all_unknown_operators_are_listed) {
  const std::string why = fault(placeholder("x", "2") + node("first", "Mystery", {"x"}) + node("good", "Relu", {"x"}) +
                                node("second", "Enigma", {"good"}) + node("third", "Relu", {"first"}));
  EXPECT_THAT(why, HasSubstr("node 'first' (tensorflow.Mystery)"));
  EXPECT_THAT(why, HasSubstr("node 'second' (tensorflow.Enigma)"));
  EXPECT_THAT(why, ::testing::Not(HasSubstr("'third'")));
}

TEST(tensorflow_import, what_would_be_wrong_is_refused_by_name) {
  const std::string x = placeholder("x", "1 4 4 2"),
                    v = constant("v", "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1");
  EXPECT_THAT(fault(x + v + node("bn", "FusedBatchNormV3", {"x", "v", "v", "v", "v"})), HasSubstr("is_training"));
  EXPECT_THAT(fault(x + node("y", "Relu", {"z"})), HasSubstr("no node gives its input 'z'"));
  EXPECT_THAT(fault(x + node("x", "Relu", {"x"})), HasSubstr("another node has this name"));
  EXPECT_THAT(fault(x + node("y", "MaxPool", {"x"}, attribute("data_format", "s: 'NCHW_VECT_C'"))),
              HasSubstr("NCHW_VECT_C"));
  EXPECT_THAT(fault(x + node("y", "MaxPool", {"x"},
                             attribute("ksize", "list { i: [2, 1, 1, 1] }") +
                                 attribute("strides", "list { i: [1, 1, 1, 1] }"))),
              HasSubstr("over the batch or the channels"));
  EXPECT_THAT(fault(placeholder("x", "2", "DT_RESOURCE") + node("y", "Identity", {"x"})), HasSubstr("input 'x'"));
  EXPECT_THAT(fault(constant("c", "dtype: DT_STRING tensor_shape {} string_val: 'a'") + node("y", "Identity", {"c"})),
              HasSubstr("DT_STRING"));
  EXPECT_THAT(fault(constant("c", "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [1, 2, 3]") +
                    node("y", "Identity", {"c"})),
              HasSubstr("3 values for a constant of 2 elements"));
  EXPECT_THAT(fault(constant("c", "dtype: DT_FLOAT tensor_shape { dim { size: 9999999999 } } float_val: 1") +
                    node("y", "Identity", {"c"})),
              HasSubstr("bytes"));
}

TEST(tensorflow_import, what_an_assertion_reads_is_no_output) {
  const std::string text = placeholder("x", "2") + node("is_good", "IsFinite", {"x"}) +
                           node("check", "Assert", {"is_good", "x"}) + node("y", "Neg", {"x", "^check"}) +
                           node("order", "NoOp", {"^y", "^late"}) + node("late", "Abs", {"x"});
  const onnx::imported made = parse(text);
  const executable e = compile(program(made.graph), eigen_target());
  ASSERT_EQ(e.outputs().size(), 2u);  // is_good is none
  EXPECT_EQ(e.outputs()[0].name, "y");
  EXPECT_EQ(e.outputs()[1].name, "late");
  ASSERT_FALSE(made.remarks.empty());
  EXPECT_THAT(made.remarks.back(), HasSubstr("2 nodes were left out as assertions"));
}

TEST(tensorflow_import, a_name_makes_no_assertion_of_what_is_read) {
  const std::string read =
      placeholder("x", "2") + node("block/Assert/mul", "Neg", {"x"}) + node("y", "Abs", {"block/Assert/mul"});
  const onnx::imported made = parse(read);
  EXPECT_THAT(made.remarks, ::testing::Each(::testing::Not(HasSubstr("assertions"))));
  EXPECT_THAT(numbers(run(read, {floats({2}, {1, -2})})[0]), ElementsAre(1, 2));
  EXPECT_THAT(fault(placeholder("x", "2") + node("check", "Assert", {"x"}) + node("y", "Abs", {"check"})),
              HasSubstr("no node gives its input 'check'"));
}

TEST(tensorflow_import, outputs_before_the_one_that_is_read_have_no_name) {
  const std::string v = constant("v", "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [3, 4]"),
                    norm =
                        placeholder("x", "1 1 1 2") + v +
                        node("bn", "FusedBatchNormV3", {"x", "v", "v", "v", "v"}, attribute("is_training", "b: false"));
  EXPECT_THAT(numbers(run(norm + node("y", "Neg", {"bn:2"}), {counted({1, 1, 1, 2})})[0]), ElementsAre(-3, -4));
  EXPECT_THAT(numbers(run(norm, {counted({1, 1, 1, 2})}, {.outputs = {"bn:2"}})[0]), ElementsAre(3, 4));
  EXPECT_THAT(fault(norm + node("y", "Neg", {"bn:5"})), HasSubstr("output 5 ('bn:5')"));
  EXPECT_THAT(fault(norm + node("y", "Neg", {"bn:1000000"})), HasSubstr("beyond the outputs"));
  EXPECT_THAT(fault(norm, {.outputs = {"bn:9999"}}), HasSubstr("no such value"));
}

TEST(tensorflow_import, options_of_graphs_are_not_for_other_models) {
  const std::string file = KILN_SOURCE_DIR "/examples/models/digits/model.onnx";
  EXPECT_NO_THROW(read_any_model(file));
  for (const import_options& how : {import_options{.layout = data_format::nchw}, import_options{.open_extent = 2},
                                    import_options{.outputs = {"y"}}})
    EXPECT_THAT(message_of([&] { read_any_model(file, how); }), HasSubstr("are for TensorFlow's models"));
  EXPECT_THAT(message_of([&] { read_any_model(file + "x", {.open_extent = 2}); }), HasSubstr("model.onnxx"));
}

}  // namespace
}  // namespace kiln::tensorflow
