// The choice between NCHW and NHWC: what each role does, and what the gain of a group counts. Each network is built and
// decided in constant evaluation and in a run.
#include "kiln/lower/layout.hpp"

#include "kiln/lower/layout_plan.hpp"
#include "kiln/op/sequence/linear_attention.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

using lower::is_nhwc;
using lower::layout_plan;
using lower::layout_role;
using lower::nhwc_strides;

static_assert(nhwc_strides(dims{2, 3, 4, 5}) == dims{60, 1, 15, 3});
static_assert(nhwc_strides(ints{2, 3, 4}) == ints{12, 1, 3});
static_assert(is_nhwc({{2, 3, 4, 5}, nhwc_strides(dims{2, 3, 4, 5})}));
static_assert(is_nhwc({{2, 3, 4, 5}, {160, 1, 40, 8}}));  // some channels of eight
static_assert(!is_nhwc({{2, 3, 4, 5}, {40, 1, 10, 2}}));  // pixels share memory
static_assert(!is_nhwc({{2, 3, 4, 5}, {60, 1, 20, 3}}));  // a gap after each row
static_assert(!is_nhwc({{2, 3, 4, 5}, {0, 1, 15, 3}}));   // one image, broadcast
static_assert(is_nhwc({{1, 3, 1, 5}, {7, 1, 7, 3}}));     // strides of extents 1 do not matter
static_assert(is_nhwc({{2, 3, 1, 1}, {3, 1, 1, 1}}));     // a single pixel is NCHW, too
static_assert(!is_nhwc(layout::standard({2, 3, 4, 5})));
static_assert(!is_nhwc({{2, 3}, {3, 1}}));
static_assert(lower::nhwc_pixel_stride(ints{2, 3, 4, 5}, ints{160, 1, 40, 8}) == 8);
static_assert(lower::nhwc_pixel_stride(ints{1, 3, 1, 1}, ints{9, 1, 9, 9}) == 3);
static_assert(!lower::nhwc_pixel_stride(ints{2, 3, 4, 5}, ints{60, 20, 5, 1}));

// Roles by op alone, as a target's may be.
constexpr auto role_of = [](const auto& i) {
  if (i.op.template is<op::convolution>()) return layout_role::prefers_nhwc;
  if (i.op.template is<op::pooling>()) return layout_role::adapts;
  return lower::pointwise_role(i);
};

// The layout of each op's first result in order, C for NCHW and N for NHWC.
using letters = inline_string<16>;
template <class Program> constexpr letters layouts(const Program& p, double gain) {
  const layout_plan<Program> plan(p, role_of, gain);
  char each[16];
  std::size_t ops = 0, count = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    const bool nhwc = plan.nhwc({i, 0});
    count += nhwc;
    if (p.main()[i].kind == instruction_kind::op) each[ops++] = nhwc ? 'N' : 'C';
  }
  return count == plan.count_nhwc() ? letters(std::string_view(each, ops)) : letters("?");
}

// In constant evaluation and in a run.
template <auto Net> constexpr bool chooses(std::string_view expected, double gain = 1) {
  return layouts(built<static_builder<>>(Net), gain) == letters(expected);
}
template <auto Net> void expect_in_run(std::string_view expected, double gain = 1) {
  EXPECT_EQ(layouts(built<builder>(Net), gain).view(), expected);
}
#define EXPECT_LAYOUTS(net, ...)              \
  do {                                        \
    static_assert(chooses<net>(__VA_ARGS__)); \
    expect_in_run<net>(__VA_ARGS__);          \
  } while (false)

constexpr auto image(auto& b) { return b.input("x", dtype::f32, {1, 8, 6, 6}); }
constexpr auto conv(auto& b, auto x, std::string_view name, std::int64_t out) {
  return x.conv(b.weight(name, dtype::f32, {out, x.get_shape().lens[1], 3, 3}), {.pads = {1, 1, 1, 1}});
}

constexpr auto no_convolution = [](auto& b) { b.output(image(b).relu().pool({.lengths = {2, 2}})); };
constexpr auto one_convolution = [](auto& b) { b.output(conv(b, image(b), "w", 8)); };
constexpr auto two_convolutions = [](auto& b) { b.output(conv(b, conv(b, image(b), "w", 8), "v", 16)); };
// what is added to a convolution's result, and what is made of it element by element, has its layout
constexpr auto residual = [](auto& b) {
  const auto x = conv(b, image(b), "w", 8).relu();
  const auto y = conv(b, conv(b, x, "u", 8), "v", 8) + x;
  b.output(y.reduce_mean({2, 3}));
};

TEST(layout_plan, convolutions_prefer_nhwc) {
  EXPECT_LAYOUTS(no_convolution, "CC");
  // one gains as much as the caller's row-major result takes
  EXPECT_LAYOUTS(one_convolution, "C");
  EXPECT_LAYOUTS(one_convolution, "N", 1.5);
  EXPECT_LAYOUTS(two_convolutions, "NC");
  EXPECT_LAYOUTS(residual, "NNNNNC");
}

// A pooled image is not of its operand's group: it is what its readers want.
constexpr auto pooled_for_nchw = [](auto& b) {
  const auto x = conv(b, image(b), "w", 8).pool({.lengths = {2, 2}});
  b.output(x.reduce_sum({3}));
};
constexpr auto pooled_for_nhwc = [](auto& b) {
  b.output(conv(b, image(b).pool({.lengths = {2, 2}}), "w", 16).reduce_sum({1}));
};
TEST(layout_plan, adapting_instructions_write_what_their_readers_want) {
  EXPECT_LAYOUTS(pooled_for_nchw, "NCC");
  // its operand, the caller's, is an image in NCHW: as many elements lose as gain at the pooled ones
  EXPECT_LAYOUTS(pooled_for_nhwc, "CNC");
}

// Concatenations propagate; what others give them counts against NHWC.
constexpr auto joined = [](auto& b) {
  const auto x = conv(b, image(b), "w", 8);
  b.output(conv(b, x.concat(conv(b, x, "v", 4), 1), "u", 8).reduce_sum({1}));
};
constexpr auto joined_with_much = [](auto& b) {
  const auto x = conv(b, image(b), "w", 8);
  b.output(x.concat(b.input("much", dtype::f32, {1, 80, 6, 6}), 1).relu().reduce_sum({1}));
};
TEST(layout_plan, operands_of_other_layouts_count_against_a_group) {
  EXPECT_LAYOUTS(joined, "NNNNC");
  EXPECT_LAYOUTS(joined_with_much, "CCCC");
  EXPECT_LAYOUTS(joined_with_much, "NNNC", 16);
}

// Whole images or channels are reduced in either layout; rows are not, nor what stays large.
template <auto Axes>
constexpr auto reduced = [](auto& b) { b.output(conv(b, conv(b, image(b), "w", 8), "v", 16).reduce_mean(Axes)); };
TEST(layout_plan, reductions_of_images_read_either_layout) {
  EXPECT_LAYOUTS((reduced<ints{2, 3}>), "NNC");
  EXPECT_LAYOUTS((reduced<ints{1}>), "NNC");
  EXPECT_LAYOUTS((reduced<ints{2}>), "NCC");
  EXPECT_LAYOUTS((reduced<ints{1, 3}>), "NCC");
}

// Weights, biases and broadcast values have no layout to agree with.
constexpr auto scaled = [](auto& b) {
  auto x = conv(b, image(b), "w", 8).add_along(1, b.weight("bias", dtype::f32, {8}));
  x = x * b.weight("scale", dtype::f32, {1, 8, 6, 6});
  b.output(x.reduce_mean({2, 3}));
};
TEST(layout_plan, weights_have_no_layout) {
  EXPECT_LAYOUTS(scaled, "NCNNC");  // the second is the bias, broadcast
}

// A channel shuffle has the layout of what it shuffles; the operand of its last view is then laid out for it.
constexpr auto shuffle = [](auto& b) {
  const auto x = conv(b, image(b), "w", 8);
  const auto y = x.reshape({1, 2, 4, 6, 6}).transpose({0, 2, 1, 3, 4}).reshape({1, 8, 6, 6});
  b.output(conv(b, y, "v", 8).reduce_mean({2, 3}));
};
constexpr auto shuffle_of_pixels = [](auto& b) {
  const auto x = conv(b, image(b), "w", 8);
  b.output(conv(b, x.reshape({1, 8, 36}).transpose({0, 2, 1}).reshape({1, 36, 4, 2}), "v", 8).reduce_mean({2, 3}));
};
TEST(layout_plan, channel_shuffles_propagate) {
  EXPECT_LAYOUTS(shuffle, "NCCNNC");
  const program p = built<builder>(shuffle);
  const layout_plan<program> plan(p, role_of);
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    const auto operand = plan.operand_of_nhwc_view(i);
    const bool last = p.main()[i].kind == instruction_kind::op && p.main()[i].op.is<op::reshape>() && plan.nhwc({i, 0});
    ASSERT_EQ(operand.has_value(), last);
    if (!last) continue;
    EXPECT_EQ(operand->lens, (dims{1, 4, 2, 6, 6}));
    EXPECT_EQ(operand->strides, (dims{1, 2, 1, 48, 8}));  // the first, of extent 1, does not matter
    EXPECT_TRUE(is_nhwc(p.main()[i].op.map(*operand).value()));
  }
  EXPECT_LAYOUTS(shuffle_of_pixels, "CCCCNC");
}

// Views count for what reads them: as networks end whose readers want the channels last, and others.
constexpr auto head = [](auto& b, std::int64_t out) { return conv(b, image(b), "w", out); };
constexpr auto boxes = [](auto& b) { b.output(head(b, 12).transpose({0, 2, 3, 1}).reshape({1, 108, 4}).exp()); };
constexpr auto joined_scores = [](auto& b) {
  const auto y = head(b, 12).transpose({0, 2, 3, 1}).reshape({1, 72, 6});
  b.output(y.concat(b.input("others", dtype::f32, {1, 5, 6}), 1));
};
constexpr auto anchors = [](auto& b) {
  b.output(head(b, 12).reshape({1, 2, 6, 6, 6}).transpose({0, 1, 3, 4, 2}).exp());
};
// the last reshape copies the rows of either
constexpr auto copied_anchors = [](auto& b) {
  b.output(head(b, 12).reshape({1, 2, 6, 6, 6}).transpose({0, 1, 3, 4, 2}).reshape({1, 72, 6}).exp());
};
constexpr auto anchors_after_pixels = [](auto& b) {
  b.output(head(b, 12).reshape({1, 2, 6, 6, 6}).transpose({0, 3, 4, 1, 2}).reshape({1, 72, 6}).exp());
};
constexpr auto tokens = [](auto& b) {
  const auto x = head(b, 16).reshape({1, 16, 36}).transpose({0, 2, 1});
  b.output(x.dot(b.weight("v", dtype::f32, {1, 16, 5})));
};
constexpr auto classes_of_pixels = [](auto& b) { b.output(head(b, 21).transpose({0, 2, 3, 1}).reduce_max({3})); };
constexpr auto callers_nhwc = [](auto& b) { b.output(head(b, 16).transpose({0, 2, 3, 1})); };
TEST(layout_plan, readers_after_views_want_the_channels_last) {
  EXPECT_LAYOUTS(boxes, "NCCC");
  EXPECT_LAYOUTS(joined_scores, "NCCC");
  EXPECT_LAYOUTS(anchors, "NCCC");
  EXPECT_LAYOUTS(copied_anchors, "NCCCC");
  EXPECT_LAYOUTS(anchors_after_pixels, "NCCCC");
  EXPECT_LAYOUTS(tokens, "NCCC");
  EXPECT_LAYOUTS(classes_of_pixels, "NCC");
  EXPECT_LAYOUTS(callers_nhwc, "NC");
}

constexpr auto lines_of_pixels = [](auto& b) { b.output(head(b, 16).reshape({1, 16, 36}).exp()); };
constexpr auto flattened = [](auto& b) { b.output(head(b, 16).reshape({1, 576}).exp()); };
constexpr auto turned_images = [](auto& b) { b.output(head(b, 16).transpose({0, 1, 3, 2}).exp()); };
constexpr auto subpixels = [](auto& b) {
  b.output(head(b, 8).reshape({1, 2, 2, 2, 6, 6}).transpose({0, 1, 4, 2, 5, 3}).reshape({1, 2, 12, 12}).exp());
};
// one of two readers of the transposition wants the channels first
constexpr auto turned_back = [](auto& b) {
  const auto y = head(b, 16).transpose({0, 2, 3, 1});
  b.output(y.exp());
  b.output(y.slice({.axes = {3}, .starts = {0}, .ends = {8}}).transpose({0, 3, 1, 2}).exp());
};
// an image of one pixel is the same in both
constexpr auto one_pixel = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {1, 8, 1, 1}).conv(b.weight("w", dtype::f32, {16, 8, 1, 1}));
  b.output(x.reshape({1, 16}).exp());
};
TEST(layout_plan, readers_after_views_want_nchw) {
  EXPECT_LAYOUTS(lines_of_pixels, "CCC");
  EXPECT_LAYOUTS(flattened, "CCC");
  EXPECT_LAYOUTS(turned_images, "CCC");
  EXPECT_LAYOUTS(subpixels, "CCCCC");
  EXPECT_LAYOUTS(turned_back, "CCCCCC");
  EXPECT_LAYOUTS(one_pixel, "CCC");
}

// The results of an instruction have one layout where their extents are equal, or are NCHW.
TEST(layout_plan, counts_each_result_of_an_instruction) {
  const auto count = [](std::int64_t steps) {
    const program p = built<builder>([&](auto& b) {
      const auto in = [&](std::string_view name, const dims& lens) { return b.input(name, dtype::f32, lens); };
      const auto y =
          b.add(op::linear_attention{}, in("q", {1, steps, 4, 4}), in("k", {1, steps, 4, 4}), in("v", {1, steps, 4, 6}),
                in("state", {1, 4, 4, 6}), in("decay", {1, steps, 4, 4}), in("beta", {1, steps, 4}));
      b.output(y);
      b.output(y.result(1));
    });
    const auto role = [](const auto& i) {
      return i.op.template is<op::linear_attention>() ? layout_role::prefers_nhwc : layout_role::none;
    };
    return layout_plan<program>(p, role, 4).count_nhwc();
  };
  EXPECT_EQ(count(4), 2u);
  EXPECT_EQ(count(5), 0u) << "images of other extents than the last state";
}

TEST(layout_plan, without_roles_everything_is_nchw) {
  const program p = built<builder>(residual);
  EXPECT_EQ(layout_plan<program>(p).count_nhwc(), 0u);
}

}  // namespace
}  // namespace kiln::test
