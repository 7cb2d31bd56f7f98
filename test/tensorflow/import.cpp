#include "kiln/tensorflow/import.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/core/wire_format.hpp"
#include "kiln/runtime/executable.hpp"
#include "quantize/message_of.hpp"
#include "runtime/compare.hpp"

namespace kiln::tensorflow {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }
onnx::imported parse(const std::string& text, const import_options& how = {}) {
  return parse_model(bytes_of(text), how);
}
std::string fault(const std::string& text, const import_options& how = {}) {
  return message_of([&] { parse(text, how); });
}
std::vector<argument> run(const std::string& text, const std::vector<argument>& inputs,
                          const import_options& how = {}) {
  return compile(parse(text, how).graph, eigen_target()).run(inputs);
}
argument floats(const dims& lens, const std::vector<float>& v) {
  return argument::of<float>(lens, std::span<const float>(v));
}
argument counted(const dims& lens) {
  argument out(shape{dtype::f32, lens});
  for (std::int64_t i = 0; i < out.elements(); ++i) reinterpret_cast<float*>(out.data())[i] = static_cast<float>(i);
  return out;
}
std::vector<double> numbers(const argument& a) {
  const auto v = a.to<double>();
  return {v.begin(), v.end()};
}

std::string placeholder(const std::string& name, const std::string& extents, const std::string& type = "DT_FLOAT") {
  std::string dims;
  std::string word;
  for (const char c : extents + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      dims += "dim { size: " + word + " } ";
      word.clear();
    }
  }
  return "node { name: '" + name + "' op: 'Placeholder' attr { key: 'dtype' value { type: " + type +
         " } } attr { key: 'shape' value { shape { " + dims + "} } } }\n";
}
std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& attributes = {}) {
  std::string out = "node { name: '" + name + "' op: '" + op + "'";
  for (const std::string& i : inputs) out += " input: '" + i + "'";
  return out + " " + attributes + " }\n";
}
std::string attribute(const std::string& key, const std::string& value) {
  return "attr { key: '" + key + "' value { " + value + " } } ";
}
std::string constant(const std::string& name, const std::string& tensor) {
  return node(name, "Const", {}, attribute("value", "tensor { " + tensor + " }"));
}

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

TEST(tensorflow_import, constants_of_all_types_and_forms) {
  const auto value = [](const std::string& tensor) {
    const auto out = run(placeholder("x", "1") + constant("c", tensor), {floats({1}, {0})}, {.outputs = {"c"}});
    return std::pair(out[0].get_shape().type, numbers(out[0]));
  };
  const std::string two = " tensor_shape { dim { size: 2 } } ";
  using result = std::pair<dtype, std::vector<double>>;
  EXPECT_EQ(value("dtype: DT_UINT8" + two + "int_val: 200 int_val: 7"), (result{dtype::u8, {200, 7}}));
  EXPECT_EQ(value("dtype: DT_INT8" + two + "int_val: -3 int_val: 7"), (result{dtype::i8, {-3, 7}}));
  EXPECT_EQ(value("dtype: DT_INT64" + two + "int64_val: -9000000000 int64_val: 7"),
            (result{dtype::i64, {-9000000000, 7}}));
  EXPECT_EQ(value("dtype: DT_UINT64" + two + "uint64_val: [9000000000, 7]"), (result{dtype::u64, {9000000000, 7}}));
  EXPECT_EQ(value("dtype: DT_HALF" + two + "half_val: [0x3e00, 48128]"), (result{dtype::f16, {1.5, -1}}));
  EXPECT_EQ(value("dtype: DT_BFLOAT16" + two + "half_val: [0x3fc0, 0xbf80]"), (result{dtype::bf16, {1.5, -1}}));
  EXPECT_EQ(value("dtype: DT_DOUBLE" + two + "double_val: .25 double_val: 1e300"), (result{dtype::f64, {.25, 1e300}}));
  EXPECT_EQ(value("dtype: DT_BOOL" + two + "bool_val: true bool_val: false"), (result{dtype::boolean, {1, 0}}));
  EXPECT_EQ(value("dtype: DT_FLOAT" + two + "tensor_content: \"\\000\\000\\200?\\000\\000\\000@\""),
            (result{dtype::f32, {1, 2}}));
  // the last number stands for the rest, and 0 for all where there is none
  EXPECT_EQ(value("dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: 1 float_val: 2"),
            (result{dtype::f32, {1, 2, 2, 2}}));
  EXPECT_EQ(value("dtype: DT_INT32" + two), (result{dtype::i32, {0, 0}}));
}

TEST(tensorflow_import, one_hot_along_any_axis) {
  const std::string constants = constant("depth", "dtype: DT_INT32 tensor_shape {} int_val: 3") +
                                constant("on", "dtype: DT_INT64 tensor_shape {} int64_val: 5") +
                                constant("off", "dtype: DT_INT64 tensor_shape {} int64_val: -1") +
                                constant("i", "dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: [2, -1]");
  const auto made = [&](const std::string& axis) {
    const std::string y = node("y", "OneHot", {"i", "depth", "on", "off"}, attribute("axis", "i: " + axis));
    return run(placeholder("x", "1") + constants + y, {floats({1}, {0})}, {.outputs = {"y"}})[0];
  };
  EXPECT_EQ(made("-1").get_shape(), (shape{dtype::i64, {2, 3}}));
  EXPECT_THAT(numbers(made("-1")), ElementsAre(-1, -1, 5, -1, -1, -1));
  EXPECT_EQ(made("0").get_shape(), (shape{dtype::i64, {3, 2}}));
  EXPECT_THAT(numbers(made("0")), ElementsAre(-1, -1, -1, -1, 5, -1));
}

TEST(tensorflow_import, grouped_convolution_by_the_filters_channels) {
  // two groups of one channel: filters 2 and 3 for the first channel, 5 and 7 for the second
  const std::string text = placeholder("x", "1 1 1 2") +
                           constant("w",
                                    "dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 1 } "
                                    "dim { size: 4 } } float_val: [2, 3, 5, 7]") +
                           node("y", "Conv2D", {"x", "w"},
                                attribute("strides", "list { i: [1, 1, 1, 1] }") + attribute("padding", "s: 'SAME'"));
  EXPECT_THAT(numbers(run(text, {floats({1, 1, 1, 2}, {1, 10})})[0]), ElementsAre(2, 3, 50, 70));
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

TEST(tensorflow_import, damaged_text_names_its_line) {
  EXPECT_THAT(fault("node {\n  name: 'x'\n  op: \"Placeholder\n}"), HasSubstr("line 3"));
  EXPECT_THAT(fault("node { name: 'x' op: 'Y' "), HasSubstr("it ends too soon"));
  EXPECT_THAT(fault("node { name: 'x' op: 'C' attr { key: 'dtype' value { type: DT_FLOTA } } }"),
              HasSubstr("'DT_FLOTA' is no element type"));
  EXPECT_THAT(fault(std::string("node { unknown { a: [1, 2] b < c: 'd' > } name: 'x' op: 'Mystery' }")),
              HasSubstr("Mystery"));
}

// A GraphDef in binary form, field by field.
struct binary_graph {
  std::string bytes;
  static std::string field(std::uint64_t number, std::string_view content) {
    std::string out;
    append_field(out, number, content);
    return out;
  }
  static std::string field(std::uint64_t number, std::uint64_t v) {
    std::string out;
    append_field(out, number, v);
    return out;
  }
  void node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
            const std::map<std::string, std::string>& attrs) {
    std::string n = field(1, name) + field(2, op);
    for (const std::string& i : inputs) n += field(3, i);
    for (const auto& [key, value] : attrs) n += field(5, field(1, key) + field(2, value));
    bytes += field(1, n);
  }
};
std::string binary_example() {
  using b = binary_graph;
  binary_graph g;
  const std::string extents = b::field(2, b::field(1, std::uint64_t(2)));
  g.node("x", "Placeholder", {}, {{"dtype", b::field(6, std::uint64_t(1))}, {"shape", b::field(7, extents)}});
  const float weights[] = {3, 4};
  const std::string content(reinterpret_cast<const char*>(weights), sizeof weights);
  g.node("w", "Const", {},
         {{"value", b::field(8, b::field(1, std::uint64_t(1)) + b::field(2, extents) + b::field(4, content))}});
  g.node("y", "Mul", {"x", "w", "^x"}, {});
  return g.bytes;
}

TEST(tensorflow_import, binary_form) {
  const std::string bytes = binary_example();
  EXPECT_THAT(numbers(run(bytes, {floats({2}, {5, 6})})[0]), ElementsAre(15, 24));
  const std::string file = ::testing::TempDir() + "/frozen_graph.pb";
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_TRUE(is_graph_file(file));
  EXPECT_THAT(numbers(compile(read_model(file).graph, eigen_target()).run(std::vector{floats({2}, {5, 6})})[0]),
              ElementsAre(15, 24));
  EXPECT_FALSE(is_graph_file(KILN_SOURCE_DIR "/examples/models/digits/model.onnx"));
  EXPECT_THAT(message_of([&] { read_model(::testing::TempDir()); }), HasSubstr("SavedModel"));
  EXPECT_THAT(message_of([&] { read_model(file + "x"); }), HasSubstr("frozen_graph.pbx"));
}

TEST(tensorflow_import, damaged_files_give_errors) {
  const std::string whole = binary_example();
  int faults = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      parse(bytes);
    } catch (const error&) {
      ++faults;
    }
  };
  for (std::size_t n = 0; n < whole.size(); ++n) attempt(whole.substr(0, n));
  EXPECT_GT(faults, static_cast<int>(whole.size()) / 2);
  std::mt19937 draw(7);
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = whole;
    for (unsigned k = 0; k <= draw() % 3; ++k) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    attempt(bytes);
  }
  const std::string text = placeholder("x", "-1 3") +
                           constant("c", "dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1") +
                           node("y", "Reshape", {"x", "c"});
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = text;
    for (unsigned k = 0; k <= draw() % 3; ++k) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    attempt(bytes);
  }
  EXPECT_GT(faults, 1000);
}

}  // namespace
}  // namespace kiln::tensorflow
