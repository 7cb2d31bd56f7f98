#include "kiln/pass/dead_code.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return dead_code(p); };

TEST(dead_code, drops_what_no_output_needs_and_keeps_parameters) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2});
    b.input("unused", dtype::f32, {3});
    auto y = x.neg();
    x.exp().sqrt();
    b.output(y, "y");
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2]\n"
                      "  %1 = unused : f32[3]\n"
                      "  %2 = neg(%0) : f32[2]\n"
                      "  return y = %2\n",
                      run);
  auto p = built<builder>(build);
  EXPECT_EQ(dead_code(p).counts.total(), 2u);
}

TEST(dead_code, bodies_are_cleaned_too) {
  builder b;
  auto x = b.input("x", dtype::f32, {2});
  b.output(x);
  program p = b.finish();
  module_graph body;
  const value_id in = body.add_parameter("a", {dtype::f32, {2}});
  body.outputs.push_back(body.add(op::neg{}, {in}));
  body.add(op::exp{}, {in});
  const module_ref at = p.add_module(std::move(body));
  EXPECT_EQ(dead_code(p).counts.total(), 1u);
  EXPECT_EQ(p.module(at).size(), 2u);
}

}  // namespace
}  // namespace kiln::test
