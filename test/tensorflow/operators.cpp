#include <cmath>
#include <limits>

#include "tensorflow/graph_text.hpp"

namespace kiln::tensorflow {
namespace {

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

std::string list(const std::string& numbers) { return "list { i: [" + numbers + "] }"; }
std::string numbers_constant(const std::string& name, const std::string& extents, const std::string& values,
                             const std::string& type = "DT_INT32", const std::string& field = "int_val") {
  std::string dims, word;
  for (const char c : extents + " ") {
    if (c != ' ')
      word += c;
    else if (!word.empty())
      dims += "dim { size: " + std::exchange(word, {}) + " } ";
  }
  return constant(name, "dtype: " + type + " tensor_shape { " + dims + "} " + field + ": [" + values + "]");
}

TEST(tensorflow_operators, one_hot_beyond_the_indices_type) {
  const std::string text = numbers_constant("i", "1", "44", "DT_UINT8") + numbers_constant("depth", "", "301") +
                           numbers_constant("on", "", "1") + numbers_constant("off", "", "0") +
                           node("y", "OneHot", {"i", "depth", "on", "off"}) + placeholder("x", "1");
  const auto y = numbers(run(text, {floats({1}, {0})}, {.outputs = {"y"}})[0]);
  EXPECT_EQ(std::count(y.begin(), y.end(), 1), 1);  // 300 is no 44
  EXPECT_EQ(y[44], 1);
}

TEST(tensorflow_operators, quotients_of_integers_do_not_overflow) {
  const std::string a = numbers_constant("a", "6", "-2147483648, -2147483648, 2147483647, 7, -7, 6"),
                    b = numbers_constant("b", "6", "3, 2147483647, -2, -2, 7, -3");
  const auto made = [&](const std::string& op) {
    const std::string text = placeholder("x", "1") + a + b + node("y", op, {"a", "b"});
    return numbers(run(text, {floats({1}, {0})}, {.outputs = {"y"}})[0]);
  };
  EXPECT_THAT(made("FloorDiv"), ElementsAre(-715827883, -2, -1073741824, -4, -1, -2));
  EXPECT_THAT(made("TruncateDiv"), ElementsAre(-715827882, -1, -1073741823, -3, -1, -2));
  const std::string bytes = placeholder("x", "1") + numbers_constant("a", "2", "200, 7", "DT_UINT8") +
                            numbers_constant("b", "2", "3, 200", "DT_UINT8") + node("y", "FloorDiv", {"a", "b"});
  EXPECT_THAT(numbers(run(bytes, {floats({1}, {0})}, {.outputs = {"y"}})[0]), ElementsAre(66, 0));
}

TEST(tensorflow_operators, truncation_and_rounding) {
  const std::string floats_of = placeholder("x", "4") + numbers_constant("b", "", "2", "DT_FLOAT", "float_val");
  EXPECT_THAT(numbers(run(floats_of + node("y", "TruncateDiv", {"x", "b"}), {floats({4}, {5, -5, 1, -4})})[0]),
              ElementsAre(2, -2, 0, -2));
  for (const std::string op : {"Round", "Rint"})
    EXPECT_EQ(fault(placeholder("x", "4", "DT_INT32") + node("y", op, {"x"})), "no error");
}

TEST(tensorflow_operators, parts_are_all_of_an_open_extent) {
  const std::string axis = placeholder("x", "-1 2") + numbers_constant("axis", "", "0");
  const std::string split = axis + node("s", "Split", {"axis", "x"}, attribute("num_split", "i: 2"));
  const executable halves = compile(parse(split, {.outputs = {"s", "s:1"}}).graph, eigen_target());
  EXPECT_THAT(numbers(halves.run(std::vector{counted({4, 2})})[1]), ElementsAre(4, 5, 6, 7));
  EXPECT_THROW(halves.run(std::vector{counted({5, 2})}), error);
  const std::string split_v = axis + numbers_constant("sizes", "2", "1, 2") +
                              node("s", "SplitV", {"x", "sizes", "axis"}, attribute("num_split", "i: 2"));
  const executable parts = compile(parse(split_v, {.outputs = {"s", "s:1"}}).graph, eigen_target());
  EXPECT_THAT(numbers(parts.run(std::vector{counted({3, 2})})[1]), ElementsAre(2, 3, 4, 5));
  EXPECT_THROW(parts.run(std::vector{counted({4, 2})}), error);
  const std::string rest = axis + numbers_constant("sizes", "2", "1, -1") +
                           node("s", "SplitV", {"x", "sizes", "axis"}, attribute("num_split", "i: 2"));
  EXPECT_THAT(numbers(run(rest, {counted({3, 2})}, {.outputs = {"s:1"}})[0]), ElementsAre(2, 3, 4, 5));
}

TEST(tensorflow_operators, summands_of_one_shape) {
  const std::string open = placeholder("a", "-1") + placeholder("b", "2") + node("y", "AddN", {"a", "b"});
  const executable sum = compile(parse(open).graph, eigen_target());
  EXPECT_THAT(numbers(sum.run(std::vector{floats({2}, {1, 2}), floats({2}, {10, 20})})[0]), ElementsAre(11, 22));
  EXPECT_THROW(sum.run(std::vector{floats({1}, {1}), floats({2}, {10, 20})}), error);
  EXPECT_THAT(fault(placeholder("a", "1") + placeholder("b", "2") + node("y", "AddN", {"a", "b"})),
              HasSubstr("one shape"));
}

TEST(tensorflow_operators, mirrored_pads) {
  const auto made = [](const std::string& extents, const std::string& pads, const std::string& mode) {
    const std::size_t rank = static_cast<std::size_t>(std::count(extents.begin(), extents.end(), ' ')) + 1;
    return placeholder("x", extents) + numbers_constant("p", std::to_string(rank) + " 2", pads) +
           node("y", "MirrorPad", {"x", "p"}, attribute("mode", "s: '" + mode + "'"));
  };
  EXPECT_THAT(numbers(run(made("3", "2, 2", "REFLECT"), {counted({3})})[0]), ElementsAre(2, 1, 0, 1, 2, 1, 0));
  EXPECT_THAT(numbers(run(made("3", "3, 1", "SYMMETRIC"), {counted({3})})[0]), ElementsAre(2, 1, 0, 0, 1, 2, 2));
  const std::string five = "0, 0, 0, 0, 0, 0, 0, 0, 1, 0";
  EXPECT_THAT(numbers(run(made("1 1 1 1 2", five, "REFLECT"), {counted({1, 1, 1, 1, 2})})[0]), ElementsAre(1, 0, 1));
  EXPECT_THAT(numbers(run(made("-1 2", "0, 0, 1, 0", "SYMMETRIC"), {counted({1, 2})})[0]), ElementsAre(0, 0, 1));
  EXPECT_THAT(fault(made("3", "3, 0", "REFLECT")), HasSubstr("within the extent of 3"));
  EXPECT_THAT(fault(made("3", "4, 0", "SYMMETRIC")), HasSubstr("within the extent of 3"));
  EXPECT_THAT(fault(made("3", "-1, 0", "SYMMETRIC")), HasSubstr("within the extent of 3"));
  EXPECT_THAT(fault(made("-1 2", "1, 0, 0, 0", "REFLECT")), HasSubstr("mirrors an extent of"));
}

TEST(tensorflow_operators, slices_lie_within_the_extent) {
  const auto made = [](const std::string& begin, const std::string& size) {
    return fault(placeholder("x", "3") + numbers_constant("b", "1", begin) + numbers_constant("s", "1", size) +
                 node("y", "Slice", {"x", "b", "s"}));
  };
  EXPECT_EQ(made("1", "2"), "no error");
  EXPECT_EQ(made("3", "-1"), "no error");
  for (const auto& [begin, size] : {std::pair("-1", "2"), {"4", "-1"}, {"1", "3"}, {"1", "-2"}})
    EXPECT_THAT(made(begin, size), HasSubstr("outside an extent of 3"));
}

TEST(tensorflow_operators, attributes_without_default_are_there) {
  const std::string x = placeholder("x", "1 4 4 2"), w = numbers_constant("w", "1 1 2 2", "1", "DT_FLOAT", "float_val");
  const std::string size = attribute("ksize", list("1, 2, 2, 1")), step = attribute("strides", list("1, 1, 1, 1")),
                    edge = attribute("padding", "s: 'SAME'");
  EXPECT_THAT(fault(x + node("y", "MaxPool", {"x"}, step + edge)), HasSubstr("attribute 'ksize' is missing"));
  EXPECT_THAT(fault(x + node("y", "AvgPool", {"x"}, size + edge)), HasSubstr("attribute 'strides' is missing"));
  EXPECT_THAT(fault(x + node("y", "MaxPool", {"x"}, size + step)), HasSubstr("attribute 'padding' is missing"));
  EXPECT_THAT(fault(x + w + node("y", "Conv2D", {"x", "w"}, edge)), HasSubstr("attribute 'strides' is missing"));
  EXPECT_THAT(fault(x + w + node("y", "Conv2D", {"x", "w"}, step)), HasSubstr("attribute 'padding' is missing"));
  EXPECT_THAT(fault(x + node("y", "TopK", {"x"})), HasSubstr("attribute 'k' is missing"));
  EXPECT_THAT(fault(x + node("y", "Unpack", {"x"}, attribute("num", "i: 1000000000"))), HasSubstr("num is"));
  EXPECT_THAT(fault(x + numbers_constant("n", "4", "1, 1, 1, -1") + node("y", "Tile", {"x", "n"})),
              HasSubstr("not negative"));
}

TEST(tensorflow_operators, sizes_of_a_transposed_convolution) {
  const auto made = [](const std::string& sizes, const std::string& padding) {
    return placeholder("x", "1 2 2 1") + numbers_constant("w", "2 2 3 1", "1", "DT_FLOAT", "float_val") +
           numbers_constant("n", "4", sizes) +
           node("y", "Conv2DBackpropInput", {"n", "w", "x"},
                attribute("strides", list("1, 2, 2, 1")) + attribute("padding", "s: '" + padding + "'"));
  };
  EXPECT_EQ(fault(made("1, 4, 3, 3", "SAME")), "no error");
  EXPECT_EQ(fault(made("1, 4, 5, 3", "VALID")), "no error");
  EXPECT_THAT(fault(made("2, 4, 4, 3", "SAME")), HasSubstr("batch of 2"));
  EXPECT_THAT(fault(made("1, 4, 4, 2", "SAME")), HasSubstr("channels of 2"));
  EXPECT_THAT(fault(made("1, 5, 4, 3", "SAME")), HasSubstr("an extent of 3, found 2"));
  EXPECT_THAT(fault(made("1, 4, 3, 3", "VALID")), HasSubstr("an extent of 1, found 2"));
  const std::string computed = placeholder("n", "4", "DT_INT32") + placeholder("x", "1 2 2 1") +
                               numbers_constant("w", "2 2 3 1", "1", "DT_FLOAT", "float_val") +
                               node("y", "Conv2DBackpropInput", {"n", "w", "x"},
                                    attribute("strides", list("1, 2, 2, 1")) + attribute("padding", "s: 'SAME'"));
  EXPECT_THAT(fault(computed), HasSubstr("the input's sizes"));
}

// A node of the other layout between transposes gives the same.
TEST(tensorflow_operators, both_layouts_give_the_same) {
  const std::string values = "1, -2, 3, .5, -1, 2, .25, 4, -3, 1, 2, -.5, 1, 0, 2, 3";
  const std::string weights = numbers_constant("w", "2 2 2 2", values, "DT_FLOAT", "float_val") +
                              numbers_constant("v", "2", "2, 3", "DT_FLOAT", "float_val") +
                              numbers_constant("first", "4", "0, 3, 1, 2") +
                              numbers_constant("last", "4", "0, 2, 3, 1");
  struct layout_case {
    std::string op;
    std::vector<std::string> others;
    std::string attributes, in_last, in_first;
  };
  const auto spread = [](const std::string& name, const std::string& h, const std::string& w, bool last) {
    return attribute(name, list(last ? "1, " + h + ", " + w + ", 1" : "1, 1, " + h + ", " + w));
  };
  const auto both = [&](const std::string& name, const std::string& h, const std::string& w) {
    return std::pair(spread(name, h, w, true), spread(name, h, w, false));
  };
  const auto [step_last, step_first] = both("strides", "2", "1");
  const auto [even_last, even_first] = both("strides", "2", "2");
  const auto [size_last, size_first] = both("ksize", "2", "3");
  const std::string same = attribute("padding", "s: 'SAME'");
  const layout_case cases[] = {
      {"Conv2D", {"w"}, same, step_last, step_first},
      {"DepthwiseConv2dNative", {"w"}, same, even_last, even_first},
      {"FusedBatchNormV3", {"v", "v", "v", "v"}, attribute("is_training", "b: false"), "", ""},
      {"MaxPool", {}, same, step_last + size_last, step_first + size_first},
      {"AvgPool", {}, same, step_last + size_last, step_first + size_first},
      {"SpaceToDepth", {}, attribute("block_size", "i: 2"), "", ""},
      {"BiasAdd", {"v"}, "", "", ""},
  };
  for (const layout_case& c : cases) {
    const auto inputs = [&](const std::string& x) {
      std::vector<std::string> all = c.others;
      all.insert(all.begin(), x);
      return all;
    };
    const std::string text =
        placeholder("x", "2 4 6 2") + weights +
        node("a", c.op, inputs("x"), c.attributes + c.in_last + attribute("data_format", "s: 'NHWC'")) +
        node("t", "Transpose", {"x", "first"}) +
        node("b", c.op, inputs("t"), c.attributes + c.in_first + attribute("data_format", "s: 'NCHW'")) +
        node("u", "Transpose", {"b", "last"});
    const auto out = run(text, {counted({2, 4, 6, 2})}, {.outputs = {"a", "u"}});
    EXPECT_EQ(out[0].get_shape().lens, out[1].get_shape().lens) << c.op;
    EXPECT_THAT(numbers(out[0]), ::testing::Pointwise(::testing::DoubleNear(1e-3), numbers(out[1]))) << c.op;
  }
}

// Shape arithmetic over an extent that only a run knows.
TEST(tensorflow_operators, symbolic_sizes) {
  const auto first_of = [](const std::string& x) {
    return node("shape", "Shape", {x}) + numbers_constant("zero", "1", "0") + numbers_constant("one", "1", "1") +
           node("n", "StridedSlice", {"shape", "zero", "one", "one"}, attribute("shrink_axis_mask", "i: 1"));
  };
  const std::string halved = placeholder("x", "-1 4") + first_of("x") + numbers_constant("two", "", "2") +
                             numbers_constant("rest", "", "-1") + node("half", "FloorDiv", {"n", "two"}) +
                             node("to", "Pack", {"half", "rest"}) + node("y", "Reshape", {"x", "to"});
  EXPECT_EQ(run(halved, {counted({6, 4})})[0].get_shape().lens, (dims{3, 8}));
  const std::string sliced = placeholder("x", "-1 4") + first_of("x") + numbers_constant("two", "", "2") +
                             numbers_constant("begin", "2", "0, 1") + node("size", "Pack", {"n", "two"}) +
                             node("y", "Slice", {"x", "begin", "size"});
  EXPECT_THAT(numbers(run(sliced, {counted({2, 4})})[0]), ElementsAre(1, 2, 5, 6));
  const std::string grown = placeholder("x", "-1 2 2 1") + first_of("x") + numbers_constant("four", "", "4") +
                            numbers_constant("three", "", "3") + node("size", "Pack", {"n", "four", "four", "three"}) +
                            numbers_constant("w", "2 2 3 1", "1", "DT_FLOAT", "float_val") +
                            node("y", "Conv2DBackpropInput", {"size", "w", "x"},
                                 attribute("strides", list("1, 2, 2, 1")) + attribute("padding", "s: 'SAME'"));
  EXPECT_EQ(run(grown, {counted({5, 2, 2, 1})})[0].get_shape().lens, (dims{5, 4, 4, 3}));
}

TEST(tensorflow_operators, elements_in_other_places) {
  const std::string x =
      placeholder("x", "2 3") + numbers_constant("by", "2", "1, -1") + numbers_constant("axes", "2", "0, 1");
  EXPECT_THAT(numbers(run(x + node("y", "Roll", {"x", "by", "axes"}), {counted({2, 3})})[0]),
              ElementsAre(4, 5, 3, 1, 2, 0));
  const std::string p = placeholder("p", "4", "DT_INT32") + node("y", "InvertPermutation", {"p"});
  const std::int32_t order[] = {2, 0, 3, 1};
  EXPECT_THAT(numbers(run(p, {argument::of<std::int32_t>({4}, std::span<const std::int32_t>(order))})[0]),
              ElementsAre(1, 3, 0, 2));
  const std::string reversed = placeholder("x", "2 3") + numbers_constant("n", "2", "2, 3") +
                               node("y", "ReverseSequence", {"x", "n"}, attribute("seq_dim", "i: 1"));
  EXPECT_THAT(numbers(run(reversed, {counted({2, 3})})[0]), ElementsAre(1, 0, 2, 5, 4, 3));
  const auto band = [&](const std::string& below, const std::string& above) {
    return numbers(run(placeholder("x", "2 3") + numbers_constant("l", "", below) + numbers_constant("u", "", above) +
                           node("y", "MatrixBandPart", {"x", "l", "u"}),
                       {counted({2, 3})})[0]);
  };
  EXPECT_THAT(band("0", "-1"), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(band("-1", "1"), ElementsAre(0, 1, 0, 3, 4, 5));
  const std::string open = placeholder("x", "-1 3");
  const auto ensured = [&](const std::string& lens) {
    return open + node("y", "EnsureShape", {"x"}, attribute("shape", "shape { " + lens + "}"));
  };
  const program two = parse(ensured("dim { size: 2 } dim { size: -1 } ")).graph;
  EXPECT_EQ(two.main().shape_of(two.main().outputs[0]).lens, (dims{2, 3}));
  EXPECT_THAT(fault(ensured("dim { size: 2 } dim { size: 4 } ")), HasSubstr("dim 1 is 3, not 4"));
}

TEST(tensorflow_operators, angles_of_special_values) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {0.f, -0.f, 1.f, -1.f, 3.f, -3.f, 1e-30f, -1e-30f, 1e30f, -1e30f, inf, -inf, nan};
  std::vector<float> y, x;
  for (const float a : values)
    for (const float b : values) {
      y.push_back(a);
      x.push_back(b);
    }
  const std::string count = std::to_string(y.size());
  const dims lens{static_cast<std::int64_t>(y.size())};
  const auto found = numbers(run(placeholder("y", count) + placeholder("x", count) + node("z", "Atan2", {"y", "x"}),
                                 {floats(lens, y), floats(lens, x)})[0]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double wanted = std::atan2(y[i], x[i]);
    EXPECT_EQ(std::isnan(found[i]), std::isnan(wanted)) << y[i] << ", " << x[i];
    if (std::isnan(wanted)) continue;
    EXPECT_NEAR(found[i], wanted, 5e-7) << y[i] << ", " << x[i];
    EXPECT_EQ(std::signbit(found[i]), std::signbit(wanted)) << y[i] << ", " << x[i];
  }
}

// What the optimizer joined gives what the operators one after another do.
TEST(tensorflow_operators, joined_operators_give_what_the_separate_ones_do) {
  const std::string values = ".25, -.5, 1, .5, -1, 2, .25, .75, -.25, 1, .5, -.5, 1, 0, .5, -1";
  const std::string constants = numbers_constant("w", "2 2 2 2", values, "DT_FLOAT", "float_val") +
                                numbers_constant("two", "2", "2, -3", "DT_FLOAT", "float_val") +
                                numbers_constant("four", "4", "2, -3, .5, 1", "DT_FLOAT", "float_val") +
                                numbers_constant("mean", "2", ".5, -1", "DT_FLOAT", "float_val") +
                                numbers_constant("variance", "2", "2, .25", "DT_FLOAT", "float_val") +
                                numbers_constant("first", "4", "0, 3, 1, 2") +
                                numbers_constant("last", "4", "0, 2, 3, 1");
  const std::string window = attribute("strides", list("1, 1, 1, 1")) + attribute("padding", "s: 'SAME'");
  const std::string epsilon = attribute("epsilon", "f: .01"), run_only = attribute("is_training", "b: false") + epsilon;
  const std::string planes = attribute("data_format", "s: 'NCHW'");
  const auto fused = [](const std::string& names) { return attribute("fused_ops", "list { s: [" + names + "] }"); };
  const auto conv = [&](const std::string& to) { return node(to, "Conv2D", {"x", "w"}, window); };
  const auto normalized = [&](const std::string& to, const std::string& x) {
    return node(to, "FusedBatchNormV3", {x, "two", "two", "mean", "variance"}, run_only);
  };
  const auto normalized_ex = [&](const std::vector<std::string>& side, const std::string& mode) {
    std::vector<std::string> inputs{"x", "two", "two", "mean", "variance"};
    inputs.insert(inputs.end(), side.begin(), side.end());
    return node("a", "_FusedBatchNormEx", inputs,
                run_only + attribute("num_side_inputs", "i: " + std::to_string(side.size())) +
                    attribute("activation_mode", "s: '" + mode + "'"));
  };
  const std::pair<std::string, std::string> pairs[] = {
      {normalized_ex({}, "Identity"), normalized("b", "x")},
      {normalized_ex({"s"}, "Relu"), normalized("n", "x") + node("t", "Add", {"n", "s"}) + node("b", "Relu", {"t"})},
      {node("a", "_FusedDepthwiseConv2dNative", {"x", "w", "four"}, window + fused("'BiasAdd', 'Relu6'")),
       node("d", "DepthwiseConv2dNative", {"x", "w"}, window) + node("t", "BiasAdd", {"d", "four"}) +
           node("b", "Relu6", {"t"})},
      {node("a", "_FusedConv2D", {"x", "w", "two"}, window + fused("'BiasAdd', 'Tanh'")),
       conv("d") + node("t", "BiasAdd", {"d", "two"}) + node("b", "Tanh", {"t"})},
      {node("a", "_FusedConv2D", {"x", "w", "two", "two", "mean", "variance"},
            window + epsilon + fused("'FusedBatchNorm', 'Relu'")),
       conv("d") + normalized("n", "d") + node("b", "Relu", {"n"})},
      {node("a", "_FusedConv2D", {"x", "w", "two", "s"}, window + fused("'BiasAdd', 'Add', 'Relu'")),
       conv("d") + node("t", "BiasAdd", {"d", "two"}) + node("u", "Add", {"t", "s"}) + node("b", "Relu", {"u"})},
      // a slope along the channels, of either layout
      {node("t", "Transpose", {"x", "first"}) +
           node("f", "_FusedConv2D", {"t", "w", "two", "mean"}, window + planes + fused("'BiasAdd', 'Prelu'")) +
           node("a", "Transpose", {"f", "last"}),
       conv("d") + node("u", "BiasAdd", {"d", "two"}) + node("b", "Prelu", {"u", "mean"})},
  };
  std::vector<float> x(48), s(48);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 7 % 11) * .3f - 1.5f;
    s[i] = static_cast<float>(i * 5 % 13) * .2f - 1.2f;
  }
  for (const auto& [joined, separate] : pairs) {
    const std::string text = placeholder("x", "2 4 3 2") + placeholder("s", "2 4 3 2") + constants + joined + separate;
    const auto out = run(text, {floats({2, 4, 3, 2}, x), floats({2, 4, 3, 2}, s)}, {.outputs = {"a", "b"}});
    EXPECT_EQ(out[0].get_shape().lens, out[1].get_shape().lens) << joined;
    EXPECT_THAT(numbers(out[0]), ::testing::Pointwise(::testing::DoubleNear(1e-5), numbers(out[1]))) << joined;
  }
  const auto made = [&](const std::string& op, const std::string& names) {
    return fault(placeholder("x", "2 4 3 2") + constants +
                 node("a", op, {"x", "w", "two"}, window + (names.empty() ? "" : fused(names))));
  };
  EXPECT_THAT(made("_FusedConv2D", ""), HasSubstr("fused_ops take the first 2 inputs, found 3"));
  EXPECT_THAT(made("_FusedConv2D", "'Relu'"), HasSubstr("fused_ops take the first 2 inputs, found 3"));
  EXPECT_EQ(made("_FusedConv2D", "'BiasAdd'"), "no error");
}

}  // namespace
}  // namespace kiln::tensorflow
