// Products of f64 and of integers: any strides, batches, epilogues and sizes, by one and by two threads.
#include <gmock/gmock.h>

#include <limits>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr dtype types[] = {dtype::f64, dtype::i8,  dtype::i16, dtype::i32, dtype::i64,
                           dtype::u8,  dtype::u16, dtype::u32, dtype::u64};
// Sums of up to 700 products of numbers below 1, which stay below 64, in another order: 700 roundings to 2^-47 at most,
// of which chance cancels most.
constexpr tolerance double_bound{1e-13, 1e-13};

// Integers of all sizes, so that products and sums wrap; reals in [-1, 1).
argument any_argument(const shape& s, unsigned seed) {
  if (is_float(s.type)) return random_argument(s, seed);
  std::mt19937_64 engine(seed);
  argument a(s);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const std::uint64_t bits = engine();
    std::memcpy(a.data() + i * static_cast<std::int64_t>(size_of(s.type)), &bits, size_of(s.type));
  }
  return a;
}

void expect_equal(const argument& found, const argument& expected) {
  if (is_float(expected.get_shape().type)) return expect_close(found, expected, double_bound);
  ASSERT_EQ(found.get_shape(), expected.get_shape());
  const std::size_t bytes = static_cast<std::size_t>(expected.elements()) * size_of(expected.get_shape().type);
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), bytes), 0);
}

// Against the ops' own computations, with and without passes and by one or two threads; no step may be a reference.
void expect_products(const std::function<void(builder&)>& make) {
  builder b;
  make(b);
  std::vector<argument> given;
  for (value_id v : b.module().parameters()) given.push_back(any_argument(b.module().shape_of(v), 7 + given.size()));
  const auto expected = reference_run(make, given);
  for (const bool passes : {true, false})
    for (const unsigned threads : {1u, 2u}) {
      SCOPED_TRACE(::testing::Message() << (passes ? "with" : "without") << " passes, threads " << threads);
      compile_options o = plain_options();
      o.passes.simplify = o.passes.fuse = passes;
      o.pool = std::make_shared<thread_pool>(threads);
      const executable e = compile_eigen(make, o);
      for (const step_info& step : e.report().steps)
        EXPECT_THAT(step.kernel, ::testing::Not(::testing::HasSubstr("reference")));
      const auto found = e.run(given);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t k = 0; k < found.size(); ++k) {
        SCOPED_TRACE("output " + std::to_string(k));
        expect_equal(found[k], expected[k]);
      }
    }
}

value constant(builder& b, dtype t, const dims& lens) { return b.constant(any_argument({t, lens}, 3).to_literal()); }

TEST(products, odd_extents) {
  for (const dtype t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    expect_products([&](builder& b) {
      const std::int64_t sizes[][3] = {{1, 1, 1}, {1, 37, 5}, {37, 1, 5}, {5, 3, 1}, {13, 17, 19}, {65, 33, 97}};
      for (const auto& [m, n, k] : sizes) {
        const std::string name = std::to_string(m) + "_" + std::to_string(n);
        const value x = b.input("x" + name, t, {m, k});
        b.output(x.dot(b.input("w" + name, t, {k, n})));
        b.output(x.dot(constant(b, t, {k, n})));
      }
    });
  }
}

TEST(products, operands_of_any_strides) {
  for (const dtype t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    expect_products([&](builder& b) {
      const value x = b.input("x", t, {40, 19}), y = b.input("y", t, {30, 40});
      b.output(x.transpose({1, 0}).dot(y.transpose({1, 0})));
      b.output(y.dot(x));
      b.output(y.transpose({1, 0}).dot(constant(b, t, {9, 30}).transpose({1, 0})));
      b.output(y.slice({.axes = {0, 1}, .starts = {29, 1}, .ends = {0, 39}, .steps = {-3, 2}})
                   .dot(x.slice({.axes = {0}, .starts = {4}, .ends = {23}})));
      b.output(x.slice({.axes = {0}, .starts = {3}, .ends = {4}})
                   .broadcast_to({40, 19})
                   .dot(b.input("z", t, {19, 1}).broadcast_to({19, 5})));
    });
  }
}

TEST(products, batches_broadcast_from_either_side) {
  for (const dtype t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    expect_products([&](builder& b) {
      const value x = b.input("x", t, {2, 3, 5, 8}), y = b.input("y", t, {3, 8, 6}), z = b.input("z", t, {2, 1, 8, 6});
      b.output(x.dot(b.input("w", t, {8, 6})));
      b.output(x.dot(y));
      b.output(x.dot(z));
      b.output(b.input("r", t, {6, 5}).dot(x));
      b.output(x.transpose({1, 0, 3, 2}).dot(x.transpose({1, 0, 2, 3})));
      b.output(x.dot(constant(b, t, {8, 6})));
      b.output(x.dot(constant(b, t, {3, 8, 6})));
    });
  }
}

TEST(products, epilogues) {
  for (const dtype t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    expect_products([&](builder& b) {
      const value x = b.input("x", t, {2, 7, 16}), w = b.input("w", t, {16, 20}), row = b.input("row", t, {20}),
                  full = b.input("full", t, {2, 7, 20});
      b.output((x.dot(w) + row).max(full) * b.input("column", t, {7, 1}));
      b.output((x.dot(constant(b, t, {16, 20})) + full).concat(full, 1));
      b.output(x.dot(w) > full);
      b.output((x.dot(w) - row).convert(t == dtype::i32 ? dtype::i16 : dtype::i32));
    });
  }
}

TEST(products, an_epilogue_is_of_the_same_kernel) {
  for (const dtype t : types) {
    const executable e = compile_eigen([&](builder& b) {
      b.output(b.input("x", t, {7, 16}).dot(b.input("w", t, {16, 20})) + b.input("row", t, {20}));
    });
    ASSERT_EQ(e.report().steps.size(), 1u);
    EXPECT_EQ(e.report().steps[0].kernel, "dot+epilogue");
  }
}

TEST(products, results_in_a_concatenation) {
  for (const dtype t : types)
    expect_products([&](builder& b) {
      const value x = b.input("x", t, {2, 6, 8});
      b.output(x.dot(b.input("w", t, {8, 5})).concat(x.dot(b.input("v", t, {8, 3})), 2));
    });
}

TEST(products, empty_extents) {
  for (const dtype t : types)
    expect_products([&](builder& b) {
      const std::int64_t sizes[][3] = {{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 0}};
      for (const auto& [m, n, k] : sizes) {
        const std::string name = std::to_string(m) + std::to_string(n);
        const value x = b.input("x" + name, t, {2, m, k});
        b.output(x.dot(b.input("w" + name, t, {k, n})) + b.input("bias" + name, t, {n}));
        b.output(x.dot(constant(b, t, {k, n})));
      }
    });
}

TEST(products, extents_of_the_run) {
  for (const dtype t : types) {
    SCOPED_TRACE(std::string(to_string(t)));
    builder b;
    const dimension m = dimension::symbol("products_m", 0, 100), k = dimension::symbol("products_k", 0, 100);
    const value x = b.input("x", t, {m, k}), w = b.input("w", t, {k, 9}), row = b.input("row", t, {9});
    b.output(x.dot(w) + row);
    const executable e = compile(b.finish(), eigen_target(), plain_options());
    for (const auto& [rows, depth] : {std::pair(1, 1), std::pair(33, 70), std::pair(0, 3), std::pair(5, 0)}) {
      const std::vector<argument> in = {any_argument({t, {rows, depth}}, 1), any_argument({t, {depth, 9}}, 2),
                                        any_argument({t, {9}}, 3)};
      const auto expected = reference_run(
          [&, rows = rows, depth = depth](builder& fixed) {
            const value a = fixed.input("x", t, {rows, depth}), c = fixed.input("w", t, {depth, 9});
            fixed.output(a.dot(c) + fixed.input("row", t, {9}));
          },
          in);
      expect_equal(e.run(in)[0], expected[0]);
    }
  }
}

// Deeper and wider than a block, and more than one task.
TEST(products, large_ones_are_cut_into_blocks_and_tasks) {
  for (const dtype t : {dtype::f64, dtype::i32, dtype::u16, dtype::u64}) {
    SCOPED_TRACE(std::string(to_string(t)));
    expect_products([&](builder& b) {
      const value x = b.input("x", t, {130, 700});
      b.output(x.dot(b.input("w", t, {700, 261})) - x.dot(constant(b, t, {700, 261})));
      b.output(x.transpose({1, 0}).dot(x));
    });
  }
}

}  // namespace
}  // namespace kiln::testing
