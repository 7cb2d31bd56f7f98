// Where values live: views, concatenations in place, transposed buffers, outputs of every origin.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

std::size_t copies(const executable& e) {
  std::size_t n = 0;
  for (const step_info& s : e.report().steps) n += s.copy;
  return n;
}

TEST(planner, views_of_views) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 6, 5});
    const value turned = x.transpose({2, 0, 1}).slice({.axes = {1}, .starts = {1}, .ends = {3}});
    b.output(turned.reshape({10, 6}).transpose({1, 0}).relu());
    b.output(turned.transpose({0, 2, 1}).slice({.axes = {0}, .starts = {4}, .ends = {0}, .steps = {-2}}));
    b.output(turned.unsqueeze({0}).broadcast_to({3, 5, 2, 6}).reshape({30, 6}));
  });
}

TEST(planner, a_view_that_needs_a_copy_is_copied_once_for_all_readers) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 6, 5}), flat = x.transpose({2, 0, 1}).reshape({5, 24});
    b.output(flat.dot(b.input("w", dtype::f32, {24, 3})));
    b.output(flat.reshape({120}).slice({.axes = {0}, .starts = {3}, .ends = {50}}));
  };
  expect_same(make);
}

TEST(planner, a_concatenation_is_written_in_place) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 4}), y = b.input("y", dtype::f32, {3, 5});
    b.output(x.relu().concat(y.exp(), 1).reshape({27}).sqrt());
  };
  expect_same(make);
  EXPECT_EQ(copies(compile_eigen(make)), 0u);
}

TEST(planner, nested_concatenations_are_written_in_place) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 4}), y = b.input("y", dtype::f32, {3, 5});
    const value inner = x.relu().concat(y.exp(), 1), outer = inner.concat(x.neg(), 1);
    b.output(outer.concat(outer.abs(), 0));
  };
  expect_same(make);
}

TEST(planner, a_value_may_stand_twice_in_a_concatenation) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 4}), r = x.relu();
    b.output(r.concat(r, 1));
    b.output(r.concat(r, 0).concat(r, 0));
    b.output(x.concat(x, 0));
  });
}

TEST(planner, a_concatenation_of_inputs_constants_and_views) {
  expect_same([](builder& b) {
    const std::vector<float> ones(6, 1.5f);
    const value x = b.input("x", dtype::f32, {2, 3}), c = b.constant<float>(dtype::f32, {2, 3}, ones);
    const value t = b.input("t", dtype::f32, {3, 2}).transpose({1, 0});
    b.output(x.concat(c, 0).concat(t, 0));
    b.output(t.exp().concat(x.slice({.axes = {1}, .starts = {0}, .ends = {2}}), 1));
  });
}

TEST(planner, a_program_output_may_be_an_operand_of_a_concatenation) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 4}), r = x.relu(), joined = r.concat(x.exp(), 1);
    b.output(r);
    b.output(joined);
    b.output(joined.neg());
  });
}

TEST(planner, a_part_of_a_concatenation_is_read_by_others) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 4}), r = x.relu(), e = x.exp();
    b.output(r.concat(e, 1));
    b.output(r.concat(x.sin(), 0));
    b.output((r.dot(b.input("w", dtype::f32, {4, 4})) + e).tanh());
  });
}

TEST(planner, a_view_between_a_producer_and_a_concatenation) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 3}), y = b.input("y", dtype::f32, {3, 5});
    b.output(x.exp().transpose({1, 0}).concat(y, 1));
    b.output(x.tanh().reshape({3, 4}).concat(y.cos(), 1));
  };
  expect_same(make);
}

TEST(planner, a_producer_writes_transposed_where_only_a_transposition_reads_it) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 3, 5});
    b.output(x.exp().transpose({2, 0, 1}).reshape({5, 12}).dot(b.input("w", dtype::f32, {12, 2})));
    b.output(x.tanh().transpose({1, 2, 0}));
    b.output((x * x).transpose({}).concat(b.input("y", dtype::f32, {2, 3, 4}), 0));
  };
  expect_same(make);
  EXPECT_EQ(copies(compile_eigen(make)), 1u) << "only the input `y` moves";
}

// The reader of one result says nothing about another result of the same instruction.
TEST(planner, results_of_one_instruction_have_their_own_places) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 6});
    const value values = b.add(op::topk{.k = 3, .axis = 1}, x);
    b.output(values.result(1).transpose({1, 0}));
  });
}

TEST(planner, outputs_may_be_inputs_constants_views_and_duplicates) {
  expect_same([](builder& b) {
    const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
    const value x = b.input("x", dtype::f32, {2, 3}), c = b.constant<float>(dtype::f32, {2, 3}, numbers), r = x.relu();
    b.output(x);
    b.output(c);
    b.output(x.transpose({1, 0}));
    b.output(c.transpose({1, 0}));
    b.output(r);
    b.output(r);
    b.output(r.reshape({6}));
    b.output(x);
    b.output(b.scalar(dtype::f32, 2).broadcast_to({2, 2}));
  });
}

TEST(planner, an_output_under_other_dims_is_written_where_it_belongs) {
  const auto make = [](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 6});
    b.output(x.exp().reshape({2, 12}).unsqueeze({0}));
    b.output(x.reduce_sum({1}).squeeze({1}));
    b.output(x.dot(b.input("w", dtype::f32, {6, 3})).transpose({}).reshape({12}));
  };
  expect_same(make);
  const executable e = compile_eigen(make);
  std::vector<std::string> copied;
  for (const step_info& s : e.report().steps)
    if (s.copy) copied.push_back(s.instruction);
  EXPECT_THAT(copied, ::testing::ElementsAre("reshape")) << "a product writes rows only";
}

TEST(planner, a_part_of_a_value_is_no_whole_output) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f32, {4, 6}), e = x.exp();
    b.output(e.slice({.axes = {0}, .starts = {0}, .ends = {2}}));
    b.output(e.slice({.axes = {0}, .starts = {0}, .ends = {3}}).reshape({18}));
    b.output(e.reshape({24}).neg());
  });
}

TEST(planner, zero_sized_and_rank_0_tensors) {
  expect_same([](builder& b) {
    const value none = b.input("none", dtype::f32, {3, 0, 2}), x = b.input("x", dtype::f32, {3, 4, 2}),
                scalar = b.input("scalar", dtype::f32, {});
    b.output(none.exp().concat(x, 1));
    b.output(none.transpose({1, 2, 0}));
    b.output(none.reduce_sum({1}));
    b.output(none.reshape({0}).relu());
    b.output(scalar);
    b.output(scalar.exp() * x);
    b.output(scalar.sqrt() + 1.0f);
    b.output(x.reduce_max({0, 1, 2}).reshape({}));
  });
}

TEST(planner, memory_is_reused_only_when_nobody_reads_it_any_more) {
  // a chain of products whose early values are read late: any overlap of live values shows
  expect_same(
      [](builder& b) {
        value x = b.input("x", dtype::f32, {16, 16});
        std::vector<value> all;
        for (int i = 0; i < 6; ++i) {
          x = x.dot(x * 0.05f).reduce_max({0}).broadcast_to({16, 16}) + x;
          x = x.dot(b.input("w" + std::to_string(i), dtype::f32, {16, 16}) * 0.1f).tanh();
          all.push_back(x);
        }
        value sum = all[5];
        for (int i = 0; i < 5; ++i) sum = (sum.dot(all[static_cast<std::size_t>(i)]) * 0.1f).sin();
        b.output(sum);
        b.output(all[2]);
      },
      {1e-4, 1e-4});
}

TEST(planner, integer_and_half_values_are_placed_by_their_own_size) {
  expect_same([](builder& b) {
    const value x = b.input("x", dtype::f16, {5, 7}), i = b.input("i", dtype::i8, {5, 7});
    b.output(x.transpose({1, 0}).concat(i.convert(dtype::f16).transpose({1, 0}), 1));
    b.output(i.convert(dtype::i64).concat((x * 3.0f).convert(dtype::i64), 0).transpose({1, 0}));
    b.output((i > b.scalar(dtype::i8, 0)).transpose({1, 0}));
  });
}

}  // namespace
}  // namespace kiln::testing
