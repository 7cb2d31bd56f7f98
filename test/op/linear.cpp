#include "kiln/op/linear.hpp"

#include "oracle.hpp"

namespace kiln::test {
namespace {

constexpr auto F = dtype::f32;
using op::convolution, op::deconvolution, op::dot;

// dot

static_assert(shape_from(dot{}, shape{F, {2, 3}}, shape{F, {3, 4}}) == shape{F, {2, 4}});
static_assert(shape_from(dot{}, shape{F, {5, 1, 2, 3}}, shape{F, {5, 1, 3, 4}}) == shape{F, {5, 1, 2, 4}});
static_assert(shape_from(dot{}, shape{dtype::f16, {2, 0}}, shape{dtype::f16, {0, 4}}) == shape{dtype::f16, {2, 4}});
static_assert(fails(dot{}, errc::invalid_argument, "number of inputs", shape{F, {2, 3}}));
static_assert(fails(dot{}, errc::shape_mismatch, "operands have one dtype", shape{F, {2, 3}},
                    shape{dtype::f64, {3, 4}}));
static_assert(fails(dot{}, errc::unsupported, "dtype of the operands", shape{dtype::boolean, {2, 3}},
                    shape{dtype::boolean, {3, 4}}));
static_assert(fails(dot{}, errc::shape_mismatch, "operands are matrices of one rank, at least 2", shape{F, {3}},
                    shape{F, {3}}));
static_assert(fails(dot{}, errc::shape_mismatch, "operands are matrices of one rank, at least 2", shape{F, {2, 3}},
                    shape{F, {1, 3, 4}}));
static_assert(fails(dot{}, errc::shape_mismatch, "leading dims agree", shape{F, {2, 2, 3}}, shape{F, {1, 3, 4}}));
static_assert(fails(dot{}, errc::shape_mismatch, "inner dims agree", shape{F, {2, 3}}, shape{F, {4, 3}}));

TEST(dot, multiplies_matrices) {
  KILN_EXPECT_RUN(f32({2, 2}, 4, 5, 10, 14), dot{}, f32({2, 3}, 1, 2, 3, 4, 5, 6), f32({3, 2}, 1, 2, 0, 0, 1, 1));
  KILN_EXPECT_RUN(f32({2, 1, 1}, 2, 12), dot{}, f32({2, 1, 1}, 1, 3), f32({2, 1, 1}, 2, 4));
}
TEST(dot, of_nothing_is_zero) { KILN_EXPECT_RUN(f32({2, 2}, 0, 0, 0, 0), dot{}, f32({2, 0}), f32({0, 2})); }
TEST(dot, works_in_every_number_type) {
  expect_same_in(dtypes::numbers, 2, dot{}, whole_numbers(dtype::f64, {3, 4}, 0, 4),
                 whole_numbers(dtype::f64, {4, 2}, 0, 4, 2));
}
TEST(dot, keeps_symbolic_extents) {
  const dimension n = dimension::symbol("n", 1, 64), m = dimension::symbol("m", 1, 64);
  EXPECT_EQ(shape_from(dot{}, shape{F, {n, 8}}, shape{F, {8, m}}), (shape{F, {n, m}}));
  EXPECT_TRUE(fails(dot{}, errc::shape_mismatch, "inner dims agree", shape{F, {2, n}}, shape{F, {m, 2}}));
}

// convolution

constexpr shape image{F, {2, 3, 8, 8}}, filter{F, {4, 3, 3, 3}};
static_assert(shape_from(convolution{}, image, filter) == shape{F, {2, 4, 6, 6}});
static_assert(shape_from(convolution{.stride = {2, 3}, .pads = {1, 0, 2, 1}}, image, filter) == shape{F, {2, 4, 5, 3}});
static_assert(shape_from(convolution{.dilation = {2, 3}}, image, filter) == shape{F, {2, 4, 4, 2}});
static_assert(shape_from(convolution{.group = 3}, image, shape{F, {6, 1, 8, 8}}) == shape{F, {2, 6, 1, 1}});
static_assert(shape_from(convolution{}, shape{F, {1, 2, 5}}, shape{F, {3, 2, 2}}) == shape{F, {1, 3, 4}});
static_assert(shape_from(convolution{}, shape{F, {0, 2, 5, 4, 3}}, shape{F, {3, 2, 2, 2, 2}}) ==
              shape{F, {0, 3, 4, 3, 2}});

static_assert(fails(convolution{}, errc::invalid_argument, "number of inputs", image));
static_assert(fails(convolution{}, errc::shape_mismatch, "operands have one dtype", image, filter.with(dtype::f16)));
static_assert(fails(convolution{}, errc::unsupported, "dtype of the operands", image.with(dtype::boolean),
                    filter.with(dtype::boolean)));
static_assert(fails(convolution{}, errc::shape_mismatch,
                    "an input has a batch, a channel and one to three spatial dims", shape{F, {2, 3}},
                    shape{F, {2, 3}}));
static_assert(fails(convolution{}, errc::shape_mismatch,
                    "an input has a batch, a channel and one to three spatial dims", shape{F, {1, 1, 2, 2, 2, 2}},
                    shape{F, {1, 1, 2, 2, 2, 2}}));
static_assert(fails(convolution{.stride = {1}}, errc::shape_mismatch,
                    "stride has a positive entry for each spatial dim", image, filter));
static_assert(fails(convolution{.stride = {1, 0}}, errc::invalid_argument,
                    "stride has a positive entry for each spatial dim", image, filter));
static_assert(fails(convolution{.dilation = {1, -1}}, errc::invalid_argument,
                    "dilation has a positive entry for each spatial dim", image, filter));
static_assert(fails(convolution{.pads = {1, 1}}, errc::shape_mismatch,
                    "pads has a begin and an end for each spatial dim", image, filter));
static_assert(fails(convolution{}, errc::shape_mismatch, "the weight has the input's rank", image,
                    shape{F, {4, 3, 3}}));
static_assert(fails(convolution{.group = 0}, errc::invalid_argument, "group is positive", image, filter));
static_assert(fails(convolution{.group = 3}, errc::shape_mismatch,
                    "input channels are the weight's channels times group", image, filter));
static_assert(fails(convolution{.group = 3}, errc::shape_mismatch, "filters divide into groups", image,
                    shape{F, {4, 1, 3, 3}}));
static_assert(fails(convolution{}, errc::shape_mismatch, "a window fits into the padded input", image,
                    shape{F, {4, 3, 9, 3}}));
static_assert(fails(convolution{}, errc::shape_mismatch, "a window has at least one element", image,
                    shape{F, {4, 3, 0, 3}}));

// batch, group, filter in group, out spatial, then summed: kernel spatial, channel last
constexpr shape grouped_in[] = {{F, {2, 6, 5, 7}}, {F, {8, 3, 2, 3}}};
constexpr contraction grouped = convolution{.group = 2}.maps(grouped_in).value();
static_assert(grouped.extents == inline_vector<dimension, max_iteration_rank>{2, 2, 4, 4, 5, 2, 3, 3});
static_assert(grouped.reduced == 3 && grouped.lhs[1].coefficient[1] == 3 && grouped.out[1].coefficient[1] == 4);

TEST(convolution, slides_a_kernel_without_flipping_it) {
  KILN_EXPECT_RUN(f32({1, 1, 2}, -2, -2), convolution{}, f32({1, 1, 4}, 1, 2, 3, 4), f32({1, 1, 3}, 1, 0, -1));
  KILN_EXPECT_RUN(f32({1, 1, 4}, -2, -2, -2, 3), (convolution{.pads = {1, 1}}), f32({1, 1, 4}, 1, 2, 3, 4),
                  f32({1, 1, 3}, 1, 0, -1));
  KILN_EXPECT_RUN(f32({1, 2, 1, 1}, 10, 20), convolution{}, f32({1, 1, 2, 2}, 1, 2, 3, 4),
                  f32({2, 1, 2, 2}, 1, 1, 1, 1, 2, 2, 2, 2));
}
TEST(convolution, of_no_channels_is_zero) {
  KILN_EXPECT_RUN(f32({1, 1, 2}, 0, 0), convolution{}, f32({1, 0, 3}), f32({1, 0, 2}));
}
TEST(convolution, works_in_every_number_type) {
  expect_same_in(dtypes::numbers, 2, convolution{.pads = {1, 1, 0, 0}}, whole_numbers(dtype::f64, {1, 2, 4, 3}, 0, 2),
                 whole_numbers(dtype::f64, {2, 2, 2, 2}, 0, 2, 2));
}

literal convolved(const convolution& c, const literal& input, const literal& weight, const index& out) {
  tensor x(input), w(weight), y(out);
  const std::size_t axes = out.size() - 2;
  const std::int64_t channels = w.lens[1], filters = w.lens[0] / c.group;
  each_index(out, [&](const index& o) {
    double sum = 0;
    each_index(w.lens, [&](const index& k) {
      if (k[0] != o[1]) return;
      index at{o[0], o[1] / filters * channels + k[1]};
      for (std::size_t d = 0; d < axes; ++d)
        at.push_back(o[d + 2] * (c.stride.empty() ? 1 : c.stride[d]) +
                     k[d + 2] * (c.dilation.empty() ? 1 : c.dilation[d]) - (c.pads.empty() ? 0 : c.pads[d]));
      if (x.inside(at)) sum += x(at) * w(k);
    });
    y(o) = sum;
  });
  return y.as(F);
}

struct convolution_case {
  convolution op;
  dims x, w;
};
class convolution_values : public testing::TestWithParam<convolution_case> {};
TEST_P(convolution_values, equal_the_definition) {
  const auto& [op, x, w] = GetParam();
  const literal input = whole_numbers(F, x, -4, 4), weight = whole_numbers(F, w, -4, 4, 2);
  const literal found = run_bytes_all(op, input, weight)[0];
  index out;
  for (dimension d : found.get_shape().lens) out.push_back(d.value());
  EXPECT_EQ(found.to<double>(), convolved(op, input, weight, out).to<double>());
}
INSTANTIATE_TEST_SUITE_P(
    , convolution_values,
    testing::Values(
        convolution_case{{}, {2, 3, 9}, {4, 3, 3}},
        convolution_case{{.stride = {2}, .dilation = {2}, .pads = {3, 1}}, {1, 2, 8}, {3, 2, 3}},
        convolution_case{{}, {2, 3, 5, 6}, {4, 3, 1, 1}},
        convolution_case{{.stride = {2, 1}, .dilation = {1, 2}, .pads = {0, 2, 1, 1}}, {1, 2, 6, 5}, {3, 2, 3, 2}},
        convolution_case{{.pads = {1, 1, 1, 1}, .group = 4}, {2, 4, 5, 5}, {4, 1, 3, 3}},
        convolution_case{{.stride = {2, 2}, .pads = {1, 1, 1, 1}, .group = 2}, {2, 4, 5, 5}, {6, 2, 3, 3}},
        convolution_case{{.pads = {-1, 0, 0, -1}}, {1, 1, 5, 5}, {1, 1, 2, 2}},
        convolution_case{{.stride = {1, 2, 1}, .dilation = {2, 1, 1}, .pads = {1, 0, 1, 1, 1, 0}, .group = 2},
                         {1, 4, 5, 4, 4},
                         {4, 2, 2, 3, 2}}));

TEST(convolution, keeps_symbolic_extents) {
  const dimension n = dimension::symbol("n", 1, 64), h = dimension::symbol("h", 3, 512);
  const shape out = shape_from(convolution{.stride = {2, 2}, .pads = {1, 1, 1, 1}}, shape{F, {n, 3, h, 8}}, filter);
  EXPECT_EQ(out.lens[0], n);
  bindings values;
  values.bind(n, 5);
  values.bind(h, 9);
  EXPECT_EQ(values.evaluate(out.lens[2]), 5);
  EXPECT_EQ(values.evaluate(out.lens[3]), 4);
  const dimension c = dimension::symbol("c", 1, 64);
  EXPECT_TRUE(fails(convolution{.group = 2}, errc::unsupported, "a grouped convolution has constant channels",
                    shape{F, {1, c * 2, 8}}, shape{F, {4, c, 3}}));
  const dimension small = dimension::symbol("small", 0, 2);
  EXPECT_TRUE(fails(convolution{}, errc::shape_mismatch, "a window fits into the padded input",
                    shape{F, {1, 3, small, 8}}, filter));
}

// deconvolution

static_assert(shape_from(deconvolution{}, shape{F, {2, 3, 4, 5}}, shape{F, {3, 6, 3, 2}}) == shape{F, {2, 6, 6, 6}});
static_assert(shape_from(deconvolution{.stride = {3, 2}, .output_padding = {1, 1}, .pads = {1, 0, 0, 2}},
                         shape{F, {1, 1, 3, 3}}, shape{F, {1, 2, 3, 3}}) == shape{F, {1, 2, 9, 6}});
static_assert(shape_from(deconvolution{.dilation = {2}, .group = 2}, shape{F, {1, 4, 3}}, shape{F, {4, 3, 2}}) ==
              shape{F, {1, 6, 5}});
static_assert(fails(deconvolution{}, errc::invalid_argument, "number of inputs", image));
static_assert(fails(deconvolution{}, errc::shape_mismatch, "operands have one dtype", image,
                    shape{dtype::f64, {3, 1, 2, 2}}));
static_assert(fails(deconvolution{}, errc::unsupported, "dtype of the operands", shape{dtype::i32, {1, 1, 2}},
                    shape{dtype::i32, {1, 1, 2}}));
static_assert(fails(deconvolution{}, errc::shape_mismatch, "the weight has the input's rank", image,
                    shape{F, {3, 1, 2}}));
static_assert(fails(deconvolution{.group = -1}, errc::invalid_argument, "group is positive", image,
                    shape{F, {3, 1, 2, 2}}));
static_assert(fails(deconvolution{}, errc::shape_mismatch, "input channels are the weight's first dim", image,
                    shape{F, {4, 1, 2, 2}}));
static_assert(fails(deconvolution{.group = 2}, errc::shape_mismatch, "input channels divide into groups", image,
                    shape{F, {3, 1, 2, 2}}));
static_assert(fails(deconvolution{.output_padding = {1}}, errc::shape_mismatch,
                    "output_padding has an entry for each spatial dim", image, shape{F, {3, 1, 2, 2}}));
static_assert(fails(deconvolution{}, errc::shape_mismatch, "a window has at least one element", image,
                    shape{F, {3, 1, 0, 2}}));
static_assert(fails(deconvolution{.pads = {2, 2}}, errc::shape_mismatch, "pads leave no negative extent",
                    shape{F, {1, 1, 1}}, shape{F, {1, 1, 2}}));

TEST(deconvolution, spreads_every_element_over_the_kernel) {
  KILN_EXPECT_RUN(f32({1, 1, 4}, 1, 3, 5, 3), deconvolution{}, f32({1, 1, 3}, 1, 2, 3), f32({1, 1, 2}, 1, 1));
  KILN_EXPECT_RUN(f32({1, 1, 6}, 1, 10, 2, 20, 3, 30), (deconvolution{.stride = {2}}), f32({1, 1, 3}, 1, 2, 3),
                  f32({1, 1, 2}, 1, 10));
  KILN_EXPECT_RUN(f32({1, 1, 6}, 10, 2, 20, 3, 30, 0),
                  (deconvolution{.stride = {2}, .output_padding = {1}, .pads = {1, 0}}), f32({1, 1, 3}, 1, 2, 3),
                  f32({1, 1, 2}, 1, 10));
}

literal spread(const deconvolution& c, const literal& input, const literal& weight, const index& out) {
  tensor x(input), w(weight), y(out);
  const std::size_t axes = out.size() - 2;
  const std::int64_t channels = x.lens[1] / c.group, filters = w.lens[1];
  each_index(x.lens, [&](const index& i) {
    each_index(w.lens, [&](const index& k) {
      if (k[0] != i[1]) return;
      index at{i[0], i[1] / channels * filters + k[1]};
      for (std::size_t d = 0; d < axes; ++d)
        at.push_back(i[d + 2] * (c.stride.empty() ? 1 : c.stride[d]) +
                     k[d + 2] * (c.dilation.empty() ? 1 : c.dilation[d]) - (c.pads.empty() ? 0 : c.pads[d]));
      if (y.inside(at)) y(at) += x(i) * w(k);
    });
  });
  return y.as(F);
}

struct deconvolution_case {
  deconvolution op;
  dims x, w;
};
class deconvolution_values : public testing::TestWithParam<deconvolution_case> {};
TEST_P(deconvolution_values, equal_the_definition) {
  const auto& [op, x, w] = GetParam();
  const literal input = whole_numbers(F, x, -4, 4), weight = whole_numbers(F, w, -4, 4, 2);
  const literal found = run_bytes_all(op, input, weight)[0];
  index out;
  for (dimension d : found.get_shape().lens) out.push_back(d.value());
  EXPECT_EQ(found.to<double>(), spread(op, input, weight, out).to<double>());
}
INSTANTIATE_TEST_SUITE_P(
    , deconvolution_values,
    testing::Values(deconvolution_case{{}, {2, 3, 4}, {3, 2, 3}},
                    deconvolution_case{
                        {.stride = {3, 2}, .output_padding = {1, 1}, .pads = {1, 2, 1, 0}}, {1, 2, 3, 3}, {2, 2, 3, 3}},
                    deconvolution_case{{.dilation = {2, 3}, .group = 2}, {2, 4, 3, 3}, {4, 3, 2, 2}},
                    deconvolution_case{{.stride = {2, 1, 2}, .pads = {0, 1, 0, 1, 0, 1}, .group = 3},
                                       {1, 3, 2, 3, 2},
                                       {3, 1, 2, 2, 3}},
                    deconvolution_case{{}, {1, 0, 3}, {0, 2, 2}}, deconvolution_case{{}, {0, 1, 3}, {1, 2, 2}}));

TEST(deconvolution, works_in_every_float_type) {
  expect_same_in(dtypes::floats, 2, deconvolution{.stride = {2}}, whole_numbers(dtype::f64, {1, 2, 3}, -3, 3),
                 whole_numbers(dtype::f64, {2, 2, 3}, -3, 3, 2));
}
TEST(deconvolution, keeps_symbolic_extents) {
  const dimension w = dimension::symbol("w", 1, 64);
  EXPECT_EQ(shape_from(deconvolution{.stride = {2}}, shape{F, {1, 1, w}}, shape{F, {1, 1, 2}}).lens[2], w * 2);
}

}  // namespace
}  // namespace kiln::test
