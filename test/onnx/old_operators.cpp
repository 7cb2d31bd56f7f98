#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onnx/one_operator.hpp"
#include "onnx/run_model.hpp"

// Operators of the first operator sets, and forms of operators that few exporters write.
namespace kiln::test {
namespace {

constexpr int f8e4m3fn = 17, f8e5m2 = 19;

message attr_reals(std::string_view name, const std::vector<float>& v) {
  message m = attribute(name, 6);
  for (const float x : v) m.real(7, x);
  return m;
}

TEST(old_operators, experimental_ones_compute) {
  const given x{{1, 2, 1, 2}, {1, 2, 3, 4}};
  EXPECT_EQ(compute({"Affine", 1, {attr("alpha", 2.0f), attr("beta", 1.0f)}}, {x}).values,
            (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(compute({"Scale", 1, {attr("scale", 3.0f)}}, {x}).values, (std::vector<float>{3, 6, 9, 12}));
  EXPECT_EQ(compute({"ImageScaler", 1, {attr("scale", 2.0f), attr_reals("bias", {10, 20})}}, {x}).values,
            (std::vector<float>{12, 14, 26, 28}));
  expect_near(compute({"ScaledTanh", 1, {attr("alpha", 2.0f), attr("beta", .5f)}}, {{{1}, {1}}}),
              {{1}, {2 * std::tanh(.5f)}});
  expect_near(compute({"ParametricSoftplus", 1, {attr("alpha", 2.0f), attr("beta", .5f)}}, {{{1}, {1}}}),
              {{1}, {2 * std::log(std::exp(.5f) + 1)}});
}

TEST(old_operators, a_crop_takes_off_a_border_or_starts_at_it) {
  const given x{{1, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  const auto border = attr("border", many{1, 0, 2, 1});  // left, top, right, bottom
  EXPECT_EQ(compute({"Crop", 1, {border}}, {x}), (outcome{{1, 1, 2, 1}, {1, 5}}));
  EXPECT_EQ(compute({"Crop", 1, {border, attr("scale", many{1, 3})}}, {x}), (outcome{{1, 1, 1, 3}, {1, 2, 3}}));
  EXPECT_THROW(compute({"Crop", 1, {border, attr("scale", many{1, 4})}}, {x}), error);
  EXPECT_THROW(compute({"Crop", 1, {attr("border", many{-1, 0, 0, 0})}}, {x}), error);
}

TEST(old_operators, a_dynamic_slice_is_a_slice_of_inputs) {
  EXPECT_EQ(
      compute({"DynamicSlice", 1}, {{{2, 3}, {1, 2, 3, 4, 5, 6}}}, {number(0, {1}), number(1, {-1}), number(2, {1})}),
      (outcome{{2, 1}, {2, 5}}));
}

TEST(old_operators, fills_take_their_extents_from_where_they_are_told) {
  EXPECT_EQ(
      compute({"ConstantFill", 1, {attr("shape", many{2}), attr("extra_shape", many{1}), attr("value", 7.0f)}}, {}),
      (outcome{{2, 1}, {7, 7}}));
  EXPECT_EQ(compute({"ConstantFill", 1, {attr("value", 7.0f), attr("dtype", 7)}}, {{{1, 2}, {0, 0}}}),
            (outcome{{1, 2}, {7, 7}}));
  EXPECT_EQ(compute({"ConstantFill", 1, {attr("input_as_shape", 1)}}, {}, {number(0, {1, 3})}),
            (outcome{{1, 3}, {0, 0, 0}}));
  EXPECT_EQ(compute({"GivenTensorFill", 1, {attr("shape", many{2}), attr_reals("values", {3, 4})}}, {}),
            (outcome{{2}, {3, 4}}));
  EXPECT_THROW(compute({"GivenTensorFill", 1, {attr("shape", many{3}), attr_reals("values", {3, 4})}}, {}), error);
}

TEST(old_operators, the_first_mean_variance_norm_keeps_to_a_channel) {
  const given x{{1, 2, 1, 2}, {1, 3, 10, 30}};
  expect_near(compute({"MeanVarianceNormalization", 1}, {x}), {{1, 2, 1, 2}, {-1, 1, -1, 1}});
  expect_near(compute({"MeanVarianceNormalization", 1, {attr("normalize_variance", 0)}}, {x}),
              {{1, 2, 1, 2}, {-1, 1, -10, 10}});
  expect_near(
      compute({"MeanVarianceNormalization", 1, {attr("normalize_variance", 0), attr("across_channels", 1)}}, {x}),
      {{1, 2, 1, 2}, {-10, -8, -1, 19}});
}

TEST(old_operators, a_batch_norm_trains_where_its_statistics_are_read) {
  const std::vector<given> in = {{{2, 1}, {1, 3}}, {{1}, {2}}, {{1}, {5}}, {{1}, {10}}, {{1}, {20}}};
  for (const std::int64_t version : {1, 6, 7, 9}) {
    const operator_call call{"BatchNormalization", version, {attr("epsilon", 0.0f), attr("momentum", .5f)}, "", 5};
    const float expected[] = {0, 6, 10.5f, 2, 1};
    expect_near(compute(call, in, {}, 0), {{2, 1}, {3, 7}});
    for (std::size_t k = 1; k < 5; ++k) expect_near(compute(call, in, {}, k), {{1}, {expected[k]}});
  }
  EXPECT_THROW(compute({"BatchNormalization", 6, {attr("is_test", 1)}, "", 5}, in, {}, 1), error);
}

TEST(old_operators, a_first_pool_of_a_fractional_order_is_refused) {
  const given x{{1, 1, 2}, {3, 4}};
  EXPECT_EQ(compute({"LpPool", 1, {attr("kernel_shape", many{2}), attr("p", 2.0f)}}, {x}).values,
            std::vector<float>{5});
  EXPECT_THROW(compute({"LpPool", 1, {attr("kernel_shape", many{2}), attr("p", 2.5f)}}, {x}), error);
}

TEST(old_operators, a_transposed_convolution_may_state_batch_and_channels) {
  const given x{{1, 1, 2}, {1, 2}}, w{{1, 1, 2}, {1, 10}};
  const auto stride = attr("strides", many{2});
  EXPECT_EQ(compute({"ConvTranspose", 1, {stride, attr("output_shape", many{1, 1, 4})}}, {x, w}),
            compute({"ConvTranspose", 1, {stride, attr("output_shape", many{4})}}, {x, w}));
}

TEST(old_operators, a_constant_may_be_sparse) {
  const message sparse =
      message().add(1, tensor<float>("", 1, {2}, {5, 7})).add(2, integers("", {2}, {1, 3})).numbers(3, {2, 2});
  const message value = attribute("sparse_value", 11).add(22, sparse);
  EXPECT_EQ(compute({"Constant", 13, {value}}, {}), (outcome{{2, 2}, {0, 5, 0, 7}}));
}

TEST(old_operators, narrow_floats_tell_what_they_are) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(compute({"IsNaN", 20, {}, "", 1, f8e4m3fn}, {{{2}, {1, nan}}}).values, (std::vector<float>{0, 1}));
  EXPECT_EQ(
      compute({"IsInf", 20, {attr("detect_positive", 0)}, "", 1, f8e5m2}, {{{3}, {1, infinity, -infinity}}}).values,
      (std::vector<float>{0, 0, 1}));
}

TEST(old_operators, a_resized_integer_is_cut_off_only_where_it_is_no_integer) {
  // 6 + (9 - 6) / 3 is 7, though a third is none of a double's numbers
  const operator_call call{"Resize", 13, {attr("mode", "linear"), attr("coordinate_transformation_mode", "asymmetric")},
                           "",       1,  2};
  EXPECT_EQ(compute(call, {{{1, 2}, {6, 9}}, constant({0}, {}), constant({2}, {1, 3})}).values,
            (std::vector<float>{6, 7, 8, 9, 9, 9}));
}

TEST(old_operators, a_grid_of_one_element_stands_in_the_middle) {
  graph_parts parts;
  parts.inputs = {value_info("theta", 1, {1, 2, 3}), value_info("size", 7, {4})};
  parts.nodes = {node("AffineGrid", {"theta", "size"}, {"y"}, {attr("align_corners", 1)})};
  parts.outputs = {value_info("y")};
  const auto y = run_on_targets(model_of(parts, 20), {reals({1, 2, 3}, {1, 0, 3, 0, 1, 4}), whole({4}, {1, 1, 1, 2})});
  EXPECT_EQ(floats_of(y[0]), (std::vector<float>{2, 4, 4, 4}));
}

}  // namespace
}  // namespace kiln::test
