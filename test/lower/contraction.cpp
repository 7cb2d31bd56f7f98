// The split of a contraction's body: in constant evaluation over a static graph, and over programs at run time.
#include "kiln/lower/contraction.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/channel_prologue.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/fuse_prologue.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

constexpr auto fuse = [](auto& p) {
  fuse_contraction(p);
  fuse_pointwise(p);
  fuse_prologue(p);
};

// Takes the prologues that `find_channel_prologue` knows, with every input but the image a constant.
struct image_prologues {
  std::size_t image;
  template <class Module> constexpr std::optional<std::size_t> operator()(const Module& body, value_id end) const {
    const auto form = find_channel_prologue(body, end, [&](std::size_t k) { return k != image; });
    return form ? std::optional(form->data) : std::nullopt;
  }
};

// What the tests ask of a split, in a type that outlives constant evaluation.
struct facts {
  bool found = false, dot = false, convolution = false;
  std::size_t operands[2] = {};
  inline_vector<std::uint32_t, 64> inputs{};
  std::size_t epilogue_size = 0, epilogue_parameters = 0;
};
template <class Program, class... Prologue> constexpr facts split_of(const Program& p, const Prologue&... prologue) {
  const auto& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op) continue;
    const auto split = lower::split_contraction(p, m[i], prologue...);
    if (!split) continue;
    facts out{true, split->op.template is<op::dot>(), split->op.template is<op::convolution>()};
    out.operands[0] = split->operands[0], out.operands[1] = split->operands[1];
    out.inputs = split->epilogue_inputs;
    out.epilogue_size = split->epilogue.size();
    out.epilogue_parameters = split->epilogue.parameters().size();
    return out;
  }
  return {};
}
template <class Build, class... Prologue> constexpr facts fused(Build build, const Prologue&... prologue) {
  return split_of(after(build, fuse), prologue...);
}
constexpr bool reads(const facts& f, std::initializer_list<std::uint32_t> inputs) {
  if (f.inputs.size() != inputs.size() || f.epilogue_parameters != inputs.size() + 1) return false;
  std::size_t k = 0;
  for (const std::uint32_t i : inputs)
    if (f.inputs[k++] != i) return false;
  return true;
}

constexpr auto bare = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {2, 3});
  b.output(x.dot(b.weight("w", dtype::f32, {3, 4})));
};
static_assert(fused(bare).dot && fused(bare).operands[0] == 0 && fused(bare).operands[1] == 1);
static_assert(fused(bare).epilogue_size == 0 && fused(bare).inputs.empty());

// inputs in the order in which the body reads them: both operands, then bias and residual
constexpr auto bias_and_residual = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {2, 3});
  const auto y = b.input("y", dtype::f32, {2, 4});
  const auto bias = b.weight("bias", dtype::f32, {2, 4});
  b.output(((x.dot(b.weight("w", dtype::f32, {3, 4})) + bias) * y).relu());
};
static_assert(fused(bias_and_residual).dot && fused(bias_and_residual).epilogue_size == 6);
static_assert(reads(fused(bias_and_residual), {2, 3}));

constexpr auto constant_factor = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {2, 3});
  b.output((x.dot(b.weight("w", dtype::f32, {3, 4})) * 0.5f).relu());
};
static_assert(fused(constant_factor).found && reads(fused(constant_factor), {}));

constexpr auto operand_read_again = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {4, 4});
  b.output((x.dot(b.weight("w", dtype::f32, {4, 4})) + x).relu());
};
static_assert(fused(operand_read_again).operands[0] == 0 && reads(fused(operand_read_again), {0}));

constexpr auto one_operand_twice = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {4, 4});
  b.output(x.dot(x).relu());
};
static_assert(fused(one_operand_twice).operands[0] == 0 && fused(one_operand_twice).operands[1] == 0);

constexpr auto clamped = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {1, 2, 3, 3});
  b.output((x * 0.5f).relu().conv(b.weight("w", dtype::f32, {2, 2, 1, 1})));
};
// only a target that asks for prologues meets them
static_assert(!fused(clamped).found && fused(clamped, image_prologues{0}).convolution);
static_assert(fused(clamped, image_prologues{0}).operands[0] == 0 &&
              fused(clamped, image_prologues{0}).operands[1] == 1);
static_assert(fused(clamped, image_prologues{0}).epilogue_size == 0);
static_assert(!fused(clamped, image_prologues{7}).found, "the image would be a constant");

constexpr auto prologue_and_epilogue = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {1, 2, 3, 3});
  b.output(((x * 0.5f).relu().conv(b.weight("w", dtype::f32, {2, 2, 1, 1})) + x).relu());
};
static_assert(reads(fused(prologue_and_epilogue, image_prologues{0}), {0}));

// ---- bodies that no pass makes
constexpr auto two_products = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {4, 4});
  b.output(x.dot(b.weight("v", dtype::f32, {4, 4})) + x.dot(b.weight("w", dtype::f32, {4, 4})));
};
constexpr auto right_operand_computed = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {4, 4});
  b.output(x.dot(b.weight("w", dtype::f32, {4, 4}).relu()));
};
constexpr auto prologue_read_again = [](auto& b) {
  const auto y = b.input("x", dtype::f32, {4, 4}).relu();
  b.output(y.dot(b.weight("w", dtype::f32, {4, 4})) + y);
};
constexpr auto none = [](auto& b) { b.output(b.input("x", dtype::f32, {4, 4}).relu()); };
static_assert(!lower::split_body(made_by(two_products).main()));
static_assert(!lower::split_body(made_by(right_operand_computed).main()));
static_assert(!lower::split_body(made_by(prologue_read_again).main()));
static_assert(!lower::split_body(made_by(none).main()) && !fused(none).found);
static_assert(lower::split_body(made_by(clamped).main())->operands[0] == lower::contraction_split::computed);

// ---- the same at run time
template <class Build> program program_of(Build build) {
  builder b;
  build(b);
  return b.finish();
}
template <class Build> program fused_program(Build build) {
  program p = program_of(build);
  fuse(p);
  return p;
}

TEST(contraction_split, is_the_same_at_run_time) {
  EXPECT_EQ(split_of(fused_program(bare)).epilogue_size, 0U);
  EXPECT_TRUE(reads(split_of(fused_program(bias_and_residual)), {2, 3}));
  EXPECT_TRUE(reads(split_of(fused_program(operand_read_again)), {0}));
  EXPECT_FALSE(split_of(fused_program(clamped)).found);
  EXPECT_TRUE(reads(split_of(fused_program(prologue_and_epilogue), image_prologues{0}), {0}));
  EXPECT_FALSE(lower::split_body(program_of(two_products).main()));
}

TEST(contraction_split, epilogue_computes_what_the_body_does_after_the_contraction) {
  const program p = fused_program(bias_and_residual);
  const auto& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind != instruction_kind::op || !m[i].op.is<op::fused>()) continue;
    const auto split = lower::split_contraction(p, m[i]);
    ASSERT_TRUE(split && split->has_epilogue());
    const std::vector<literal> in = random_inputs(p);
    std::vector<literal> operands;
    for (const value_id v : m[i].inputs) {
      const auto parameters = m.parameters();
      for (std::size_t k = 0; k < parameters.size(); ++k)
        if (parameters[k] == v) operands.push_back(in[k]);
    }
    ASSERT_EQ(operands.size(), m[i].inputs.size());
    const literal* factors[] = {&operands[split->operands[0]], &operands[split->operands[1]]};
    std::vector<literal> read = {fold(split->op, std::span<const literal* const>(factors), m[i].results)[0]};
    for (const std::uint32_t k : split->epilogue_inputs) read.push_back(operands[k]);
    program epilogue;
    epilogue.main() = split->epilogue;
    const std::vector<literal> expected = evaluate_module(p, {0}, in);
    const std::vector<literal> found = evaluate_module(epilogue, {0}, read);
    EXPECT_EQ(found.at(0).to<float>(), expected.at(0).to<float>());
    return;
  }
  FAIL() << "nothing was fused";
}

TEST(contraction_of, is_the_instruction_or_in_its_body) {
  const program p = fused_program(bias_and_residual);
  const auto& m = p.main();
  std::size_t found = 0;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    const auto one = lower::contraction_of(p, m[i]);
    if (!one) continue;
    ++found;
    EXPECT_NE(one.instruction, &m[i]);
    EXPECT_NE(one.get_if<op::dot>(), nullptr);
    EXPECT_EQ(one.operand(1).lens, (dims{3, 4}));
  }
  EXPECT_EQ(found, 1U);
}

}  // namespace
}  // namespace kiln::test
