// Recurrent layers through the Eigen target: cells, functions, directions, lengths, strides, and how threads share
// them.
#include "kiln/op/sequence/recurrent.hpp"

#include <gmock/gmock.h>

#include "kiln/op/sequence/linear_attention.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using op::cell_function;
using op::cell_kind;

constexpr tolerance close{2e-5, 1e-5};

struct sizes {
  std::int64_t steps, batch, hidden;
};

op::recurrent cell_of(cell_kind kind) {
  op::recurrent r{.cell = kind, .functions = {}, .alpha = {}, .beta = {}};
  for (unsigned f = 0; f <= static_cast<unsigned>(kind); ++f) {
    r.functions.push_back(f == 0 && kind != cell_kind::plain ? cell_function::sigmoid : cell_function::tanh);
    r.alpha.push_back(0.3F);
    r.beta.push_back(0.4F);
  }
  return r;
}

// Numbers small enough that errors don't grow from step to step.
argument scaled_argument(const dims& lens, unsigned seed, std::int64_t hidden) {
  const double most = 1.5 / std::sqrt(static_cast<double>(hidden));
  return random_argument({dtype::f32, lens}, seed, -most, most);
}

// All results of one layer over inputs of these sizes; the recurrence is a constant, or the last input, perhaps turned.
void build(builder& b, const op::recurrent& r, const sizes& s, bool constant, dtype lengths = dtype::i64,
           bool turned = false) {
  const std::int64_t all = r.gates() * s.hidden;
  small_vector<value> in{b.input("x", dtype::f32, {s.steps, s.batch, all}), value(), b.input("bias", dtype::f32, {all}),
                         b.input("h", dtype::f32, {s.batch, s.hidden}), b.input("lengths", lengths, {s.batch})};
  if (r.cell == cell_kind::lstm) {
    in.push_back(b.input("c", dtype::f32, {s.batch, s.hidden}));
    in.push_back(b.input("peepholes", dtype::f32, {3 * s.hidden}));
  }
  in[1] = constant ? b.constant(scaled_argument({s.hidden, all}, 9, s.hidden).to_literal())
          : turned ? b.input("recurrence", dtype::f32, {all, s.hidden}).transpose({1, 0})
                   : b.input("recurrence", dtype::f32, {s.hidden, all});
  const value y = b.add(r, in);
  b.output(y);
  b.output(y.result(1));
  if (r.cell == cell_kind::lstm) b.output(y.result(2));
}

void expect_cell(const op::recurrent& r, const sizes& s, bool constant, dtype lengths = dtype::i64) {
  SCOPED_TRACE(::testing::Message() << to_string(r.cell) << " steps " << s.steps << " batch " << s.batch << " hidden "
                                    << s.hidden << " reverse " << r.reverse << " linear " << r.linear_before_reset
                                    << " constant " << constant);
  const auto make = [&](builder& b) { build(b, r, s, constant, lengths); };
  auto in = random_inputs(make, 3);
  in[3] = random_argument(in[3].get_shape(), 7, -1, static_cast<double>(s.steps) + 2);
  if (!constant) in.back() = scaled_argument(in.back().get_shape().lens, 9, s.hidden);
  expect_same(make, in, close);
}

TEST(recurrent, equals_the_reference_at_all_sizes) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm})
    for (const bool linear : {false, true})
      for (const std::int64_t batch : {1, 3, 17})
        for (const std::int64_t hidden : {1, 5, 16, 33, 128}) {
          if (linear && kind != cell_kind::gru) continue;
          op::recurrent r = cell_of(kind);
          r.linear_before_reset = linear;
          r.reverse = (batch + hidden) % 4 == 2;
          expect_cell(r, {7, batch, hidden}, hidden != 33);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// Large enough that threads share the columns of one step.
TEST(recurrent, equals_the_reference_where_threads_share_a_step) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm})
    for (const std::int64_t batch : {1, 2, 9}) {
      op::recurrent r = cell_of(kind);
      r.reverse = batch == 2;
      expect_cell(r, {12, batch, 330}, true);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

// Weights of which a core's own cache holds a part.
TEST(recurrent, equals_the_reference_where_weights_come_from_far) {
  for (const cell_kind kind : {cell_kind::gru, cell_kind::lstm})
    for (const std::int64_t batch : {1, 2, 5}) {
      expect_cell(cell_of(kind), {4, batch, 730}, true);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

argument filled(std::int64_t count, std::int64_t value) {
  argument a(shape{dtype::i64, {count}});
  for (std::int64_t& x : a.as<std::int64_t>()) x = value;
  return a;
}

// Some steps in one run, and one in each of as many runs that are fed with the states: where weights come from far,
// neither the direction of a step nor what the step before left in the cache changes a bit.
TEST(recurrent, gives_the_same_bits_step_by_step) {
  constexpr std::int64_t steps = 4, hidden = 730;
  for (const cell_kind kind : {cell_kind::gru, cell_kind::lstm})
    for (const std::int64_t batch : {1, 2})
      for (const unsigned threads : {1U, 2U}) {
        SCOPED_TRACE(::testing::Message() << to_string(kind) << " batch " << batch << " threads " << threads);
        const op::recurrent r = cell_of(kind);
        compile_options o = plain_options();
        o.pool = std::make_shared<thread_pool>(threads);
        const auto make = [&](builder& b, std::int64_t n) { build(b, r, {n, batch, hidden}, true); };
        const auto all = [&](builder& b) { make(b, steps); };
        const executable whole = compile_eigen(all, o), one = compile_eigen([&](builder&b) { make(b, 1); }, o);
        std::vector<argument> in = random_inputs(all, 3);
        in[3] = filled(batch, steps);
        std::vector<argument> expected = whole.run(in), found;
        std::vector<argument> of_step = in;
        of_step[3] = filled(batch, 1);
        for (std::int64_t t = 0; t < steps; ++t) {
          const auto part = [&](argument& a, std::int64_t row) {
            return argument(shape{dtype::f32, {1, batch, row}}, a.as<float>().data() + t * batch * row);
          };
          of_step[0] = part(in[0], r.gates() * hidden);
          found = one.run(of_step);
          expect_close(found[0], part(expected[0], hidden), {0, 0});
          of_step[2] = found[1];
          if (kind == cell_kind::lstm) of_step[4] = found[2];
        }
        for (std::size_t k = 1; k < found.size(); ++k) expect_close(found[k], expected[k], {0, 0});
      }
}

// Weights that are an input are packed in each run, wherever they lie.
TEST(recurrent, packs_weights_at_an_odd_address) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm})
    for (const bool turned : {false, true})
      for (const std::int64_t hidden : {5, 64, 75}) {
        SCOPED_TRACE(::testing::Message() << to_string(kind) << " hidden " << hidden << " turned " << turned);
        const auto make = [&](builder& b) { build(b, cell_of(kind), {3, 2, hidden}, false, dtype::i64, turned); };
        std::vector<argument> in = random_inputs(make);
        in[3] = filled(2, 3);
        const executable e = compile_eigen(make);
        const auto expected = e.run(in);
        const shape of = in.back().get_shape();
        std::vector<std::byte> moved(static_cast<std::size_t>(of.elements().value()) * sizeof(float) + 1);
        std::memcpy(moved.data() + 1, in.back().data(), moved.size() - 1);
        in.back() = argument(of, moved.data() + 1);
        const auto found = e.run(in);
        for (std::size_t k = 0; k < found.size(); ++k) expect_close(found[k], expected[k], {0, 0});
      }
}

TEST(recurrent, calls_every_function_behind_the_clip) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm})
    for (unsigned f = 0; f < 11; ++f)
      for (const float clip : {std::numeric_limits<float>::infinity(), 0.4F}) {
        op::recurrent r = cell_of(kind);
        for (unsigned k = 0; k < r.functions.size(); ++k) r.functions[k] = static_cast<cell_function>((f + 4 * k) % 11);
        r.clip = clip;
        SCOPED_TRACE(::testing::Message() << to_string(r.functions[0]) << " clip " << clip);
        expect_cell(r, {5, 3, 18}, true);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(recurrent, clips_the_usual_functions_and_couples_gates) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm}) {
    op::recurrent r = cell_of(kind);
    r.clip = 0.3F;
    expect_cell(r, {6, 2, 20}, true, dtype::i32);
  }
  op::recurrent r = cell_of(cell_kind::lstm);
  r.coupled = true;
  expect_cell(r, {6, 2, 20}, true, dtype::i32);
}

TEST(recurrent, empty_extents) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm})
    for (const sizes& s : {sizes{0, 2, 5}, sizes{3, 0, 5}, sizes{3, 2, 0}}) expect_cell(cell_of(kind), s, s.batch != 2);
}

TEST(recurrent, has_a_kernel_that_keeps_packed_weights) {
  const auto kernel_of = [](const op::recurrent& r, bool constant) {
    const executable e = compile_eigen([&](builder& b) { build(b, r, {4, 2, 24}, constant); });
    return e.report().steps[0].kernel;
  };
  EXPECT_EQ(kernel_of(cell_of(cell_kind::lstm), true), "lstm (packed)");
  EXPECT_EQ(kernel_of(cell_of(cell_kind::gru), true), "gru (packed)");
  EXPECT_EQ(kernel_of(cell_of(cell_kind::plain), false), "recurrence");
}

// Both directions: each reads its part of one operand and writes its part of one result.
TEST(recurrent, operands_and_results_of_any_outer_strides) {
  const sizes s{6, 3, 20};
  const auto make = [&](builder& b) {
    const value x = b.input("x", dtype::f32, {s.batch, s.steps, 2, 4 * s.hidden}),
                h = b.input("h", dtype::f32, {s.batch, 2, s.hidden});
    small_vector<value> y, last;
    for (std::int64_t d = 0; d < 2; ++d) {
      op::recurrent r = cell_of(cell_kind::lstm);
      r.reverse = d == 1;
      const auto part = [&](value v, std::int64_t axis) {
        return v.slice({.axes = {axis}, .starts = {d}, .ends = {d + 1}}).squeeze({axis});
      };
      const value weights = b.constant(scaled_argument({4 * s.hidden, s.hidden}, 5, s.hidden).to_literal());
      const value made =
          b.add(r, small_vector<value>{part(x, 2).transpose({1, 0, 2}), weights.transpose({1, 0}),
                                       b.constant(scaled_argument({4 * s.hidden}, 6, 1).to_literal()), part(h, 1),
                                       b.input(d ? "m" : "n", dtype::i64, {s.batch}), part(h, 1),
                                       b.constant(scaled_argument({3 * s.hidden}, 8, 1).to_literal())});
      y.push_back(made);
      last.push_back(made.result(2));
    }
    b.output(b.add(op::concat{2}, y));
    b.output(b.add(op::concat{1}, last));
  };
  auto in = random_inputs(make);
  in[2] = random_argument(in[2].get_shape(), 5, 1, 6);
  in[3] = random_argument(in[3].get_shape(), 6, 1, 6);
  expect_same(make, in, close);
  std::size_t copies = 0;
  const executable e = compile_eigen(make);
  for (const step_info& i : e.report().steps) copies += i.copy;
  EXPECT_EQ(copies, 0U);
}

TEST(recurrent, nan_and_infinity_stay) {
  for (const cell_kind kind : {cell_kind::plain, cell_kind::gru, cell_kind::lstm})
    for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const auto make = [&](builder& b) { build(b, cell_of(kind), {2, 2, 17}, true); };
      auto in = random_inputs(make);
      in[3] = random_argument(in[3].get_shape(), 5, 2, 3);
      in[0].as<float>()[3] = odd;
      expect_same(make, in, close);
    }
}

// Heads that share states, widths that fill no vector, no steps, and no state; with a state of its own for each task,
// threads change nothing.
TEST(linear_attention, is_what_the_reference_gives) {
  struct extents {
    std::int64_t batch, steps, heads, own, depth, width;
  };
  for (const extents& n : {extents{2, 5, 4, 2, 8, 19},
                           {1, 1, 3, 3, 16, 16},
                           {3, 7, 2, 1, 5, 1},
                           {1, 33, 8, 4, 32, 40},
                           {2, 0, 2, 2, 4, 4},
                           {1, 3, 1, 1, 4, 0},
                           {1, 6, 6, 2, 17, 150},
                           {2, 4, 1, 1, 33, 64}})
    for (const bool corrects : {false, true}) {
      builder b;
      const value q = b.input("q", dtype::f32, {n.batch, n.steps, n.heads, n.depth}),
                  k = b.input("k", dtype::f32, {n.batch, n.steps, n.own, n.depth}),
                  v = b.input("v", dtype::f32, {n.batch, n.steps, n.own, n.width}),
                  state = b.input("state", dtype::f32, {n.batch, n.own, n.depth, n.width}),
                  decay = b.input("decay", dtype::f32, {n.batch, n.steps, n.own, n.depth}),
                  beta = b.input("beta", dtype::f32, {n.batch, n.steps, n.own});
      const value y = b.add(op::linear_attention{.7F, corrects}, q, k, v, state, decay, beta);
      b.output(y), b.output(y.result(1));
      const program p = b.finish();
      const executable e = compile(p, eigen_target(), plain_options());
      for (const step_info& s : e.report().steps) EXPECT_EQ(s.kernel, "linear_attention");
      std::vector<argument> in;
      for (const port& i : e.inputs())
        in.push_back(random_argument(i.type, static_cast<unsigned>(in.size() + 1), -.6, .6));
      const auto found = e.run(in), expected = compile(p, reference_target(), plain_options()).run(in);
      for (std::size_t r = 0; r < 2; ++r) expect_close(found[r], expected[r], close);
    }
}

// Decays and shares of a head that are repeated over what they do not differ in are read where they are; a decay of
// zero forgets, of whatever the state was.
TEST(linear_attention, reads_repeated_decays_in_place) {
  const auto run = [](const target& t, bool per_head, bool all_alike, float decay_of_step_2, std::size_t& steps) {
    builder b;
    const dims of_head{1, 7, 2, 20};
    const value q = b.input("q", dtype::f32, of_head), k = b.input("k", dtype::f32, of_head),
                v = b.input("v", dtype::f32, {1, 7, 2, 24}), state = b.input("state", dtype::f32, {1, 2, 20, 24});
    argument fades = scaled_argument({1, 7, 2, 1}, 5, 4);
    for (int h = 0; h < 2; ++h) fades.as<float>()[2 * 2 + h] = decay_of_step_2;
    const value decay = per_head ? b.constant(fades.to_literal()).broadcast_to(of_head)
                                 : b.add(op::fill{{}, .9, dtype::f32}).broadcast_to(of_head);
    const value beta = all_alike ? b.add(op::fill{{}, .5, dtype::f32}).broadcast_to({1, 7, 2})
                                 : b.input("beta", dtype::f32, {2, 7}).transpose({1, 0}).unsqueeze({0});
    const value y = b.add(op::linear_attention{.7F, true}, q, k, v, state, decay, beta);
    b.output(y), b.output(y.result(1));
    const executable e = compile(b.finish(), t, plain_options());
    steps = e.report().steps.size();
    std::vector<argument> in;
    for (const port& i : e.inputs())
      in.push_back(random_argument(i.type, static_cast<unsigned>(in.size() + 1), -.6, .6));
    return e.run(in);
  };
  for (const bool per_head : {false, true})
    for (const bool all_alike : {false, true})
      for (const float decay : {.8F, 0.F}) {
        std::size_t steps = 0, others = 0;
        const auto found = run(eigen_target(), per_head, all_alike, decay, steps),
                   expected = run(reference_target(), per_head, all_alike, decay, others);
        EXPECT_EQ(steps, 1U);
        for (std::size_t r = 0; r < 2; ++r) expect_close(found[r], expected[r], close);
      }
}

}  // namespace
}  // namespace kiln::testing
