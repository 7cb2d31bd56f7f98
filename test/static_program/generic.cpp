// Steps that run an op's own reference computation: every generic op, over operands of any dtype and layout.
#include <gmock/gmock.h>

#include "kiln/op/more.hpp"
#include "static_program/equal.hpp"

namespace kiln::test {
namespace {

using namespace kiln::op;  // NOLINT: most of them
struct every_op : registry_from<decltype(join(default_registry::types{}, more_ops{}))> {};

template <auto Net> void expect_steps(std::uint64_t seed, double tolerance = 1e-6) {
  expect_equal<Net, every_op, false>(seed, tolerance);
}

constexpr auto along_axes = [](auto& b) {
  auto x = b.input("x", dtype::f32, {4, 6, 5});
  b.output(x | cumsum{.axis = 1, .exclusive = true});
  b.output((x.transpose({2, 0, 1}) | cumsum{.axis = 0, .reverse = true}) * 2.0);
  b.output(x | cumprod{.axis = -1});
  b.output(x | arg_max{.axis = 1});
  b.output(b.input("i", dtype::i32, {3, 7}) | arg_min{.axis = 0, .select_last_index = true});
  const auto best = x | topk{.k = 3, .axis = 1};
  b.output(best), b.output(best.result(1));
  b.output(b.input("h", dtype::f16, {9}) | topk{.k = 9, .largest = false});
  b.output(x.slice({.axes = {2}, .starts = {1}, .ends = {4}}) | lrn{.size = 3, .alpha = 0.5f});
};
TEST(static_generic, along_axes) { expect_steps<along_axes>(1); }

constexpr auto selections = [](auto& b) {
  auto x = b.input("x", dtype::f32, {7, 8});
  auto i = b.input("i", dtype::i64, {3, 8}), u = b.input("u", dtype::u64, {7, 4});
  b.output(b.add(gather_elements{.axis = 0}, x, i));
  b.output(b.add(gather_elements{.axis = 1}, x, u));
  b.output(b.add(gather_nd{}, x, b.input("tuples", dtype::i32, {5, 2})));
  b.output(b.add(scatter_elements{.axis = 0, .reduction = scatter_mode::add}, x, i, b.input("y", dtype::f32, {3, 8})));
  b.output(
      b.add(scatter_nd{}, x.transpose({1, 0}), b.input("rows", dtype::u8, {2, 1}), b.input("z", dtype::f32, {2, 7})));
  b.output(b.add(one_hot{.depth = 7, .axis = 1}, b.input("k", dtype::i16, {4, 3}), b.input("values", dtype::f16, {2})));
};
TEST(static_generic, selections) { expect_steps<selections>(2); }

constexpr auto placements = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 5, 6});
  b.output(b.add(pad{.mode = pad_mode::reflect, .pads = {0, 1, 2, 0, 3, -1}}, x));
  b.output(b.add(pad{.pads = {1, -2, 0, 0, 0, 2}}, x, b.input("filler", dtype::f32, {1})));
  b.output(b.add(pad{.mode = pad_mode::wrap, .pads = {3, 4}}, b.input("c", dtype::boolean, {5})));
  b.output(x | tri{.upper = false, .k = 1});
  b.output(x.transpose({0, 2, 1}) | contiguous{});
  b.output((x | tri{}).concat(x, 2));  // written where the concatenation has it
  b.output(x | bit_cast{.to = dtype::i32});
  b.output(b.add(block_dequantize{.bits = 4, .block = 4, .zero = 8}, b.input("bytes", dtype::u8, {3, 4}),
                 b.input("scales", dtype::f32, {3, 2})));
  b.output(b.add(block_dequantize{.axis = 0, .block = 2}, b.input("small", dtype::i8, {3, 4}),
                 b.input("steps", dtype::f16, {2, 4}), b.input("zeros", dtype::f32, {2, 4})));
  b.output(b.input("d", dtype::f64, {3, 4, 4}) | det{});
};
TEST(static_generic, placements) { expect_steps<placements>(3); }

constexpr float scales[] = {.5F, 1, 2};
constexpr std::int64_t zeros[] = {0, 1, 2};
constexpr auto integers = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 3, 4}), one = b.scalar(dtype::f32, .25);
  auto scale = b.template constant<float>(dtype::f32, {3}, scales);
  auto zero = b.template constant<std::int64_t>(dtype::u8, {3}, zeros);
  auto stored = b.add(quantize_linear{dtype::u8, 1}, x, scale, zero);
  b.output(b.add(dequantize_linear{1}, stored, scale, zero));
  b.output(b.add(dequantize_linear{}, b.add(quantize_linear{dtype::i16}, x, one), one));
};
TEST(static_generic, integers) { expect_steps<integers>(4); }

constexpr std::int64_t batches[] = {1, 0, -1};
constexpr auto windows = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 4, 5, 6});
  b.output(b.add(deconvolution{.stride = {2, 1}, .pads = {1, 0, 0, 1}, .group = 2}, x,
                 b.weight("w", dtype::f32, {4, 3, 3, 2})));
  b.output(b.add(roi_align{.height = 2, .width = 3, .samples = 2, .scale = 2}, x, b.input("rois", dtype::f32, {3, 4}),
                 b.constant(dtype::i32, {3}, std::span<const std::int64_t>(batches))));
  const auto q = b.input("q", dtype::f64, {1, 4, 3, 5}), k = b.input("k", dtype::f64, {1, 2, 6, 5});
  b.output(q.attention(k, k, {.scale = 0.5f, .causal = true}));  // attention's own step is for f32
};
TEST(static_generic, windows) { expect_steps<windows>(4); }

constexpr auto recurrences = [](auto& b) {
  const auto gates = b.input("gates", dtype::f32, {4, 2, 12}), state = b.input("state", dtype::f32, {2, 3});
  const auto steps = b.weight("recurrence", dtype::f32, {3, 12}), bias = b.weight("bias", dtype::f32, {12});
  const recurrent lstm{.cell = cell_kind::lstm,
                       .functions = {cell_function::sigmoid, cell_function::tanh, cell_function::tanh},
                       .alpha = {0, 0, 0},
                       .beta = {0, 0, 0},
                       .reverse = true};
  const auto y = b.add(lstm, gates, steps, bias, state, b.input("lengths", dtype::i64, {2}),
                       b.input("cell", dtype::f32, {2, 3}), b.weight("peepholes", dtype::f32, {9}));
  b.output(y), b.output(y.result(1)), b.output(y.result(2));
  const auto h =
      b.add(recurrent{}, b.input("half", dtype::f16, {3, 1, 2}), b.weight("r", dtype::f16, {2, 2}),
            b.weight("c", dtype::f16, {2}), b.input("first", dtype::f16, {1, 2}), b.input("length", dtype::i32, {1}));
  b.output(h);
  const auto q = b.input("q", dtype::f32, {1, 3, 2, 4}), k = b.input("k", dtype::f32, {1, 3, 1, 4});
  const auto a = b.add(linear_attention{.corrects = true}, q, k, b.input("v", dtype::f32, {1, 3, 1, 5}),
                       b.input("memory", dtype::f32, {1, 1, 4, 5}), b.input("decay", dtype::f32, {1, 3, 1, 4}),
                       b.input("beta", dtype::f32, {1, 3, 1}));
  b.output(a), b.output(a.result(1));
};
TEST(static_generic, recurrences) { expect_steps<recurrences>(5, 1e-5); }

constexpr auto transforms = [](auto& b) {
  b.output(b.input("signal", dtype::f32, {2, 6, 1}) | dft{.one_sided = true});
  b.output(b.input("spectrum", dtype::f64, {5, 3, 2}) | dft{.axis = 0, .inverse = true});
  b.output(b.input("matrices", dtype::f64, {2, 3, 3}) | op::inverse{});
};
TEST(static_generic, transforms) { expect_steps<transforms>(6, 1e-5); }

constexpr auto sampling = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 2, 4, 5});
  b.output(b.add(resample{.axes = {2}}, x, b.input("rows", dtype::i64, {2, 7}), b.input("w", dtype::f32, {2, 7})));
  b.output(
      b.add(resample{.axes = {3}, .weighted = false}, x.transpose({0, 1, 3, 2}), b.input("at", dtype::i32, {1, 3})));
  b.output(b.add(grid_sample{}, x, b.input("grid", dtype::f32, {1, 3, 3, 2})));
};
TEST(static_generic, sampling) { expect_steps<sampling>(7, 1e-5); }

constexpr auto random_numbers = [](auto& b) { b.output(b.add(random_uniform{.lens = {3}, .type = dtype::f64})); };
TEST(static_generic, random_numbers_begin_with_the_seed_again_in_each_run) {
  static_program<random_numbers, every_op> p;
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(p(), ::testing::ElementsAre(philox(0, 0).number(0), philox(0, 0).number(1), philox(1, 0).number(0)));
}

// Every generic op that passes leave in a program: constants and copies they do away with, concatenations are written
// in place.
template <auto Net> void mark(std::array<bool, every_op::size>& seen) {
  using net = aot::frozen_net<Net, every_op>;
  for (std::size_t k = 0; k < static_cast<std::size_t>(net::front.steps.count); ++k) {
    const auto step = aot::record<aot::step>(net::words, net::front.steps, k);
    const auto kernel = from_words<aot::kernel>(net::words + step.kernel);
    if (kernel.kind == aot::step_kind::other) seen[static_cast<std::size_t>(kernel.op)] = true;
  }
}
TEST(static_generic, every_op_has_a_step) {
  std::array<bool, every_op::size> seen{};
  mark<along_axes>(seen), mark<selections>(seen), mark<placements>(seen), mark<windows>(seen), mark<recurrences>(seen);
  mark<random_numbers>(seen), mark<transforms>(seen), mark<integers>(seen), mark<sampling>(seen);
  for (const std::string_view elsewhere : {"concat", "contiguous", "fill", "iota", "gather", "pooling"})
    seen[every_op::find(elsewhere)] = true;
  for (std::size_t k = 0; k < every_op::size; ++k)
    EXPECT_TRUE(seen[k] || every_op::infos[k].kind != op_kind::generic) << every_op::infos[k].name;
}

// An index outside its extent is the nearest one inside, as there is no way to report it.
constexpr auto outside = [](auto& b) {
  auto x = b.input("x", dtype::f32, {4});
  auto i = b.input("i", dtype::i32, {3});
  b.output(b.add(gather_elements{}, x, i));
  b.output(b.add(scatter_elements{}, x, i, b.input("y", dtype::f32, {3})));
  b.output(x.gather(i));
};
TEST(static_generic, an_index_outside_is_the_nearest_one) {
  static_program<outside> p;
  const float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30};
  const std::int32_t i[] = {9, -2, -7};
  p.run(x, i, y);
  EXPECT_THAT(p.result<0>(), ::testing::ElementsAre(4, 3, 1));
  EXPECT_THAT(p.result<1>(), ::testing::ElementsAre(30, 2, 20, 10));
  EXPECT_THAT(p.result<2>(), ::testing::ElementsAre(4, 3, 1));
}

}  // namespace
}  // namespace kiln::test
