#include <array>

#include <gtest/gtest.h>

#include <cmath>

#include "onnx/one_operator.hpp"

// One operator at a time: what it computes, by the rules of its version.
namespace kiln::test {
namespace {

TEST(operators, broadcasting_before_version_7_follows_attributes) {
  const given x{{2, 3}, {1, 2, 3, 4, 5, 6}}, columns{{2}, {10, 20}};
  EXPECT_EQ(compute({"Add", 6, {attr("broadcast", 1), attr("axis", 0)}}, {x, columns}),
            (outcome{{2, 3}, {11, 12, 13, 24, 25, 26}}));
  EXPECT_EQ(compute({"Sub", 6, {attr("broadcast", 1)}}, {x, {{3}, {1, 2, 3}}}), (outcome{{2, 3}, {0, 0, 0, 3, 3, 3}}));
  EXPECT_THROW(compute({"Add", 7}, {x, columns}), error);
  EXPECT_EQ(compute({"PRelu", 6}, {{{1, 2, 1}, {-1, -2}}, {{2}, {3, 4}}}), (outcome{{1, 2, 1}, {-3, -8}}));
}

TEST(operators, softmax_before_version_13_runs_over_all_trailing_dims) {
  const given x{{2, 2, 1}, {0, 0, 0, std::log(3.0f)}};
  expect_near(compute({"Softmax", 11}, {x}), {{2, 2, 1}, {.5f, .5f, .25f, .75f}});
  expect_near(compute({"Softmax", 13}, {x}), {{2, 2, 1}, {1, 1, 1, 1}});
  expect_near(compute({"Softmax", 11, {attr("axis", 0)}}, {x}), {{2, 2, 1}, {1 / 6.f, 1 / 6.f, 1 / 6.f, .5f}});
  expect_near(compute({"LogSoftmax", 6, {attr("axis", -2)}}, {x}),
              {{2, 2, 1}, {std::log(.5f), std::log(.5f), std::log(.25f), std::log(.75f)}});
  expect_near(compute({"Softmax", 13}, {{{1, 2}, {1000, 1000}}}), {{1, 2}, {.5f, .5f}});
}

TEST(operators, clip_takes_bounds_from_attributes_then_inputs) {
  const given x{{3}, {-5, 0, 5}};
  EXPECT_EQ(compute({"Clip", 6, {attr("max", 1.0f)}}, {x}), (outcome{{3}, {-5, 0, 1}}));
  EXPECT_EQ(compute({"Clip", 6, {attr("max", 1.0f), attr("min", -1.0f)}}, {x}), (outcome{{3}, {-1, 0, 1}}));
  EXPECT_EQ(compute({"Clip", 13}, {x, constant({}, {-2})}), (outcome{{3}, {-2, 0, 5}}));
  EXPECT_EQ(compute({"Clip", 13}, {x, constant({}, {-2}), constant({}, {2})}), (outcome{{3}, {-2, 0, 2}}));
  EXPECT_EQ(compute({"Clip", 13}, {x}), (outcome{{3}, {-5, 0, 5}}));
}

TEST(operators, powers_of_any_exponent) {
  const given x{{2}, {-2, 3}};
  EXPECT_EQ(compute({"Pow", 13}, {x, constant({}, {2})}), (outcome{{2}, {4, 9}}));
  EXPECT_EQ(compute({"Pow", 13}, {x, constant({}, {3})}), (outcome{{2}, {-8, 27}}));
  EXPECT_EQ(compute({"Pow", 13}, {x, constant({2, 1}, {1, 2})}), (outcome{{2, 2}, {-2, 3, 4, 9}}));
  EXPECT_EQ(compute({"Pow", 13}, {x, constant({1, 1}, {2})}), (outcome{{1, 2}, {4, 9}}));
}

TEST(operators, reductions_name_axes_by_attribute_or_input) {
  const given x{{2, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(compute({"ReduceSum", 11, {attr("axes", many{1}), attr("keepdims", 0)}}, {x}), (outcome{{2}, {6, 15}}));
  EXPECT_EQ(compute({"ReduceSum", 13}, {x}, {integers("number0", {1}, {-2})}), (outcome{{1, 3}, {5, 7, 9}}));
  EXPECT_EQ(compute({"ReduceSum", 13, {attr("keepdims", 0)}}, {x}), (outcome{{}, {21}}));
  EXPECT_EQ(compute({"ReduceSum", 13, {attr("noop_with_empty_axes", 1)}}, {x}), (outcome{{2, 3}, x.values}));
  // over no axes, what a reduction does to each element remains
  const given signs{{2}, {-2, 3}};
  const auto over_none = [&](const std::string& op) {
    return compute({op, 18, {attr("noop_with_empty_axes", 1)}}, {signs}).values;
  };
  EXPECT_EQ(over_none("ReduceSumSquare"), (std::vector<float>{4, 9}));
  EXPECT_EQ(over_none("ReduceL1"), (std::vector<float>{2, 3}));
  EXPECT_EQ(over_none("ReduceL2"), (std::vector<float>{2, 3}));
  EXPECT_EQ(over_none("ReduceMax"), (std::vector<float>{-2, 3}));
  EXPECT_NEAR(over_none("ReduceLogSum")[1], 1.0986123f, 1e-6f);
  EXPECT_EQ(compute({"ReduceMax", 17, {attr("axes", many{-1})}}, {x}), (outcome{{2, 1}, {3, 6}}));
  EXPECT_EQ(compute({"ReduceMean", 18}, {x}, {number(0, {0})}), (outcome{{1, 3}, {2.5f, 3.5f, 4.5f}}));
  expect_near(compute({"ReduceLogSumExp", 18, {attr("keepdims", 0)}}, {{{2}, {100, 100}}}, {number(0, {0})}),
              {{}, {100 + std::log(2.0f)}});
  EXPECT_EQ(compute({"ArgMax", 13, {attr("axis", 1), attr("keepdims", 0)}}, {x}), (outcome{{2}, {2, 2}}));
  EXPECT_EQ(compute({"ReduceSum", 13, {attr("keepdims", 0)}}, {{{}, {3}}}), (outcome{{}, {3}}));
}

TEST(operators, views_by_every_version) {
  const given x{{2, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(compute({"Reshape", 1, {attr("shape", many{3, -1})}}, {x}).lens, (ints{3, 2}));
  EXPECT_EQ(compute({"Reshape", 14, {attr("allowzero", 1)}}, {{{0, 3}, {}}}, {number(0, {3, 0})}).lens, (ints{3, 0}));
  EXPECT_EQ(compute({"Squeeze", 11, {attr("axes", many{0})}}, {{{1, 2, 1}, {1, 2}}}).lens, (ints{2, 1}));
  EXPECT_EQ(compute({"Squeeze", 13}, {{{1, 2, 1}, {1, 2}}}).lens, (ints{2}));
  EXPECT_EQ(compute({"Unsqueeze", 13}, {x}, {number(0, {0, -1})}).lens, (ints{1, 2, 3, 1}));
  EXPECT_EQ(compute({"Transpose", 13}, {x}), (outcome{{3, 2}, {1, 4, 2, 5, 3, 6}}));
  EXPECT_EQ(compute({"Flatten", 13, {attr("axis", 0)}}, {x}).lens, (ints{1, 6}));
  EXPECT_EQ(compute({"Expand", 13}, {{{2, 1}, {1, 2}}}, {number(0, {2, 1, 3})}),
            (outcome{{2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}}));
  EXPECT_EQ(compute({"Tile", 13}, {{{2, 1}, {1, 2}}}, {number(0, {2, 2})}),
            (outcome{{4, 2}, {1, 1, 2, 2, 1, 1, 2, 2}}));
  EXPECT_EQ(compute({"Tile", 13}, {{{1, 2}, {1, 2}}}, {number(0, {1, 2})}), (outcome{{1, 4}, {1, 2, 1, 2}}));
  EXPECT_EQ(compute({"DepthToSpace", 13, {attr("blocksize", 2)}}, {{{1, 4, 1, 1}, {1, 2, 3, 4}}}),
            (outcome{{1, 1, 2, 2}, {1, 2, 3, 4}}));
  EXPECT_EQ(compute({"SpaceToDepth", 13, {attr("blocksize", 2)}}, {{{1, 1, 2, 2}, {1, 2, 3, 4}}}),
            (outcome{{1, 4, 1, 1}, {1, 2, 3, 4}}));
}

TEST(operators, slices_splits_and_pads) {
  const given x{{2, 3}, {1, 2, 3, 4, 5, 6}};
  const auto last = std::numeric_limits<std::int64_t>::max(), first = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(compute({"Slice", 9, {attr("axes", many{1}), attr("starts", many{-2}), attr("ends", many{last})}}, {x}),
            (outcome{{2, 2}, {2, 3, 5, 6}}));
  EXPECT_EQ(compute({"Slice", 13}, {x}, {number(0, {-1}), number(1, {first}), number(2, {1}), number(3, {-2})}),
            (outcome{{2, 2}, {3, 1, 6, 4}}));
  const operator_call thirds{"Split", 13, {attr("axis", 1)}, "", 2};
  EXPECT_EQ(compute(thirds, {x}, {number(0, {1, 2})}, 1), (outcome{{2, 2}, {2, 3, 5, 6}}));
  EXPECT_THROW(compute(thirds, {x}, {number(0, {1, 1})}, 1), error);
  EXPECT_EQ(compute({"Split", 18, {attr("num_outputs", 2), attr("axis", 1)}, "", 2}, {x}, {}, 1),
            (outcome{{2, 1}, {3, 6}}));
  EXPECT_EQ(compute({"Split", 2, {attr("split", many{2, 1}), attr("axis", 1)}, "", 2}, {x}, {}, 1),
            (outcome{{2, 1}, {3, 6}}));
  EXPECT_EQ(compute({"Pad", 2, {attr("pads", many{0, 1, 0, 0}), attr("value", 9.0f)}}, {x}),
            (outcome{{2, 4}, {9, 1, 2, 3, 9, 4, 5, 6}}));
  EXPECT_EQ(compute({"Pad", 13, {attr("mode", "edge")}}, {x}, {number(0, {0, 1, 0, 1})}),
            (outcome{{2, 5}, {1, 1, 2, 3, 3, 4, 4, 5, 6, 6}}));
  EXPECT_EQ(compute({"Concat", 13, {attr("axis", 0)}}, {x, {{1, 3}, {7, 8, 9}}}).lens, (ints{3, 3}));
}

TEST(operators, products_follow_numpy) {
  const given m{{2, 2}, {1, 2, 3, 4}}, v{{2}, {5, 6}};
  EXPECT_EQ(compute({"MatMul", 13}, {m, v}), (outcome{{2}, {17, 39}}));
  EXPECT_EQ(compute({"MatMul", 13}, {v, m}), (outcome{{2}, {23, 34}}));
  EXPECT_EQ(compute({"MatMul", 13}, {v, v}), (outcome{{}, {61}}));
  EXPECT_EQ(compute({"MatMul", 13}, {{{2, 1, 2}, {1, 0, 0, 1}}, m}), (outcome{{2, 1, 2}, {1, 2, 3, 4}}));
  EXPECT_EQ(compute({"Gemm", 13, {attr("transB", 1), attr("alpha", 2.0f), attr("beta", .5f)}}, {m, m, {{2}, {2, 4}}}),
            (outcome{{2, 2}, {11, 24, 23, 52}}));
}

TEST(operators, windows_pad_themselves) {
  const given x{{1, 1, 4}, {1, 2, 3, 4}}, w = constant({1, 1, 2}, {1, 10});
  EXPECT_EQ(compute({"Conv", 11, {attr("auto_pad", "SAME_UPPER")}}, {x, w}), (outcome{{1, 1, 4}, {21, 32, 43, 4}}));
  EXPECT_EQ(compute({"Conv", 11, {attr("auto_pad", "SAME_LOWER")}}, {x, w}), (outcome{{1, 1, 4}, {10, 21, 32, 43}}));
  EXPECT_EQ(compute({"Conv", 11, {attr("strides", many{3}), attr("pads", many{0, 1})}}, {x, w, constant({1}, {100})}),
            (outcome{{1, 1, 2}, {121, 104}}));
  EXPECT_EQ(
      compute({"MaxPool", 12, {attr("kernel_shape", many{3}), attr("strides", many{2}), attr("ceil_mode", 1)}}, {x}),
      (outcome{{1, 1, 2}, {3, 4}}));
  EXPECT_EQ(compute({"AveragePool", 11, {attr("kernel_shape", many{2}), attr("pads", many{1, 0})}}, {x}),
            (outcome{{1, 1, 4}, {1, 1.5f, 2.5f, 3.5f}}));
  EXPECT_EQ(compute({"ConvTranspose", 11, {attr("strides", many{2}), attr("output_shape", many{8})}}, {x, w}).lens,
            (ints{1, 1, 8}));
  EXPECT_EQ(compute({"GlobalAveragePool", 1}, {x}), (outcome{{1, 1, 1}, {2.5f}}));
  EXPECT_THROW(compute({"Conv", 11, {attr("kernel_shape", many{3})}}, {x, w}), error);
}

TEST(operators, norms_have_their_own_axes) {
  const given x{{1, 2, 2}, {1, 3, 10, 30}};
  const given one = constant({2}, {1, 1}), none = constant({2}, {0, 0});
  expect_near(compute({"InstanceNormalization", 6, {attr("epsilon", 0.0f)}}, {x, one, none}),
              {{1, 2, 2}, {-1, 1, -1, 1}});
  expect_near(
      compute({"LayerNormalization", 17, {attr("epsilon", 0.0f)}}, {x, constant({2}, {1, 2}), constant({2}, {0, 5})}),
      {{1, 2, 2}, {-1, 7, -1, 7}});
  expect_near(compute({"LayerNormalization", 17, {attr("epsilon", 0.0f)}, "", 3}, {x, one}, {}, 1),
              {{1, 2, 1}, {2, 20}});
  expect_near(
      compute({"BatchNormalization", 15, {attr("epsilon", 0.0f)}},
              {x, constant({2}, {2, 1}), constant({2}, {1, 0}), constant({2}, {1, 10}), constant({2}, {4, 100})}),
      {{1, 2, 2}, {1, 3, 0, 2}});
  expect_near(compute({"GroupNormalization", 21, {attr("num_groups", 1), attr("epsilon", 0.0f)}},
                      {{{1, 2, 1}, {1, 3}}, constant({2}, {1, 2}), none}),
              {{1, 2, 1}, {-1, 2}});
  expect_near(compute({"LpNormalization", 1, {attr("p", 1)}}, {{{2, 2}, {1, 3, 0, 0}}}), {{2, 2}, {.25f, .75f, 0, 0}});
  expect_near(compute({"SkipSimplifiedLayerNormalization", 17, {attr("epsilon", 0.0f)}, "com.microsoft", 4},
                      {{{1, 2}, {1, 3}}, {{1, 2}, {2, 1}}, one}, {}, 3),
              {{1, 2}, {3, 4}});
}

// Two groups of x[batch, 4, ...] with scales 1, 2, 3, 4 and offsets 0, 1, 2, 3, by the definition.
std::vector<float> two_groups(const given& x, float epsilon = 1e-5f) {
  if (x.values.empty()) return {};
  const auto row = x.values.size() / static_cast<std::size_t>(x.lens[0] * 2);
  std::vector<float> out;
  for (std::size_t first = 0; first < x.values.size(); first += row) {
    double sum = 0, squares = 0;
    for (std::size_t k = 0; k < row; ++k) sum += x.values[first + k];
    const double mean = sum / static_cast<double>(row);
    for (std::size_t k = 0; k < row; ++k) squares += (x.values[first + k] - mean) * (x.values[first + k] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(row) + static_cast<double>(epsilon));
    for (std::size_t k = 0; k < row; ++k) {
      const auto channel = static_cast<double>((first + k) / (row / 2) % 4);
      out.push_back(static_cast<float>((x.values[first + k] - mean) / deviation * (channel + 1) + channel));
    }
  }
  return out;
}
given counted(const std::vector<std::int64_t>& lens, float unit = 0.25f) {
  given x{lens, {}};
  std::int64_t n = 1;
  for (const auto d : lens) n *= d;
  for (std::int64_t k = 0; k < n; ++k) x.values.push_back(static_cast<float>(k * 7 % 23 - 9) * unit);
  return x;
}

TEST(operators, groups_of_channels_of_any_rank) {
  const given scale{{4}, {1, 2, 3, 4}}, offset{{4}, {0, 1, 2, 3}};
  const std::vector<message> two{attr("num_groups", 2)};
  for (const many& lens : {many{2, 4}, many{2, 4, 3}, many{3, 4, 2, 2}, many{1, 4, 2, 1, 3},
                           many{1, 4, 2, 1, 1, 3, 1, 2}, many{0, 4, 3}, many{2, 4, 0}}) {
    const given x = counted(lens);
    outcome wanted{{}, two_groups(x)};
    for (const std::int64_t d : lens) wanted.lens.push_back(d);
    expect_near(compute({"GroupNormalization", 21, two}, {x, scale, offset}), wanted, 2e-5f);
    expect_near(
        compute({"GroupNormalization", 21, two}, {x, constant({4}, scale.values), constant({4}, offset.values)}),
        wanted, 2e-5f);
  }
}

TEST(operators, groups_of_narrow_floats) {
  constexpr int f16 = 10, bf16 = 16;
  const given scale{{4}, {1, 2, 3, 4}}, offset{{4}, {0, 1, 2, 3}};
  const std::vector<message> two{attr("num_groups", 2)}, own{attr("num_groups", 2), attr("stash_type", f16)};
  const given x = counted({2, 4, 3}), large = counted({2, 4, 3}, 100);  // squares of the latter are infinite in f16
  expect_near(compute({"GroupNormalization", 21, two, "", 1, f16}, {x, scale, offset}), {{2, 4, 3}, two_groups(x)},
              2e-2f);
  expect_near(compute({"GroupNormalization", 21, two, "", 1, f16}, {large, scale, offset}),
              {{2, 4, 3}, two_groups(large)}, 2e-2f);
  expect_near(compute({"GroupNormalization", 21, two, "", 1, bf16}, {x, scale, offset}), {{2, 4, 3}, two_groups(x)},
              1e-1f);
  expect_near(compute({"GroupNormalization", 21, own, "", 1, f16}, {x, scale, offset}), {{2, 4, 3}, two_groups(x)},
              5e-2f);
  const outcome rough = compute({"GroupNormalization", 21, own, "", 1, f16}, {large, scale, offset});
  EXPECT_NE(rough.values, compute({"GroupNormalization", 21, two, "", 1, f16}, {large, scale, offset}).values);
  // the result has the input's type, whatever the scale's is
  for (const float v : compute({"GroupNormalization", 21, two, "", 1, f16},
                               {x, constant({4}, {1, 2, 3, 4}), constant({4}, {0, 1, 2, 3})})
                           .values)
    EXPECT_EQ(v, static_cast<float>(half(v)));
}

TEST(operators, groups_of_channels_of_an_image) {
  const auto run = [](const given& x, std::int64_t groups) {
    const many channels{x.lens[1]};
    const given scale = counted(channels), offset = counted(channels);
    return compute({"GroupNorm", 17, {attr("groups", groups), attr("channels_last", 0)}, "com.microsoft"},
                   {x, scale, offset});
  };
  const given x = counted({2, 4, 2, 3});
  expect_near(compute({"GroupNorm", 17, {attr("groups", 2), attr("channels_last", 0)}, "com.microsoft"},
                      {x, {{4}, {1, 2, 3, 4}}, {{4}, {0, 1, 2, 3}}}),
              {{2, 4, 2, 3}, two_groups(x)}, 2e-5f);
  EXPECT_EQ(run(counted({0, 4, 2, 2}), 2), (outcome{{0, 4, 2, 2}, {}}));
  EXPECT_THROW(run(counted({1, 6, 2, 2}), 4), error);  // divides the elements alone
  EXPECT_THROW(run(x, 0), error);
}

TEST(operators, narrow_floats_are_normalized_in_f32) {
  // in f16 the squares of 300 would be infinite
  const operator_call call{"LayerNormalization", 17, {}, "", 1, 10};
  expect_near(compute(call, {{{2}, {-300, 300}}, {{2}, {1, 1}}}), {{2}, {-1, 1}}, 1e-3f);
}

TEST(operators, indices_pick_elements) {
  const given x{{2, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(compute({"Gather", 13, {attr("axis", 1)}}, {x}, {number(0, {-1, 0})}), (outcome{{2, 2}, {3, 1, 6, 4}}));
  EXPECT_EQ(compute({"TopK", 11, {}, "", 2}, {x}, {number(0, {2})}, 1), (outcome{{2, 2}, {2, 1, 2, 1}}));
  EXPECT_EQ(compute({"TopK", 1, {attr("k", 1)}, "", 2}, {x}), (outcome{{2, 1}, {3, 6}}));
  EXPECT_EQ(compute({"CumSum", 14, {attr("exclusive", 1)}}, {x}, {integers("number0", {}, {1})}),
            (outcome{{2, 3}, {0, 1, 3, 0, 4, 9}}));
  EXPECT_EQ(compute({"Trilu", 14, {attr("upper", 0)}}, {x}), (outcome{{2, 3}, {1, 0, 0, 4, 5, 0}}));
  EXPECT_EQ(compute({"ReverseSequence", 10, {attr("time_axis", 1), attr("batch_axis", 0)}}, {x}, {number(0, {2, 3})}),
            (outcome{{2, 3}, {2, 1, 3, 6, 5, 4}}));
  EXPECT_EQ(compute({"ScatterElements", 16, {attr("reduction", "add")}}, {{{2}, {1, 2}}},
                    {integers("number0", {2}, {1, 1}), floats("number1", {2}, {10, 20})}),
            (outcome{{2}, {1, 32}}));
}

TEST(operators, constants_and_ranges) {
  EXPECT_EQ(compute({"ConstantOfShape", 9, {tensor_attr("value", integers("v", {1}, {(std::int64_t{1} << 60) + 1}))}},
                    {}, {number(0, {2})})
                .lens,
            (ints{2}));
  EXPECT_EQ(compute({"ConstantOfShape", 9}, {}, {number(0, {0})}).lens, (ints{0}));
  EXPECT_EQ(compute({"Range", 11}, {},
                    {integers("number0", {}, {5}), integers("number1", {}, {0}), integers("number2", {}, {-2})}),
            (outcome{{3}, {5, 3, 1}}));
  EXPECT_EQ(compute({"Range", 11}, {constant({}, {0}), constant({}, {1}), constant({}, {.25f})}),
            (outcome{{4}, {0, .25f, .5f, .75f}}));
  EXPECT_EQ(compute({"EyeLike", 9, {attr("k", 1)}}, {{{2, 3}, {0, 0, 0, 0, 0, 0}}}),
            (outcome{{2, 3}, {0, 1, 0, 0, 0, 1}}));
  EXPECT_EQ(compute({"Shape", 15, {attr("start", -1)}}, {{{2, 3}, {0, 0, 0, 0, 0, 0}}}), (outcome{{1}, {3}}));
  EXPECT_EQ(compute({"Size", 13}, {{{2, 3}, {0, 0, 0, 0, 0, 0}}}), (outcome{{}, {6}}));
}

TEST(operators, functions_of_integers_are_taken_of_reals) {
  const given x{{4}, {-3, 0, 1, 20}};
  EXPECT_EQ(compute({"Erf", 13, {}, "", 1, 6}, {x}), (outcome{{4}, {0, 0, 0, 1}}));
  EXPECT_EQ(compute({"ReduceLogSum", 18, {}, "", 1, 7}, {x}), (outcome{{1}, {2}}));
  EXPECT_EQ(compute({"ReduceLogSumExp", 18, {}, "", 1, 7}, {x}), (outcome{{1}, {20}}));
}

TEST(operators, statistics_of_a_layer_have_the_stash_type) {
  graph_parts parts;
  parts.inputs = {value_info("x", 11, {2, 2}), value_info("s", 11, {2})};
  parts.nodes = {node("LayerNormalization", {"x", "s"}, {"y", "m", "d"})};
  parts.outputs = {value_info("y"), value_info("m"), value_info("d")};
  const auto p = onnx::parse_model(model(graph(parts), {opset(17)}).bytes()).graph;
  const auto out = evaluate(p, {argument(literal::of<float>({dtype::f64, {2, 2}}, std::array{1.f, 3.f, 2.f, 2.f})),
                                argument(literal::of<float>({dtype::f64, {2}}, std::array{1.f, 1.f}))});
  EXPECT_EQ(out[0].get_shape().type, dtype::f64);
  EXPECT_EQ(out[1].get_shape(), shape(dtype::f32, {2, 1}));
  EXPECT_EQ(out[1].to<float>(), (small_vector<float>{2, 2}));
  EXPECT_EQ(out[2].get_shape().type, dtype::f32);
}

TEST(operators, casts_truncate) {
  EXPECT_EQ(compute({"Cast", 13, {attr("to", 7)}}, {{{3}, {-1.5f, 2.9f, 0}}}), (outcome{{3}, {-1, 2, 0}}));
  EXPECT_EQ(compute({"Cast", 13, {attr("to", 9)}}, {{{3}, {-1.5f, 2.9f, 0}}}), (outcome{{3}, {1, 1, 0}}));
  EXPECT_EQ(compute({"Cast", 1, {attr("to", "INT32")}}, {{{1}, {2.5f}}}), (outcome{{1}, {2}}));
  EXPECT_THROW(compute({"Cast", 13, {attr("to", 14)}}, {{{1}, {1}}}), error);  // complex64
}

TEST(operators, dropout_passes_its_input_on) {
  const given x{{2}, {1, 2}};
  EXPECT_EQ(compute({"Dropout", 13, {}, "", 2}, {x}), (outcome{{2}, {1, 2}}));
  EXPECT_EQ(compute({"Dropout", 13, {}, "", 2}, {x}, {}, 1), (outcome{{2}, {1, 1}}));
}

}  // namespace
}  // namespace kiln::test
