#include "kiln/graph/print.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kiln/graph/builder.hpp"

namespace kiln {
namespace {

template <class Builder> constexpr auto every_kind() {
  Builder b;
  auto x = b.input("x", dtype::f32, {1, 2, 3, 3});
  auto w = b.weight("w", dtype::f32, {4, 2, 3, 3});
  auto y = x.conv(w, {.stride = {2, 2}}).relu();
  const double more[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  auto top = b.add(op::topk{.k = 1}, b.template constant<double>(dtype::f16, {9}, more));
  b.output(y);
  b.output(top.result(1), "index");
  b.output(b.scalar(dtype::boolean, true));
  b.output(b.scalar(dtype::u64, 18446744073709551615u));
  b.output(b.scalar(dtype::bf16, 0.1));
  return b.finish();
}
constexpr std::string_view every_kind_text =
    "main:\n"
    "  %0 = x : f32[1, 2, 3, 3]\n"
    "  %1 = @w : f32[4, 2, 3, 3]\n"
    "  %2 = convolution{stride = [2, 2], dilation = [], pads = [], group = 1}(%0, %1) : f32[1, 4, 1, 1]\n"
    "  %3 = relu(%2) : f32[1, 4, 1, 1]\n"
    "  %4 = literal f16[9] #e7130d34b79fbca7\n"
    "  %5:2 = topk{k = 1, axis = -1, largest = true, sorted = true}(%4) : f16[1], i64[1]\n"
    "  %6 = literal bool[] {true}\n"
    "  %7 = literal u64[] {18446744073709551615}\n"
    "  %8 = literal bf16[] {0.100097656}\n"
    "  return output_0 = %3\n"
    "  return index = %5.1\n"
    "  return output_2 = %6\n"
    "  return output_3 = %7\n"
    "  return output_4 = %8\n";

TEST(print, is_the_same_text_in_constant_evaluation_and_at_run_time) {
#ifndef KILN_TEST_SHOW
  static_assert(print(every_kind<static_builder<>>()) == text(every_kind_text));
#endif
  EXPECT_EQ(print(every_kind<builder>()).view(), every_kind_text);
}

// Of a file's weights only a few pages are read.
TEST(print, tells_large_constants_apart_by_some_elements) {
  const auto printed = [](std::size_t count, std::size_t changed) {
    std::vector<float> values(count, 1);
    values[changed] = 2;
    builder b;
    b.output(b.constant<float>(dtype::f32, {static_cast<std::int64_t>(count)}, values));
    return print(b.finish()).str();
  };
  EXPECT_NE(printed(4096, 1), printed(4096, 2));
  EXPECT_EQ(printed(100000, 1), printed(100000, 2)) << "neither is read";
  EXPECT_NE(printed(100000, 0), printed(100000, 99999));
  EXPECT_NE(printed(100000, 0), printed(100000, 1));
}

TEST(print, symbols_bodies_and_empty_constants) {
  builder b;
  const dimension n = dimension::symbol("batch", 1, 8);
  auto x = b.input("x", dtype::f32, {n, 2});
  small_vector<dimension> list{n * 2, 3};
  b.output(b.constant(literal::of_dimensions({2}, list)));
  b.output(b.constant(literal::of<float>({dtype::f32, {0, 3}}, {})));
  b.output(x);
  program p = b.finish();
  module_graph body;
  body.name = "sum";
  const value_id a = body.add_parameter("a", {dtype::f32, {n, 2}});
  body.outputs.push_back(body.add(op::add{}, {a, a}));
  const module_ref at = p.add_module(std::move(body));
  shapes results;
  results.push_back({dtype::f32, {n, 2}});
  p.main().outputs[2] = p.main().add_with_shapes(op::fused{fusion::pointwise, at}, {x.id()}, std::move(results));
  EXPECT_EQ(print(p).str(),
            "main:\n"
            "  %0 = x : f32[batch, 2]\n"
            "  %1 = literal i64[2] {2*batch, 3}\n"
            "  %2 = literal f32[0, 3] {}\n"
            "  %3 = fused{kind = pointwise, body = @1}(%0) : f32[batch, 2]\n"
            "  return output_0 = %1\n  return output_1 = %2\n  return output_2 = %3\n"
            "sum @1:\n"
            "  %0 = a : f32[batch, 2]\n"
            "  %1 = add(%0, %0) : f32[batch, 2]\n"
            "  return %1\n");
}

TEST(print, the_hash_tells_constants_apart) {
  const auto of = [](dtype t, const dims& lens, float last) {
    builder b;
    small_vector<float> values(1000, 1.0f);
    values.back() = last;
    b.output(b.constant(literal::of<float>({t, lens}, values)));
    return print(b.finish()).str();
  };
  EXPECT_EQ(of(dtype::f32, {1000}, 2), of(dtype::f32, {1000}, 2));
  EXPECT_NE(of(dtype::f32, {1000}, 2), of(dtype::f32, {1000}, 3));
  EXPECT_NE(of(dtype::f32, {1000}, 2).substr(30), of(dtype::f32, {10, 100}, 2).substr(34));
}

}  // namespace
}  // namespace kiln
