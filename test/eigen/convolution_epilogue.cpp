// Convolutions through the Eigen target: attributes, ranks, weights of either kind, epilogues.
#include <gmock/gmock.h>

#include <cmath>

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/op/ops.hpp"
#include "kiln/pass/pipeline.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

struct problem {
  const char* name;
  dims x, w;
  op::convolution attributes;
};

const problem problems[] = {
    {"1x1", {2, 5, 7, 9}, {11, 5, 1, 1}, {}},
    {"3x3", {1, 4, 9, 10}, {6, 4, 3, 3}, {.pads = {1, 1, 1, 1}}},
    {"3x3 many channels", {2, 16, 12, 12}, {32, 16, 3, 3}, {.pads = {1, 1, 1, 1}}},
    {"strided", {1, 16, 15, 14}, {24, 16, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}}},
    {"7x7 stem", {1, 3, 30, 30}, {16, 3, 7, 7}, {.stride = {2, 2}, .pads = {3, 3, 3, 3}}},
    {"uneven pads", {1, 3, 6, 5}, {4, 3, 3, 2}, {.pads = {0, 1, 2, 0}}},
    {"dilated", {1, 8, 14, 13}, {9, 8, 3, 3}, {.dilation = {2, 3}, .pads = {2, 3, 2, 3}}},
    {"grouped", {2, 12, 8, 8}, {8, 3, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 4}},
    {"depthwise 3x3", {1, 10, 11, 12}, {10, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 10}},
    {"depthwise strided", {2, 6, 11, 12}, {6, 1, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}, .group = 6}},
    {"depthwise, one vector wide", {1, 5, 7, 16}, {5, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 5}},
    {"depthwise, wider", {2, 3, 9, 35}, {3, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 3}},
    {"depthwise, one column", {1, 3, 20, 1}, {3, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 3}},
    {"depthwise of large planes", {1, 2, 90, 70}, {2, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 2}},
    {"depthwise strided, whole vectors",
     {1, 3, 7, 33},
     {3, 1, 3, 3},
     {.stride = {2, 2}, .pads = {0, 0, 1, 0}, .group = 3}},
    {"depthwise strided, padded behind",
     {1, 3, 8, 32},
     {3, 1, 3, 3},
     {.stride = {2, 2}, .pads = {0, 0, 1, 1}, .group = 3}},
    {"depthwise 5x5", {1, 6, 9, 9}, {6, 1, 5, 5}, {.pads = {2, 2, 2, 2}, .group = 6}},
    {"depthwise with multiplier", {1, 6, 9, 9}, {12, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 6}},
    {"window larger than the image", {1, 2, 2, 2}, {3, 2, 3, 3}, {.pads = {1, 1, 1, 1}}},
    {"1-D", {2, 6, 40}, {7, 6, 5}, {.stride = {2}, .pads = {2, 1}}},
    {"1-D depthwise", {1, 6, 40}, {6, 1, 3}, {.dilation = {2}, .pads = {2, 2}, .group = 6}},
    {"3-D", {1, 3, 5, 6, 7}, {4, 3, 2, 3, 3}, {.stride = {1, 2, 1}, .pads = {0, 1, 1, 1, 1, 1}}},
    {"3-D grouped", {2, 4, 4, 4, 4}, {6, 2, 3, 1, 3}, {.group = 2}},
    {"one pixel", {3, 20, 1, 1}, {33, 20, 1, 1}, {}},
    {"no image", {0, 4, 5, 5}, {6, 4, 3, 3}, {}},
};

value weight(builder& b, const problem& p, bool constant) {
  return constant ? b.constant(random_argument({dtype::f32, p.w}, 5).to_literal()) : b.input("w", dtype::f32, p.w);
}

// Convolutions of phases: extents that divide evenly and not, pads before alone, groups, one axis; and others: of one
// and three axes, for whose phases no method takes less time, one whose taps seldom read inside, and one whose pads no
// phase has.
TEST(convolution_epilogue, dilated_ones_are_convolutions_of_their_phases) {
  struct dilated {
    problem of;
    bool of_phases;
  };
  for (const auto& [p, of_phases] :
       {dilated{{"even", {2, 32, 40, 48}, {48, 32, 3, 3}, {.dilation = {2, 2}, .pads = {2, 2, 2, 2}}}, true},
        dilated{{"uneven", {1, 64, 41, 50}, {64, 64, 3, 3}, {.dilation = {2, 3}, .pads = {2, 3, 2, 3}}}, true},
        dilated{{"no pads", {1, 64, 53, 47}, {64, 64, 3, 3}, {.dilation = {4, 1}}}, true},
        dilated{{"before", {1, 64, 48, 47}, {64, 64, 3, 3}, {.dilation = {2, 2}, .pads = {4, 4, 0, 0}}}, true},
        dilated{{"groups", {1, 64, 41, 50}, {64, 32, 3, 3}, {.dilation = {2, 2}, .pads = {2, 2, 2, 2}, .group = 2}},
                true},
        dilated{{"1-D", {2, 32, 301}, {32, 32, 3}, {.dilation = {3}, .pads = {3, 3}}}, false},
        dilated{{"3-D", {1, 16, 5, 10, 11}, {16, 16, 3, 3, 3}, {.dilation = {2, 2, 2}, .pads = {2, 2, 2, 2, 2, 2}}},
                false},
        dilated{
            {"few taps inside", {1, 256, 25, 25}, {192, 256, 3, 3}, {.dilation = {16, 16}, .pads = {16, 16, 16, 16}}},
            false},
        dilated{{"odd pads", {1, 64, 40, 40}, {64, 64, 3, 3}, {.dilation = {2, 2}, .pads = {1, 1, 2, 2}}}, false}}) {
    SCOPED_TRACE(p.name);
    dims channels(p.x.size() - 1, dimension(1));
    channels[0] = p.w[0];
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, p.x), y = x.conv(weight(b, p, true), p.attributes);
      b.output((y + b.input("bias", dtype::f32, channels)).relu());
    };
    const auto of_image = [&](builder& b) {
      const value y = b.input("x", dtype::f32, p.x).relu().conv(weight(b, p, true), p.attributes);
      b.output((y + b.input("residual", dtype::f32, y.get_shape().lens)).relu());
    };
    const executable e = compile_eigen(make);
    EXPECT_EQ(e.report().steps[0].kernel.find("of phases") != std::string::npos, of_phases)
        << e.report().steps[0].kernel;
    expect_same(make, {2e-4, 2e-4});
    expect_same(of_image, {2e-4, 2e-4});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(convolution_epilogue, equals_the_reference_with_weights_of_either_kind) {
  for (const problem& p : problems)
    for (const bool constant : {true, false}) {
      SCOPED_TRACE(::testing::Message() << p.name << " constant " << constant);
      expect_same(
          [&](builder& b) { b.output(b.input("x", dtype::f32, p.x).conv(weight(b, p, constant), p.attributes)); },
          {5e-5, 5e-5});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(convolution_epilogue, bias_activation_and_residual_run_in_the_kernel) {
  for (const problem& p : problems) {
    SCOPED_TRACE(p.name);
    for (const bool constant : {true, false}) {
      const auto make = [&](builder& b) {
        const value y = b.input("x", dtype::f32, p.x).conv(weight(b, p, constant), p.attributes);
        const dims out = y.get_shape().lens;
        const value bias = b.input("bias", dtype::f32, {out[1]}), residual = b.input("residual", dtype::f32, out);
        dims squeezed(out.size(), dimension(1));
        squeezed[0] = out[0], squeezed[1] = out[1];
        const value gate = b.input("gate", dtype::f32, squeezed);
        b.output(((y.add_along(1, bias) + residual).relu() * gate).min(b.scalar(dtype::f32, 0.9)));
      };
      expect_same(make, {5e-5, 5e-5});
      if (::testing::Test::HasFatalFailure()) return;
      const executable e = compile_eigen(make);
      EXPECT_EQ(e.report().steps.size(), 1u);
      EXPECT_FALSE(e.report().steps[0].fallback) << e.report().steps[0].kernel;
    }
  }
}

// Those that the kernels have, and forms near them that they don't.
TEST(convolution_epilogue, activations_run_in_the_kernel) {
  using function = value (*)(builder&, const value&);
  const function functions[] = {
      [](builder&, const value& y) { return y.sigmoid(); },
      [](builder&, const value& y) { return y.tanh(); },
      [](builder&, const value& y) { return y.silu(); },
      [](builder& b, const value& y) { return b.add(op::hard_swish{}, y); },
      [](builder& b, const value& y) { return b.add(op::hard_sigmoid{.alpha = 0.3F, .beta = 0.4F}, y); },
      [](builder& b, const value& y) { return b.add(op::hard_sigmoid{.alpha = 1.0F / 6, .beta = 0.5F}, y) * y; },
      [](builder& b, const value& y) { return y * b.add(op::hard_sigmoid{.alpha = 0.2F, .beta = 0.5F}, y); },
      [](builder&, const value& y) { return y.relu().silu(); },
      [](builder&, const value& y) { return y.sigmoid() * y.sigmoid(); },
      [](builder&, const value& y) { return y.sigmoid().sigmoid() * y; },
      [](builder&, const value& y) { return y.tanh() * y; },
      [](builder&, const value& y) { return y.silu() * y; },
  };
  for (const problem& p : problems)
    for (const function& f : functions) {
      SCOPED_TRACE(::testing::Message() << p.name << " function " << &f - functions);
      const auto make = [&](builder& b) {
        const value y = b.input("x", dtype::f32, p.x).conv(weight(b, p, true), p.attributes);
        const dims out = y.get_shape().lens;
        const value bias = b.constant(random_argument({dtype::f32, {out[1]}}, 7).to_literal());
        b.output(f(b, y.add_along(1, bias)));
      };
      expect_same(make, {5e-5, 5e-5});
      if (::testing::Test::HasFatalFailure()) return;
      EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
    }
}

TEST(convolution_epilogue, addends_that_round_on_purpose_round) {
  for (const bool by_channel : {false, true})
    expect_same(
        [&](builder& b) {
          const value y = b.input("x", dtype::f32, {1, 4, 9, 9})
                              .conv(b.constant(random_argument({dtype::f32, {6, 4, 3, 3}}, 5).to_literal()), {});
          const auto add = [&](const value& v, double c) {
            if (!by_channel) return v + c;
            std::vector<float> each;
            for (int k = 0; k < 6; ++k) each.push_back(static_cast<float>(c * (1 + k % 2)));
            return v.add_along(1, b.constant(literal::of<float>(shape{dtype::f32, {6}}, each)));
          };
          b.output(add(add(y, 12582912), -12582912));
        },
        {0, 0});
}

TEST(convolution_epilogue, a_bound_that_is_no_number_makes_none) {
  for (const unsigned which : {0U, 1U, 2U, 3U}) {
    SCOPED_TRACE(which);
    expect_same([&](builder& b) {
      const auto bounded = [&](const value& y) {
        const value nan = b.scalar(dtype::f32, NAN), one = b.scalar(dtype::f32, 1.);
        return which == 0   ? y.max(nan)
               : which == 1 ? y.min(nan).relu()
               : which == 2 ? b.add(op::clip{}, y, nan, one)
                            : b.add(op::clip{}, y, one, nan);
      };
      const value w = b.constant(random_argument({dtype::f32, {6, 4, 3, 3}}, 5).to_literal());
      b.output(bounded(b.input("x", dtype::f32, {1, 4, 9, 9}).conv(w) + 0.5));
      b.output(bounded(b.input("a", dtype::f32, {5, 4}).dot(b.input("b", dtype::f32, {4, 7})) + 0.5));
    });
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(convolution_epilogue, several_constant_biases) {
  for (const std::int64_t group : {1, 8}) {
    expect_same(
        [&](builder& b) {
          const value w = b.constant(random_argument({dtype::f32, {8, 8 / group, 3, 3}}, 5).to_literal());
          const value y = b.input("x", dtype::f32, {2, 8, 9, 7}).conv(w, {.pads = {1, 1, 1, 1}, .group = group});
          const auto bias = [&](unsigned seed) {
            return b.constant(random_argument({dtype::f32, {8}}, seed).to_literal());
          };
          const value more = b.input("more", dtype::f32, {2, 8, 9, 7});
          b.output((y.add_along(1, bias(1)).add_along(1, bias(2)) + more).add_along(1, bias(3)).relu());
          b.output(
              y.add_along(2, b.constant(random_argument({dtype::f32, {9}}, 6).to_literal())).add_along(1, bias(4)));
        },
        {5e-5, 5e-5});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Operands that step along the pixels in ways the kernel's tiles can't follow: the epilogue runs after the product.
TEST(convolution_epilogue, operands_of_any_strides) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 6, 8, 9});
        const value y =
            x.conv(b.constant(random_argument({dtype::f32, {5, 6, 3, 3}}, 5).to_literal()), {.pads = {1, 1, 1, 1}});
        const value turned = b.input("t", dtype::f32, {9, 2, 5, 8}).transpose({1, 2, 3, 0}),
                    column = b.input("c", dtype::f32, {8, 1}), row = b.input("r", dtype::f32, {9});
        b.output((y + turned).relu());
        b.output(y.tanh() * column - row);
      },
      {5e-5, 5e-5});
}

TEST(convolution_epilogue, batch_norm_folds_into_the_weights) {
  const auto make = [](builder& b) {
    const auto constant = [&](unsigned seed, double low) {
      return b.constant(random_argument({dtype::f32, {6}}, seed, low, 1.5).to_literal());
    };
    const value x = b.input("x", dtype::f32, {1, 3, 8, 8});
    const value y =
        x.conv(b.constant(random_argument({dtype::f32, {6, 3, 3, 3}}, 5).to_literal()), {.pads = {1, 1, 1, 1}});
    b.output(y.batch_norm(constant(1, 0.5), constant(2, -1), constant(3, -1), constant(4, 0.2)).relu());
  };
  expect_same(make, {5e-5, 5e-5});
  EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
}

TEST(convolution_epilogue, operands_are_views_and_results_go_to_concatenations) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {1, 9, 8, 4}).transpose({0, 3, 1, 2});
        const value w = b.input("w", dtype::f32, {3, 3, 4, 6}).transpose({3, 2, 0, 1});
        b.output(x.conv(w, {}).relu().concat(x.conv(w, {}).exp(), 1));
        b.output(x.conv(w, {}).transpose({0, 2, 3, 1}));
      },
      {5e-5, 5e-5});
}

TEST(convolution_epilogue, symbolic_sizes_and_weights) {
  const dimension n = dimension::symbol("n"), h = dimension::symbol("h"), m = dimension::symbol("m");
  const auto make = [&](builder& b) {
    const value x = b.input("x", dtype::f32, {n, 3, h, 10}), w = b.input("w", dtype::f32, {m, 3, 3, 3});
    b.output(x.conv(w, {.pads = {1, 1, 1, 1}}).relu());
    b.output(x.conv(b.constant(random_argument({dtype::f32, {8, 3, 3, 3}}, 5).to_literal()), {.stride = {2, 2}}));
  };
  const executable e = compile_eigen(make);
  workspace w = e.make_workspace();
  for (const auto& [images, rows, filters] :
       {std::tuple(1, 5, 4), std::tuple(2, 9, 4), std::tuple(2, 9, 20), std::tuple(1, 5, 4), std::tuple(0, 3, 1)}) {
    const std::vector<argument> in{random_argument({dtype::f32, {images, 3, rows, 10}}, 1),
                                   random_argument({dtype::f32, {filters, 3, 3, 3}}, 2)};
    const auto expected = reference_run(make, in);
    std::vector<argument> out;
    for (const argument& a : expected) out.emplace_back(a.get_shape());
    e.run(w, in, out);
    for (std::size_t k = 0; k < out.size(); ++k) expect_close(out[k], expected[k], {5e-5, 5e-5});
  }
}

// A product after the unit must not take its half, which would leave an error function.
TEST(convolution_epilogue, a_spelled_gelu_between_products_is_that_op) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 5, 9, 8});
    const auto weights = [&](const dims& lens, unsigned seed) {
      return b.constant(random_argument({dtype::f32, lens}, seed, -.3, .3).to_literal());
    };
    const value y = x.conv(weights({20, 5, 1, 1}, 2), {});
    b.output((y * ((y / std::sqrt(2.0f)).erf() + 1.0f) * 0.5f).conv(weights({7, 20, 1, 1}, 3), {}));
  };
  expect_same(make, {1e-4, 1e-4});
  builder b;
  make(b);
  program p = b.finish();
  optimize(p, {.fuse = false}, eigen_target().passes());
  std::size_t units = 0;
  for (const std::uint32_t i : p.main().order())
    units += p.main()[i].kind == instruction_kind::op && p.main()[i].op.is<op::gelu>();
  EXPECT_EQ(units, 1u);
}

// They are applied to sums in registers instead of in a pass of their own, which gives the same.
TEST(convolution_epilogue, activations_are_those_that_kernels_have) {
  using function = kernels::activation::function;
  const auto found = [](const operation& op, bool times_argument = false) {
    const shape full{dtype::f32, {4}};
    module_graph body;
    const value_id x = body.add_parameter("x", full);
    value_id y = body.add_with_shapes(op, {x}, {full});
    if (times_argument) y = body.add_with_shapes(op::mul{}, {x, y}, {full});
    body.outputs.push_back(y);
    return eigen::compiled_activation(body).is;
  };
  EXPECT_EQ(found(op::gelu{}), function::gelu);
  EXPECT_EQ(found(op::gelu{.tanh_approximation = true}), function::gelu_by_tanh);
  EXPECT_EQ(found(op::gelu{}, true), function::none);
  EXPECT_EQ(found(op::sigmoid{}), function::sigmoid);
  EXPECT_EQ(found(op::sigmoid{}, true), function::swish);
  EXPECT_EQ(found(op::hard_sigmoid{}), function::hard_sigmoid);
  EXPECT_EQ(found(op::hard_sigmoid{.alpha = 1.0F / 6, .beta = 0.5F}, true), function::hard_swish);
  EXPECT_EQ(found(op::hard_swish{}), function::hard_swish);
  EXPECT_EQ(found(op::tanh{}), function::tanh);
  EXPECT_EQ(found(op::exp{}), function::none);
}

// Both forms, after biases, in either layout and after products.
TEST(convolution_epilogue, gelus_follow_biases) {
  for (const bool by_tanh : {false, true})
    for (const std::int64_t channels : {3, 20, 67, 96}) {
      SCOPED_TRACE(::testing::Message() << channels << by_tanh);
      const auto random = [](builder& b, const dims& lens, unsigned seed) {
        return b.constant(random_argument({dtype::f32, lens}, seed, -1, 1).to_literal());
      };
      const op::gelu unit{by_tanh};
      expect_same(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {2, 5, 9, 8});
            const value y = x.conv(random(b, {channels, 5, 3, 3}, 2), {.pads = {1, 1, 1, 1}});
            const value z = b.add(unit, y.add_along(1, random(b, {channels}, 3)));
            b.output(b.add(unit, z.conv(random(b, {channels, channels, 1, 1}, 4), {})));
          },
          {2e-4, 2e-4});
      expect_same(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {40, 70});
            b.output(b.add(unit, x.dot(random(b, {70, channels}, 5)) + random(b, {channels}, 6)));
          },
          {2e-4, 2e-4});
    }
}

}  // namespace
}  // namespace kiln::testing
