// A workspace that is bound to other sizes keeps its placement where they fit, and computes the same.
#include <gmock/gmock.h>

#include "kiln/op/dynamic/selection.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

const dimension past = dimension::symbol("past"), fresh = dimension::symbol("fresh");

// Values whose sizes depend on both symbols, live side by side, in branches and with scratch memory.
executable compile_mixed(const target& t) {
  builder b;
  const value x = b.input("x", dtype::f32, {fresh, 24}), old = b.input("old", dtype::f32, {past, 24});
  const value all = old.concat(x, 0);
  const value scores = x.dot(all.transpose({1, 0}));
  const value weights = scores.softmax(1);
  b.output(weights.dot(all.tanh()) + x.exp(), "y");
  b.output(scores.reduce_max({0}) + all.reduce_sum({1}).reshape({past + fresh}).unsqueeze({0}), "z");
  return compile(b.finish(), t, plain_options());
}

TEST(rebinding, gives_what_a_fresh_workspace_gives) {
  const eigen_target eigen;
  const reference_target reference;
  for (const target* t : {static_cast<const target*>(&eigen), static_cast<const target*>(&reference)}) {
    const executable e = compile_mixed(*t);
    workspace kept = e.make_workspace();
    unsigned seed = 0;
    const std::pair<int, int> sizes[] = {{0, 40}, {40, 1}, {41, 1}, {42, 1}, {60, 1}, {61, 2},  {200, 1}, {3, 1},
                                         {4, 1},  {5, 90}, {95, 1}, {96, 1}, {97, 1}, {98, 40}, {1, 1},   {500, 3}};
    for (const auto& [p, n] : sizes) {
      const std::vector<argument> in{random_argument({dtype::f32, {n, 24}}, ++seed),
                                     random_argument({dtype::f32, {p, 24}}, ++seed)};
      std::vector<argument> found(2), wanted(2);
      e.run(kept, in, found);
      workspace other = e.make_workspace();
      e.run(other, in, wanted);
      for (std::size_t k = 0; k < 2; ++k) expect_close(found[k], wanted[k], {0, 0});
    }
  }
}

TEST(rebinding, serves_two_programs_by_turns_and_goes_on_after_an_error) {
  const executable one = compile_mixed(eigen_target()), other = compile_mixed(reference_target());
  workspace shared = one.make_workspace();
  for (std::int64_t p = 30; p < 36; ++p) {
    const std::vector<argument> in{random_argument({dtype::f32, {1, 24}}, 1),
                                   random_argument({dtype::f32, {p, 24}}, 2)},
        wrong{in[0], random_argument({dtype::f32, {p, 23}}, 2)};
    for (const executable* e : {&one, &one, &other}) {
      std::vector<argument> found(2), none(2), wanted(2);
      e->run(shared, in, found);
      EXPECT_THROW(e->run(shared, wrong, none), error);
      workspace fresh = e->make_workspace();
      e->run(fresh, in, wanted);
      for (std::size_t k = 0; k < 2; ++k) expect_close(found[k], wanted[k], {0, 0});
    }
  }
}

TEST(rebinding, steps_of_a_sequence_do_not_enlarge_the_arena_each_time) {
  const executable e = compile_mixed(eigen_target());
  workspace w = e.make_workspace();
  const auto bind = [&](std::int64_t p) {
    e.bind(w, std::vector<shape>{{dtype::f32, {1, 24}}, {dtype::f32, {p, 24}}});
  };
  bind(2000), bind(2001);
  const std::size_t bytes = w.bytes(), growths = w.growths();
  for (std::int64_t p = 2002; p < 2100; ++p) bind(p);
  EXPECT_EQ(w.bytes(), bytes);
  EXPECT_EQ(w.growths(), growths);
}

// A program whose extents only a run knows is cut: its parts keep their placements too, though what the parts before
// them found differs from run to run.
TEST(rebinding, parts_of_a_program_do_not_enlarge_their_arenas_each_time) {
  builder b;
  const dimension found = dimension::symbol("found");
  const value x = b.input("x", dtype::f32, {past, 64});
  const value at = b.add(op::nonzero{found}, x.slice({{1}, {0}, {1}, {}}).reshape({past}));
  const value rows = x.gather(at.reshape({found}), 0);
  const value scores = rows.dot(rows.transpose({1, 0})).softmax(1);
  b.output(scores.dot(rows.tanh()) + rows.exp(), "y");
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  workspace kept = e.make_workspace();
  const auto run = [&](workspace& w, std::int64_t p) {
    const std::vector<argument> in{random_argument({dtype::f32, {p, 64}}, static_cast<unsigned>(p))};
    std::vector<argument> out(1);
    e.run(w, in, out);
    return out[0];
  };
  run(kept, 400), run(kept, 401);
  const std::size_t growths = kept.growths();
  EXPECT_GE(growths, 1u);
  for (std::int64_t p = 402; p < 432; ++p) {
    workspace other = e.make_workspace();
    expect_close(run(kept, p), run(other, p), {0, 0});
  }
  EXPECT_LE(kept.growths(), growths + 1);
}

}  // namespace
}  // namespace kiln::testing
