#include "kiln/graph/matcher.hpp"

#include <gtest/gtest.h>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/graph/verify.hpp"

namespace kiln {
namespace {

/// Whether the pattern matches the main module's first output.
template <class Build, class Pattern> constexpr bool matches(Build build, const Pattern& pattern) {
  static_builder<> b;
  build(b);
  auto p = b.finish();
  rewriter r(p.main());
  captures c;
  return pattern.match(r, p.main().outputs[0], c);
}

constexpr auto relu_of_sum = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f32, {2});
  b.output((x + y.neg()).relu());
};
using namespace match;
static_assert(matches(relu_of_sum, match::op<op::relu>()));
static_assert(matches(relu_of_sum, match::op<op::relu>(match::op<op::add>())));
static_assert(!matches(relu_of_sum, match::op<op::relu>(match::op<op::sub>())));
// a commutative op matches in both orders
static_assert(matches(relu_of_sum, match::op<op::relu>(match::op<op::add>(match::op<op::neg>(), capture<0>{}))));
static_assert(matches(relu_of_sum, match::op<op::relu>(match::op<op::add>(capture<0>{}, match::op<op::neg>()))));
// a capture that is bound matches only the same value
static_assert(!matches(relu_of_sum, match::op<op::relu>(match::op<op::add>(capture<0>{}, capture<0>{}))));
static_assert(!matches(relu_of_sum,
                       match::op<op::relu>(match::op<op::add>(capture<0>{}, match::op<op::neg>(capture<0>{})))));
static_assert(matches(
    [](auto& b) {
      auto x = b.input("x", dtype::f32, {2});
      b.output(x + x.neg());
    },
    match::op<op::add>(match::op<op::neg>(capture<0>{}), capture<0>{})));

constexpr auto minus = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f32, {2});
  b.output(x - y.neg());
};
static_assert(matches(minus, match::op<op::sub>(capture<0>{}, match::op<op::neg>())));
static_assert(!matches(minus, match::op<op::sub>(match::op<op::neg>(), capture<0>{})));
static_assert(matches(minus, either{match::op<op::add>(), match::op<op::sub>()}));
static_assert(!matches(minus, either{match::op<op::add>(), match::op<op::mul>()}));

constexpr auto halved = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2});
  b.output(x * 0.5f);
};
static_assert(matches(halved, match::op<op::mul>(capture<0>{}, all_equal{0.5})));
static_assert(!matches(halved, match::op<op::mul>(capture<0>{}, all_equal{0.25})));

constexpr auto shared = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2}).exp();
  b.output(x.neg());
  b.output(x);
};
static_assert(matches(shared, match::op<op::neg>(match::op<op::exp>())));
static_assert(!matches(shared, match::op<op::neg>(match::single_use{match::op<op::exp>()})));

TEST(matcher, rewrites_reach_a_fixpoint_in_one_call) {
  const auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2});
    for (int i = 0; i < 9; ++i) x = -x;
    b.output(x);
  };
  builder b;
  build(b);
  program p = b.finish();
  const auto counts =
      apply_rewrites(p.main(), rewrite{"twice", match::op<op::neg>(match::op<op::neg>(match::capture<0>{})),
                                       [](auto&, const captures& c, value_id) { return c[0]; }});
  EXPECT_EQ(counts.total(), 4u);
  EXPECT_EQ(print(p).str(), "main:\n  %0 = x : f32[2]\n  %1 = neg(%0) : f32[2]\n  return output_0 = %1\n");
}

TEST(matcher, rewrites_that_feed_each_other_for_ever_stop) {
  builder b;
  b.output(b.input("x", dtype::f32, {2}).relu());
  program p = b.finish();
  const auto counts =
      apply_rewrites(p.main(),
                     rewrite{"there", match::op<op::relu>(match::capture<0>{}),
                             [](auto& r, const captures& c, value_id) { return r.add(op::abs{}, {c[0]}); }},
                     rewrite{"back", match::op<op::abs>(match::capture<0>{}),
                             [](auto& r, const captures& c, value_id) { return r.add(op::relu{}, {c[0]}); }});
  EXPECT_GT(counts.total(), 10u);
  EXPECT_LT(counts.total(), 5000u);
  EXPECT_TRUE(find_faults(p).empty());
}

TEST(matcher, the_first_rewrite_that_applies_is_taken_and_a_declined_one_is_not) {
  builder b;
  b.output(b.input("x", dtype::f32, {2}).relu());
  program p = b.finish();
  const auto to = [](auto op) {
    return [op](auto& r, const captures&, value_id v) { return r.add(op, {r.input(v, 0)}); };
  };
  const auto counts = apply_rewrites(
      p.main(), rewrite{"declined", match::op<op::relu>(), [](auto&, const captures&, value_id) { return value_id{}; }},
      rewrite{"first", match::op<op::relu>(), to(op::abs{})}, rewrite{"second", match::op<op::relu>(), to(op::exp{})});
  ASSERT_EQ(counts.entries.size(), 1u);
  EXPECT_EQ(counts.entries[0].name, "first");
}

}  // namespace
}  // namespace kiln
