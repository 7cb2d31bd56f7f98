#include "kiln/pass/fuse_prologue.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto fuse = [](graph& p) {
  fuse_contraction(p);
  fuse_pointwise(p);
  fuse_prologue(p);
};
constexpr std::uint32_t prologues(const graph& p) {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::op)
      if (const auto* f = p.main()[i].op.get_if<op::fused>(); f && f->kind == fusion::contraction)
        for (std::uint32_t k = 0; k < p.module(f->body).size(); ++k)
          if (is_kind(p.module(f->body), k, op_kind::contraction))
            n += p.module(f->body).producer(p.module(f->body)[k].inputs[0]).kind == instruction_kind::op;
  return n;
}

constexpr node image(graph_builder& b) { return b.input("x", dtype::f32, {1, 2, 3, 3}); }
constexpr node by_channel(graph_builder& b, const node& x, float first) {
  return x.make_along(1, b.constant(literal::of<float>({dtype::f32, {2}}, small_vector<float>{first, -0.5f})));
}
constexpr node conv1x1(graph_builder& b, const node& x) { return x.conv(b.weight("w", dtype::f32, {2, 2, 1, 1})); }

constexpr auto norm_relu = [](graph_builder& b) {
  const node x = image(b);
  b.output(conv1x1(b, (x * by_channel(b, x, 2.0f) + by_channel(b, x, 0.25f)).relu()));
};
static_assert(kernel_count(after(norm_relu, fuse)) == 1 && prologues(after(norm_relu, fuse)) == 1);

constexpr auto with_epilogue = [](graph_builder& b) {
  const node x = image(b);
  b.output((conv1x1(b, (x * 0.5f).relu()) + x).relu());
};
static_assert(kernel_count(after(with_epilogue, fuse)) == 1 && prologues(after(with_epilogue, fuse)) == 1);

constexpr auto bare_relu = [](graph_builder& b) { b.output(conv1x1(b, image(b).relu())); };
static_assert(prologues(after(bare_relu, fuse)) == 1);

// the epilogue reads what the prologue makes: no kernel keeps that
constexpr auto residual = [](graph_builder& b) {
  const node y = image(b).relu();
  b.output(conv1x1(b, y) + y);
};
static_assert(kernel_count(after(residual, fuse)) == 2 && prologues(after(residual, fuse)) == 0);
constexpr auto gate = [](graph_builder& b) {
  const node y = (image(b) * 0.5f).relu();
  b.output(y * conv1x1(b, y).sigmoid());
};
static_assert(kernel_count(after(gate, fuse)) == 2 && prologues(after(gate, fuse)) == 0);

// a value of the run for each channel of each image, as squeeze-and-excitation makes them
constexpr auto excited = [](graph_builder& b) {
  const node x = image(b), gate = b.input("gate", dtype::f32, {1, 2, 1, 1});
  b.output(conv1x1(b, x * gate.sigmoid()));
};
static_assert(kernel_count(after(excited, fuse)) == 2 && prologues(after(excited, fuse)) == 1);
constexpr auto by_row = [](graph_builder& b) {
  b.output(conv1x1(b, image(b) * b.input("gate", dtype::f32, {1, 2, 3, 1}).sigmoid()));
};
static_assert(kernel_count(after(by_row, fuse)) == 3 && prologues(after(by_row, fuse)) == 0);

// a constant that images differ in, which no channel's number stands for: a gate as well
constexpr auto constant_by_image = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 2, 3, 3});
  b.output(conv1x1(b, x * b.constant(literal::of<float>({dtype::f32, {2, 2, 1, 1}},
                                                        small_vector<float>{0.5f, -1.0f, 2.0f, 0.25f}))));
};
static_assert(kernel_count(after(constant_by_image, fuse)) == 1 && prologues(after(constant_by_image, fuse)) == 1);
constexpr auto shifted_by_image = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {2, 2, 3, 3});
  b.output(conv1x1(b, x + b.constant(literal::of<float>({dtype::f32, {2, 2, 1, 1}},
                                                        small_vector<float>{0.5f, -1.0f, 2.0f, 0.25f}))));
};
static_assert(prologues(after(shifted_by_image, fuse)) == 0);

// as many channels as a run brings
const auto unknown_channels = [](graph_builder& b) {
  const dimension c = dimension::symbol("c");
  b.output(b.input("x", dtype::f32, {1, c, 3, 3}).relu().conv(b.input("w", dtype::f32, {2, c, 1, 1})));
};

// volumes never have their NHWC
constexpr auto volume = [](graph_builder& b) {
  b.output(b.input("x", dtype::f32, {1, 2, 2, 3, 3}).relu().conv(b.weight("w", dtype::f32, {2, 2, 1, 1, 1})));
};
static_assert(prologues(after(volume, fuse)) == 0);

// layers of equal form share what they do
constexpr auto two_layers = [](graph_builder& b) {
  const node x = image(b);
  b.output(conv1x1(b, x.relu()));
  b.output(b.input("y", dtype::f32, {1, 2, 3, 3}).relu().conv(b.weight("v", dtype::f32, {2, 2, 1, 1})));
};
static_assert(prologues(after(two_layers, fuse)) == 2);
static_assert(after(two_layers, fuse).modules() == 3);  // the main one, a ReLU's and a layer's

constexpr auto wide_kernel = [](graph_builder& b) {
  b.output(image(b).relu().conv(b.weight("w", dtype::f32, {2, 2, 3, 3})));
};
static_assert(prologues(after(wide_kernel, fuse)) == 0);

constexpr auto not_a_number = [](graph_builder& b) {
  b.output(conv1x1(b, image(b).max(b.scalar(dtype::f32, std::numeric_limits<float>::quiet_NaN()))));
};
static_assert(prologues(after(not_a_number, fuse)) == 0);

TEST(fuse_prologue, leaves_channels_that_only_the_run_knows) {
  EXPECT_EQ(prologues(after(unknown_channels, fuse)), 0u);
}

TEST(fuse_prologue, leaves_gates_that_do_not_gain) {
  graph p = made_by(excited);
  fuse_contraction(p);
  fuse_pointwise(p);
  const pass_note note = fuse_prologue(p, [](const auto&, const auto&, std::uint32_t) { return false; });
  EXPECT_EQ(prologues(p), 0u);
  EXPECT_EQ(note.remarks.size(), 1u);
}

TEST(fuse_prologue, a_constant_by_image_is_a_gate) {
  graph p = made_by(constant_by_image);
  fuse_contraction(p);
  fuse_pointwise(p);
  fuse_prologue(p, [](const auto&, const auto&, std::uint32_t) { return false; });
  EXPECT_EQ(prologues(p), 0u);
}

TEST(fuse_prologue, says_what_it_leaves) {
  const auto remarks = [](auto build) {
    graph p = made_by(build);
    fuse_contraction(p);
    fuse_pointwise(p);
    return fuse_prologue(p).remarks.size();
  };
  EXPECT_EQ(remarks(gate), 1u);
  EXPECT_EQ(remarks(norm_relu), 0u);
}

TEST(fuse_prologue, keeps_the_meaning) {
  const auto check = [](auto build) {
    const graph p = after(build, fuse);
    EXPECT_TRUE(find_faults(p).empty()) << print(p).view();
    EXPECT_LE(difference(made_by(build), p), 1e-6) << print(p).view();
  };
  check(norm_relu);
  check(with_epilogue);
  check(bare_relu);
  check(residual);
  check(gate);
  check(volume);
  check(two_layers);
  check(excited);
  check(by_row);
  check(constant_by_image);
  check(shifted_by_image);
  check(wide_kernel);
}

}  // namespace
}  // namespace kiln::test
