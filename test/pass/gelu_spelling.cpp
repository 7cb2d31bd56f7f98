#include "kiln/pass/gelu_spelling.hpp"

#include "kiln/pass/simplify_algebra.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return simplify_algebra(p); };

/// `build(builder, x)` over a float input x.
template <class Build> constexpr auto over_x(Build build, dtype t = dtype::f32) {
  return [=](auto& b) { b.output(build(b, b.input("x", t, {2})), "y"); };
}
template <class Builder, class Build> constexpr text made_of(Build build, dtype t) {
  return printed<Builder>(over_x(build, t), run);
}

#define KILN_EXPECT_GELU(build, tanh)                                                                                \
  static_assert(                                                                                                     \
      made_of<static_builder<>>(build, dtype::f32) ==                                                                \
      text("main:\n  %0 = x : f32[2]\n  %1 = gelu{tanh_approximation = " tanh "}(%0) : f32[2]\n  return y = %1\n")); \
  EXPECT_EQ(made_of<builder>(build, dtype::f32).str(), made_of<static_builder<>>(build, dtype::f32).str());          \
  expect_laws(over_x(build), run)

TEST(gelu_spelling, of_erf) {
  constexpr auto pytorch = [](auto&, auto x) { return x * ((x / 1.4142135f).erf() + 1.0f) * 0.5f; };
  KILN_EXPECT_GELU(pytorch, "false");
  constexpr auto half_first = [](auto&, auto x) { return (x * 0.5f) * ((x * 0.70710677f).erf() + 1.0f); };
  KILN_EXPECT_GELU(half_first, "false");
  constexpr auto half_inside = [](auto& b, auto x) {
    return x * (b.scalar(dtype::f32, 0.5) * (b.scalar(dtype::f32, 1) + (x * 0.70710677f).erf()));
  };
  KILN_EXPECT_GELU(half_inside, "false");
}

TEST(gelu_spelling, of_tanh) {
  constexpr auto gpt2 = [](auto& b, auto x) {
    auto cubic = x + x.pow(b.scalar(dtype::f32, 3)) * 0.044715f;
    return (x * 0.5f) * ((cubic * 0.7978845608f).tanh() + 1.0f);
  };
  KILN_EXPECT_GELU(gpt2, "true");
  constexpr auto factored = [](auto&, auto x) {
    return (x * 0.5f) * ((x * 0.79788456f * (x * 0.044715f * x + 1.0f)).tanh() + 1.0f);
  };
  KILN_EXPECT_GELU(factored, "true");
}

TEST(gelu_spelling, coefficients_are_as_exact_as_the_dtype) {
  const auto coarse = [](auto&, auto x) { return (x * 0.5f) * ((x * 0.7075f).erf() + 1.0f); };
  EXPECT_NE(made_of<builder>(coarse, dtype::f16).view().find("gelu"), std::string_view::npos);
  EXPECT_EQ(made_of<builder>(coarse, dtype::f32).view().find("gelu"), std::string_view::npos);
}

TEST(gelu_spelling, what_is_no_gelu_stays) {
  const auto stays = [](auto build) {
    const text p = printed<builder>(build, run);
    EXPECT_EQ(p.view().find("gelu"), std::string_view::npos) << p.view();
    expect_laws(build, run);
  };
  stays(over_x([](auto&, auto x) { return x * 0.5f * ((x / 1.41f).erf() + 1.0f); }));
  stays(over_x([](auto&, auto x) { return x * 0.25f * ((x / 1.4142135f).erf() + 1.0f); }));
  stays(over_x([](auto&, auto x) { return x * 0.5f * ((x * x * 0.7978845f).tanh() + 1.0f); }));
  stays([](auto& b) {
    auto x = b.input("x", dtype::f32, {2}), z = b.input("z", dtype::f32, {2});
    b.output(z * 0.5f * ((x / 1.4142135f).erf() + 1.0f));
  });
}

TEST(gelu_spelling, reads_cubic_polynomials) {
  builder b;
  const value x = b.input("x", dtype::f64, {1});
  b.output((x * 2.0 + 1.0) * (x * x) / 4.0 + 3.0);  // x^3 / 2 + x^2 / 4 + 3
  b.output(x * x * x * x);
  b.output(x.exp());
  program p = b.finish();
  rewriter r(p.main());
  const value_id at = p.main().parameters()[0];
  const detail::cubic c = detail::polynomial(r, p.main().outputs[0], at);
  ASSERT_TRUE(c.known);
  EXPECT_EQ((std::vector<double>{c.c[0], c.c[1], c.c[2], c.c[3]}), (std::vector<double>{3, 0, .25, .5}));
  EXPECT_FALSE(detail::polynomial(r, p.main().outputs[1], at).known) << "of degree 4";
  EXPECT_FALSE(detail::polynomial(r, p.main().outputs[2], at).known);
}

}  // namespace
}  // namespace kiln::test
