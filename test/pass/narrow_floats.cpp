#include "kiln/pass/narrow_floats.hpp"

#include "kiln/core/half.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

small_vector<float> values_of(const program& p, const std::vector<float>& x) {
  return evaluate(p, {literal::of<float>({dtype::f32, {static_cast<std::int64_t>(x.size())}}, x)})[0].to<float>();
}
std::size_t in_type(const module_graph& m, dtype t) {
  std::size_t n = 0;
  for (const std::uint32_t i : m.order())
    n += m[i].kind == instruction_kind::op && !m[i].op.is<op::convert>() && m[i].results[0].type == t;
  return n;
}
std::size_t in_type(const program& p, dtype t) { return in_type(p.main(), t); }
program narrowed(program p, const narrow_float_options& options, std::vector<std::string>* remarks = nullptr) {
  const pass_note note = narrow_floats(p, options);
  verify(p);
  if (remarks)
    for (const text& r : note.remarks) remarks->push_back(r.str());
  return p;
}
program sum_and_product() {
  return built<builder>([](builder& b) {
    const value x = b.input("x", dtype::f32, {2});
    b.label = text("sum");
    const value y = x + 0.0001f;
    b.label = text("product");
    b.output(y * 3.0f, "y");
  });
}

TEST(narrow_floats, computes_in_sixteen_bits_between_inputs_and_outputs) {
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    const program p = narrowed(sum_and_product(), {.to = t});
    EXPECT_EQ(in_type(p, dtype::f32), 0u) << print(p).view();
    EXPECT_EQ(p.main().shape_of(p.main().outputs[0]).type, dtype::f32);
    EXPECT_EQ(p.main().shape_of(p.main().parameters()[0]).type, dtype::f32);
  }
  // 1 + .0001 is 1 in f16, and 3 * .3334 is rounded there
  const auto out = values_of(narrowed(sum_and_product(), {}), {1, .3333F});
  EXPECT_EQ(out[0], 3.0F);
  EXPECT_EQ(out[1], static_cast<float>(half(static_cast<float>(half(float(half(.3333F)) + float(half(.0001F)))) * 3)));
}

TEST(narrow_floats, only_the_ops_that_are_named) {
  const program p = narrowed(sum_and_product(), {.ops = {text("mul")}});
  EXPECT_EQ(values_of(p, {1, 2})[0], static_cast<float>(half(static_cast<float>(half(1.0001F)) * 3)));
  const program q = narrowed(sum_and_product(), {.ops = {text("mul"), text("multibroadcast")}});
  EXPECT_GE(in_type(q, dtype::f32), 1u);
}

TEST(narrow_floats, constants_are_held_in_sixteen_bits) {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 3}),
              w = b.constant(literal::of<float>({dtype::f32, {3}}, std::vector<float>{1, .1F, 5}));
  b.output((x * w.broadcast_to({2, 3})) + w.broadcast_to({2, 3}), "y");
  const program p = narrowed(b.finish(), {});
  std::size_t constants = 0;
  for (const std::uint32_t i : p.main().order()) {
    if (p.main()[i].kind != instruction_kind::literal) continue;
    ++constants;
    EXPECT_EQ(p.main()[i].constant.get_shape().type, dtype::f16);
    EXPECT_EQ(p.main()[i].constant.to<float>()[1], static_cast<float>(half(.1F)));
  }
  EXPECT_EQ(constants, 1u) << print(p).view();
}

value_id first(const module_graph& m, std::string_view op) {
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (m[i].kind == instruction_kind::op && m[i].op.name() == op) return {i, 0};
  return {};
}

TEST(narrow_floats, what_computes_or_reads_a_value_beyond_the_range_stays) {
  const auto build = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4});
    b.output(((x * 1000.0f).reshape({2, 2}) * .001f).neg() * 3.0f);
  };
  program p = built<builder>(build);
  const value_id large = first(p.main(), "mul"), shown = first(p.main(), "reshape");
  for (const value_id beyond : {large, shown}) {
    const program q = narrowed(p, {.beyond = {beyond}});
    EXPECT_EQ(in_type(q, dtype::f16), 3u) << print(q).view();  // neg, and 3 times that
    EXPECT_EQ(values_of(q, {100, 0, -70, 1}), (small_vector<float>{-300, 0, 210, -3}));
  }
  EXPECT_TRUE(std::isinf(values_of(narrowed(p, {}), {100, 0, 0, 0})[0]));
}

TEST(narrow_floats, what_reads_a_parameter_beyond_the_range_stays) {
  const program p = built<builder>([](builder& b) { b.output(b.input("x", dtype::f32, {2}) * .001f + 1.0f); });
  const program q = narrowed(p, {.beyond = {p.main().parameters()[0]}});
  EXPECT_EQ(values_of(q, {100000, 2000}), (small_vector<float>{101, 3}));
  EXPECT_GE(in_type(q, dtype::f16), 1u);
}

TEST(narrow_floats, bodies_of_what_reads_a_value_beyond_the_range_stay) {
  const auto narrow_in_bodies = [](bool beyond) {
    program p;
    const auto body = [&](float by) {
      return p.add_module(built<builder>([&](builder& b) { b.output(b.input("x", dtype::f32, {2}) * by); }).main());
    };
    const module_ref yes = body(.001F), no = body(.002F);
    module_graph& m = p.main();
    const value_id condition = m.add_parameter("condition", {dtype::boolean, {}}),
                   x = m.add_parameter("x", {dtype::f32, {2}});
    const value_id y = m.add_with_shapes(op::branch{yes, no, 1}, {condition, x, x}, {{dtype::f32, {2}}});
    m.outputs.push_back(y);
    m.output_names.push_back(text("y"));
    narrow_float_options options;
    if (beyond) options.beyond.push_back(x);
    narrow_floats(p, options);
    return in_type(p.module(yes), dtype::f16) + in_type(p.module(no), dtype::f16);
  };
  EXPECT_EQ(narrow_in_bodies(true), 0u);
  EXPECT_GE(narrow_in_bodies(false), 2u);
}

TEST(narrow_floats, a_constant_beyond_the_range_keeps_its_reader_and_is_named) {
  const auto build = [](builder& b) {
    const value x = b.input("x", dtype::f32, {2});
    b.label = text("mask");
    const value y = x * 1e5f;
    b.label = text("rest");
    b.output(y.min(b.scalar(dtype::f32, std::numeric_limits<float>::infinity())).neg());
  };
  std::vector<std::string> remarks;
  const program p = narrowed(built<builder>(build), {}, &remarks);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("'mask' stays in f32: it reads a constant beyond the greatest f16"), std::string::npos);
  EXPECT_EQ(values_of(p, {.5F, 0})[0], -50000.0F + 16);  // f16 has steps of 32 there
  remarks.clear();
  narrowed(built<builder>(build), {.to = dtype::bf16}, &remarks);
  EXPECT_TRUE(remarks.empty());
}

TEST(narrow_floats, integers_and_conversions_stay) {
  program p = built<builder>([](builder& b) {
    const value x = b.input("x", dtype::f32, {3});
    b.output((x + 1.0f) | op::arg_max{.axis = 0});
    b.output(x.convert(dtype::i32) + b.scalar(dtype::i32, 1));
    b.output(x.convert(dtype::f64) * 2.0);
  });
  p = narrowed(std::move(p), {});
  const auto out = evaluate(p, {literal::of<float>({dtype::f32, {3}}, std::vector<float>{1, 70000, 3})});
  EXPECT_EQ(out[0].get_shape().type, dtype::i64);
  EXPECT_EQ(out[1].to<std::int64_t>()[1], 70001);
  EXPECT_EQ(out[2].get_shape().type, dtype::f64);
}

}  // namespace
}  // namespace kiln::test
