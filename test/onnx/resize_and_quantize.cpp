#include <cmath>

#include "onnx/one_operator.hpp"

namespace kiln::test {
namespace {

message real_numbers(int position, const std::vector<float>& values) {
  return floats("number" + std::to_string(position), {static_cast<std::int64_t>(values.size())}, values);
}
message bytes(int position, const std::vector<std::int64_t>& lens, const std::vector<std::uint8_t>& values) {
  return tensor("number" + std::to_string(position), 2, lens, values);
}

TEST(resize, nearest_repeats_by_each_rule) {
  const given x{{1, 1, 1, 2}, {1, 2}};
  // version 10 has two inputs and counts from the left edge
  EXPECT_EQ(compute({"Resize", 10}, {x}, {real_numbers(0, {1, 1, 1, 2.5f})}), (outcome{{1, 1, 1, 5}, {1, 1, 1, 2, 2}}));
  EXPECT_EQ(compute({"Upsample", 9}, {x}, {real_numbers(0, {1, 1, 2, 1})}), (outcome{{1, 1, 2, 2}, {1, 2, 1, 2}}));
  EXPECT_EQ(compute({"Resize", 13}, {x, constant({0}, {})}, {real_numbers(0, {1, 1, 1, 1.5f})}),
            (outcome{{1, 1, 1, 3}, {1, 1, 2}}));
  EXPECT_EQ(compute({"Resize", 13, {attr("nearest_mode", "round_prefer_ceil")}}, {x, constant({0}, {})},
                    {real_numbers(0, {1, 1, 1, 1.5f})}),
            (outcome{{1, 1, 1, 3}, {1, 2, 2}}));
  EXPECT_THROW(compute({"Upsample", 10}, {x}, {real_numbers(0, {1, 1, 2, 1})}), error);
}

TEST(resize, linear_weighs_two_neighbors) {
  const given x{{1, 2}, {0, 4}};
  const given none = constant({0}, {});
  const auto with = [&](const char* coordinates) {
    return compute({"Resize", 13, {attr("mode", "linear"), attr("coordinate_transformation_mode", coordinates)}},
                   {x, none, none}, {integers("number0", {2}, {1, 4})});
  };
  expect_near(with("half_pixel"), {{1, 4}, {0, 1, 3, 4}});
  expect_near(with("align_corners"), {{1, 4}, {0, 4 / 3.f, 8 / 3.f, 4}});
  expect_near(with("asymmetric"), {{1, 4}, {0, 2, 4, 4}});
}

TEST(resize, cubic_keeps_constants_and_may_leave_the_outside_out) {
  const given x{{1, 4}, {5, 5, 5, 5}};
  const given none = constant({0}, {});
  for (const int excluded : {0, 1})
    expect_near(compute({"Resize", 13, {attr("mode", "cubic"), attr("exclude_outside", excluded)}}, {x, none, none},
                        {integers("number0", {2}, {1, 3})}),
                {{1, 3}, {5, 5, 5}});
}

TEST(resize, antialias_averages_what_is_dropped) {
  const given x{{4}, {0, 0, 8, 8}};
  const given none = constant({0}, {});
  const operator_call call{"Resize", 18, {attr("mode", "linear"), attr("antialias", 1)}};
  expect_near(compute(call, {x, none, none}, {integers("number0", {1}, {2})}), {{2}, {1, 7}}, .2f);
}

TEST(quantize, rounds_half_to_even_and_saturates) {
  const given x{{6}, {-1, 0.5f, 1.5f, 2.5f, 300, 4}}, scale = constant({}, {1});
  EXPECT_EQ(compute({"QuantizeLinear", 13}, {x, scale}), (outcome{{6}, {0, 0, 2, 2, 255, 4}}));
  EXPECT_EQ(compute({"QuantizeLinear", 13}, {x, scale}, {bytes(0, {}, {10})}),
            (outcome{{6}, {9, 10, 12, 12, 255, 14}}));
}

TEST(quantize, scales_run_along_an_axis_or_in_blocks) {
  const given x{{2, 2}, {10, 20, 30, 40}};
  EXPECT_EQ(compute({"QuantizeLinear", 13, {attr("axis", 0)}}, {x, constant({2}, {10, 5})}),
            (outcome{{2, 2}, {1, 2, 6, 8}}));
  EXPECT_EQ(compute({"QuantizeLinear", 13}, {x, constant({2}, {10, 5})}), (outcome{{2, 2}, {1, 4, 3, 8}}));
  EXPECT_EQ(compute({"QuantizeLinear", 21, {attr("axis", 1), attr("block_size", 2)}}, {x, constant({2, 1}, {10, 5})}),
            (outcome{{2, 2}, {1, 2, 6, 8}}));
  const operator_call back{"DequantizeLinear", 13, {attr("axis", 0)}, "", 1, 2};
  EXPECT_EQ(compute(back, {{{2, 2}, {1, 2, 6, 8}}, constant({2}, {10, 5})}, {bytes(0, {2}, {1, 0})}),
            (outcome{{2, 2}, {0, 10, 30, 40}}));
}

TEST(quantize, integer_products_subtract_zero_points) {
  const operator_call product{"MatMulInteger", 10, {}, "", 1, 2};
  EXPECT_EQ(compute(product, {{{1, 2}, {11, 7}}, {{2, 1}, {2, 1}}}, {bytes(0, {}, {10}), bytes(1, {}, {1})}),
            (outcome{{1, 1}, {1}}));
  const operator_call window{"ConvInteger", 10, {attr("pads", many{0, 1})}, "", 1, 2};
  // the padding counts as the zero point
  EXPECT_EQ(compute(window, {{{1, 1, 2}, {5, 6}}, {{1, 1, 2}, {1, 2}}}, {bytes(0, {}, {4})}),
            (outcome{{1, 1, 2}, {5, 2}}));
}

TEST(quantize, dynamic_ranges_include_zero) {
  const operator_call call{"DynamicQuantizeLinear", 11, {}, "", 3};
  const given x{{2}, {2, 5.1f}};
  EXPECT_EQ(compute(call, {x}), (outcome{{2}, {100, 255}}));
  expect_near(compute(call, {x}, {}, 1), {{}, {.02f}});
  EXPECT_EQ(compute(call, {{{2}, {0, 0}}}), (outcome{{2}, {0, 0}}));
  EXPECT_EQ(compute(call, {{{2}, {0, 0}}}, {}, 1), (outcome{{}, {1}}));
}

TEST(loss, ignored_targets_and_weights_change_the_mean) {
  const given scores{{2, 2}, {-1, -3, -2, -8}};
  EXPECT_EQ(compute({"NegativeLogLikelihoodLoss", 13}, {scores}, {number(0, {1, 0})}), (outcome{{}, {2.5f}}));
  EXPECT_EQ(compute({"NegativeLogLikelihoodLoss", 13, {attr("ignore_index", -7)}}, {scores}, {number(0, {1, -7})}),
            (outcome{{}, {3}}));
  EXPECT_EQ(compute({"NegativeLogLikelihoodLoss", 13}, {scores}, {number(0, {1, 0}), real_numbers(1, {3, 1})}),
            (outcome{{}, {(3 + 6) / 4.f}}));
  EXPECT_EQ(compute({"NegativeLogLikelihoodLoss", 13, {attr("reduction", "none")}}, {scores}, {number(0, {1, 0})}),
            (outcome{{2}, {3, 2}}));
  expect_near(compute({"SoftmaxCrossEntropyLoss", 13}, {{{1, 2}, {0, 0}}}, {number(0, {1})}), {{}, {std::log(2.0f)}});
}

TEST(quantized_operators, vectors_multiply_as_numpy_has_it) {
  const auto product = [](const given& a, const given& b) {
    return compute({.op = "MatMulInteger", .version = 10, .type = 2}, {a, b});
  };
  const given v{{3}, {1, 2, 3}}, rows{{2, 3}, {1, 0, 0, 1, 1, 1}}, columns{{3, 2}, {1, 4, 2, 5, 3, 6}};
  EXPECT_EQ(product(v, v), (outcome{{}, {14}}));
  EXPECT_EQ(product(rows, v), (outcome{{2}, {1, 6}}));
  EXPECT_EQ(product(v, columns), (outcome{{2}, {14, 32}}));
}

// ONNX Runtime declares it, but has no kernel for it.
TEST(qlinear_reduce_mean, the_mean_is_quantized_anew) {
  const auto mean = [](std::int64_t keeps) {
    return compute({"QLinearReduceMean",
                    1,
                    {attr("axes", std::vector<std::int64_t>{1}), attr("keepdims", keeps)},
                    "com.microsoft",
                    1,
                    2},
                   {{{2, 2}, {10, 20, 3, 250}}},
                   {floats("number0", {}, {.5f}), bytes(1, {}, {2}), floats("number2", {}, {.25f}), bytes(3, {}, {1})});
  };
  // ((10 + 20) / 2 - 2) * 2 + 1, and one that saturates
  EXPECT_EQ(mean(1), (outcome{{2, 1}, {27, 250}}));
  EXPECT_EQ(mean(0), (outcome{{2}, {27, 250}}));
}

}  // namespace
}  // namespace kiln::test
