#include "kiln/pass/move_quantization.hpp"

#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/dead_code.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

value to_bytes(builder& b, value x, float scale, float zero, float low = 0) {
  const value y = (x / scale | op::round{}) + zero;
  return b.add(op::clip{}, y, b.scalar(dtype::f32, low), b.scalar(dtype::f32, 255.F)).convert(dtype::u8);
}
value to_floats(builder& b, value q, float scale, std::int64_t zero) {
  return (q.convert(dtype::i32) - b.scalar(dtype::i32, zero)).convert(dtype::f32) * scale;
}

template <class Build> program moved(Build build) {
  program p = built<builder>(build);
  move_quantization(p);
  constant_folding(p);
  dead_code(p);
  verify(p);
  return p;
}
// How many instructions of f32 remain.
std::size_t floats_in(const program& p) {
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    n += p.main()[i].kind == instruction_kind::op && p.main()[i].results[0].type == dtype::f32;
  return n;
}
template <class Build> void expect_bytes_alone(Build build) {
  const program p = moved(build);
  EXPECT_EQ(floats_in(p), 0U) << print(p).view();
  EXPECT_TRUE(same_results(built<builder>(build), p, 0)) << print(p).view();
}

// What moves or selects values of one scale never sees a float: each op of a quantized file between the two.
TEST(move_quantization, bytes_are_moved_and_selected) {
  using make = value (*)(builder&, value);
  const std::pair<const char*, make> ops[] = {
      {"nothing", [](builder&, value x) { return x; }},
      {"Transpose",
       [](builder&, value x) {
         return x.transpose({0, 2, 3, 1});
       }},
      {"Reshape",
       [](builder&, value x) {
         return x.reshape({4, 48});
       }},
      {"Squeeze",
       [](builder&, value x) {
         return x.reshape({2, 4, 1, 24}).reshape({2, 4, 24});
       }},
      {"Slice", [](builder&, value x) { return x.slice({.axes = {1}, .starts = {1}, .ends = {3}}); }},
      {"Expand",
       [](builder&, value x) {
         return x.slice({.axes = {1}, .starts = {1}, .ends = {2}}).broadcast_to({2, 4, 4, 6});
       }},
      {"Pad",
       [](builder& b, value x) {
         return b.add(op::pad{.pads = {0, 0, 1, 2, 0, 0, 1, 0}}, x, b.scalar(dtype::f32, .25F));
       }},
      {"Pad with 0",
       [](builder& b, value x) {
         return b.add(op::pad{.pads = {0, 0, 1, 2, 0, 0, 1, 0}}, x);
       }},
      {"Gather",
       [](builder& b, value x) {
         return b.add(op::gather{.axis = 1}, x,
                      b.constant<std::int64_t>(dtype::i64, {3}, std::vector<std::int64_t>{2, 0, 2}));
       }},
      {"MaxPool",
       [](builder&, value x) {
         return x.pool({.mode = op::pooling_mode::max, .lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
       }},
      {"several",
       [](builder&, value x) {
         return x.pool({.mode = op::pooling_mode::max, .lengths = {2, 2}}).transpose({0, 2, 3, 1}).reshape({2, 60});
       }},
  };
  for (const auto& [name, make] : ops) {
    SCOPED_TRACE(name);
    expect_bytes_alone([make = make](builder& b) {
      const value x = to_floats(b, b.input("x", dtype::u8, {2, 4, 4, 6}), .05F, 7);
      b.output(to_bytes(b, make(b, x), .05F, 7));
    });
  }
}

TEST(move_quantization, concatenated_bytes) {
  expect_bytes_alone([](builder& b) {
    const value x = to_floats(b, b.input("x", dtype::u8, {2, 3}), .05F, 7),
                y = to_floats(b, b.input("y", dtype::u8, {2, 5}), .05F, 7);
    b.output(to_bytes(b, b.add(op::concat{1}, x, y, x), .05F, 7));
  });
}

// The sums of a layer become bytes before they are pooled or joined, so that its kernel writes bytes.
TEST(move_quantization, what_layers_compute_is_quantized_before_it_is_moved) {
  const auto build = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 2, 6, 6}), y = (x * 3.F).relu(), z = x + 1.F;
    const value pooled = y.pool({.mode = op::pooling_mode::max, .lengths = {2, 2}, .stride = {2, 2}});
    b.output(to_bytes(b, pooled.concat(z.slice({.axes = {2, 3}, .starts = {0, 0}, .ends = {3, 3}}), 1), .05F, 7));
  };
  const program p = moved(build);
  bool joins = false;
  for (std::uint32_t i = 0; i < p.main().size(); ++i) {
    const auto& made = p.main()[i];
    if (made.kind != instruction_kind::op || !made.op.is<op::concat>()) continue;
    EXPECT_EQ(made.results[0].type, dtype::u8) << print(p).view();
    joins = true;
  }
  EXPECT_TRUE(joins);
  EXPECT_TRUE(same_results(built<builder>(build), p, 0));
}

// Passes write a division by a power of two as a product; other factors are no scale.
TEST(move_quantization, a_power_of_two_may_multiply) {
  for (const auto& [factor, moves] : {std::pair(4.F, true), std::pair(.125F, true), std::pair(3.F, false)}) {
    const auto build = [f = factor](builder& b) {
      const value x = (b.input("x", dtype::f32, {2, 6}) + 1.F).transpose({1, 0});
      const value y = (x * f | op::round{}) + 9.F;
      b.output(b.add(op::clip{}, y, b.scalar(dtype::f32, 0.F), b.scalar(dtype::f32, 255.F)).convert(dtype::u8));
    };
    const program p = moved(build);
    const value_id out = p.main().outputs[0];
    EXPECT_EQ(p.main().producer(out).op.is<op::transpose>(), moves) << print(p).view();
    EXPECT_TRUE(same_results(built<builder>(build), p, 0));
  }
}

TEST(move_quantization, other_numbers_and_other_readers_stay) {
  const auto expect_unchanged = [](const auto& build) {
    program p = built<builder>(build);
    EXPECT_FALSE(move_quantization(p).changed()) << print(p).view();
  };
  const op::pooling pool{.mode = op::pooling_mode::max, .lengths = {2, 2}};
  expect_unchanged([&](builder& b) {  // a program's own floats are fewer after pooling
    b.output(to_bytes(b, b.input("x", dtype::f32, {1, 2, 4, 4}).pool(pool), .05F, 7));
  });
  expect_unchanged([&](builder& b) {  // another one reads the floats
    const value y = b.input("x", dtype::f32, {1, 2, 4, 4}).relu();
    b.output(to_bytes(b, y.pool(pool), .05F, 7));
    b.output(y);
  });
  expect_unchanged([&](builder& b) {  // a mean is between two bytes
    const value x = to_floats(b, b.input("x", dtype::u8, {1, 2, 4, 4}), .05F, 7);
    b.output(to_bytes(b, x.pool({.mode = op::pooling_mode::average, .lengths = {2, 2}}), .05F, 7));
  });
  expect_unchanged([&](builder& b) {  // not all bytes are kept
    b.output(to_bytes(b, to_floats(b, b.input("x", dtype::u8, {8}), .05F, 7), .05F, 7, 7));
  });
  expect_unchanged(
      [&](builder& b) { b.output(to_bytes(b, to_floats(b, b.input("x", dtype::u8, {8}), .05F, 7), .06F, 7)); });
}

}  // namespace
}  // namespace kiln::test
