#include "kiln/graph/verify.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"

namespace kiln {
namespace {

program small() {
  builder b;
  auto x = b.input("x", dtype::f32, {2, 3}), y = b.input("y", dtype::f32, {2, 3});
  b.label = "sum of both";
  b.output(x + y);
  return b.finish();
}
std::string first_rule(const program& p) {
  const auto faults = find_faults(p);
  return faults.empty() ? "" : std::string(faults[0].why.rule.view());
}

TEST(verify, a_built_program_is_sound) {
  EXPECT_TRUE(find_faults(small()).empty());
  EXPECT_NO_THROW(verify(small()));
  static_assert([] {
    static_builder<> b;
    b.output(b.input("x", dtype::f32, {2}).relu());
    return find_faults(b.finish()).empty();
  }());
}

TEST(verify, the_error_names_op_and_instruction) {
  program p = small();
  p.main()[2].results[0] = {dtype::f32, {3, 2}};
  try {
    verify(p);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.op(), "add");
    EXPECT_EQ(e.instruction(), "sum of both");
    EXPECT_EQ(e.expected(), "f32[2, 3]");
    EXPECT_EQ(e.found(), "f32[3, 2]");
  }
}

TEST(verify, every_broken_invariant) {
  program p = small();
  p.main()[2].results[0].type = dtype::f16;
  EXPECT_EQ(first_rule(p), "the shape rule agrees with the result");
  p = small();
  p.main()[2].inputs[1] = {2, 0};
  EXPECT_EQ(first_rule(p), "inputs are defined before use");
  p = small();
  p.main()[2].inputs[1] = {1, 1};
  EXPECT_EQ(first_rule(p), "an input names a result");
  p = small();
  p.main()[2].inputs.pop_back();
  EXPECT_EQ(first_rule(p), "number of inputs");
  p = small();
  p.main()[1].results[0] = {dtype::f32, {3, 2}};
  EXPECT_EQ(first_rule(p), "operands have equal dims");
  p = small();
  p.main()[1].name = text("x");
  EXPECT_EQ(first_rule(p), "parameters have different names");
  p = small();
  p.main().outputs[0] = {7, 0};
  EXPECT_EQ(first_rule(p), "an output names a value of its module");
  p = small();
  p.main().output_names.push_back(text("more"));
  EXPECT_EQ(first_rule(p), "as many names as outputs");
  p = small();
  p.main()[2].op = operation();
  EXPECT_EQ(first_rule(p), "an instruction of kind op holds an op");
  p = small();
  p.main()[0].results[0].strides = {1, 2};
  EXPECT_EQ(first_rule(p), "values are row-major");
}

TEST(verify, constants_have_their_data) {
  builder b;
  b.output(b.scalar(dtype::f32, 1));
  program p = b.finish();
  p.main()[0].results[0] = {dtype::f32, {2}};
  EXPECT_EQ(first_rule(p), "a constant has its literal's shape");
  p.main()[0].constant = literal({dtype::f32, {2}}, p.main()[0].constant.data());
  EXPECT_EQ(first_rule(p), "a constant has a value for each element");
}

TEST(verify, bodies_fit_their_calls) {
  const auto with_body = [](const shape& parameter, const shape& result, std::uint32_t parameters = 1) {
    program p = small();
    module_graph body;
    for (std::uint32_t k = 0; k < parameters; ++k) body.add_parameter(k ? "b" : "a", parameter);
    body.outputs.push_back(body.add(op::neg{}, {value_id{0, 0}}));
    const module_ref at = p.add_module(std::move(body));
    shapes results;
    results.push_back(result);
    p.main().outputs[0] =
        p.main().add_with_shapes(op::fused{fusion::pointwise, at}, {value_id{0, 0}}, std::move(results));
    return p;
  };
  const shape s{dtype::f32, {2, 3}}, t{dtype::f32, {3, 2}};
  EXPECT_EQ(first_rule(with_body(s, s)), "");
  EXPECT_EQ(first_rule(with_body(t, s)), "an input has the shape of the body's parameter");
  EXPECT_EQ(first_rule(with_body(s, t)), "a result has the shape of the body's output");
  EXPECT_EQ(first_rule(with_body(s, s, 2)), "as many inputs as the body has parameters");
  program p = with_body(s, s);
  p.main()[3].op = op::fused{fusion::pointwise, {5}};
  EXPECT_EQ(first_rule(p), "a body is another module of the program");
  p.main()[3].op = op::fused{fusion::pointwise, {0}};
  EXPECT_EQ(first_rule(p), "a body is another module of the program");
}

TEST(verify, faults_inside_a_body_are_found) {
  program p = small();
  module_graph body;
  body.add_parameter("a", {dtype::f32, {2}});
  body.outputs.push_back(body.add(op::neg{}, {value_id{0, 0}}));
  body[1].results[0] = {dtype::f32, {9}};
  p.add_module(std::move(body));
  const auto faults = find_faults(p);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].module, 1u);
  EXPECT_EQ(faults[0].op.view(), "neg");
}

}  // namespace
}  // namespace kiln
