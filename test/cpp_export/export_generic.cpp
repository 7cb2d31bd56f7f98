// Exported texts of ops that are neither pointwise, reductions, views nor products.
#include "cpp_export/exported.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/sequence/recurrent.hpp"

namespace user {

/// A user's op with a computation of its own: no text says what it computes.
struct halves {
  constexpr kiln::result<kiln::shape> compute_shape(std::span<const kiln::shape> in) const { return in[0]; }
  template <class T> constexpr void compute(kiln::Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>(0);
    for (std::int64_t k = 0; k < y.size(); ++k) y[k] = x[k] / 2;
  }
};

}  // namespace user

namespace kiln::test {
namespace {

using namespace kiln::op;  // NOLINT: most of them

void expect_alike(builder& b, std::uint64_t seed, double tolerance = 2e-6) {
  const program p = b.finish();
  const auto values = random_inputs(p, seed);
  const auto expected = evaluate(p, values);
  expect_exported(p, {values.data(), values.size()}, {expected.data(), expected.size()}, tolerance);
}

TEST(export_generic, along_axes_and_windows) {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 6, 5}), i = b.input("i", dtype::i32, {3, 7});
  b.output(x | lrn{.size = 3, .alpha = 0.5f});
  b.output(x.transpose({2, 1, 0}) | lrn{.size = 2, .beta = 0.6f, .bias = 2});
  b.output(x | cumsum{.axis = 1, .exclusive = true});
  b.output(i | cumprod{.axis = 0, .reverse = true});
  b.output(x | arg_max{.axis = 1});
  b.output(i | arg_min{.axis = 0, .select_last_index = true});
  const value best = x | topk{.k = 3, .axis = 1}, least = i | topk{.k = 7, .axis = 1, .largest = false};
  b.output(best), b.output(best.result(1)), b.output(least), b.output(least.result(1));
  b.output(x | tri{.upper = false, .k = 1});
  b.output(b.add(deconvolution{.stride = {2, 1}, .dilation = {1, 2}, .pads = {1, 0, 0, 1}, .group = 2},
                 b.input("image", dtype::f32, {2, 4, 5, 6}), b.weight("w", dtype::f32, {4, 3, 3, 2})));
  expect_alike(b, 1);
}

TEST(export_generic, mel_weights_of_a_run) {
  builder b;
  const value rate = b.scalar(dtype::i64, 16000), highest = b.scalar(dtype::f64, 7800.0),
              lowest = b.input("lowest", dtype::f32, {}).abs() * 50 + 20;
  b.output(b.add(mel_weights{8, 256}, rate, lowest, highest));
  b.output(b.add(mel_weights{40, 33}, rate, lowest, highest.reshape({1})).transpose({1, 0}));
  expect_alike(b, 3);
}

TEST(export_generic, selections_and_placements) {
  builder b;
  const value x = b.input("x", dtype::f32, {7, 8}), i = b.input("i", dtype::i64, {3, 8}),
              j = b.input("j", dtype::i32, {7, 8});
  b.output(b.add(gather_elements{.axis = 0}, x, i));
  b.output(b.add(gather_nd{}, x.transpose({1, 0}), b.input("tuples", dtype::i32, {5, 1})));
  b.output(b.add(gather_nd{.batch_dims = 1}, x, b.input("columns", dtype::u8, {7, 2, 1})));
  for (const scatter_mode mode : {scatter_mode::none, scatter_mode::add, scatter_mode::mul, scatter_mode::max}) {
    const std::string own(to_string(mode));
    b.output(b.add(scatter_elements{.axis = 0, .reduction = mode}, x, i, b.input(own + " x", dtype::f32, {3, 8})));
    b.output(b.add(scatter_nd{.reduction = mode}, j, b.input(own + " at", dtype::u8, {2, 2}),
                   b.input(own + " j", dtype::i32, {2})));
  }
  b.output(b.add(one_hot{.depth = 7, .axis = 1}, b.input("k", dtype::i16, {4, 3}), b.input("values", dtype::f32, {2})));
  b.output(b.add(pad{.pads = {1, -2, 0, 2}}, x, b.input("filler", dtype::f32, {1})) + 1.0);
  b.output(b.add(pad{.mode = pad_mode::reflect, .pads = {2, 9, -1, 0}}, x));
  b.output(b.add(pad{.mode = pad_mode::wrap, .pads = {9, 0, 0, 3}}, j));
  b.output(b.add(pad{.mode = pad_mode::edge, .pads = {0, 1, 3, -1}}, x).concat(x, 0));
  expect_alike(b, 2);
}

TEST(export_generic, recurrences) {
  builder b;
  const auto layer = [&](const std::string& name, const recurrent& op) {
    const std::int64_t all = op.gates() * 3;
    small_vector<value> operands;
    operands.push_back(b.input(name + " gates", dtype::f32, {4, 2, all}));
    operands.push_back(b.weight(name + " recurrence", dtype::f32, {3, all}));
    operands.push_back(b.weight(name + " bias", dtype::f32, {all}));
    operands.push_back(b.input(name + " state", dtype::f32, {2, 3}));
    operands.push_back(b.input(name + " lengths", dtype::i64, {2}) + b.scalar(dtype::i64, 2));
    if (op.cell == cell_kind::lstm) {
      operands.push_back(b.input(name + " cell", dtype::f32, {2, 3}));
      operands.push_back(b.weight(name + " peepholes", dtype::f32, {9}));
    }
    const value y = b.add(op, operands);
    b.output(y), b.output(y.result(1));
    if (op.cell == cell_kind::lstm) b.output(y.result(2));
  };
  const auto tanh = cell_function::tanh, sigmoid = cell_function::sigmoid;
  layer("plain", {.functions = {cell_function::leaky_relu}, .alpha = {0.5f}, .clip = 3, .reverse = true});
  for (const bool linear : {false, true})
    layer(linear ? "linear" : "gru", {.cell = cell_kind::gru,
                                      .functions = {cell_function::hard_sigmoid, cell_function::softsign},
                                      .alpha = {0.2f, 0},
                                      .beta = {0.5f, 0},
                                      .linear_before_reset = linear});
  for (const bool coupled : {false, true})
    layer(coupled ? "coupled" : "lstm", {.cell = cell_kind::lstm,
                                         .functions = {sigmoid, tanh, tanh},
                                         .alpha = {0, 0, 0},
                                         .beta = {0, 0, 0},
                                         .coupled = coupled});
  expect_alike(b, 3, 1e-5);
}

TEST(export_generic, a_users_computation_is_refused_by_name) {
  builder b;
  b.output(b.input("x", dtype::f32, {4}) | user::halves{});
  b.output(b.input("y", dtype::f32, {4}) | cumsum{});
  try {
    to_cpp(b.finish());
    ADD_FAILURE() << "it has no text";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    EXPECT_STREQ(e.what(), "unsupported: the export to C++ has no text for these ops: user::halves");
  }
}

}  // namespace
}  // namespace kiln::test
