#include <cmath>

#include "interface/migraphx/help.hpp"

// Each family of operators against values computed by hand.
namespace kiln::migraphx {

using namespace test;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;
using lens = std::vector<std::size_t>;

namespace {

// Numbers and extents of the one result.
void expect(const argument& found, const lens& extents, const numbers& wanted, double tolerance = 1e-5) {
  EXPECT_EQ(found.get_shape().lens(), extents);
  EXPECT_THAT(of(found), Pointwise(DoubleNear(tolerance), wanted));
}

TEST(operators, of_one_operand) {
  struct row {
    const char* name;
    double (*f)(double);
    std::vector<double> at;
  };
  const row rows[] = {
      {"abs", std::fabs, {-2, 3}},
      {"acos", std::acos, {-.5, .25}},
      {"acosh", std::acosh, {1.5, 3}},
      {"asin", std::asin, {-.5, .25}},
      {"asinh", std::asinh, {-2, .5}},
      {"atan", std::atan, {-2, .5}},
      {"atanh", std::atanh, {-.5, .25}},
      {"ceil", std::ceil, {-1.5, 2.2}},
      {"cos", std::cos, {-1, 2}},
      {"cosh", std::cosh, {-1, 2}},
      {"erf", std::erf, {-.5, 1}},
      {"exp", std::exp, {-1, 2}},
      {"floor", std::floor, {-1.5, 2.2}},
      {"log", std::log, {.5, 3}},
      {"log2", std::log2, {.5, 3}},
      {"nearbyint", std::nearbyint, {2.5, -1.2}},
      {"sin", std::sin, {-1, 2}},
      {"sinh", std::sinh, {-1, 2}},
      {"sqrt", std::sqrt, {4, 2}},
      {"tan", std::tan, {-1, .5}},
      {"tanh", std::tanh, {-1, .5}},
      {"identity", [](double x) { return x; }, {-1, 7}},
      {"neg", [](double x) { return -x; }, {-1, 7}},
      {"recip", [](double x) { return 1 / x; }, {-2, 8}},
      {"relu", [](double x) { return x > 0 ? x : 0; }, {-2, 8}},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, {4, 2}},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, {-2, 1}},
      {"sign", [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, {-2, 0}},
      {"not", [](double x) { return x == 0 ? 1. : 0.; }, {0, 3}},
      {"elu", [](double x) { return x > 0 ? x : std::exp(x) - 1; }, {-2, 8}},
      {"leaky_relu", [](double x) { return x > 0 ? x : .01 * x; }, {-2, 8}},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.name);
    numbers wanted;
    for (const double x : r.at) wanted.push_back(r.f(x));
    expect(result(r.name, "", {{floats({2}, r.at)}}), {2}, wanted);
  }
  expect(result("isnan", "", {{floats({2}, {NAN, 1})}}), {2}, {1, 0});
  expect(result("isinf", "", {{floats({2}, {-INFINITY, 1})}}), {2}, {1, 0});
  expect(result("elu", "{alpha: 2}", {{floats({1}, {-1})}}), {1}, {2 * (std::exp(-1.) - 1)});
}

TEST(operators, of_two_operands) {
  struct row {
    const char* name;
    numbers wanted;
  };
  const argument a = floats({3}, {5, -7, 2}), b = floats({3}, {3, 3, 2});
  const row rows[] = {
      {"add", {8, -4, 4}},       {"sub", {2, -10, 0}},   {"mul", {15, -21, 4}},      {"div", {5 / 3., -7 / 3., 1}},
      {"max", {5, 3, 2}},        {"min", {3, -7, 2}},    {"pow", {125, -343, 4}},    {"sqdiff", {4, 100, 0}},
      {"fmod", {2, -1, 0}},      {"mod", {2, 2, 0}},     {"equal", {0, 0, 1}},       {"greater", {1, 0, 0}},
      {"less", {0, 1, 0}},       {"prelu", {5, -21, 2}}, {"logical_and", {1, 1, 1}}, {"logical_or", {1, 1, 1}},
      {"logical_xor", {0, 0, 0}}};
  for (const row& r : rows) {
    SCOPED_TRACE(r.name);
    const argument found = result(r.name, "", {{a}, {b}});
    EXPECT_EQ(found.get_shape().type(), type_t::float_type);
    expect(found, {3}, r.wanted, 1e-4);
  }
  expect(result("bitwise_and", "", {{integers({2}, {6, 5})}, {integers({2}, {3, 4})}}), {2}, {2, 4});
  expect(result("where", "", {{of(type_t::bool_type, {2}, {1, 0})}, {floats({2}, {1, 2})}, {floats({2}, {3, 4})}}), {2},
         {1, 4});
  expect(result("clip", "", {{a}, {floats({3}, {0, 0, 0})}, {floats({3}, {4, 4, 1})}}), {3}, {4, 0, 1});
  const argument converted = result("convert", "{target_type: int32_type}", {{floats({2}, {1.7, -2.2})}});
  EXPECT_EQ(converted.get_shape().type(), type_t::int32_type);
  expect(converted, {2}, {1, -2});
  EXPECT_EQ(result("convert", "{target_type: 5}", {{floats({1}, {1})}}).get_shape().type(), type_t::double_type);
}

TEST(operators, nothing_is_broadcast_by_itself) {
  EXPECT_THAT(message([] {
                (void)result("add", "", {{floats({2}, {1, 2})}, {floats({1}, {1})}});
              }),
              HasSubstr("multibroadcast"));
  EXPECT_THAT(message([] {
                (void)result("add", "", {{floats({1}, {1})}, {integers({1}, {1})}});
              }),
              HasSubstr("convert"));
  EXPECT_THAT(message([] { (void)result("add", "", {{floats({1}, {1})}}); }), HasSubstr("number of operands"));
}

TEST(operators, of_views) {
  const argument x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  expect(result("transpose", "{permutation: [1, 0]}", {{x}}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect(result("reshape", "{dims: [3, -1]}", {{x}}), {3, 2}, {0, 1, 2, 3, 4, 5});
  expect(result("reshape", "{dims: [0, 3, 1]}", {{x}}), {2, 3, 1}, {0, 1, 2, 3, 4, 5});
  expect(result("reshape_lazy", "{dims: [6]}", {{x}}), {6}, {0, 1, 2, 3, 4, 5});
  expect(result("flatten", "{axis: 0}", {{x}}), {1, 6}, {0, 1, 2, 3, 4, 5});
  expect(result("squeeze", "{axes: [0]}", {{floats({1, 2}, {1, 2})}}), {2}, {1, 2});
  expect(result("squeeze", "", {{floats({1, 2, 1}, {1, 2})}}), {2}, {1, 2});
  expect(result("unsqueeze", "{axes: [1]}", {{floats({2}, {1, 2})}}), {2, 1}, {1, 2});
  expect(result("unsqueeze", "{axes: [1], steps: [2]}", {{floats({4}, {1, 2, 3, 4})}}), {2, 2}, {1, 2, 3, 4});
  expect(result("multibroadcast", "{out_lens: [2, 2]}", {{floats({2}, {1, 2})}}), {2, 2}, {1, 2, 1, 2});
  expect(result("multibroadcast", "", {{floats({1, 2}, {1, 2})}, {floats({2, 1}, {0, 0})}}), {2, 2}, {1, 2, 1, 2});
  expect(result("broadcast", "{axis: 0, out_lens: [2, 2]}", {{floats({2}, {1, 2})}}), {2, 2}, {1, 1, 2, 2});
  expect(result("broadcast_with_dims", "", {{floats({1}, {7})}, constant(integers({2}, {2, 2}))}), {2, 2},
         {7, 7, 7, 7});
  expect(result("broadcast_for_dot", "", {{floats({1, 2}, {1, 2})}, {floats({2, 2, 1}, {0, 0, 0, 0})}}), {2, 1, 2},
         {1, 2, 1, 2});
  expect(result("scalar", "{scalar_bcst_dims: [2]}", {{scalar(type_t::float_type, 4)}}), {2}, {4, 4});
  expect(result("slice", "{axes: [1], starts: [1], ends: [3]}", {{x}}), {2, 2}, {1, 2, 4, 5});
  expect(result("slice", "{axes: [0]}", {{x}, constant(integers({1}, {1})), constant(integers({1}, {2}))}), {1, 3},
         {3, 4, 5});
  expect(result("step", "{axes: [1], steps: [2]}", {{x}}), {2, 2}, {0, 2, 3, 5});
  expect(result("reverse", "{axes: [1]}", {{x}}), {2, 3}, {2, 1, 0, 5, 4, 3});
  expect(result("concat", "{axis: 1}", {{x}, {floats({2, 1}, {8, 9})}}), {2, 4}, {0, 1, 2, 8, 3, 4, 5, 9});
  expect(result("pad", "{pads: [0, 1, 0, 0], value: 7}", {{x}}), {2, 4}, {7, 0, 1, 2, 7, 3, 4, 5});
  expect(result("pad", "{pads: [1, 1], mode: reflect_pad}", {{floats({3}, {1, 2, 3})}}), {5}, {2, 1, 2, 3, 2});
  expect(result("contiguous", "", {{x}}), {2, 3}, {0, 1, 2, 3, 4, 5});
  expect(result("layout", "{permutation: [1, 0]}", {{x}}), {2, 3}, {0, 1, 2, 3, 4, 5});
  expect(result("as_shape", "{shape: {type: float_type, lens: [6]}}", {{x}}), {6}, {0, 1, 2, 3, 4, 5});
}

TEST(operators, of_reduction) {
  const argument x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  expect(result("reduce_sum", "{axes: [1]}", {{x}}), {2, 1}, {3, 12});
  expect(result("reduce_mean", "{axes: [-1]}", {{x}}), {2, 1}, {1, 4});
  expect(result("reduce_max", "{axes: [0]}", {{x}}), {1, 3}, {3, 4, 5});
  expect(result("reduce_min", "{axes: [0, 1]}", {{x}}), {1, 1}, {0});
  expect(result("reduce_prod", "{axes: [1]}", {{x}}), {2, 1}, {0, 60});
  expect(result("reduce_sum", "", {{x}}), {1, 1}, {15});
  expect(result("reduce_sum", "", {{x}, constant(integers({1}, {0}))}), {1, 3}, {3, 5, 7});
  expect(result("reduce_all", "{axes: [1]}", {{x}}), {2, 1}, {0, 1});
  expect(result("reduce_any", "{axes: [1]}", {{x}}), {2, 1}, {1, 1});
  expect(result("prefix_scan_sum", "{axis: 1}", {{x}}), {2, 3}, {0, 1, 3, 3, 7, 12});
  expect(result("prefix_scan_sum", "{axis: 1, exclusive: true, reverse: true}", {{x}}), {2, 3}, {3, 2, 0, 9, 5, 0});
}

TEST(operators, of_activation) {
  const double e = std::exp(1);
  expect(result("softmax", "{axis: 1}", {{floats({1, 2}, {1, 0})}}), {1, 2}, {e / (e + 1), 1 / (e + 1)});
  expect(result("logsoftmax", "{axis: 1}", {{floats({1, 2}, {1, 0})}}), {1, 2},
         {1 - std::log(e + 1), -std::log(e + 1)});
  expect(result("lrn", "{alpha: 1, beta: 1, bias: 1, size: 1}", {{floats({1, 2, 1, 1}, {1, 2})}}), {1, 2, 1, 1},
         {.5, .4});
  expect(result("batch_norm_inference", "{epsilon: 0}",
                {{floats({1, 2, 1}, {3, 5})},
                 {floats({2}, {2, 1})},
                 {floats({2}, {1, 0})},
                 {floats({2}, {1, 1})},
                 {floats({2}, {4, 1})}}),
         {1, 2, 1}, {3, 4});
}

TEST(operators, of_products) {
  const argument a = floats({2, 2}, {1, 2, 3, 4}), b = floats({2, 1}, {5, 6});
  expect(result("dot", "", {{a}, {b}}), {2, 1}, {17, 39});
  EXPECT_THAT(message([&] {
                (void)result("dot", "", {{floats({1, 2, 2}, {1, 2, 3, 4})}, {b}});
              }),
              HasSubstr("leading extents"));
  const argument wide = result(
      "quant_dot", "", {{of(type_t::int8_type, {1, 2}, {100, 100})}, {of(type_t::int8_type, {2, 1}, {100, -50})}});
  EXPECT_EQ(wide.get_shape().type(), type_t::int32_type);
  expect(wide, {1, 1}, {5000});
  const argument image = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), taps = floats({1, 1, 2, 2}, {1, 0, 0, 1});
  expect(result("convolution", "{padding: [0, 0], stride: [1, 1], dilation: [1, 1], group: 1}", {{image}, {taps}}),
         {1, 1, 2, 2}, {6, 8, 12, 14});
  expect(result("convolution", "{padding_mode: same_upper}", {{image}, {taps}}), {1, 1, 3, 3},
         {6, 8, 3, 12, 14, 6, 7, 8, 9});
  expect(result("convolution_backwards", "", {{floats({1, 1, 1, 1}, {2})}, {taps}}), {1, 1, 2, 2}, {2, 0, 0, 2});
  expect(result("quant_convolution", "",
                {{of(type_t::int8_type, {1, 1, 1, 2}, {3, 4})}, {of(type_t::int8_type, {1, 1, 1, 1}, {2})}}),
         {1, 1, 1, 2}, {6, 8});
}

TEST(operators, of_windows) {
  const argument image = floats({1, 1, 2, 2}, {1, 2, 3, 6});
  expect(result("pooling", "{mode: average, lengths: [2, 2]}", {{image}}), {1, 1, 1, 1}, {3});
  expect(result("pooling", "{mode: max, lengths: [2, 2], padding: [0, 0], stride: [1, 1]}", {{image}}), {1, 1, 1, 1},
         {6});
  expect(result("pooling", "{mode: 2, lengths: [1, 2], lp_order: 1}", {{image}}), {1, 1, 2, 1}, {3, 9});
  expect(result("pooling", "{mode: average, lengths: [2, 2], padding: [1, 1], stride: [2, 2], count_include_pad: 1}",
                {{image}}),
         {1, 1, 2, 2}, {.25, .5, .75, 1.5});
  expect(result("pooling", "{mode: max, dyn_global: true}", {{image}}), {1, 1, 1, 1}, {6});
  expect(result("im2col", "", {{image}, {floats({1, 1, 1, 2}, {0, 0})}}), {2, 2}, {1, 2, 3, 6});
  expect(result("resize", "{scales: [1, 1, 2, 2], mode: nearest, coordinate_transformation_mode: asymmetric}",
                {{floats({1, 1, 1, 2}, {1, 2})}}),
         {1, 1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2});
  expect(result("roialign",
                "{output_height: 1, output_width: 1, sampling_ratio: 1, mode: avg, "
                "coordinate_transformation_mode: output_half_pixel}",
                {{image}, {floats({1, 4}, {0, 0, 1, 1})}, {integers({1}, {0})}}),
         {1, 1, 1, 1}, {3});
  expect(result("gridsample", "{align_corners: true}", {{image}, {floats({1, 1, 1, 2}, {1, 1})}}), {1, 1, 1, 1}, {6});
}

TEST(operators, of_positions) {
  const argument x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  expect(result("gather", "{axis: 1}", {{x}, {integers({2}, {2, 0})}}), {2, 2}, {2, 0, 5, 3});
  expect(result("gather", "{axis: 0}", {{x}, {scalar(type_t::int64_type, 1)}}), {3}, {3, 4, 5});
  expect(result("gathernd", "", {{x}, {integers({2, 2}, {0, 1, 1, 2})}}), {2}, {1, 5});
  expect(result("argmax", "{axis: 1}", {{x}}), {2, 1}, {2, 2});
  expect(result("argmin", "{axis: 0}", {{x}}), {1, 3}, {0, 0, 0});
  const auto best = results("topk", "{k: 2, axis: 1, largest: 1}", {{x}});
  expect(best.at(0), {2, 2}, {2, 1, 5, 4});
  expect(best.at(1), {2, 2}, {2, 1, 2, 1});
  expect(result("onehot", "{axis: -1, depth: 3}", {{integers({1}, {1})}, {floats({2}, {0, 1})}}), {1, 3}, {0, 1, 0});
  expect(result("onehot", "", {{integers({1}, {0})}, constant(integers({1}, {2})), {floats({2}, {5, 6})}}), {1, 2},
         {6, 5});
  expect(result("scan_slice", "{axis: 1, direction: 1}", {{x}, {integers({1}, {0})}}), {2, 1}, {2, 5});
  expect(result("dimensions_of", "{end: 2}", {{x}}), {2}, {2, 3});
  expect(result("bit_cast", "{target_type: int32_type}", {{floats({1}, {1})}}), {1}, {0x3f800000});
  expect(result("nonzero", "", {{floats({2, 2}, {0, 1, 1, 0})}}), {2, 4}, {0, 1, 0, 0, 1, 0, 0, 0});
  const auto distinct = results("unique", "", {{integers({4}, {3, 1, 3, 2})}});
  expect(distinct.at(0), {3}, {1, 2, 3});
  expect(distinct.at(1), {3}, {1, 3, 0});
  expect(distinct.at(2), {4}, {2, 0, 2, 1});
  expect(distinct.at(3), {3}, {1, 1, 2});
  expect(result("nonmaxsuppression", "",
                {{floats({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1})},
                 {floats({1, 1, 2}, {.5, .9})},
                 {integers({1}, {2})},
                 {floats({1}, {.5})},
                 {floats({1}, {0})}}),
         {2, 3}, {0, 0, 1, 0, 0, 0});
}

TEST(operators, of_scattering) {
  const argument x = floats({3}, {1, 2, 3}), at = integers({2}, {0, 2}), by = floats({2}, {5, 6});
  expect(result("scatter_none", "{axis: 0}", {{x}, {at}, {by}}), {3}, {5, 2, 6});
  expect(result("scatter_add", "{axis: 0}", {{x}, {at}, {by}}), {3}, {6, 2, 9});
  expect(result("scatter_mul", "{axis: 0}", {{x}, {at}, {by}}), {3}, {5, 2, 18});
  expect(result("scatter_max", "{axis: 0}", {{x}, {at}, {by}}), {3}, {5, 2, 6});
  expect(result("scatter_min", "{axis: 0}", {{x}, {at}, {by}}), {3}, {1, 2, 3});
  const argument rows = integers({2, 1}, {0, 2});
  expect(result("scatternd_none", "", {{x}, {rows}, {by}}), {3}, {5, 2, 6});
  expect(result("scatternd_add", "", {{x}, {rows}, {by}}), {3}, {6, 2, 9});
  expect(result("scatternd_mul", "", {{x}, {rows}, {by}}), {3}, {5, 2, 18});
  expect(result("scatternd_max", "", {{x}, {rows}, {by}}), {3}, {5, 2, 6});
  expect(result("scatternd_min", "", {{x}, {rows}, {by}}), {3}, {1, 2, 3});
}

TEST(operators, of_quantization) {
  const argument x = floats({3}, {-1, .26, 100}), scale = floats({3}, {.5, .5, .5});
  const argument zero = of(type_t::int8_type, {3}, {1, 1, 1});
  const argument q = result("quantizelinear", "", {{x}, {scale}, {zero}});
  EXPECT_EQ(q.get_shape().type(), type_t::int8_type);
  expect(q, {3}, {-1, 2, 127});
  expect(result("quantizelinear", "", {{x}, {scale}}), {3}, {0, 1, 200});
  expect(result("dequantizelinear", "", {{q}, {scale}, {zero}}), {3}, {-1, .5, 63});
  const argument packed = result("pack_int4", "{axis: 0}", {{of(type_t::uint8_type, {4}, {1, 2, 15, 0})}});
  expect(packed, {2}, {33, 15});
  expect(result("unpack_int4", "{axis: 0}", {{packed}}), {4}, {1, 2, 15, 0});
  expect(result("unpack_int4", "", {{of(type_t::int8_type, {1}, {-15})}}), {2}, {1, -1});
}

TEST(operators, of_recurrence) {
  // two steps of one number: h1 = tanh(x1), h2 = tanh(x2 + h1)
  const argument x = floats({2, 1, 1}, {1, 2}), one = floats({1, 1, 1}, {1});
  const double h1 = std::tanh(1), h2 = std::tanh(2 + h1);
  expect(result("rnn", "{hidden_size: 1, actv_func: [tanh], direction: forward}", {{x}, {one}, {one}}), {2, 1, 1, 1},
         {h1, h2});
  program p;
  module& m = p.main_module();
  const auto in = m.add_literal(x), w = m.add_literal(floats({1, 4, 1}, {1, 1, 1, 1}));
  const auto none = m.add_instruction(operation("undefined"), {});
  const auto hs = m.add_instruction(
      operation("lstm",
                parse_attributes("{hidden_size: 1, actv_func: [{name: sigmoid}, {name: tanh}, tanh], clip: 0}")),
      {in, w, w, none});
  m.add_return({m.add_instruction(operation("rnn_last_hs_output"), {hs}),
                m.add_instruction(operation("rnn_last_cell_output"), {hs})});
  const auto made = p.run({});
  const auto s = [](double v) { return 1 / (1 + std::exp(-v)); };
  double h = 0, c = 0;
  for (const double step : {1., 2.}) {
    const double g = step + h;
    c = s(g) * c + s(g) * std::tanh(g);
    h = s(g) * std::tanh(c);
  }
  expect(made.at(0), {1, 1, 1}, {h});
  expect(made.at(1), {1, 1, 1}, {c});
  expect(result("gru", "{hidden_size: 1}", {{x}, {floats({1, 3, 1}, {0, 0, 1})}, {floats({1, 3, 1}, {0, 0, 0})}}),
         {2, 1, 1, 1}, {std::tanh(1) / 2, std::tanh(1) / 4 + std::tanh(2) / 2});
  expect(result("rnn_var_sl_shift_sequence", "",
                {{floats({2, 2, 1}, {1, 2, 3, 4})}, {of(type_t::int32_type, {2}, {1, 2})}}),
         {2, 2, 1}, {0, 2, 1, 4});
  expect(result("rnn_var_sl_shift_output", "{direction: reverse}",
                {{floats({2, 1, 2, 1}, {9, 2, 1, 4})}, {of(type_t::int32_type, {2}, {1, 2})}}),
         {2, 1, 2, 1}, {1, 2, 0, 4});
}

TEST(operators, of_memory_and_chance) {
  expect(result("allocate", "{shape: {type: float_type, lens: [2]}}", {}), {2}, {0, 0});
  expect(result("fill", "", {{scalar(type_t::float_type, 3)}, {floats({2}, {0, 0})}}), {2}, {3, 3});
  expect(result("multinomial", "", {{floats({1, 3}, {.25, .5, 1})}, {floats({1, 4}, {0, .3, .5, .9})}}), {1, 4},
         {0, 1, 2, 2});
  const argument drawn = result("random_uniform", "", {constant(integers({1}, {7})), {floats({4}, {0, 0, 0, 0})}});
  for (const double v : of(drawn)) EXPECT_TRUE(v >= 0 && v < 1) << v;
  EXPECT_EQ(result("random_seed", "", {}).get_shape().type(), type_t::uint64_type);
}

}  // namespace
}  // namespace kiln::migraphx
