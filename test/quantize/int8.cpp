#include "kiln/quantize/int8.hpp"

#include <gtest/gtest.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "pass/count_of.hpp"
#include "pass/evaluate.hpp"
#include "quantize/message_of.hpp"
#include "quantize/results.hpp"

namespace kiln::test {
namespace {

using namespace quantize;

program small_network() {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {1, 3, 6, 6});
  b.label = text("first");
  const value y = x.conv(weights({4, 3, 3, 3})).relu();
  b.label = text("second");
  b.output(y.reshape({1, 64}).dot(weights({64, 5})), "y");
  return b.finish();
}

TEST(int8, ranges_are_wanted_of_what_products_read) {
  const program p = prepared(small_network());
  std::vector<std::string> names;
  for (const watched_value& w : values_to_quantize(p)) names.push_back(w.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "first"})) << print(p).view();
  EXPECT_EQ(values_to_quantize(p, {.ops = {"dot"}}).size(), 1u);
  EXPECT_EQ(values_to_quantize(p, {.exclude = {"second"}}).size(), 1u);
}

// A window's maximum and a sum of two results: what is moved shares a scale, what is computed has its own.
TEST(int8, results_are_quantized_where_asked) {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {1, 3, 6, 6});
  b.label = text("first");
  const value a = x.conv(weights({4, 3, 3, 3})).add_along(1, weights({4})).relu();
  b.label = text("largest");
  const value m = a.pool({.lengths = {2, 2}, .stride = {2, 2}});
  b.label = text("second");
  const value c = m.conv(weights({4, 4, 1, 1}));
  b.label = text("sum");
  const value s = c + m;
  b.label = text("last");
  b.output(s.reshape({1, 16}).dot(weights({16, 5})), "y");
  const program p = prepared(b.finish());
  const auto names_of = [&](const int8_options& options) {
    std::vector<std::string> names;
    for (const watched_value& w : values_to_quantize(p, options)) names.push_back(w.name);
    return names;
  };
  EXPECT_EQ(names_of({}), (std::vector<std::string>{"x", "largest", "sum"})) << print(p).view();
  EXPECT_EQ(names_of({.results = true}), (std::vector<std::string>{"x", "first", "second", "sum"})) << print(p).view();
  const ranges known{{"x", {.whole = {-2, 2}}},
                     {"first", {.whole = {0, 9}}},
                     {"second", {.whole = {-9, 9}}},
                     {"sum", {.whole = {-9, 9}}}};
  const program made = to_int8(p, known, {.results = true}).graph;
  std::size_t quantized = 0, biases = 0;
  for (const std::uint32_t i : made.main().order()) {
    const auto& at = made.main()[i];
    if (at.kind != instruction_kind::op) continue;
    quantized += at.op.is<op::quantize_linear>();
    biases += at.op.is<op::dequantize_linear>() && made.main().shape_of(at.inputs[0]).type == dtype::i32;
  }
  EXPECT_EQ(quantized, 5u) << print(made).view();
  EXPECT_EQ(biases, 1u);
}

TEST(int8, mistakes_are_named) {
  const program p = prepared(small_network());
  EXPECT_NE(message_of([&] { values_to_quantize(p, {.ops = {"add"}}); }).find("'add'"), std::string::npos);
  EXPECT_NE(message_of([&] { values_to_quantize(p, {.exclude = {"third"}}); }).find("'third'"), std::string::npos);
  const ranges known{{"x", {.whole = {-1, 1}}}};
  EXPECT_NE(message_of([&] { to_int8(p, known, {.activations = dtype::u32}); }).find("u32"), std::string::npos);
  EXPECT_NE(message_of([&] { to_int8(p, known, {.weights = {.type = dtype::f8e4m3fn}}); }).find("f8e4m3fn"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              to_int8(p, {{"other", {.whole = {-1, 1}}}});
            }).find("ranges fit 0 of 2 values"),
            std::string::npos);
}

TEST(int8, what_is_no_product_is_not_excluded) {
  builder b;
  const value x = b.input("x", dtype::f32, {1, 2});
  b.label = text("activation");
  const value y = x.relu();
  b.label = text("product");
  b.output(y.dot(b.constant<float>(dtype::f32, {2, 1}, std::vector<float>{1, 2})));
  const program p = prepared(b.finish());
  EXPECT_TRUE(values_to_quantize(p, {.exclude = {"product"}}).empty());
  EXPECT_NE(message_of([&] { values_to_quantize(p, {.exclude = {"activation"}}); }).find("no dot or convolution"),
            std::string::npos);
}

// Batch norm is folded into the convolution before it, which has another name then.
TEST(int8, folded_products_are_found_by_their_own_names) {
  const program source = onnx::read_model(std::string(KILN_SOURCE_DIR) + "/examples/models/digits/model.onnx").graph;
  const program p = prepared(source);
  const std::vector<std::string> asked{"/net/net.0/Conv", "/net/net.3/Conv", "nobody"};
  const auto names = prepared_names(source, p, asked);
  EXPECT_EQ(names[2], "nobody");
  EXPECT_NE(names[0], names[1]);
  EXPECT_EQ(values_to_quantize(p, {.exclude = {names[0], names[1]}}).size() + 2, values_to_quantize(p).size());
}

TEST(int8, products_without_a_range_stay_and_are_named) {
  const auto made = to_int8(prepared(small_network()), {{"x", {.whole = {-2, 2}}}});
  ASSERT_EQ(made.note.remarks.size(), 2u);
  EXPECT_EQ(made.note.remarks[0].view(), "'second' stays in floats: its operand 'first' has no range");
  EXPECT_EQ(made.note.remarks[1].view(), "ranges fit 1 of 2 values that products read");
  EXPECT_EQ(message_of([] {
              to_int8(prepared(small_network()), {{"y", {}}, {"z", {}}});
            }),
            "invalid argument: ranges fit 0 of 2 values that a dot or convolution with constant weights reads, such as "
            "'x': found 2 of "
            "other names, such as 'y'");
}

TEST(int8, products_that_no_option_would_quantize_are_counted) {
  program p;
  builder inside;
  inside.output(inside.input("x", dtype::f32, {4, 4})
                    .dot(inside.constant<float>(dtype::f32, {4, 4}, std::vector<float>(16, .5f))));
  const module_ref body = p.add_module(inside.finish().main());
  builder b;
  const value x = b.input("x", dtype::f32, {4, 4}), c = b.input("c", dtype::boolean, {});
  const value y = x.dot(b.constant<float>(dtype::f32, {4, 4}, std::vector<float>(16, 2))).dot(x);
  b.output(y, "y");
  p.main() = b.finish().main();
  module_graph& m = p.main();
  m.outputs[0] =
      m.add_with_shapes(op::branch{body, body, 1}, {c.id(), m.outputs[0], m.outputs[0]}, {{dtype::f32, {4, 4}}});
  p = prepared(std::move(p));
  for (const bool dynamic : {false, true}) {
    const pass_note note = dynamic ? to_dynamic_int8(p).note : to_int8(p, {{"x", {.whole = {-1, 1}}}}).note;
    ASSERT_EQ(note.remarks.size(), 2u);
    EXPECT_EQ(note.remarks[0].view(),
              "1 of the products are of two values and stay in floats: those with constant weights are quantized");
    EXPECT_EQ(note.remarks[1].view().substr(2),
              "of the products are in bodies of branches and loops and stay in floats");
  }
}

TEST(int8, quantized_again_is_quantized_once) {
  const program p = prepared(small_network());
  const ranges found{{"x", {.whole = {-2, 2}}}, {"first", {.whole = {0, 9}}}};
  const program once = prepared(to_int8(p, found).graph);
  EXPECT_TRUE(values_to_quantize(once).empty()) << print(once).view();
  const program twice = to_int8(once, {}).graph;
  std::size_t quantizing = 0;
  const module_graph& m = twice.main();
  for (const std::uint32_t i : m.order()) quantizing += m[i].kind == instruction_kind::op && m[i].op.is<op::round>();
  EXPECT_EQ(quantizing, 2u) << print(twice).view();
  std::size_t products = 0;
  const executable exe = compile(twice, eigen_target());
  for (const step_info& s : exe.report().steps) products += s.kernel.find("integer") != std::string::npos;
  EXPECT_EQ(products, 2u);
  for (const auto& x : test::random_inputs(p, 3)) {
    const argument in[] = {argument(x)};
    const auto a = compile(once, eigen_target()).run(in), b = compile(twice, eigen_target()).run(in);
    EXPECT_TRUE(test::close(a[0].to_literal(), b[0].to_literal(), 1e-6));
  }
}

literal first_of(const program& p, std::string_view op, std::size_t input) {
  const module_graph& m = p.main();
  for (const std::uint32_t i : m.order())
    if (m[i].kind == instruction_kind::op && m[i].op.name() == op) return m.producer(m[i].inputs[input]).constant;
  ADD_FAILURE() << "no " << op;
  return {};
}
// A convolution and a dot, each with a bias, and a product of two values.
program biased_network() {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {1, 3, 6, 6});
  b.label = text("conv");
  const value y = x.conv(weights({4, 3, 3, 3})).add_along(1, weights({4})).relu();
  b.label = text("dot");
  const value z = y.reshape({4, 16}).dot(weights({16, 16})) + weights({16});
  b.label = text("pair");
  b.output(z.dot(z.transpose({1, 0})), "y");
  return prepared(b.finish());
}
ranges ranges_of_all(const program& p) {
  dice d{5};
  const argument x(random_literal({dtype::f32, {1, 3, 6, 6}}, d));
  const auto data = [&, given = false]() mutable -> std::optional<sample> {
    if (std::exchange(given, true)) return std::nullopt;
    return sample{{"x", x}};
  };
  return calibrate(p, float_values(p), eigen_target(), data);
}
double sqnr_of(const program& p, const program& q) {
  dice d{5};
  const argument in[] = {argument(random_literal({dtype::f32, {1, 3, 6, 6}}, d))};
  const auto a = compile(p, eigen_target()).run(in)[0].to_literal().to<float>(),
             b = compile(q, eigen_target()).run(in)[0].to_literal().to<float>();
  double signal = 0, noise = 0;
  for (std::size_t k = 0; k < a.size(); ++k) signal += a[k] * a[k], noise += (a[k] - b[k]) * (a[k] - b[k]);
  return 10 * std::log10(signal / noise);
}

// Bits decide how near a type is.
TEST(int8, every_type_of_values_and_weights) {
  const program p = biased_network();
  const ranges known = ranges_of_all(p);
  const auto near = [&](dtype values, dtype weights, bool symmetric) {
    const auto made = to_int8(p, known, {.activations = values, .weights = {.type = weights, .symmetric = symmetric}});
    EXPECT_EQ(first_of(made.graph, "quantize_linear", 2).get_shape().type, values);
    return sqnr_of(p, made.graph);
  };
  for (const bool symmetric : {true, false}) {
    for (const dtype weights : {dtype::i8, dtype::u8}) {
      EXPECT_GT(near(dtype::u8, weights, symmetric), 30) << to_string(weights);
      EXPECT_GT(near(dtype::i8, weights, symmetric), 30) << to_string(weights);
    }
    for (const dtype values : {dtype::u16, dtype::i16}) EXPECT_GT(near(values, dtype::i16, symmetric), 70);
    EXPECT_GT(near(dtype::u8, dtype::i4, symmetric), 10);
    EXPECT_LT(near(dtype::u8, dtype::i4, symmetric), 30);
  }
  EXPECT_LT(near(dtype::u4, dtype::i8, true), 30);
}

TEST(int8, asymmetric_weights_use_all_codes) {
  builder b;
  const value x = b.input("x", dtype::f32, {1, 2});
  b.output(x.dot(b.constant<float>(dtype::f32, {2, 2}, std::vector<float>{1, 10, 3, 11})), "y");
  const program p = prepared(b.finish());
  const program q = to_int8(p, {{"x", {.whole = {-1, 1}}}}, {.weights = {.type = dtype::u8, .symmetric = false}}).graph;
  // of each column: 0 to 3, and 0 to 11
  const module_graph& m = q.main();
  for (const std::uint32_t i : m.order()) {
    if (m[i].kind != instruction_kind::op || !m[i].op.is<op::dequantize_linear>()) continue;
    const literal stored = m.producer(m[i].inputs[0]).constant;
    if (stored.elements() != 4) continue;
    EXPECT_EQ(stored.to<float>(), (small_vector<float>{85, 232, 255, 255}));
    EXPECT_EQ(m.producer(m[i].inputs[1]).constant.to<float>()[0], 3.0F / 255);
    return;
  }
  ADD_FAILURE() << print(q).view();
}

TEST(int8, biases_have_the_scale_of_the_sums) {
  const program p = biased_network();
  const ranges known = ranges_of_all(p);
  const program q = to_int8(p, known, {.bias = true}).graph;
  std::size_t biases = 0;
  const module_graph& m = q.main();
  for (const std::uint32_t i : m.order())
    biases += m[i].kind == instruction_kind::op && m[i].op.is<op::dequantize_linear>() &&
              m.shape_of(m[i].inputs[0]).type == dtype::i32;
  EXPECT_EQ(biases, 2u) << print(q).view();
  EXPECT_GT(sqnr_of(p, q), 30);
  EXPECT_NEAR(sqnr_of(p, q), sqnr_of(p, to_int8(p, known).graph), 1);
}

TEST(int8, products_of_two_values_only_where_that_is_asked) {
  const program p = biased_network();
  const ranges known = ranges_of_all(p);
  EXPECT_EQ(values_to_quantize(p).size(), 2u);
  EXPECT_EQ(values_to_quantize(p, {.products_of_values = true}).size(), 3u);
  const auto made = to_int8(p, known, {.products_of_values = true});
  EXPECT_EQ(made.note.counts.entries.size(), 3u);  // convolution, dot, values
  EXPECT_EQ(count_of(made.graph, "quantize_linear"), 3u);
  EXPECT_GT(sqnr_of(p, made.graph), 30);
}

TEST(int8, some_products_alone) {
  const program p = biased_network();
  EXPECT_EQ(values_to_quantize(p, {.only = {"dot"}}).size(), 1u);
  EXPECT_EQ(values_to_quantize(p, {.exclude_results_of = {"relu"}}).size(), 1u);
  EXPECT_NE(message_of([&] { values_to_quantize(p, {.only = {"nobody"}}); }).find("'nobody'"), std::string::npos);
}

TEST(int8, floats_that_the_program_quantizes_give_the_same) {
  const program p = biased_network();
  const ranges known = ranges_of_all(p);
  const program q = to_int8(p, known, {.weights = {.from_floats = true}}).graph;
  EXPECT_EQ(count_of(q, "quantize_linear"), 4u);
  EXPECT_NEAR(sqnr_of(p, q), sqnr_of(p, to_int8(p, known).graph), 1e-3);
}

// What weights are stored as, and how many scales they have.
std::vector<std::pair<dims, std::int64_t>> stored_weights(const program& p) {
  std::vector<std::pair<dims, std::int64_t>> out;
  const module_graph& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op || !m[i].op.is<op::dequantize_linear>()) continue;
    if (m.producer(m[i].inputs[0]).kind != instruction_kind::literal) continue;
    out.emplace_back(m.shape_of(m[i].inputs[0]).lens, m.shape_of(m[i].inputs[1]).elements().value());
  }
  return out;
}

TEST(int8, matrices_of_a_batch_are_stored_as_others_read_them) {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {4, 3, 16});
  const value shared = x.dot(weights({16, 8}).broadcast_to({4, 16, 8}));
  b.output(shared.relu().dot(weights({4, 8, 5})), "y");
  const program p = prepared(b.finish());
  ranges known;
  for (const watched_value& w : values_to_quantize(p)) known[w.name] = {.whole = {-20, 20}};
  using expected = std::vector<std::pair<dims, std::int64_t>>;
  EXPECT_EQ(stored_weights(to_int8(p, known).graph), (expected{{{16, 8}, 8}, {{4, 8, 5}, 1}}));
  EXPECT_EQ(stored_weights(to_int8(p, known, {.weights = {.per_channel = false}}).graph),
            (expected{{{16, 8}, 1}, {{4, 8, 5}, 1}}));
  const auto in = argument(random_literal({dtype::f32, {4, 3, 16}}, d));
  const auto exact = first_result(p, in, eigen_target()),
             near = first_result(to_int8(p, known).graph, in, eigen_target());
  for (std::size_t k = 0; k < exact.size(); ++k) EXPECT_NEAR(near[k], exact[k], 3) << k;
}

TEST(int8, overrides_of_one_value) {
  const program p = biased_network();
  const ranges known = ranges_of_all(p);
  const auto with = [&](const value_override& o) { return to_int8(p, known, {.overrides = {{"x", o}}}).graph; };
  EXPECT_EQ(first_of(with({.type = dtype::u16}), "quantize_linear", 2).get_shape().type, dtype::u16);
  EXPECT_EQ(first_of(with({.low = 0, .high = 51}), "quantize_linear", 1).to<float>()[0], 51.0F / 255);
  const program scaled = with({.scale = .25F, .zero = 7});
  EXPECT_EQ(first_of(scaled, "quantize_linear", 1).to<float>()[0], .25F);
  EXPECT_EQ(first_of(scaled, "quantize_linear", 2).to<float>()[0], 7);
  EXPECT_EQ(values_to_quantize(p, {.overrides = {{"x", {.scale = 1.0F, .zero = 0}}}}).size(), 1u);
  EXPECT_NE(message_of([&] {
              to_int8(p, known, {.overrides = {{"nobody", {}}}});
            }).find("'nobody'"),
            std::string::npos);
  EXPECT_NE(message_of([&] { with({.scale = 1.0F}); }).find("zero point"), std::string::npos);
  EXPECT_EQ(first_of(to_int8(p, known, {.least_width = 1000}).graph, "quantize_linear", 1).to<float>()[0],
            1000.0F / 255);
}

// digits, calibrated with scans that are not among those it is tested with: every answer is right.
TEST(int8, digits_loses_no_answer) {
  const std::string folder = std::string(KILN_SOURCE_DIR) + "/examples/models/digits/";
  const program p = prepared(onnx::read_model(folder + "model.onnx").graph);
  const argument scans = onnx::read_tensor(folder + "test_data_set_0/input_0.pb").value,
                 training = onnx::read_tensor(folder + "calibration.pb").value;
  const argument right = onnx::read_tensor(folder + "labels.pb").value;
  const std::string input(p.main().producer(p.main().parameters()[0]).name.view());
  const auto data = [&, given = false]() mutable -> std::optional<sample> {
    if (std::exchange(given, true)) return std::nullopt;
    return sample{{input, training}};
  };
  const ranges found = calibrate(p, values_to_quantize(p), eigen_target(), data);
  for (const bool symmetric : {false, true}) {
    const auto made = to_int8(p, found, {.symmetric = symmetric});
    const executable exe = compile(made.graph, eigen_target());
    bool bytes = false;
    for (const step_info& s : exe.report().steps) bytes = bytes || s.kernel.find("integer") != std::string::npos;
    EXPECT_TRUE(bytes);
    const argument in[] = {scans};
    const auto out = exe.run(in);
    const auto scores = out[0].to_literal().to<float>();
    const auto labels = right.to_literal().to<std::int64_t>();
    const std::size_t classes = scores.size() / labels.size();
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const auto* row = scores.data() + k * classes;
      wrong += std::max_element(row, row + classes) - row != labels[k];
    }
    EXPECT_EQ(wrong, 0u);
  }
}

}  // namespace
}  // namespace kiln::test
