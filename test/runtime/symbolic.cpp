// Programs with named sizes: compiled once, run at many sizes in one workspace.
#include <gmock/gmock.h>

#include <chrono>

#include "kiln/op/more.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const dimension batch = dimension::symbol("batch", 0, 4096), past = dimension::symbol("past", 0, 4096),
                step = dimension::symbol("step", 0, 4096);

void network(builder& b) {
  const std::vector<float> w(6 * 4, 0.25f);
  const value x = b.input("x", dtype::f32, {batch, step, 6}), old = b.input("old", dtype::f32, {batch, past, 4});
  const value made = x.dot(b.constant<float>(dtype::f32, {6, 4}, w).broadcast_to({batch, 6, 4})).tanh();
  const value all = old.concat(made, 1);
  b.output(all, "all");
  b.output(all.transpose({0, 2, 1}).softmax(), "soft");
  b.output(all.reshape({batch * (past + step), 4}).reduce_sum({1}), "sums");
}

TEST(symbolic, one_workspace_serves_many_sizes_and_goes_back) {
  const executable e = compile_eigen(network);
  workspace w = e.make_workspace();
  const std::int64_t sizes[][3] = {{1, 1, 0}, {2, 3, 5},  {1, 1, 1}, {0, 2, 2},
                                   {3, 0, 4}, {5, 7, 30}, {2, 3, 5}, {1, 1, 0}};
  unsigned seed = 1;
  for (const auto& [n, s, p] : sizes) {
    SCOPED_TRACE(::testing::Message() << n << ' ' << s << ' ' << p);
    const std::vector<argument> in{random_argument({dtype::f32, {n, s, 6}}, ++seed),
                                   random_argument({dtype::f32, {n, p, 4}}, ++seed)};
    const auto expected = reference_run(network, in);
    std::vector<argument> out;
    for (const argument& a : expected) out.emplace_back(a.get_shape());
    e.run(w, in, out);
    for (std::size_t k = 0; k < out.size(); ++k) expect_close(out[k], expected[k]);
  }
}

TEST(symbolic, the_arena_grows_only_when_sizes_do) {
  const executable e = compile_eigen(network);
  workspace w = e.make_workspace();
  EXPECT_EQ(w.bytes(), 0u);
  const auto bind = [&](std::int64_t n, std::int64_t s, std::int64_t p) {
    const shape in[] = {{dtype::f32, {n, s, 6}}, {dtype::f32, {n, p, 4}}};
    e.bind(w, in);
  };
  bind(4, 4, 40);
  EXPECT_EQ(w.growths(), 1u);
  const std::size_t bytes = w.bytes();
  bind(1, 1, 3), bind(4, 4, 40), bind(2, 4, 40);
  EXPECT_EQ(w.growths(), 1u);
  EXPECT_EQ(w.bytes(), bytes);
  bind(8, 40, 40);
  EXPECT_EQ(w.growths(), 2u);
  EXPECT_GT(w.bytes(), bytes);
}

TEST(symbolic, output_shapes_follow_the_inputs) {
  const executable e = compile_eigen(network);
  const shape in[] = {{dtype::f32, {2, 3, 6}}, {dtype::f32, {2, 5, 4}}};
  const auto out = e.output_shapes(in);
  EXPECT_EQ(to_string(out[0]), "f32[2, 8, 4]");
  EXPECT_EQ(to_string(out[1]), "f32[2, 4, 8]");
  EXPECT_EQ(to_string(out[2]), "f32[16, 1]");
  EXPECT_EQ(error_of([&] { e.output_shapes({in, 1}); }).first, errc::invalid_argument);
}

TEST(symbolic, a_symbol_has_one_value) {
  const executable e = compile_eigen(network);
  const shape in[] = {{dtype::f32, {2, 3, 6}}, {dtype::f32, {3, 5, 4}}};
  workspace w = e.make_workspace();
  const auto [code, message] = error_of([&] { e.bind(w, in); });
  EXPECT_EQ(code, errc::shape_mismatch);
  EXPECT_THAT(message, AllOf(HasSubstr("'batch'"), HasSubstr("2"), HasSubstr("3")));
}

TEST(symbolic, a_value_outside_the_bounds_is_refused) {
  const executable e = compile_eigen(network);
  const shape in[] = {{dtype::f32, {5000, 1, 6}}, {dtype::f32, {5000, 1, 4}}};
  workspace w = e.make_workspace();
  const auto [code, message] = error_of([&] { e.bind(w, in); });
  EXPECT_EQ(code, errc::shape_mismatch);
  EXPECT_THAT(message, AllOf(HasSubstr("'batch'"), HasSubstr("0..4096"), HasSubstr("5000")));
}

// A binding that fails half way must not leave the workspace believing in the sizes it has read so far.
TEST(symbolic, a_failed_binding_leaves_a_usable_workspace) {
  const executable e = compile_eigen(network);
  workspace w = e.make_workspace();
  const auto run = [&](std::int64_t n, std::int64_t s, std::int64_t p) {
    const std::vector<argument> in{random_argument({dtype::f32, {n, s, 6}}, 1),
                                   random_argument({dtype::f32, {n, p, 4}}, 2)};
    const auto expected = reference_run(network, in);
    std::vector<argument> out;
    for (const argument& a : expected) out.emplace_back(a.get_shape());
    e.run(w, in, out);
    for (std::size_t k = 0; k < out.size(); ++k) expect_close(out[k], expected[k]);
  };
  run(1, 2, 3);
  const shape wrong_type[] = {{dtype::f32, {1, 9, 6}}, {dtype::f64, {1, 3, 4}}};
  EXPECT_THROW(e.bind(w, wrong_type), error);
  run(1, 9, 3);
  const shape wrong_batch[] = {{dtype::f32, {2, 5, 6}}, {dtype::f32, {4, 5, 4}}};
  EXPECT_THROW(e.bind(w, wrong_batch), error);
  run(2, 5, 5);
}

TEST(symbolic, extents_taken_as_equal_are_compared_when_bound) {
  const dimension a = dimension::symbol("a"), c = dimension::symbol("c");
  struct {
    const char* rule;
    std::function<void(builder&)> make;
  } cases[] = {
      {"multibroadcast", [&](builder& b) { b.output(b.input("x", dtype::f32, {a}) + b.input("y", dtype::f32, {c})); }},
      {"multibroadcast",
       [&](builder& b) {
         b.output((b.input("x", dtype::f32, {a}).exp() + b.input("y", dtype::f32, {c}).sqrt()).reduce_sum({0}));
       }},
      {"multibroadcast",
       [&](builder& b) {
         b.output(b.input("x", dtype::f32, {a}).reshape({a, 1}).broadcast_to({c, 3}) *
                  b.input("y", dtype::f32, {c}).reshape({c, 1}));
       }},
      {"reshape",
       [&](builder& b) { b.output(b.input("x", dtype::f32, {a}).reshape({c}) + b.input("y", dtype::f32, {c})); }},
      {"broadcast",
       [&](builder& b) {
         const value y = b.input("y", dtype::f32, {c}), x = b.input("x", dtype::f32, {a});
         b.output(y.reshape({1, c, 1}).broadcast_to({2, c, 3}).add_along(1, x));
       }},
  };
  std::size_t at = 0;
  for (const auto& [rule, make] : cases) {
    SCOPED_TRACE(at++);
    for (const bool passes : {true, false}) {
      compile_options o = plain_options();
      o.passes.simplify = o.passes.fuse = passes;
      const executable e = compile_eigen(make, o);
      const bool swapped = e.inputs()[0].name == "y";
      const shape four{dtype::f32, {4}}, five{dtype::f32, {5}};
      const shape unequal[] = {swapped ? five : four, swapped ? four : five}, equal[] = {four, four};
      workspace w = e.make_workspace();
      const auto [code, message] = error_of([&] { e.bind(w, unequal); });
      EXPECT_EQ(code, errc::shape_mismatch);
      EXPECT_THAT(message, AllOf(HasSubstr(rule), HasSubstr("'a'"), HasSubstr("'c'"), HasSubstr("4"), HasSubstr("5")));
      EXPECT_NO_THROW(e.bind(w, equal));
      const auto in = std::vector<argument>{random_argument(four, 1), random_argument(four, 2)};
      const auto expected = reference_run(make, in), found = e.run(in);
      expect_close(found[0], expected[0]);
    }
  }
}

TEST(symbolic, a_window_that_turns_out_not_to_fit_is_refused) {
  const dimension a = dimension::symbol("a");
  const executable e = compile_eigen([&](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 1, a});
    b.output(x.exp().pool({.lengths = {5}}).sqrt());
  });
  workspace w = e.make_workspace();
  const shape two[] = {{dtype::f32, {1, 1, 2}}}, nine[] = {{dtype::f32, {1, 1, 9}}};
  const auto [code, message] = error_of([&] { e.bind(w, two); });
  EXPECT_EQ(code, errc::shape_mismatch);
  EXPECT_THAT(message, AllOf(HasSubstr("pooling"), HasSubstr("expected 5"), HasSubstr("found 2")));
  EXPECT_NO_THROW(e.bind(w, nine));
}

// Rules over extents of several operands, or over an attribute, that only the run can decide.
TEST(symbolic, what_a_shape_rule_left_open_is_refused_by_the_run) {
  const dimension a = dimension::symbol("rows"), c = dimension::symbol("columns"), k = dimension::symbol("k");
  const auto refused = [&](auto&& make, std::vector<shape> good, std::vector<shape> bad, std::string_view rule) {
    const executable e = compile_eigen(make);
    workspace w = e.make_workspace();
    EXPECT_NO_THROW(e.bind(w, good));
    const auto [code, message] = error_of([&] { e.bind(w, bad); });
    EXPECT_EQ(code, errc::shape_mismatch);
    EXPECT_THAT(message, HasSubstr(std::string(rule)));
  };
  const shape three{dtype::f32, {3, 3}}, two{dtype::i64, {2, 3}}, many{dtype::i64, {200, 3}};
  const auto updates = [](const shape& s) { return shape{dtype::f32, s.lens}; };
  refused(
      [&](builder& b) {
        const value x = b.input("x", dtype::f32, {a, 3}), i = b.input("i", dtype::i64, {c, 3});
        b.output(b.add(op::scatter_elements{1}, x, i, b.input("u", dtype::f32, {c, 3})));
      },
      {three, two, updates(two)}, {three, many, updates(many)}, "no further than the data");
  refused(
      [&](builder& b) {
        const value x = b.input("x", dtype::f32, {a, 3}), i = b.input("i", dtype::i64, {c, 3});
        b.output(b.add(op::gather_elements{1}, x, i));
      },
      {three, two}, {three, many}, "no further than the data");
  refused(
      [&](builder& b) {
        const value x = b.input("x", dtype::f32, {a, 3});
        b.input("n", dtype::f32, {k});
        b.output(b.add(op::topk{.k = k, .axis = 0}, x));
      },
      {three, shape{dtype::f32, {2}}}, {three, shape{dtype::f32, {4}}}, "k lies between 0");
}

// Each extent that operands share is compared: exchanged ones make as many elements.
TEST(symbolic, operands_with_exchanged_extents_are_refused) {
  const dimension a = dimension::symbol("rows"), c = dimension::symbol("columns"), d = dimension::symbol("their rows"),
                  e = dimension::symbol("their columns"), f = dimension::symbol("more");
  const auto refused = [&](const std::vector<std::pair<dtype, dims>>& operands, auto&& op) {
    for (const bool passes : {true, false}) {
      compile_options o = plain_options();
      o.passes.simplify = o.passes.fuse = passes;
      const executable made = compile_eigen(
          [&](builder& b) {
            small_vector<value> in;
            for (const auto& [type, lens] : operands)
              in.push_back(b.input("x" + std::to_string(in.size()), type, lens));
            b.output(b.add(op, in));
          },
          o);
      const auto shapes_of = [&](std::int64_t theirs, std::int64_t others) {
        bindings sizes;
        for (const auto& [symbol, size] : {std::pair{a, 2}, {c, 6}, {f, 3}}) sizes.bind(symbol, size);
        sizes.bind(d, theirs), sizes.bind(e, others);
        std::vector<shape> out;
        for (const auto& [type, lens] : operands) {
          out.push_back({type, lens});
          for (dimension& l : out.back().lens) l = sizes.substitute(l);
        }
        return out;
      };
      workspace w = made.make_workspace();
      SCOPED_TRACE(operation(op).name());
      EXPECT_NO_THROW(made.bind(w, shapes_of(2, 6)));
      EXPECT_EQ(error_of([&] { made.bind(w, shapes_of(6, 2)); }).first, errc::shape_mismatch);
      EXPECT_EQ(error_of([&] { made.bind(w, shapes_of(3, 4)); }).first, errc::shape_mismatch);
    }
  };
  constexpr dtype real = dtype::f32, index = dtype::i64;
  refused({{real, {a, c, f}}, {real, {d, e, 4}}}, op::concat{2});
  refused({{real, {a, 3, c}}, {real, {d, e, 5}}}, op::dot{});
  refused({{real, {a, c, 5}}, {index, {d, e, 1}}}, op::gather_nd{2});
  refused({{real, {9, 9}}, {index, {a, c}}, {real, {d, e}}}, op::scatter_elements{1});
  refused({{real, {5, c}}, {index, {a, 1}}, {real, {d, e}}}, op::scatter_nd{});
  refused({{real, {1, 1, a, c}}, {real, {1, 1, f, e}}, {real, {1, 1, f, d}}}, op::attention{});
  refused({{real, {1, a, 8, 8}}, {real, {c, d, 3, 3}}}, op::convolution{});
  refused(
      {{real, {f, a, 4 * 3}}, {real, {3, 12}}, {real, {12}}, {real, {d, 3}}, {index, {d}}, {real, {d, 3}}, {real, {9}}},
      op::recurrent{op::cell_kind::lstm,
                    {op::cell_function::sigmoid, op::cell_function::tanh, op::cell_function::tanh},
                    {0, 0, 0},
                    {0, 0, 0}});
  refused({{real, {1, 2, 8, 8}}, {real, {a, 4}}, {index, {d}}}, op::roi_align{2, 2});
  refused({{real, {3, d, 2}}}, op::det{});
}

TEST(symbolic, sizes_beyond_memory_are_an_error_not_a_crash) {
  const dimension a = dimension::symbol("huge_a"), c = dimension::symbol("huge_c");
  const executable e = compile_eigen([&](builder& b) {
    const value x = b.input("x", dtype::f32, {a, 1}), y = b.input("y", dtype::f32, {1, c});
    b.output((x.dot(y) * 2.0f).dot(y.transpose({1, 0})));
  });
  for (const std::int64_t n : {std::int64_t{1} << 28, std::int64_t{1} << 40}) {
    workspace w = e.make_workspace();
    const shape in[] = {{dtype::f32, {n, 1}}, {dtype::f32, {1, n}}};
    EXPECT_EQ(error_of([&] { e.bind(w, in); }).first, errc::limit);
    EXPECT_EQ(w.bytes(), 0u);
  }
}

TEST(symbolic, constants_that_hold_symbols_are_filled_at_each_binding) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::i64, {batch, 2});
    small_vector<dimension> values{batch, batch * 2 + 1};
    b.output(x + b.constant(literal::of_dimensions({2}, std::move(values))));
  };
  const executable e = compile_eigen(make);
  workspace w = e.make_workspace();
  for (std::int64_t n : {3, 1, 5}) {
    const std::vector<argument> in{random_argument({dtype::i64, {n, 2}}, 3, -50, 50)};
    std::vector<argument> out{argument(shape{dtype::i64, {n, 2}})};
    e.run(w, in, out);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(2 * i);
      EXPECT_EQ(out[0].as<std::int64_t>()[at], in[0].as<std::int64_t>()[at] + n);
      EXPECT_EQ(out[0].as<std::int64_t>()[at + 1], in[0].as<std::int64_t>()[at + 1] + 2 * n + 1);
    }
  }
}

TEST(symbolic, attributes_that_hold_symbols_serve_a_kernel) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {batch, 3});
    b.output(b.add(op::topk{.k = smaller(batch, 2), .axis = 0}, x));
  };
  const executable e = compile_eigen(make);
  EXPECT_FALSE(e.report().steps[0].fallback);
  for (std::int64_t n : {1, 2, 7}) {
    const std::vector<argument> in{random_argument({dtype::f32, {n, 3}}, 9)};
    expect_close(e.run(in)[0], reference_run(make, in)[0]);
    EXPECT_EQ(e.run(in)[0].get_shape().lens[0], dimension(std::min<std::int64_t>(n, 2)));
  }
}

}  // namespace
}  // namespace kiln::testing
