#include "kiln/pass/simplify_algebra.hpp"

#include "kiln/pass/dead_code.hpp"

#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

constexpr auto run = [](auto& p) { return simplify_algebra(p); };

/// The instructions after the passes, without what stands before the first op of one input f32 x[2].
template <class Builder, class Build> constexpr text body_of(Build build) {
  const text whole = printed<Builder>(
      [&](auto& b) {
        auto x = b.input("x", dtype::f32, {2});
        b.output(build(b, x), "y");
      },
      run);
  return text(whole.view().substr(whole.view().find('\n') + 1));
}
constexpr std::string_view unchanged = "  %0 = x : f32[2]\n  return y = %0\n";

#define KILN_EXPECT_BODY(build, expected)                                \
  static_assert(body_of<static_builder<>>(build) == text(expected));     \
  EXPECT_EQ(body_of<builder>(build).view(), std::string_view(expected)); \
  expect_laws(                                                           \
      [&](auto& b) {                                                     \
        auto x = b.input("x", dtype::f32, {2});                          \
        b.output(build(b, x), "y");                                      \
      },                                                                 \
      run)

TEST(simplify_algebra, neutral_elements) {
  constexpr auto build = [](auto&, auto x) { return (((x + 0.0f) * 1.0f) - 0.0f) / 1.0f; };
  KILN_EXPECT_BODY(build, unchanged);
  constexpr auto swapped = [](auto& b, auto x) { return b.scalar(dtype::f32, 1) * (b.scalar(dtype::f32, 0) + x); };
  KILN_EXPECT_BODY(swapped, unchanged);
  constexpr auto twice = [](auto&, auto x) { return -(-x); };
  KILN_EXPECT_BODY(twice, unchanged);
}

TEST(simplify_algebra, zero_minus_and_minus_one) {
  constexpr auto zero = [](auto& b, auto x) { return b.scalar(dtype::f32, 0) - x; };
  KILN_EXPECT_BODY(zero, "  %0 = x : f32[2]\n  %1 = neg(%0) : f32[2]\n  return y = %1\n");
  constexpr auto minus = [](auto&, auto x) { return (x * -1.0f) * -1.0f; };
  KILN_EXPECT_BODY(minus, unchanged);
  constexpr auto sum = [](auto&, auto x) { return x.exp() + -x; };
  KILN_EXPECT_BODY(sum, "  %0 = x : f32[2]\n  %1 = exp(%0) : f32[2]\n  %2 = sub(%1, %0) : f32[2]\n  return y = %2\n");
  constexpr auto difference = [](auto&, auto x) { return x.exp() - -x; };
  KILN_EXPECT_BODY(difference,
                   "  %0 = x : f32[2]\n  %1 = exp(%0) : f32[2]\n  %2 = add(%1, %0) : f32[2]\n  return y = %2\n");
}

TEST(simplify_algebra, constants_gather) {
  constexpr auto product = [](auto&, auto x) { return x * 3.0f / 4.0f * 0.5f; };
  KILN_EXPECT_BODY(product,
                   "  %0 = x : f32[2]\n  %1 = literal f32[] {0.375}\n"
                   "  %2 = multibroadcast{to = [2]}(%1) : f32[2]\n  %3 = mul(%0, %2) : f32[2]\n  return y = %3\n");
  constexpr auto sum = [](auto&, auto x) { return x - 3.0f + 1.0f; };
  KILN_EXPECT_BODY(sum,
                   "  %0 = x : f32[2]\n  %1 = literal f32[] {-2}\n"
                   "  %2 = multibroadcast{to = [2]}(%1) : f32[2]\n  %3 = add(%0, %2) : f32[2]\n  return y = %3\n");
}

TEST(simplify_algebra, a_scale_behind_a_normalization_is_a_part_of_it) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2, 3});
    const auto row = [&](float first, float second, float third) {
      const float values[] = {first, second, third};
      return b.template constant<float>(dtype::f32, {3}, std::span<const float>(values)).broadcast_to({2, 3});
    };
    b.output((x * row(2, 0, 4) + row(1, 3, -1)) * row(3, 5, 0.5f) + row(-2, 1, 0.5f));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2, 3]\n"
                      "  %1 = literal f32[3] {6, 0, 2}\n"
                      "  %2 = multibroadcast{to = [2, 3]}(%1) : f32[2, 3]\n"
                      "  %3 = mul(%0, %2) : f32[2, 3]\n"
                      "  %4 = literal f32[3] {1, 16, 0}\n"
                      "  %5 = multibroadcast{to = [2, 3]}(%4) : f32[2, 3]\n"
                      "  %6 = add(%3, %5) : f32[2, 3]\n"
                      "  return output_0 = %6\n",
                      [](auto& p) {
                        pass_note all = simplify_algebra(p);
                        while (simplify_algebra(p).changed()) {
                        }
                        dead_code(p);
                        return all;
                      });
}

TEST(simplify_algebra, a_scale_stays_where_the_sum_is_read_or_would_overflow) {
  const auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2}), h = b.input("h", dtype::f16, {2});
    auto sum = x * 2.0f + 1.0f;
    b.output(sum * 3.0f);
    b.output(sum);
    b.output((x * 1e-9f + 1.0f) * 1e20f);       // the sum of addends is beyond bounds
    b.output((x * 2.0f + 12582912.0f) * 3.0f);  // the sum rounds to an integer
    b.output((h * 256.0f + 1.0f) * 512.0f);     // the product has no half
    b.output((h * 0.0001f + 1.0f) * 0.0001f);   // nor this one a normal half
  };
  auto p = built<builder>(build);
  EXPECT_FALSE(simplify_algebra(p).changed()) << print(p).view();
}

TEST(simplify_algebra, a_division_stays_unless_its_reciprocal_is_exact) {
  constexpr auto third = [](auto&, auto x) { return x / 3.0f; };
  KILN_EXPECT_BODY(third,
                   "  %0 = x : f32[2]\n  %1 = literal f32[] {3}\n"
                   "  %2 = multibroadcast{to = [2]}(%1) : f32[2]\n  %3 = div(%0, %2) : f32[2]\n  return y = %3\n");
  constexpr auto eighth = [](auto&, auto x) { return x / -8.0f; };
  KILN_EXPECT_BODY(eighth,
                   "  %0 = x : f32[2]\n  %1 = literal f32[] {-0.125}\n"
                   "  %2 = multibroadcast{to = [2]}(%1) : f32[2]\n  %3 = mul(%0, %2) : f32[2]\n  return y = %3\n");
}

TEST(simplify_algebra, roots_and_powers) {
  constexpr auto square = [](auto& b, auto x) { return x.pow(b.scalar(dtype::f32, 2)); };
  KILN_EXPECT_BODY(square, "  %0 = x : f32[2]\n  %1 = mul(%0, %0) : f32[2]\n  return y = %1\n");
  constexpr auto first = [](auto& b, auto x) { return x.pow(b.scalar(dtype::f32, 1)); };
  KILN_EXPECT_BODY(first, unchanged);
  constexpr auto root = [](auto& b, auto x) { return x.abs().pow(b.scalar(dtype::f32, 0.5)); };
  KILN_EXPECT_BODY(root, "  %0 = x : f32[2]\n  %1 = abs(%0) : f32[2]\n  %2 = sqrt(%1) : f32[2]\n  return y = %2\n");
  constexpr auto inverse = [](auto& b, auto x) { return b.scalar(dtype::f32, 1) / (x * x).sqrt(); };
  KILN_EXPECT_BODY(inverse,
                   "  %0 = x : f32[2]\n  %1 = mul(%0, %0) : f32[2]\n  %2 = rsqrt(%1) : f32[2]\n  return y = %2\n");
  constexpr auto over = [](auto& b, auto x) { return b.scalar(dtype::f32, 1) / x.exp(); };
  KILN_EXPECT_BODY(over, "  %0 = x : f32[2]\n  %1 = exp(%0) : f32[2]\n  %2 = recip(%1) : f32[2]\n  return y = %2\n");
  constexpr auto norm = [](auto&, auto x) { return x / ((x * x).reduce_mean({0}) + 1.0f).sqrt(); };
  KILN_EXPECT_BODY(norm,
                   "  %0 = x : f32[2]\n  %1 = mul(%0, %0) : f32[2]\n  %2 = reduce_mean{axes = [0]}(%1) : f32[1]\n"
                   "  %3 = literal f32[] {1}\n  %4 = multibroadcast{to = [1]}(%3) : f32[1]\n"
                   "  %5 = add(%2, %4) : f32[1]\n  %6 = rsqrt(%5) : f32[1]\n"
                   "  %7 = multibroadcast{to = [2]}(%6) : f32[2]\n  %8 = mul(%0, %7) : f32[2]\n  return y = %8\n");
}

TEST(simplify_algebra, integers) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::i32, {2});
    b.output(x * 0);
    b.output(x - x);
    b.output(x / 4);
    b.output((x + 2000000000) + 2000000000);
    b.output(x.pow(b.scalar(dtype::i32, 2)));
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : i32[2]\n"
                      "  %1 = literal i32[] {0}\n"
                      "  %2 = multibroadcast{to = [2]}(%1) : i32[2]\n"
                      "  %3 = literal i32[] {0}\n"
                      "  %4 = multibroadcast{to = [2]}(%3) : i32[2]\n"
                      "  %5 = literal i32[] {4}\n"
                      "  %6 = multibroadcast{to = [2]}(%5) : i32[2]\n"
                      "  %7 = div(%0, %6) : i32[2]\n"
                      "  %8 = literal i32[] {-294967296}\n"
                      "  %9 = multibroadcast{to = [2]}(%8) : i32[2]\n"
                      "  %10 = add(%0, %9) : i32[2]\n"
                      "  %11 = mul(%0, %0) : i32[2]\n"
                      "  return output_0 = %2\n  return output_1 = %4\n  return output_2 = %7\n"
                      "  return output_3 = %10\n  return output_4 = %11\n",
                      run);
}

TEST(simplify_algebra, what_a_float_may_not_forget_stays) {
  const auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2}), h = b.input("h", dtype::f16, {2});
    b.output(x * 0.0f);                         // NaN and infinity
    b.output(x - x);                            // the same
    b.output((x + 12582912.0f) - 12582912.0f);  // rounds to an integer
    b.output((x + 65536.0f) - 65000.0f);        // rounds to 2^-7
    const auto each = [&](float first, float second) {
      return b.constant(literal::of<float>({dtype::f32, {2}}, small_vector<float>{first, second}));
    };
    b.output((x + each(8192, 4096)) + each(-8000, -4095));  // rounds to 2^-10 and 2^-11
    b.output(h * 256.0f * 512.0f);                          // the product has no half
    b.output(h * 0.0001f * 0.0001f);                        // nor this one a normal half
  };
  auto p = built<builder>(build);
  simplify_algebra(p);
  EXPECT_TRUE(same_results(built<builder>(build), p, 0));
  const std::string after = print(p).str();
  EXPECT_NE(after.find("12582912"), std::string::npos);
  EXPECT_NE(after.find("65536"), std::string::npos);
  const auto count = [&](std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = after.find(what); at != std::string::npos; at = after.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("= mul("), 5u) << after;
}

TEST(simplify_algebra, conversions_through_a_wider_type) {
  constexpr auto build = [](auto& b) {
    auto h = b.input("h", dtype::f16, {2});
    auto i = b.input("i", dtype::i64, {2});
    b.output(h.convert(dtype::f32).convert(dtype::f16));
    b.output(h.convert(dtype::f32).convert(dtype::f64));
    b.output(i.convert(dtype::i32).convert(dtype::i64));
    b.output(i.convert(dtype::f32).convert(dtype::boolean));
  };
  KILN_EXPECT_REWRITE(
      build,
      "main:\n"
      "  %0 = h : f16[2]\n"
      "  %1 = i : i64[2]\n"
      "  %2 = convert{to = f64}(%0) : f64[2]\n"
      "  %3 = convert{to = i32}(%1) : i32[2]\n"
      "  %4 = convert{to = i64}(%3) : i64[2]\n"
      "  %5 = convert{to = f32}(%1) : f32[2]\n"
      "  %6 = convert{to = bool}(%5) : bool[2]\n"
      "  return output_0 = %0\n  return output_1 = %2\n  return output_2 = %4\n  return output_3 = %6\n",
      run);
}

TEST(simplify_algebra, choices_that_are_decided) {
  constexpr auto build = [](auto& b) {
    auto x = b.input("x", dtype::f32, {2}), y = b.input("y", dtype::f32, {2});
    b.output(b.scalar(dtype::boolean, true).where(x, y));
    b.output(b.scalar(dtype::boolean, false).where(x, y));
    b.output((x < y).where(x, x));
    b.output(x.max(x).min(x).max(b.scalar(dtype::f32, 0)).relu());
    b.output((x < y).logical_not().logical_not());
  };
  KILN_EXPECT_REWRITE(build,
                      "main:\n"
                      "  %0 = x : f32[2]\n"
                      "  %1 = y : f32[2]\n"
                      "  %2 = relu(%0) : f32[2]\n"
                      "  %3 = less(%0, %1) : bool[2]\n"
                      "  return output_0 = %0\n  return output_1 = %1\n  return output_2 = %0\n"
                      "  return output_3 = %2\n  return output_4 = %3\n",
                      run);
}

}  // namespace
}  // namespace kiln::test
