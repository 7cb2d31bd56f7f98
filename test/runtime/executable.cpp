// The face of an executable: what is checked, how errors read, hooks, cancellation, weights.
#include "kiln/runtime/run_options.hpp"

#include <gmock/gmock.h>

#include "kiln/op/dynamic/selection.hpp"
#include "runtime/compare.hpp"

namespace my {

/// No kernel of any target knows it.
struct running_total {
  static constexpr auto types = kiln::dtypes::floats;
  constexpr kiln::result<kiln::shape> compute_shape(std::span<const kiln::shape> in) const {
    return kiln::shape{in[0].type, in[0].lens};
  }
  template <class T> constexpr void compute(kiln::Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>();
    T sum = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) y[i] = sum += x[i];
  }
};

struct throws_on_negative {
  static constexpr auto types = kiln::dtypes::floats;
  constexpr kiln::result<kiln::shape> compute_shape(std::span<const kiln::shape> in) const { return in[0]; }
  template <class T> constexpr void compute(kiln::evaluation& e) const {
    const auto x = e.in<T>(0);
    const auto y = e.out<T>();
    for (std::int64_t i = 0; i < y.size(); ++i) {
      if (x[i] < 0) kiln::raise(kiln::errc::invalid_argument, "elements are not negative");
      y[i] = x[i];
    }
  }
};

}  // namespace my

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void two_inputs(builder& b) {
  const value x = b.input("x", dtype::f32, {2, 3}), y = b.input("y", dtype::f32, {3, 4});
  b.output(x.dot(y), "product");
  b.output(x.relu(), "positive");
}

argument numbers(dims lens, float first = 0) {
  argument a(shape{dtype::f32, lens});
  for (float& v : a.as<float>()) v = first++;
  return a;
}

TEST(executable, inputs_by_name) {
  const executable e = compile_eigen(two_inputs);
  EXPECT_EQ(e.inputs()[1].name, "y");
  EXPECT_EQ(e.outputs()[0].name, "product");
  EXPECT_EQ(e.input_index("y"), 1u);
  const auto out = e.run({{"y", numbers({3, 4})}, {"x", numbers({2, 3})}});
  EXPECT_EQ(out[0].as<float>()[5], 3 * 1 + 4 * 5 + 5 * 9);
  EXPECT_EQ(out[1].as<float>()[5], 5);
}

TEST(executable, a_missing_or_unknown_name_is_an_error_that_says_which) {
  const executable e = compile_eigen(two_inputs);
  auto found = error_of([&] { e.run({{"x", numbers({2, 3})}}); });
  EXPECT_EQ(found.first, errc::invalid_argument);
  EXPECT_THAT(found.second, AllOf(HasSubstr("'y'"), HasSubstr("f32[3, 4]")));
  found = error_of([&] { e.run({{"x", numbers({2, 3})}, {"z", numbers({3, 4})}}); });
  EXPECT_EQ(found.first, errc::not_found);
  EXPECT_THAT(found.second, AllOf(HasSubstr("'z'"), HasSubstr("'x', 'y'")));
}

TEST(executable, a_wrong_input_is_an_error_that_says_which_and_why) {
  const executable e = compile_eigen(two_inputs);
  const auto run = [&](std::vector<argument> in) { return error_of([&] { e.run(in); }); };
  auto found = run({numbers({2, 3})});
  EXPECT_EQ(found.first, errc::invalid_argument);
  EXPECT_THAT(found.second, AllOf(HasSubstr("number of inputs"), HasSubstr("2"), HasSubstr("1")));
  found = run({numbers({2, 3}), numbers({3, 5})});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, AllOf(HasSubstr("'y'"), HasSubstr("f32[3, 4]"), HasSubstr("f32[3, 5]")));
  found = run({numbers({6}), numbers({3, 4})});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, HasSubstr("'x'"));
  found = run({random_argument({dtype::f64, {2, 3}}, 1), numbers({3, 4})});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, AllOf(HasSubstr("'x'"), HasSubstr("f64[2, 3]")));
  found = run({argument(shape{dtype::f32, {2, 3}}, nullptr), numbers({3, 4})});
  EXPECT_EQ(found.first, errc::invalid_argument);
  EXPECT_THAT(found.second, HasSubstr("'x'"));
}

TEST(executable, a_wrong_output_buffer_is_an_error_that_says_which_and_why) {
  const executable e = compile_eigen(two_inputs);
  const std::vector<argument> in{numbers({2, 3}), numbers({3, 4})};
  const auto run = [&](std::vector<argument> out) {
    workspace w = e.make_workspace();
    return error_of([&] { e.run(w, in, out); });
  };
  EXPECT_EQ(run({numbers({2, 4})}).first, errc::invalid_argument);
  auto found = run({numbers({2, 4}), numbers({3, 2})});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, AllOf(HasSubstr("'positive'"), HasSubstr("f32[2, 3]"), HasSubstr("f32[3, 2]")));
  found = run({random_argument({dtype::i32, {2, 4}}, 1), numbers({2, 3})});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, HasSubstr("'product'"));
  argument room = numbers({4, 2});
  found = run({argument(shape{dtype::f32, {2, 4}, {1, 2}}, room.data()), numbers({2, 3})});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, HasSubstr("row-major"));
  found = run({argument(shape{dtype::f32, {2, 4}}, nullptr), numbers({2, 3})});
  EXPECT_EQ(found.first, errc::invalid_argument);
  EXPECT_THAT(found.second, HasSubstr("'product'"));
}

TEST(executable, inputs_may_have_any_strides) {
  const executable e = compile_eigen(two_inputs);
  argument wide = numbers({3, 8}), tall = numbers({3, 2});
  const std::vector<argument> dense{argument(shape{dtype::f32, {2, 3}, {1, 2}}, tall.data()).contiguous(),
                                    argument(shape{dtype::f32, {3, 4}, {8, 2}}, wide.data()).contiguous()},
      strided{argument(shape{dtype::f32, {2, 3}, {1, 2}}, tall.data()),
              argument(shape{dtype::f32, {3, 4}, {8, 2}}, wide.data())},
      repeated{argument(shape{dtype::f32, {2, 3}, {0, 0}}, tall.data() + 4),
               argument(shape{dtype::f32, {3, 4}, {-8, -1}}, wide.data() + 4 * 23)};
  const auto expected = e.run(dense), found = e.run(strided);
  expect_close(found[0], expected[0]);
  expect_close(found[1], expected[1]);
  const auto other = e.run(repeated);
  EXPECT_EQ(other[1].as<float>()[4], 1.0f);
  EXPECT_EQ(other[0].as<float>()[0], 23 + 15 + 7);
  EXPECT_EQ(other[0].as<float>()[7], 20 + 12 + 4);
}

TEST(executable, inputs_are_not_written) {
  const executable e = compile_eigen([](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 3});
    b.output(x.relu().neg().concat(x, 0));
    b.output(x);
  });
  const argument x = numbers({2, 3}, -2);
  const argument before = x.copy();
  e.run(std::vector<argument>{x});
  expect_close(x, before, {0, 0});
}

TEST(executable, a_workspace_may_go_from_one_executable_to_another) {
  const executable one = compile_eigen(two_inputs);
  workspace w = one.make_workspace();
  const std::vector<argument> in{numbers({2, 3}), numbers({3, 4})};
  std::vector<argument> out{numbers({2, 4}), numbers({2, 3})};
  one.run(w, in, out);
  for (int round = 0; round < 4; ++round) {  // the next executable may lie where the last one lay
    const executable other = compile_eigen([&](builder& b) {
      const value x = b.input("x", dtype::f32, {2, 3}), y = b.input("y", dtype::f32, {3, 4});
      b.output(x.dot(y * static_cast<float>(round)).exp().log());
      b.output((x + static_cast<float>(round)).reshape({3, 2}).transpose({1, 0}).reshape({2, 3}));
    });
    other.run(w, in, out);
    EXPECT_EQ(out[1].as<float>()[1], 2.0f + static_cast<float>(round));
  }
}

TEST(executable, a_moved_executable_still_runs) {
  executable e = compile_eigen(two_inputs);
  workspace w = e.make_workspace();
  const std::vector<argument> in{numbers({2, 3}), numbers({3, 4})};
  std::vector<argument> out{numbers({2, 4}), numbers({2, 3})};
  e.run(w, in, out);
  const executable moved = std::move(e);
  workspace other = std::move(w);
  out[1] = numbers({2, 3}, 9);
  moved.run(other, in, out);
  EXPECT_EQ(out[1].as<float>()[5], 5);
  EXPECT_EQ(other.growths(), 1u);
}

TEST(executable, hooks_see_every_step_and_its_results) {
  const executable e = compile_eigen([](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 2});
    b.output(x.dot(x).exp().dot(x), "y");
  });
  ASSERT_EQ(e.report().steps.size(), 2u);
  const std::vector<argument> in{numbers({2, 2})};
  std::vector<argument> out{numbers({2, 2})};
  std::vector<std::size_t> timed, seen;
  std::vector<float> first;
  run_options o;
  o.profile = [&](std::size_t i, double seconds) {
    EXPECT_GE(seconds, 0);
    timed.push_back(i);
  };
  o.observe = [&](std::size_t i, std::span<const tensor> results) {
    seen.push_back(i);
    if (i == 0) first.assign(results[0].as<float>(), results[0].as<float>() + 4);
  };
  workspace w = e.make_workspace();
  e.run(w, in, out, o);
  EXPECT_THAT(timed, ElementsAre(0, 1));
  EXPECT_THAT(seen, ElementsAre(0, 1));
  EXPECT_NEAR(first[0], std::exp(2.0f), 1e-5);
  EXPECT_NEAR(first[2], std::exp(6.0f), 1e-3);
}

TEST(executable, a_run_stops_between_steps) {
  const executable e = compile_eigen([](builder& b) {
    const value x = b.input("x", dtype::f32, {2, 2});
    b.output(x.dot(x).dot(x).dot(x), "y");
  });
  const std::vector<argument> in{numbers({2, 2})};
  std::vector<argument> out{numbers({2, 2})};
  std::atomic<bool> stop{false};
  std::size_t steps = 0;
  run_options o;
  o.cancel = &stop;
  o.profile = [&](std::size_t i, double) {
    ++steps;
    if (i == 1) stop = true;
  };
  workspace w = e.make_workspace();
  const auto [code, message] = error_of([&] { e.run(w, in, out, o); });
  EXPECT_EQ(code, errc::canceled);
  EXPECT_THAT(message, HasSubstr("step 2"));
  EXPECT_EQ(steps, 2u);
  stop = false;
  o.profile = {};
  EXPECT_NO_THROW(e.run(w, in, out, o));
  EXPECT_EQ(out[0].as<float>()[0], 2 * 2 + 3 * 6);
}

void weighted(builder& b) {
  const value x = b.input("x", dtype::f32, {2, 3});
  b.output(x.dot(b.weight("w", dtype::f32, {3, 2})) + b.weight("bias", dtype::f32, {2}), "y");
}

TEST(executable, weights_are_bound_by_name) {
  compile_options o = plain_options();
  o.weights = {{"w", numbers({3, 2})}, {"bias", numbers({2}, 100)}};
  const executable e = compile_eigen(weighted, o);
  ASSERT_EQ(e.inputs().size(), 1u);
  const auto out = e.run({{"x", numbers({2, 3})}});
  EXPECT_EQ(out[0].as<float>()[0], 0 * 0 + 1 * 2 + 2 * 4 + 100);
  EXPECT_EQ(out[0].as<float>()[3], 3 * 1 + 4 * 3 + 5 * 5 + 101);
  EXPECT_GT(e.report().packed_bytes, 0u);
}

TEST(executable, a_strided_weight_is_read_through_its_strides) {
  argument turned = numbers({2, 3});
  compile_options o = plain_options();
  o.weights = {{"w", argument(shape{dtype::f32, {3, 2}, {1, 3}}, turned.data())}, {"bias", numbers({2})}};
  const auto out = compile_eigen(weighted, o).run({{"x", numbers({2, 3})}});
  EXPECT_EQ(out[0].as<float>()[0], 0 * 0 + 1 * 1 + 2 * 2);
}

TEST(executable, missing_unknown_and_wrong_weights_are_errors) {
  const auto with = [](std::map<std::string, argument> weights) {
    return error_of([&] {
      compile_options o = plain_options();
      o.weights = std::move(weights);
      compile_eigen(weighted, o);
    });
  };
  auto found = with({{"w", numbers({3, 2})}});
  EXPECT_EQ(found.first, errc::not_found);
  EXPECT_THAT(found.second, HasSubstr("'bias'"));
  found = with({{"w", numbers({3, 2})}, {"bias", numbers({2})}, {"extra", numbers({2})}});
  EXPECT_EQ(found.first, errc::not_found);
  EXPECT_THAT(found.second, HasSubstr("'extra'"));
  found = with({{"w", numbers({2, 3})}, {"bias", numbers({2})}});
  EXPECT_EQ(found.first, errc::shape_mismatch);
  EXPECT_THAT(found.second, AllOf(HasSubstr("w"), HasSubstr("f32[3, 2]"), HasSubstr("f32[2, 3]")));
  found = with({{"w", numbers({3, 2})}, {"bias", numbers({2})}, {"x", numbers({2, 3})}});
  EXPECT_EQ(found.first, errc::not_found) << "an input is no weight";
}

TEST(executable, an_op_without_a_kernel_runs_through_its_reference) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 4});
    b.output(((x * 2.0f) | my::running_total{}).transpose({1, 0}).relu(), "y");
    b.output(x.transpose({1, 0}) | my::running_total{}, "z");
    b.output(x.convert(dtype::f16) | my::running_total{}, "half");
  };
  const executable e = compile_eigen(make);
  std::size_t fallbacks = 0;
  for (const step_info& s : e.report().steps)
    if (s.fallback) {
      ++fallbacks;
      EXPECT_THAT(s.kernel, HasSubstr("running_total"));
    }
  EXPECT_EQ(fallbacks, 3u);
  const auto out = e.run({{"x", numbers({3, 4})}});
  EXPECT_EQ(out[0].as<float>()[1], 2 * (0 + 1 + 2 + 3 + 4));
  EXPECT_EQ(out[1].as<float>()[2], 0 + 4 + 8);
  EXPECT_EQ(out[2].to<float>()[11], 66);
}

TEST(executable, an_error_in_a_step_names_its_instruction) {
  builder b;
  const value x = b.input("x", dtype::f32, {3});
  b.label = "layer.7";
  b.output(x | my::throws_on_negative{}, "y");
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  const auto [code, message] = error_of([&] { e.run({{"x", numbers({3}, -1)}}); });
  EXPECT_EQ(code, errc::invalid_argument);
  EXPECT_THAT(message, AllOf(HasSubstr("layer.7"), HasSubstr("elements are not negative")));
  EXPECT_EQ(e.run({{"x", numbers({3})}})[0].as<float>()[2], 2);
}

TEST(executable, a_transposed_convolutions_work_is_counted) {
  builder b;
  const value x = b.input("x", dtype::f32, {1, 4, 3, 3}), w = b.input("w", dtype::f32, {4, 3, 2, 2});
  b.output(b.add(op::deconvolution{.group = 2}, x, w));
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  EXPECT_EQ(e.report().steps[0].flops, dimension(2 * (4 * 3 * 3) * (3 * 2 * 2)));
}

TEST(executable, the_report_counts_work_and_memory) {
  compile_options o = plain_options();
  o.weights = {{"w", numbers({3, 2})}, {"bias", numbers({2})}};
  const executable e = compile_eigen(weighted, o);
  ASSERT_EQ(e.report().steps.size(), 1u);
  const step_info& s = e.report().steps[0];
  EXPECT_EQ(s.flops, dimension(2 * 2 * 2 * 3));
  EXPECT_FALSE(s.fallback);
  EXPECT_FALSE(s.copy);
  EXPECT_EQ(s.packed_bytes, e.report().packed_bytes);
  EXPECT_EQ(e.report().target, "eigen");
}

// Each matrix of a batch meets the same weights, which are read once.
TEST(executable, the_report_counts_weights_once) {
  compile_options o = plain_options();
  o.weights = {{"w", numbers({8, 16})}};
  const auto batch_by_weights = [](builder& b) {
    b.output(b.input("x", dtype::f32, {5, 1, 8}).dot(b.weight("w", dtype::f32, {8, 16})), "y");
  };
  const executable e = compile_eigen(batch_by_weights, o);
  ASSERT_EQ(e.report().steps.size(), 1u);
  const step_info& s = e.report().steps[0];
  EXPECT_GE(s.packed_bytes, 128u * 4);
  EXPECT_EQ(s.bytes, dimension(5 * 8 * 4 + 5 * 16 * 4 + static_cast<std::int64_t>(s.packed_bytes)));
}

// Two rows of four of a table of a hundred, the indices of 8 bytes, and a result: not the table.
TEST(executable, the_report_counts_what_is_picked_from_a_table) {
  builder b;
  const value table = b.input("table", dtype::f32, {100, 4}), at = b.input("at", dtype::i64, {2});
  const value few = b.input("few", dtype::f32, {1, 4});
  b.output(table.gather(at, 0), "rows");
  b.output(few.gather(b.input("more", dtype::i64, {3}), 0), "repeated");
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  ASSERT_EQ(e.report().steps.size(), 2u);
  EXPECT_EQ(e.report().steps[0].bytes, dimension(2 * 16 + 2 * 8 + 2 * 16));
  EXPECT_EQ(e.report().steps[1].bytes, dimension(16 + 3 * 8 + 3 * 16)) << "the whole of a smaller table";
}

// Two outputs are one value, of which the caller has memory for one alone: the other has memory of its own.
TEST(executable, outputs_of_one_value_that_a_run_sizes_share_no_memory) {
  builder b;
  const value x = b.input("x", dtype::f32, {4});
  const dimension n = dimension::symbol("found");
  const value at = b.add(op::nonzero{n}, x).reshape({n});
  const value y = x + x.gather(at, 0).reduce_sum({0});
  b.output(y, "a");
  b.output(y, "b");
  const executable exe = compile(b.finish(), eigen_target());
  const argument in[] = {argument::of<float>({4}, std::vector<float>{1, 0, -3, 5})};
  for (const std::size_t given : {0u, 1u}) {
    std::vector<argument> out(2);
    out[given] = argument(shape{dtype::f32, {4}});
    workspace w = exe.make_workspace();
    exe.run(w, in, out);
    EXPECT_NE(out[0].data(), out[1].data());
    out[given].as<float>()[0] = 100;
    EXPECT_EQ(out[1 - given].as<float>()[0], 4);
  }
}

}  // namespace
}  // namespace kiln::testing
