// Bodies that run as threaded code over register blocks: whole blocks, their rests, and rows side by side, against the
// reference.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/rows.hpp"
#include "kiln/op/ops.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

template <class Make> void expect_like_reference(Make make, tolerance within, double low = -2, double high = 2) {
  const auto in = random_inputs(make, 7, low, high);
  const auto expected = reference_run(make, in);
  const executable e = compile_eigen(make, {});
  const auto found = e.run(in);
  for (std::size_t k = 0; k < expected.size(); ++k) expect_close(found[k], expected[k], within);
}

TEST(Blocks, ChainsWithValuesReadAgain) {
  for (const std::int64_t n : {1, 7, 16, 100, 128, 129, 1000})
    expect_like_reference(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {3, n}), y = b.input("y", dtype::f32, {3, n});
          const value s = (x * y).sigmoid(), t = (s + x).tanh();
          b.output(((t * s - y) * (t + y)).relu() + s);
          b.output(t);
        },
        {1e-5, 1e-5});
}

// Rows that end within a block are ended by one that begins within the last: not where it would count or change
// elements twice.
TEST(Blocks, RowsEndWithinBlocks) {
  for (const std::int64_t n : {5, 17, 31, 127, 129, 145, 199, 260})
    expect_like_reference(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {3, 7, n}), y = b.input("y", dtype::f32, {3, 1, n}),
                      z = b.input("z", dtype::f32, {3, 7, 1});
          b.output((x + y) * z);
          b.output(x > y);
          b.output((x > z).where(x.convert(dtype::f16), y.broadcast_to({3, 7, n}).convert(dtype::f16)));
          b.output((x * z).convert(dtype::u8));
          b.output((x * x).reduce_sum({1}));
        },
        {1e-5, 1e-5}, 0, 2);
}

TEST(Blocks, ManyShortRowsOfAWiderBuffer) {
  for (const std::int64_t n : {3, 16, 24, 96, 130, 700})
    for (const bool of_all : {false, true})
      expect_like_reference(
          [&](builder& b) {
            const value x =
                b.input("x", dtype::f32, {2, 50, n + 5}).slice({.axes = {2}, .starts = {2}, .ends = {n + 2}});
            const auto factor = [&](std::string name) {
              return of_all ? b.input(name, dtype::f32, {1}) : b.input(name, dtype::f32, {n});
            };
            const value scale = factor("scale"), shift = factor("shift");
            b.output((x * scale + shift).relu());
            b.output(x * scale + shift);
            b.output((x + shift).relu());
            b.output(x.relu());
          },
          {1e-6, 1e-6});
}

TEST(Blocks, ConditionsAndShortFloats) {
  for (const dtype t : {dtype::f32, dtype::f16, dtype::bf16})
    for (const std::int64_t n : {5, 64, 300})
      expect_like_reference(
          [&](builder& b) {
            const value x = b.input("x", t, {2, n}), y = b.input("y", t, {n}), c = b.input("c", dtype::boolean, {2, 1});
            const value less = x < y;
            b.output(less);
            b.output(b.add(op::where{}, b.add(op::logical_and{}, less, c.broadcast_to({2, n})), x * x, y + x));
          },
          {t == dtype::f32   ? 1e-6
           : t == dtype::f16 ? 2e-3
                             : 2e-2,
           1e-6});
}

TEST(Blocks, BytesAndWholeNumbersBesideFloats) {
  for (const dtype byte : {dtype::u8, dtype::i8})
    for (const std::int64_t n : {1, 5, 16, 64, 130, 300})
      expect_like_reference(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {3, n}), q = b.input("q", byte, {3, n}),
                        row = b.input("row", byte, {3, 1}), sum = b.input("sum", dtype::i32, {3, n});
            b.output((x * 90.0).convert(byte));  // beyond the byte on both sides
            b.output((x * 90.0).convert(byte).convert(dtype::f32) * 0.5 + x);
            b.output((q.convert(dtype::f32) - row.convert(dtype::f32).broadcast_to({3, n})) * x);
            b.output(b.add(op::round{}, sum.convert(dtype::f32) * 0.37).convert(dtype::i8));
            b.output(q.convert(dtype::f16).convert(dtype::f32) * x);
          },
          {1e-5, 1e-5}, -4, 4);
}

TEST(Blocks, FloatsThatNoByteHoldsBecomeTheNearestOneOrWrap) {
  const std::vector<float> x = {std::nanf(""), INFINITY, -INFINITY, 255.7F, 256,     -1,   -0.5F, -300,  1e10F,
                                -1e10F,        -1e30F,   127.5F,    128,    -128.5F, -129, 3.99F, -3.99F};
  for (const dtype byte : {dtype::u8, dtype::i8}) {
    const auto make = [&](builder& b) {
      const value v = b.input("x", dtype::f32, {static_cast<std::int64_t>(x.size())});
      b.output(v.convert(byte));
      b.output(v.convert(byte).convert(dtype::f32) + 1.0);
    };
    argument a(shape{dtype::f32, {static_cast<std::int64_t>(x.size())}});
    std::memcpy(a.data(), x.data(), x.size() * sizeof(float));
    const std::vector<argument> in{a};
    const auto expected = reference_run(make, in);
    const auto found = compile_eigen(make, {}).run(in);
    for (std::size_t k = 0; k < expected.size(); ++k) expect_close(found[k], expected[k], {0, 0});
  }
}

TEST(Blocks, BytesOfRowsAndWithoutOrder) {
  for (const std::int64_t n : {3, 70, 257})
    expect_like_reference(
        [&](builder& b) {
          const value q = b.input("q", dtype::u8, {n, 19}), scale = b.input("scale", dtype::f32, {19, 1});
          const value x = q.transpose({1, 0}).convert(dtype::f32) * scale;
          b.output((x * 0.01 * x.reduce_max({1})).convert(dtype::u8));
          b.output(b.add(op::round{}, x - x.reduce_max({1}) * 0.5).convert(dtype::i8));
        },
        {1e-5, 1e-5}, 1, 30);
}

TEST(Blocks, SoftmaxAlongAnyAxisAndLength) {
  for (const std::int64_t inner : {1, 3, 16, 21, 128, 150, 300})
    for (const std::int64_t rows : {1, 5, 130})
      for (const std::int64_t axis : {1, 2})
        expect_like_reference(
            [&](builder& b) {
              b.output(b.input("x", dtype::f32, {2, rows, inner}).softmax(axis));
            },
            {1e-5, 1e-7}, -30, 30);
}

TEST(Blocks, RowsSideBySideWithRowValuesAndRepeats) {
  for (const std::int64_t inner : {4, 33, 272})
    expect_like_reference(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {2, 19, inner}), g = b.input("g", dtype::f32, {19, 1});
          const value centered = x - x.reduce_mean({1}), variance = (centered * centered).reduce_mean({1});
          b.output(centered / (variance + 1e-3F).sqrt() * g);
          b.output(variance);
        },
        {1e-4, 1e-5});
}

TEST(Blocks, QuotientsByARowsValueKeepTheirRange) {
  // the reciprocal of the greatest sum is no normal number, that of nothing is infinite
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 40});
    b.output(x / x.reduce_max({1}));
  };
  argument x(shape{dtype::f32, {3, 40}});
  auto* const at = reinterpret_cast<float*>(x.data());
  for (int i = 0; i < 40; ++i) {
    at[i] = static_cast<float>(i - 20) * 1e37F;
    at[40 + i] = i < 39 ? -1.0F : 0.0F;
    at[80 + i] = static_cast<float>(i - 39) - 2.0F;
  }
  const std::vector<argument> in{x};
  const auto found = compile_eigen(make, {}).run(in);
  const auto* const y = reinterpret_cast<const float*>(found[0].data());
  EXPECT_FLOAT_EQ(y[39], 1.0F);
  EXPECT_FLOAT_EQ(y[0], -20.0F / 19.0F);
  EXPECT_EQ(y[40], -INFINITY);
  EXPECT_FLOAT_EQ(y[80], 41.0F / 2.0F);
}

TEST(Blocks, NormsOfRowsOfAnyLength) {
  for (const std::int64_t n : {3, 16, 64, 127, 128, 256, 300, 1000})
    expect_like_reference(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {70, n}), y = b.input("y", dtype::f32, {70, n}),
                      scale = b.input("scale", dtype::f32, {n}), bias = b.input("bias", dtype::f32, {n});
          const value sum = x + y, centered = sum - sum.reduce_mean({1});
          b.output(centered * ((centered * centered).reduce_mean({1}) + 1e-3F).rsqrt() * scale + bias);
          b.output(x * ((x * x).reduce_mean({1}) + 1e-3F).rsqrt() * scale);
          b.output(y.reduce_max({1}));
          b.output(y.reduce_min({1}));
          b.output(y.reduce_sum({1}));
          b.output(y.reduce_mean({1}));
          b.output(y / y.abs().reduce_max({1}));
          b.output(x / b.add(op::reduce_l2{.axes = {1}}, x));
          b.output(x / b.add(op::reduce_l1{.axes = {1}}, x));
          b.output(x - b.add(op::reduce_sum_square{.axes = {1}}, x));
        },
        {1e-4, 1e-5});
}

// Rows that go level by level in batches, and whose operands lie apart or repeat from row to row.
TEST(Blocks, BatchesOfRowsThatLieApart) {
  for (const std::int64_t n : {5, 64, 200, 1100})
    expect_like_reference(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {3, 9, 2 * n + 3}), z = b.input("z", dtype::f32, {9, n}),
                      row = b.input("row", dtype::f32, {3, 9, 1});
          const value part = x.slice({.axes = {2}, .starts = {3}, .ends = {3 + n}}), mean = part.reduce_mean({2});
          b.output(part - mean);
          b.output(mean);
          b.output((part + z).softmax(2));
          b.output((part / row).reduce_max({2}));
          b.output((part * row + z).softmax(2));
        },
        {1e-4, 1e-5});
}

// Rows long enough, and tensors big enough, that memory is asked for in advance.
TEST(Blocks, ManyRows) {
  for (const std::int64_t n : {40, 500, 5000})
    expect_like_reference(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {400000 / n, n});
          b.output(x.softmax(1));
          b.output(x.tanh() + 1.0F);
        },
        {1e-5, 1e-7});
}

TEST(Blocks, AMaximumOfNansIsNan) {
  const auto make = [](builder& b) { b.output(b.input("x", dtype::f32, {2, 256}).reduce_max({1})); };
  argument x(shape{dtype::f32, {2, 256}});
  auto* const at = reinterpret_cast<float*>(x.data());
  for (int i = 0; i < 512; ++i) at[i] = static_cast<float>(i);
  at[77] = NAN;
  const std::vector<argument> in{x};
  const auto found = compile_eigen(make, {}).run(in);
  EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(found[0].data())[0]));
  EXPECT_EQ(reinterpret_cast<const float*>(found[0].data())[1], 511.0F);
}

// Runs a body of one matrix with stores of either kind, which write the same, and gives that.
argument stored_either_way(const module_graph& body, const argument& in, thread_pool& pool) {
  const shape& full = in.get_shape();
  const auto kernel = eigen::make_rows_kernel(body, "rows");
  argument source = in, near(full), past(full);
  const std::int64_t rows = full.lens[0].value(), n = full.lens[1].value();
  const auto tensor_of = [&](argument& a) { return tensor{a.data(), dtype::f32, {rows, n}, {n, 1}}; };
  for (argument* out : {&near, &past}) {
    const tensor from = tensor_of(source), to = tensor_of(*out);
    buffer scratch = buffer::allocate(kernel->scratch_bytes({&from, 1}, {&to, 1}, pool.size()) + 64);
    launch l{{&from, 1}, {&to, 1}, {scratch.data(), scratch.size()}, &pool};
    l.unread = out == &past;
    kernel->run(l);
  }
  EXPECT_EQ(std::memcmp(near.data(), past.data(), static_cast<std::size_t>(in.elements()) * 4), 0) << to_string(full);
  return near;
}

// As an epilogue's: what ends a row must not compute again what it has written.
// What a body of one parameter writes over it; the parameter's elements are their numbers.
small_vector<float> in_place(const module_graph& body, const dims& lens) {
  thread_pool pool(1);
  const auto kernel = eigen::make_rows_kernel(body, "rows");
  argument values({dtype::f32, lens});
  const auto v = values.as<float>();
  for (std::size_t k = 0; k < v.size(); ++k) v[k] = static_cast<float>(k);
  const tensor of = tensor_of(values);
  buffer scratch = buffer::allocate(kernel->scratch_bytes({&of, 1}, {&of, 1}, 1) + 64);
  kernel->run({{&of, 1}, {&of, 1}, {scratch.data(), scratch.size()}, &pool});
  return values.to<float>();
}

TEST(Blocks, ResultsInPlaceOfAnOperand) {
  for (const std::int64_t n : {5, 31, 199, 260}) {
    module_graph body;
    const shape full{dtype::f32, {n}};
    const value_id x = body.add_parameter("x", full), square = body.add_with_shapes(op::mul{}, {x, x}, {full});
    body.outputs.push_back(body.add_with_shapes(op::sub{}, {square, x}, {full}));
    const auto v = in_place(body, {n});
    for (std::size_t k = 0; k < v.size(); ++k) ASSERT_EQ(v[k], static_cast<float>(k * k) - static_cast<float>(k));
  }
  // columns side by side, the last ones in a block of their own
  for (const std::int64_t n : {21, 49}) {
    module_graph body;
    const shape full{dtype::f32, {4, n}}, row{dtype::f32, {1, n}};
    const value_id x = body.add_parameter("x", full), sum = body.add_with_shapes(op::reduce_sum{{0}}, {x}, {row}),
                   all = body.add_with_shapes(op::multibroadcast{{4, n}}, {sum}, {full});
    body.outputs.push_back(body.add_with_shapes(op::sub{}, {all, x}, {full}));
    const auto v = in_place(body, {4, n});
    for (std::int64_t k = 0; k < 4 * n; ++k)
      ASSERT_EQ(v[static_cast<std::size_t>(k)], static_cast<float>(4 * (k % n) + 6 * n - k)) << k;
  }
}

TEST(Blocks, StoresPastTheCachesWriteTheSame) {
  thread_pool pool(2);
  for (const bool normalizes : {false, true})
    for (const std::int64_t n : {100, 128, 1024 + 16}) {
      module_graph body;
      const shape full{dtype::f32, {64, n}}, row{dtype::f32, {64, 1}};
      const value_id x = body.add_parameter("x", full);
      value_id y = x;
      if (normalizes) {
        const value_id top = body.add_with_shapes(op::reduce_max{.axes = {1}}, {x}, {row});
        const value_id all = body.add_with_shapes(op::multibroadcast{full.lens}, {top}, {full});
        y = body.add_with_shapes(op::mul{}, {x, all}, {full});
      } else {
        y = body.add_with_shapes(op::mul{}, {x, x}, {full});
      }
      body.outputs.push_back(y);
      argument in(full);
      for (std::int64_t i = 0; i < in.elements(); ++i)
        reinterpret_cast<float*>(in.data())[i] = static_cast<float>(i % 977) - 400;
      stored_either_way(body, in, pool);
    }
}

// An activation by itself: one loop, of groups of vectors and their rest, with stores of either kind.
template <class Op> void expect_one_loop(const Op& activation, std::int64_t n) {
  SCOPED_TRACE(std::string(operation(activation).name()) + " of " + std::to_string(n));
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {inf, -inf, NAN, 0.0F, -0.0F, 3e38F, -3e38F, 1e-30F, 1e-39F, -1e-39F, 88.8F, -104.0F};
  thread_pool pool(2);
  module_graph body;
  const shape full{dtype::f32, {8, n}};
  body.outputs.push_back(body.add_with_shapes(activation, {body.add_parameter("x", full)}, {full}));
  const eigen::tile_program compiled(body);
  ASSERT_NE(compiled.blocks(), nullptr);
  EXPECT_TRUE(compiled.blocks()->compiled());
  std::vector<argument> in{argument(full)};
  const auto x = in[0].as<float>();
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i % 19 == 3 ? special[i / 19 % std::size(special)] : static_cast<float>(i % 977) / 80 - 6;
  const auto make = [&](builder& b) { b.output(b.add(activation, b.input("x", dtype::f32, {8, n}))); };
  expect_close(stored_either_way(body, in[0], pool), reference_run(make, in)[0], {2e-6, 1e-6});  // 1 + erf cancels
}

TEST(Blocks, ActivationsByThemselves) {
  for (const std::int64_t n : {100, 128, 1024 + 16}) {
    expect_one_loop(op::gelu{}, n);
    expect_one_loop(op::gelu{.tanh_approximation = true}, n);
    expect_one_loop(op::sigmoid{}, n);
    expect_one_loop(op::tanh{}, n);
    expect_one_loop(op::exp{}, n);
  }
}

}  // namespace
}  // namespace kiln::testing
