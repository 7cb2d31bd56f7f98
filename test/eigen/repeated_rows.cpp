// Pointwise programs whose operands repeat along rows or from row to row: short rows run joined, whatever their extent.
#include <algorithm>

#include "kiln/backend/eigen/typed_tiles.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// About 2000 elements, so that pieces begin and end within a tensor.
std::int64_t rows_of(std::int64_t n) { return 2 + 6000 / n; }

TEST(repeated_rows, floats_equal_the_reference) {
  for (const std::int64_t n : {2, 7, 13, 31, 33, 197, 257, 1000, 1025}) {
    SCOPED_TRACE(n);
    const std::int64_t rows = rows_of(n);
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {rows, n}), row = b.input("row", dtype::f32, {1, n}),
                  column = b.input("column", dtype::f32, {rows, 1});
      b.output(x - row);
      b.output(row - x);
      b.output(x / column);
      b.output(column - row);
      b.output((x * row - column).relu());
      b.output(x < row);
      b.output((x > column).where(x, row.broadcast_to({rows, n})));
    };
    expect_same(make, random_inputs(make, 3, 1, 3), {1e-6, 1e-6});
    if (::testing::Test::HasFailure()) return;
  }
}

// Factors and addends of each channel of images, by compiled loops: of some short rows together, of long ones, of
// channels that are not where the rows' axes are, and of an axis that another operand alone repeats along.
TEST(repeated_rows, of_channels_equal_the_reference) {
  for (const std::int64_t n : {1, 4, 13, 72, 143, 300, 515, 1013, 4757}) {
    SCOPED_TRACE(n);
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {3, 17, n}), turned = b.input("turned", dtype::f32, {3, n, 17}),
                  scale = b.input("scale", dtype::f32, {17, 1}), shift = b.input("shift", dtype::f32, {17, 1}),
                  image = b.input("image", dtype::f32, {3, 1, 1}), row = b.input("row", dtype::f32, {n});
      b.output(x * scale + shift);
      b.output((x * scale + image).relu());
      b.output(turned.transpose({0, 2, 1}) * scale + shift);
      b.output(x * scale + row);
      b.output((x * scale + shift).transpose({0, 2, 1}));
      b.output(x.slice({.axes = {2}, .starts = {n - 1}, .ends = {-n - 1}, .steps = {-1}}) * scale + shift);
      b.output(x.slice({.axes = {1}, .starts = {1}, .ends = {9}}) * image +
               shift.slice({.axes = {0}, .starts = {0}, .ends = {8}}));
    };
    expect_same(make, random_inputs(make, 3, -2, 3), {1e-6, 1e-6});
    if (::testing::Test::HasFailure()) return;
  }
}

// Halves of short rows, as a rotary embedding has them: results lie apart in a concatenation.
TEST(repeated_rows, of_results_that_lie_apart_equal_the_reference) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::i64})
    for (const std::int64_t n : {1, 5, 17, 31, 63, 64, 65}) {
      SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << n);
      const auto make = [&](builder& b) {
        const value x = b.input("x", type, {3, 40, 5, 2 * n}), by = b.input("by", type, {40, 1, n}),
                    turn = b.input("turn", type, {40, 1, n});
        const auto half = [&](std::int64_t k) {
          return x.slice({.axes = {3}, .starts = {k * n}, .ends = {k * n + n}});
        };
        const value a = half(0), c = half(1);
        b.output((a * by - c * turn).concat(a * turn + c * by, 3));
        b.output((a * by - c).concat(x, 3).concat(c - a * turn, 3));
        b.output(a * by - c * turn);
      };
      expect_same(make, random_inputs(make, 3, -3, 3), {1e-2, 1e-2});
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(repeated_rows, other_types_equal_the_reference) {
  for (const dtype type : {dtype::i64, dtype::i32, dtype::u8, dtype::f64, dtype::f16})
    for (const std::int64_t n : {3, 17, 31, 199}) {
      SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << n);
      const std::int64_t rows = rows_of(n);
      const auto make = [&](builder& b) {
        const value x = b.input("x", type, {rows, n}), row = b.input("row", type, {1, n}),
                    column = b.input("column", type, {rows, 1});
        b.output(x + row);
        b.output(column - x);
        b.output(x < column);
      };
      expect_same(make, random_inputs(make, 3, 0, 50), {1e-3, 1e-3});
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(repeated_rows, nothing_comes_of_nothing) {
  for (const dims& lens : {dims{5, 1, 0, 3}, dims{0, 1, 4, 3}, dims{5, 0, 4, 3}, dims{5, 1, 4, 0}})
    expect_same(
        [&](builder& b) {
          b.output(b.input("x", dtype::f32, lens) + b.input("b", dtype::f32, {lens[0], 1, 1, lens[3]}));
        },
        {0, 0});
}

// Dims in the middle that repeat, of which several are joined.
TEST(repeated_rows, inner_dims_are_joined) {
  const dims full{3, 5, 4, 6, 7};
  const dims some[] = {{3, 1, 4, 1, 7}, {1, 5, 1, 6, 1}, {3, 5, 1, 1, 1},
                       {1, 1, 4, 6, 7}, {3, 1, 1, 1, 7}, {1, 5, 1, 1, 7}};
  for (const dims& lens : some)
    for (const dims& more : some) {
      SCOPED_TRACE(to_string(shape{dtype::f32, lens}) + to_string(shape{dtype::f32, more}));
      expect_same(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, full), y = b.input("y", dtype::f32, lens),
                        z = b.input("z", dtype::f32, more);
            b.output((x - y) * z);
          },
          {1e-6, 1e-6});
      if (::testing::Test::HasFailure()) return;
    }
}

// Every op of two operands that has loops of its own: rows of whole lines and others, that are cut between threads, and
// whose first or last elements are written twice.
void add_numbers(builder& b, value x, value y, dtype type) {
  const auto both = [&](auto op) { b.output(b.add(op, x, y)), b.output(b.add(op, y, x)); };
  const auto put = [&]<class... Op>(Op... op) { (both(op), ...); };
  if (type != dtype::boolean) {
    put(op::add{}, op::sub{}, op::mul{}, op::less{}, op::greater{}, op::less_or_equal{}, op::greater_or_equal{});
    put(op::max{}, op::min{}, op::square_difference{}, op::prelu{});
  }
  if (type == dtype::f32) put(op::div{});
  if (is_integer(type)) put(op::bitwise_and{}, op::bitwise_or{}, op::bitwise_xor{});
  if (type == dtype::boolean) put(op::logical_and{}, op::logical_or{}, op::logical_xor{});
  put(op::equal{});
}

// Numbers that are often equal, and such as a type has at its ends: NaN, negative ones, products that wrap.
argument pair_operand(const shape& s, unsigned seed, bool wide) {
  const double high = !wide ? 4 : s.type == dtype::i64 ? 0x1p62 : s.type == dtype::i32 ? 0x1p31 : 256;
  argument a = random_argument(s, seed, !wide ? 1 : s.type == dtype::u8 ? 0 : -high, high);
  if (wide && s.type == dtype::f32)
    for (std::size_t k = seed; k < a.as<float>().size(); k += 7) a.as<float>()[k] = NAN;
  return a;
}

TEST(repeated_rows, pairs_equal_the_reference) {
  for (const dtype type : {dtype::f32, dtype::i64, dtype::i32, dtype::u8, dtype::boolean})
    for (const auto& [n, wide] : {std::pair(64, false), std::pair(70, true), std::pair(333, false),
                                  std::pair(333, true), std::pair(9001, false)}) {
      SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << n << (wide ? " wide" : ""));
      const std::int64_t rows = n > 4096 ? 3 : 5;
      const auto make = [&](builder& b) {
        const dims full{2, rows, n};
        const value x = b.input("x", type, full);
        for (const dims& lens : {dims{2, rows, 1}, dims{1, 1, n}, dims{2, 1, n}, dims{1, 1, 1}, full})
          add_numbers(b, x, b.input("y" + to_string(shape{type, lens}), type, lens).broadcast_to(full), type);
      };
      std::vector<argument> in;
      for (const argument& a : random_inputs(make))
        in.push_back(pair_operand(a.get_shape(), static_cast<unsigned>(in.size() + 3), wide));
      expect_same(make, in, {0, 0});
      if (::testing::Test::HasFailure()) return;
    }
}

// Which of two equal zeros is the greater or the lesser depends on which operand comes first, bit for bit.
TEST(repeated_rows, zeros_of_either_sign_are_those_of_the_reference) {
  constexpr std::int64_t rows = 4, n = 333;
  const auto make = [&](builder& b) {
    const value x = b.input("x", dtype::f32, {rows, n}),
                y = b.input("y", dtype::f32, {rows, 1}).broadcast_to({rows, n});
    const auto both = [&](auto op) { b.output(b.add(op, x, y)), b.output(b.add(op, y, x)); };
    both(op::max{}), both(op::min{}), both(op::add{}), both(op::mul{});
  };
  argument x(shape{dtype::f32, {rows, n}}), y(shape{dtype::f32, {rows, 1}});
  for (std::size_t k = 0; k < x.as<float>().size(); ++k) x.as<float>()[k] = k % 3 == 0 ? 0.0F : -0.0F;
  for (std::size_t k = 0; k < y.as<float>().size(); ++k) y.as<float>()[k] = k % 2 == 0 ? 0.0F : -0.0F;
  const std::vector<argument> in{x, y};
  compile_options o = plain_options();
  o.passes.simplify = o.passes.fuse = false;
  const auto found = compile_eigen(make, o).run(in), expected = reference_run(make, in);
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (std::size_t k = 0; k < expected[i].as<float>().size(); ++k)
      ASSERT_EQ(std::signbit(found[i].as<float>()[k]), std::signbit(expected[i].as<float>()[k])) << i << ' ' << k;
}

// By what an op computes, not by its name: few instructions over two operands of a type.
TEST(repeated_rows, ops_of_few_instructions_have_loops) {
  const auto has = [](const operation& op, dtype type) {
    return eigen::kiln_eigen_typed_tiles()->pair(op.table().index, type) != nullptr;
  };
  for (const dtype type : {dtype::f32, dtype::i64, dtype::i32, dtype::u8}) {
    EXPECT_TRUE(has(op::square_difference{}, type) && has(op::prelu{}, type) && has(op::less{}, type));
    EXPECT_EQ(has(op::div{}, type), type == dtype::f32) << "integers have no vectors of quotients";
    EXPECT_FALSE(has(op::mod{}, type) || has(op::abs{}, type) || has(op::where{}, type));
    EXPECT_EQ(has(op::bitwise_xor{}, type), type != dtype::f32);
  }
  EXPECT_TRUE(has(op::logical_or{}, dtype::boolean) && has(op::equal{}, dtype::boolean));
  EXPECT_FALSE(has(op::pow{}, dtype::f32) || has(op::add{}, dtype::boolean) || has(op::add{}, dtype::f64));
  EXPECT_FALSE(has(op::shift_left{}, dtype::u8) || has(op::reduce_sum{}, dtype::f32));
}

// Rows of `n` differences, of which those of `repeats` have one second element each.
kernels::row_pairs differences(std::int64_t rows, std::int64_t n, bool repeats, std::int64_t size) {
  static constexpr op::sub attributes{};
  kernels::row_pairs p;
  p.op = &attributes;
  p.rows = rows, p.row = n, p.repeats = repeats;
  p.a_step = p.to_step = n * size, p.b_step = repeats ? size : n * size;
  return p;
}

// Results where an operand was: nothing is read after it is written, wherever in a line rows begin.
TEST(repeated_rows, pairs_in_place_equal_others) {
  const auto subtract = eigen::kiln_eigen_typed_tiles()->pair(operation(op::sub{}).table().index, dtype::i64);
  constexpr std::int64_t rows = 3;
  for (const std::int64_t n : {8, 9, 67, 250, 9001})
    for (const bool repeats : {false, true})
      for (const std::size_t first : {0U, 1U, 5U}) {
        SCOPED_TRACE(::testing::Message() << n << (repeats ? " repeats " : " ") << first);
        std::vector<std::int64_t> x(first + static_cast<std::size_t>(rows * n)), y(x.size()), expected(x.size());
        for (std::size_t k = 0; k < x.size(); ++k) {
          const auto at = static_cast<std::int64_t>(k);
          x[k] = at * 1000, y[k] = 7 * at + 1;
        }
        for (std::size_t k = first; k < x.size(); ++k) {
          const auto of_row = static_cast<std::size_t>(static_cast<std::int64_t>(k - first) / n);
          expected[k] = x[k] - y[first + (repeats ? of_row : k - first)];
        }
        kernels::row_pairs p = differences(rows, n, repeats, 8);
        p.a = reinterpret_cast<const std::byte*>(x.data() + first);
        p.b = reinterpret_cast<const std::byte*>(y.data() + first);
        p.to = reinterpret_cast<std::byte*>(x.data() + first);
        subtract(p);
        EXPECT_TRUE(std::equal(x.begin() + static_cast<std::ptrdiff_t>(first), x.end(),
                               expected.begin() + static_cast<std::ptrdiff_t>(first)));
      }
}

// Results that bypass the caches, from any byte on: elements may lie across lines.
TEST(repeated_rows, pairs_begin_at_any_byte) {
  const auto subtract = eigen::kiln_eigen_typed_tiles()->pair(operation(op::sub{}).table().index, dtype::f32);
  constexpr std::int64_t rows = 2, n = 1000, size = 4, bytes = rows * n * size;
  std::vector<float> x(rows * n), y(rows * n), expected(rows * n), found(rows * n);
  for (std::size_t k = 0; k < x.size(); ++k) {
    x[k] = static_cast<float>(3 * k), y[k] = static_cast<float>(k % 17);
    expected[k] = x[k] - y[k];
  }
  buffer to = buffer::allocate(bytes + 128);
  for (std::int64_t offset = 0; offset < 64; ++offset) {
    std::fill_n(to.data(), bytes + 128, std::byte{0x5a});
    kernels::row_pairs p = differences(rows, n, false, size);
    p.a = reinterpret_cast<const std::byte*>(x.data()), p.b = reinterpret_cast<const std::byte*>(y.data());
    p.to = to.data() + offset;
    p.past_cache = true;
    subtract(p);
    std::copy_n(to.data() + offset, bytes, reinterpret_cast<std::byte*>(found.data()));
    EXPECT_EQ(found, expected) << offset;
    for (std::int64_t k = 0; k < bytes + 128; ++k)
      ASSERT_TRUE((k >= offset && k < offset + bytes) || to.data()[k] == std::byte{0x5a}) << offset << ' ' << k;
  }
}

// A column of rows that lie apart, and results of a part of each.
TEST(repeated_rows, pairs_of_views_equal_the_reference) {
  expect_same(
      [&](builder& b) {
        const value wide = b.input("wide", dtype::i32, {2, 12, 403}), other = b.input("other", dtype::i32, {6, 1, 1});
        const value x = wide.slice({{1, 2}, {0, 3}, {12, 400}, {2, 1}});
        b.output(x * other.reshape({1, 6, 1}).broadcast_to({2, 6, 397}));
      },
      {0, 0});
}

// Operands that are views: every second row, a part of each row, dims exchanged.
TEST(repeated_rows, operands_are_views) {
  for (const std::int64_t n : {5, 9, 40}) {
    SCOPED_TRACE(n);
    const std::int64_t rows = rows_of(n);
    expect_same(
        [&](builder& b) {
          const value x = b.input("x", dtype::f32, {rows, n}), wide = b.input("wide", dtype::f32, {2 * rows, n + 3}),
                      row = b.input("row", dtype::f32, {1, n}), across = b.input("across", dtype::f32, {n, rows});
          b.output(x - wide.slice({{0, 1}, {0, 2}, {2 * rows, n + 2}, {2, 1}}) * row);
          b.output(across.transpose({1, 0}) - row);
        },
        {1e-6, 1e-6});
  }
}

// Norms whose scale and shift repeat along rows, and from image to image.
TEST(repeated_rows, norms_by_channel_equal_the_reference) {
  for (const std::int64_t n : {2, 7, 31, 49, 300})
    for (const std::int64_t batch : {1, 3}) {
      SCOPED_TRACE(n);
      expect_same(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {batch, 19, n}), scale = b.input("scale", dtype::f32, {1, 19, 1}),
                        shift = b.input("shift", dtype::f32, {1, 19, 1});
            b.output(x.normalize({2}) * scale + shift);
          },
          {1e-4, 1e-4});
    }
}

// A result that lies by columns, as a detector's scores do: of one operand tiles are transposed, of the other, which
// repeats along them, elements far apart are copied once.
TEST(repeated_rows, results_by_columns) {
  for (const dtype type : {dtype::f32, dtype::f64, dtype::f16, dtype::u8})
    for (const std::int64_t n : {16, 41, 80}) {
      SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << n);
      const auto make = [&](builder& b) {
        const value x = b.input("x", type, {2, 700, n + 5});
        const value sure = x.slice({{2}, {4}, {5}, {1}}), classes = x.slice({{2}, {5}, {n + 5}, {1}});
        b.output((sure * classes).transpose({0, 2, 1}));
        b.output((classes - sure).transpose({0, 2, 1}));
      };
      expect_same(make, random_inputs(make, 3, 1, 3), {1e-3, 1e-3});
      if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace kiln::testing
