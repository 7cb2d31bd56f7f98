// Every pointwise op, in every dtype it accepts, through the Eigen target: equal to the op's own computation.
#include <gmock/gmock.h>

#include "kiln/op/ops.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr dtype every_dtype[] = {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::i8,  dtype::i16,    dtype::i32,
                                 dtype::i64, dtype::u8,  dtype::u16, dtype::u32,  dtype::u64, dtype::boolean};

// A float tile may differ from the scalar computation in its last bits; rounding to a short float may then fall apart
// by one step. Everything else is equal.
tolerance tolerance_of(dtype t) {
  if (t == dtype::f32) return {4e-6, 2e-6};
  if (t == dtype::f64) return {1e-14, 1e-15};
  if (t == dtype::f16) return {2e-3, 1e-6};
  if (t == dtype::bf16) return {2e-2, 1e-6};
  return {0, 0};
}

// Operands of [3, n]: a transposed view, a repeated column, a repeated row, a dense one.
value operand(builder& b, std::size_t k, dtype t, std::int64_t n) {
  const std::string name = "x" + std::to_string(k);
  switch (k % 4) {
    case 0: return b.input(name, t, {n, 3}).transpose({1, 0});
    case 1: return b.input(name, t, {3, 1}).broadcast_to({3, n});
    case 2: return b.input(name, t, {n}).broadcast_to({3, n});
    default: return b.input(name, t, {3, n});
  }
}

template <class Op> void check_op() {
  constexpr op_info info = info_of<Op>();
  if constexpr (info.kind == op_kind::pointwise && !std::is_same_v<Op, op::convert>) {
    SCOPED_TRACE(std::string(info.name));
    for (const dtype t : every_dtype) {
      if (!info.types.contains(t)) continue;
      SCOPED_TRACE(std::string(to_string(t)));
      for (const std::int64_t n : {1, 15, 16, 17, 511, 513}) {
        if (t != dtype::f32 && n != 17 && n != 513) continue;
        for (const std::size_t first : {0u, 3u}) {  // strided operands first, then a dense one
          const auto make = [&](builder& b) {
            small_vector<value> in;
            for (std::size_t k = 0; k < static_cast<std::size_t>(info.inputs); ++k)
              in.push_back(
                  operand(b, first + k, k < static_cast<std::size_t>(info.conditions) ? dtype::boolean : t, n));
            b.output(b.add(Op{}, in));
          };
          for (const auto& [low, high] : {std::pair(-6.0, 6.0), std::pair(0.05, 0.95)}) {
            if (low > 0 && !is_float(t)) continue;
            SCOPED_TRACE(::testing::Message() << "n " << n << " from " << low);
            const auto in = random_inputs(make, static_cast<unsigned>(n), low, high);
            const auto expected = reference_run(make, in);
            compile_options o = plain_options();
            o.passes.simplify = o.passes.fuse = false;
            const executable e = compile_eigen(make, o);
            for (const step_info& s : e.report().steps) ASSERT_FALSE(s.fallback || s.copy) << s.kernel;
            expect_close(e.run(in)[0], expected[0], tolerance_of(t));
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

template <std::size_t First, std::size_t... I> void check_ops(std::index_sequence<I...>) {
  (check_op<default_registry::at<First + I>>(), ...);
}

// In parts, so that failures stand apart and tests run side by side.
template <std::size_t First> void check_part() {
  constexpr std::size_t size = default_registry::size, each = 20;
  if constexpr (First < size) check_ops<First>(std::make_index_sequence<(size - First < each ? size - First : each)>{});
}

TEST(laws, pointwise_ops_0) { check_part<0>(); }
TEST(laws, pointwise_ops_1) { check_part<20>(); }
TEST(laws, pointwise_ops_2) { check_part<40>(); }
TEST(laws, pointwise_ops_3) { check_part<60>(); }
TEST(laws, pointwise_ops_4) { check_part<80>(); }

TEST(laws, conversions_between_all_dtypes) {
  for (const dtype from : every_dtype)
    for (const dtype to : every_dtype) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
      const auto make = [&](builder& b) {
        b.output(b.add(op::convert{to}, b.input("x", from, {3, 175})));
        b.output(b.add(op::convert{to}, b.input("y", from, {175, 3}).transpose({1, 0})));
      };
      expect_same(make, random_inputs(make, 3, is_unsigned_integer(from) ? 0 : -300, 300), {0, 0});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

// The rounding of each step must survive fusion: a value that passes through a narrow dtype is narrowed.
TEST(laws, chains_keep_the_rounding_of_every_dtype_on_their_way) {
  for (const std::int64_t n : {1, 15, 16, 17, 511, 512, 513, 1025}) {
    SCOPED_TRACE(n);
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {2, n}), y = b.input("y", dtype::f32, {2, 1});
      value v = x * 3.7f;
      v = v.convert(dtype::f16).convert(dtype::f32) + y;
      const value whole = v.convert(dtype::i8);
      v = (whole * b.scalar(dtype::i8, 77)).convert(dtype::f64) / 3.0;
      v = v.convert(dtype::bf16).convert(dtype::f32) - x;
      const value positive = v > b.scalar(dtype::f32, 0.0f);
      b.output(positive.where(v, x * 2.0f));
      b.output(positive.convert(dtype::i32) + whole.convert(dtype::i32));
      b.output(positive);
      b.output(v.convert(dtype::f16));
      b.output((v.convert(dtype::f16) * 0.37f).convert(dtype::u8));
    };
    const auto in = random_inputs(make, 5, 0, 1);
    expect_same(make, in, {1e-6, 1e-6});
    EXPECT_EQ(compile_eigen(make).report().steps.size(), 1u);
  }
}

TEST(laws, comparisons_select_between_values_of_other_dtypes) {
  for (const std::int64_t n : {1, 17, 513}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::i64, {n}), f = b.input("f", dtype::f64, {n}),
                  s = b.input("s", dtype::f32, {n});
      const value less = x<b.scalar(dtype::i64, 2), high = f> b.scalar(dtype::f64, 0.25);
      const value both = b.add(op::logical_and{}, less, high), one = b.add(op::logical_xor{}, less, high);
      b.output(both.where(s, s.neg()));
      b.output(one.where(x, x * 3));
      b.output(b.add(op::logical_or{}, both, one).where(f, f * 2.0));
      b.output(both.logical_not());
    };
    expect_same(make, random_inputs(make, 3, -5, 5), {0, 0});
  }
}

// Each value beside each other one: sums, products and quotients beyond the range, shifts beyond the width.
TEST(laws, integers_wrap_at_the_ends_of_their_range) {
  for (const dtype t : {dtype::i64, dtype::i32, dtype::i8, dtype::u8, dtype::i16, dtype::u64}) {
    SCOPED_TRACE(std::string(to_string(t)));
    const std::int64_t bits = static_cast<std::int64_t>(size_of(t)) * 8;
    std::vector<std::int64_t> ends{0, 1, 2, 3, 7, bits - 1, bits, bits + 1, 100, -1, -2, -7, -100};
    ends.push_back(static_cast<std::int64_t>(std::uint64_t{1} << (bits - 1)));  // the least, where there is a sign
    ends.push_back(static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1));  // and the greatest
    const auto n = static_cast<std::int64_t>(ends.size());
    argument values(shape{t, {n}});
    visit_storage(t, [&]<class T>(type_tag<T>) {
      for (std::int64_t i = 0; i < n; ++i)
        reinterpret_cast<T*>(values.data())[i] = convert_value<T>(ends[static_cast<std::size_t>(i)]);
    });
    const auto make = [&](builder& b) {
      const value v = b.input("v", t, {n}), x = v.reshape({n, 1}).broadcast_to({n, n}),
                  y = v.reshape({1, n}).broadcast_to({n, n});
      for (const value& r :
           {x + y, x - y, x * y, x / y, b.add(op::mod{}, x, y), b.add(op::fmod{}, x, y), b.add(op::shift_left{}, x, y),
            b.add(op::shift_right{}, x, y), b.add(op::square_difference{}, x, y), x.max(y), x.min(y), x < y, x.equal(y),
            (x < y).where(x - y, y), x.abs(), x.neg(), x.sign(), b.add(op::bitwise_not{}, x)})
        b.output(r);
    };
    expect_same(make, std::vector<argument>{values}, {0, 0});
  }
}

TEST(laws, tiles_of_every_width_end_anywhere) {
  for (const dtype t : {dtype::f64, dtype::i64, dtype::i32, dtype::i8, dtype::u8, dtype::boolean})
    for (const std::int64_t n : {511, 513, 1025, 4095, 4097, 70001}) {
      SCOPED_TRACE(std::string(to_string(t)) + " " + std::to_string(n));
      const auto make = [&](builder& b) {
        const value x = b.input("x", t, {2, n}), y = b.input("y", t, {2, 1}), z = b.input("z", t, {n, 2});
        const value same = x.equal(y.broadcast_to({2, n})), other = x.equal(z.transpose({1, 0}));
        b.output(same);
        b.output(other.where(x, z.transpose({1, 0})));
        b.output(b.add(op::logical_xor{}, same, other));
        b.output(x.convert(dtype::i32));
        if (t == dtype::boolean) {
          b.output(b.add(op::reduce_any{.axes = {1}}, x));
          b.output(x.logical_not());
          b.output(x.convert(dtype::f64));
          return;
        }
        b.output(x * y + z.transpose({1, 0}));
        b.output(b.add(op::clip{}, x, b.scalar(t, 2), b.scalar(t, 5)));
        b.output(x.reduce_max({1}));
        b.output(b.add(op::reduce_sum{.axes = {1}}, x * x));
        b.output((x - x.reduce_min({1})).max(y));
      };
      expect_same(make, random_inputs(make, 7, is_unsigned_integer(t) ? 0 : -9, 9), {1e-12, 1e-12});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(laws, conversions_of_values_beyond_the_other_range) {
  std::vector<double> ends{0,    -0.0, 0.5, -0.5, 0.99, -0.99, 127,  128,   129,
                           -128, -129, 255, 256,  300,  -1,    -300, 32768, 65536};
  for (const double x : {0x1p31, 0x1p32, 0x1p63, 0x1p64, 1e30, HUGE_VAL})
    ends.insert(ends.end(), {x, -x, x * .999, -x * .999});
  ends.push_back(std::nan(""));
  while (ends.size() < 150) ends.push_back(ends[ends.size() % 37]);  // in vectors, and at their end
  const auto n = static_cast<std::int64_t>(ends.size());
  for (const dtype from : {dtype::f64, dtype::f32, dtype::i64, dtype::i32})
    for (const dtype to : every_dtype) {
      SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
      argument values(shape{from, {n}});
      visit_storage(from, [&]<class T>(type_tag<T>) {
        for (std::int64_t i = 0; i < n; ++i)
          reinterpret_cast<T*>(values.data())[i] = convert_value<T>(ends[static_cast<std::size_t>(i)]);
      });
      expect_same([&](builder& b) { b.output(b.add(op::convert{to}, b.input("x", from, {n}))); },
                  std::vector<argument>{values}, {0, 0});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(laws, bounds_of_doubles_keep_nan) {
  const double inf = HUGE_VAL, nan = std::nan("");
  std::vector<double> x{inf, -inf, nan, 0, -0.0, 2.5, 7, -7, 1e300, nan, 3};
  while (x.size() < 70) x.push_back(x[x.size() % 11]);
  const auto n = static_cast<std::int64_t>(x.size());
  const auto make = [&](builder& b) {
    const value v = b.input("x", dtype::f64, {n}), low = b.input("low", dtype::f64, {1});
    b.output(b.add(op::clip{}, v, b.scalar(dtype::f64, -3), b.scalar(dtype::f64, 3)));
    b.output(b.add(op::clip{}, v, b.scalar(dtype::f64, 3), b.scalar(dtype::f64, -3)));
    b.output(b.add(op::clip{}, v, low.broadcast_to({n}), v));
  };
  for (const double low : {-1.0, inf, nan})
    expect_same(make, std::vector<argument>{argument::of<double>({n}, x), argument::of<double>({1}, std::vector{low})},
                {0, 0});
}

TEST(laws, special_values_pass_as_in_the_reference) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<float> special{inf,    -inf, nan, 0.0f, -0.0f, 1,    -1,    3e38f, -3e38f,
                             1e-30f, 88,   -88, 709,  0.5f,  2.5f, -2.5f, 1e9f};
  const auto n = static_cast<std::int64_t>(special.size());
  const auto make = [&](builder& b) {
    const value x = b.input("x", dtype::f32, {n, 1}), y = b.input("y", dtype::f32, {1, n});
    for (const value& v : {x.exp(),
                           x.tanh(),
                           x.sigmoid(),
                           x.erf(),
                           x.log(),
                           x.sqrt(),
                           x.relu(),
                           x.gelu(),
                           x.sign(),
                           x.abs(),
                           x.floor(),
                           x.ceil(),
                           b.add(op::round{}, x),
                           x.max(y),
                           x.min(y),
                           x + y,
                           x * y,
                           x / y,
                           x.equal(y),
                           x < y,
                           x.convert(dtype::f16),
                           x.convert(dtype::bf16),
                           b.add(op::is_nan{}, x),
                           b.add(op::is_inf{}, x),
                           x.softplus(),
                           x.recip()})
      b.output(v);
  };
  expect_same(make, std::vector<argument>{argument::of<float>({n, 1}, special), argument::of<float>({1, n}, special)},
              {2e-5, 1e-6});
}

}  // namespace
}  // namespace kiln::testing
