// Matrix products through the Eigen target: layouts, batches, packed weights, epilogues, degenerate sizes.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr tolerance close{2e-5, 2e-5};

value weights(builder& b, const dims& lens, unsigned seed = 9) {
  return b.constant(random_argument({dtype::f32, lens}, seed).to_literal());
}

void expect_kernel(const std::function<void(builder&)>& make, std::string_view name, std::size_t steps = 1) {
  const executable e = compile_eigen(make);
  EXPECT_EQ(e.report().steps.size(), steps);
  EXPECT_THAT(e.report().steps[0].kernel, ::testing::StartsWith(std::string(name)));
}

TEST(dot, sizes_around_the_register_tiles) {
  for (const std::int64_t m : {1, 2, 5, 6, 7, 13})
    for (const std::int64_t n : {1, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130})
      for (const std::int64_t k : {1, 3, 64, 300}) {
        SCOPED_TRACE(::testing::Message() << m << ' ' << n << ' ' << k);
        const auto make = [&](builder& b) {
          const value x = b.input("x", dtype::f32, {m, k});
          b.output(x.dot(b.input("w", dtype::f32, {k, n})));
          b.output(x.dot(weights(b, {k, n})) + b.input("bias", dtype::f32, {n}));
        };
        expect_same(make, close);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(dot, transposed_and_strided_operands) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {40, 19}), y = b.input("y", dtype::f32, {30, 40});
        b.output(x.transpose({1, 0}).dot(y.transpose({1, 0})));
        b.output(y.slice({.axes = {0, 1}, .starts = {29, 1}, .ends = {0, 39}, .steps = {-3, 2}})
                     .dot(x.slice({.axes = {0}, .starts = {4}, .ends = {23}})));
        b.output(x.slice({.axes = {0}, .starts = {3}, .ends = {4}})
                     .broadcast_to({40, 19})
                     .dot(b.input("z", dtype::f32, {19, 1}).broadcast_to({19, 5})));
      },
      close);
}

TEST(dot, left_operands_that_lie_by_columns_are_turned) {
  for (const std::int64_t m : {15, 16, 35})
    for (const std::int64_t n : {127, 130})
      expect_same(
          [&](builder& b) {
            const value x = b.input("x", dtype::f32, {70, m}).transpose({1, 0}),
                        y = b.input("y", dtype::f32, {3, 70, m}).transpose({0, 2, 1});
            b.output(x.dot(b.input("w", dtype::f32, {70, n})) + b.input("bias", dtype::f32, {n}));
            b.output(y.dot(weights(b, {70, n})));
            b.output(y.dot(b.input("z", dtype::f32, {3, 70, n})));
            b.output(x.broadcast_to({2, m, 70}).dot(b.input("v", dtype::f32, {2, 70, n})));
          },
          close);
}

TEST(dot, products_with_one_row_or_column) {
  for (const std::int64_t k : {3, 31, 33, 300, 2000})
    for (const std::int64_t n : {1, 5, 600}) {
      const auto make = [&](builder& b) {
        const value row = b.input("row", dtype::f32, {2, 1, k}), x = b.input("x", dtype::f32, {2, n, k}),
                    bias = b.input("bias", dtype::f32, {n});
        b.output(row.dot(x.transpose({0, 2, 1})) + bias);
        b.output(row.dot(b.input("w", dtype::f32, {k, n})) + bias);
        b.output(x.dot(row.transpose({0, 2, 1})));
        b.output(b.input("columns", dtype::f32, {k, n}).transpose({1, 0}).dot(b.input("v", dtype::f32, {k, 1})));
      };
      expect_same(make, {1e-4, 1e-4});
    }
}

// Few rows with a matrix beyond a core's caches, in parts of 512 columns.
TEST(dot, few_rows_with_a_large_matrix) {
  for (const std::int64_t m : {2, 7, 12})
    for (const std::int64_t n : {1024, 1500, 1537}) {
      SCOPED_TRACE(::testing::Message() << m << ' ' << n);
      const auto make = [&](builder& b) {
        const value x = b.input("x", dtype::f32, {2, m, 301}), w = b.input("w", dtype::f32, {2, 301, n});
        b.output(x.dot(w));
        b.output((x.slice({.axes = {0}, .starts = {0}, .ends = {1}}).dot(w) + b.input("bias", dtype::f32, {n})).relu() *
                 b.input("column", dtype::f32, {m, 1}));
        b.output(b.input("columns", dtype::f32, {301, m}).transpose({1, 0}).dot(b.input("v", dtype::f32, {301, n})));
      };
      expect_same(make, close);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

// One kernel, whose tiles multiply their sums by the number.
TEST(dot, a_number_scales_the_product) {
  for (const std::int64_t m : {1, 5, 40}) {
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {m, 40}), w = b.input("w", dtype::f32, {40, 70});
      b.output(((x.dot(w) * 0.125f + b.input("bias", dtype::f32, {70})) | op::relu{}));
    };
    expect_same(make, close);
    expect_kernel(make, "dot+epilogue");
    const auto twice = [&](builder& b) {  // numbers after a sum, and a second one, are not the form's
      const value x = b.input("x", dtype::f32, {m, 40}), w = b.input("w", dtype::f32, {40, 70});
      b.output((x.dot(w) + b.input("bias", dtype::f32, {70})) * 3.0f);
      b.output(x.dot(b.input("w2", dtype::f32, {40, 70})) * 3.0f * b.input("more", dtype::f32, {70}));
    };
    expect_same(twice, close);
  }
}

TEST(dot, a_constant_operand_may_be_a_view) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 24});
    b.output(x.dot(weights(b, {10, 24}).transpose({1, 0})));
    b.output(x.dot(weights(b, {30, 50}).slice({.axes = {0, 1}, .starts = {3, 7}, .ends = {27, 20}})));
    b.output(weights(b, {7, 4}).dot(x));
  };
  expect_same(make, close);
}

TEST(dot, batches_broadcast_from_either_side) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 3, 5, 8}), w = b.input("w", dtype::f32, {8, 6}),
                    y = b.input("y", dtype::f32, {3, 8, 6}), z = b.input("z", dtype::f32, {2, 1, 8, 6}),
                    r = b.input("r", dtype::f32, {6, 5});
        b.output(x.dot(w));
        b.output(x.dot(y));
        b.output(x.dot(z));
        b.output(r.dot(x));
        b.output(r.transpose({1, 0}).dot(y.transpose({0, 2, 1})));
        b.output(x.transpose({1, 0, 2, 3}).dot(y.unsqueeze({1})));
        b.output(x.dot(weights(b, {8, 6})));
        b.output(x.dot(weights(b, {3, 8, 6})));
        b.output(x.dot(weights(b, {2, 1, 8, 6})));
      },
      close);
}

TEST(dot, a_constant_matrix_of_a_batch_is_packed_once) {
  for (const dims& batch : {dims{7}, dims{2, 7}}) {
    const auto make = [&](builder& b) {
      dims left = batch, right = batch;
      left.push_back(5), left.push_back(16), right.push_back(16), right.push_back(24);
      const value x = b.input("x", dtype::f32, left), w = weights(b, {24, 16}).transpose({1, 0});
      b.output(x.dot(w.broadcast_to(right)) + b.input("bias", dtype::f32, {24}));
    };
    expect_kernel(make, "dot+epilogue (packed)");
    const executable e = compile_eigen(make);
    const compile_report& report = e.report();
    EXPECT_LT(report.packed_bytes + report.constant_bytes, 2 * 16 * 64 * sizeof(float));
    expect_same(make, close);
  }
}

TEST(dot, the_result_may_lie_in_a_concatenation_or_transposed) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 6, 8}), w = weights(b, {8, 5});
        b.output((x.dot(w) + 1.0f).concat(x.dot(weights(b, {8, 3}, 2)), 2));
        b.output(x.dot(w).relu().concat(x.slice({.axes = {2}, .starts = {0}, .ends = {5}}), 1));
        b.output((x.dot(w) * b.input("r", dtype::f32, {2, 6, 5})).transpose({1, 0, 2}));
        b.output(x.dot(w).tanh().transpose({0, 2, 1}));
      },
      close);
}

TEST(dot, epilogues_with_rows_columns_residuals_and_scalars) {
  for (const std::int64_t n : {1, 24, 127, 129, 300}) {
    for (const bool constant : {true, false}) {
      SCOPED_TRACE(::testing::Message() << n << " constant " << constant);
      const auto make = [&](builder& b) {
        const value x = b.input("x", dtype::f32, {2, 7, 16}),
                    w = constant ? weights(b, {16, n}) : b.input("w", dtype::f32, {16, n});
        const value row = b.input("row", dtype::f32, {n}), column = b.input("column", dtype::f32, {7, 1}),
                    batch = b.input("batch", dtype::f32, {2, 1, 1}), full = b.input("full", dtype::f32, {2, 7, n}),
                    turned = b.input("turned", dtype::f32, {n, 7}).transpose({1, 0});
        b.output((x.dot(w) + row).gelu() * column + full);
        b.output((x.dot(w) * batch - turned).sigmoid() * x.dot(w));
        b.output((x.dot(w) + b.scalar(dtype::f32, 0.5)).max(row));
        b.output((x.dot(w) > full).where(full, x.dot(w) * 2.0f));
        b.output((x.dot(w) * 9.0f).convert(dtype::f16).convert(dtype::f32) + row);
      };
      expect_same(make, {2e-3, 2e-3});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Activations that are one compiled loop go over the rows of a tile where they lie, others are copied together; beside
// the tile nothing changes.
TEST(dot, activations_over_rows_of_a_tile) {
  for (const std::int64_t rows : {1, 5, 64, 197})
    for (const std::int64_t cols : {1, 15, 33, 70, 129, 300}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << cols);
      const auto make = [&](builder& b) {
        const value x = b.input("x", dtype::f32, {rows, 48}), row = b.input("row", dtype::f32, {cols});
        const auto product = [&](unsigned seed) { return x.dot(weights(b, {48, cols}, seed)) + row; };
        b.output(product(1).gelu());
        b.output(product(2) | op::gelu{.tanh_approximation = true});
        b.output((product(3) * 0.25f).exp());
        b.output(product(4).gelu().concat(product(5).gelu(), 1));
        b.output(product(6).sin());
        b.output(x.dot(b.input("right", dtype::f32, {48, cols})).gelu());
      };
      expect_same(make, {2e-5, 2e-5});
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(dot, a_product_and_its_epilogue_are_one_kernel) {
  expect_kernel(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {7, 16});
        b.output((x.dot(weights(b, {16, 20})) + b.input("row", dtype::f32, {20})).relu() +
                 b.input("full", dtype::f32, {7, 20}));
      },
      "dot+epilogue (packed)");
}

// More than the stack of a tile holds: the epilogue runs after the product.
TEST(dot, a_long_epilogue_runs_on_its_own) {
  const auto make = [](builder& b) {
    value y = b.input("x", dtype::f32, {5, 16}).dot(weights(b, {16, 200}));
    std::vector<value> all;
    for (int i = 0; i < 30; ++i) {
      y = (y + b.input("r" + std::to_string(i), dtype::f32, {5, 200})).tanh();
      all.push_back(y);
    }
    for (const value& v : all) y = y * 0.5f + v;
    b.output(y);
  };
  expect_same(make, {1e-4, 1e-4});
}

TEST(dot, an_epilogue_that_gives_another_dtype) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {5, 16});
        b.output(x.dot(weights(b, {16, 20})).convert(dtype::f16));
        b.output(x.dot(weights(b, {16, 20})) > b.input("y", dtype::f32, {5, 20}));
        b.output((x.dot(weights(b, {16, 20})) * 20.0f).convert(dtype::i32).convert(dtype::f64));
      },
      {2e-3, 1e-3});
}

TEST(dot, empty_sizes) {
  for (const auto& [m, n, k] : {std::tuple(0, 3, 4), std::tuple(3, 0, 4), std::tuple(3, 4, 0), std::tuple(0, 0, 0)})
    for (const bool constant : {true, false}) {
      SCOPED_TRACE(::testing::Message() << m << n << k << constant);
      const auto make = [m = m, n = n, k = k, constant](builder& b) {
        const value x = b.input("x", dtype::f32, {2, m, k}),
                    w = constant ? weights(b, {k, n}) : b.input("w", dtype::f32, {k, n});
        b.output(x.dot(w));
        b.output(x.dot(w) + b.input("bias", dtype::f32, {n}));
      };
      expect_same(make, close);
    }
  expect_same([](builder& b) { b.output(b.input("x", dtype::f32, {0, 3, 4}).dot(b.input("w", dtype::f32, {4, 5}))); });
}

TEST(dot, other_dtypes) {
  for (const dtype t : {dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64, dtype::u8}) {
    SCOPED_TRACE(std::string(to_string(t)));
    const auto make = [&](builder& b) {
      const value x = b.input("x", t, {2, 5, 9}), w = b.input("w", t, {9, 4});
      b.output(x.dot(w));
      b.output(x.dot(w) + b.input("bias", t, {4}));
    };
    expect_same(make, random_inputs(make, 3, is_unsigned_integer(t) ? 0 : -3, 4), {2e-2, 1e-2});
  }
}

TEST(dot, large_products_are_cut_into_blocks_and_tasks) {
  expect_same(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {130, 700});
        b.output((x.dot(weights(b, {700, 261})) + b.input("bias", dtype::f32, {261})).relu());
        b.output(x.transpose({1, 0}).dot(x));
      },
      {1e-4, 1e-4});
}

TEST(dot, an_epilogue_that_adds_the_product_to_itself) {
  for (const bool later : {false, true})
    expect_same(
        [&](builder& b) {
          const value product = b.input("x", dtype::f32, {5, 7}).dot(b.input("w", dtype::f32, {7, 9}));
          const value sum = product + b.input("bias", dtype::f32, {5, 9});
          b.output(later ? sum.relu() + product : product + sum);
        },
        close);
}

}  // namespace
}  // namespace kiln::testing
