// Large weights that files have turned are packed from where they lie: no turned copy of them is written.
#include <gmock/gmock.h>

#include <cstring>

#include "eigen/saved_program.hpp"
#include "kiln/core/mapped_file.hpp"
#include "kiln/op/sequence/recurrent.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

constexpr tolerance close{3e-5, 3e-5};

// Weights [lens], `off` bytes after an aligned address.
value stored(builder& b, const dims& lens, std::size_t off = 0, unsigned seed = 9) {
  const literal made = random_argument({dtype::f32, lens}, seed, -.3, .3).to_literal();
  const std::size_t bytes = made.data().size();
  buffer whole = buffer::allocate(bytes + off);
  std::memcpy(whole.data() + off, made.bytes(), bytes);
  return b.constant(literal(made.get_shape(), buffer_part(whole, off, bytes)));
}

std::size_t folded_constants(const executable& e) {
  std::size_t n = 0;
  for (const pass_note& p : e.report().passes)
    if (p.pass == "constant_folding")
      for (const auto& entry : p.counts.entries)
        n += entry.name == "transpose" || entry.name == "slice" ? entry.count : 0;
  return n;
}

class turned_weights : public saved_program_files {};

// Whole, a part of the constant, which is folded so that the rest goes, and at an odd address.
TEST_F(turned_weights, of_products_are_packed_as_they_lie) {
  for (const int form : {0, 1, 2}) {
    SCOPED_TRACE(form);
    const auto make = [&](builder& b) {
      const value x = b.input("x", dtype::f32, {3, 317});
      const value w =
          form == 1
              ? stored(b, {403, 323}).slice({.axes = {0, 1}, .starts = {2, 5}, .ends = {403, 322}}).transpose({1, 0})
              : stored(b, {401, 317}, form == 2 ? 1 : 0).transpose({1, 0});
      b.output((x.dot(w) + b.input("bias", dtype::f32, {401})).relu());
    };
    expect_same(make, close);
    const executable e = compile_eigen(make);
    ASSERT_EQ(e.report().steps.size(), 1u);
    EXPECT_THAT(e.report().steps[0].kernel, HasSubstr("(packed)"));
    EXPECT_EQ(folded_constants(e), form == 1 ? 1u : 0u);
  }
}

TEST_F(turned_weights, of_recurrent_layers_are_packed_as_they_lie) {
  for (const op::cell_kind kind : {op::cell_kind::plain, op::cell_kind::gru, op::cell_kind::lstm})
    for (const bool turned : {false, true})
      for (const std::size_t off : {0, 3})
        for (const std::int64_t hidden : {150, 131}) {
          SCOPED_TRACE(::testing::Message() << to_string(kind) << turned << off << ' ' << hidden);
          const auto make = [&](builder& b) {
            op::recurrent r{.cell = kind, .functions = {}, .alpha = {}, .beta = {}};
            for (unsigned f = 0; f <= static_cast<unsigned>(kind); ++f) {
              r.functions.push_back(op::cell_function::tanh);
              r.alpha.push_back(1);
              r.beta.push_back(0);
            }
            const std::int64_t all = r.gates() * hidden, steps[] = {2};
            const value w = turned ? stored(b, {all, hidden}, off).transpose({1, 0}) : stored(b, {hidden, all}, off);
            small_vector<value> in{b.input("x", dtype::f32, {2, 1, all}), w, b.input("bias", dtype::f32, {all}),
                                   b.input("h", dtype::f32, {1, hidden}),
                                   b.constant(literal::of<std::int64_t>({dtype::i64, {1}}, steps))};
            if (kind == op::cell_kind::lstm) {
              in.push_back(b.input("c", dtype::f32, {1, hidden}));
              in.push_back(b.input("peepholes", dtype::f32, {3 * hidden}));
            }
            b.output(b.add(r, in));
          };
          expect_same(make, tolerance{2e-4, 2e-4});
          EXPECT_EQ(folded_constants(compile_eigen(make)), 0u);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST_F(turned_weights, are_the_same_in_a_saved_program) {
  expect_same_again([&](builder& b) {
    const value x = b.input("x", dtype::f32, {3, 300});
    b.output(x.dot(stored(b, {500, 300}).transpose({1, 0})).relu().dot(stored(b, {300, 500}, 2, 10).transpose({1, 0})));
  });
}

// Factors and joined products find them, too, and what others read is turned once.
TEST_F(turned_weights, take_factors_and_join) {
  const auto scaled = [](builder& b) {
    const value x = b.input("x", dtype::f32, {5, 300});
    b.output(x.dot(stored(b, {400, 300}).transpose({1, 0})) * stored(b, {400}, 0, 3) + stored(b, {400}, 0, 4));
  };
  expect_same(scaled, close);
  EXPECT_EQ(compile_eigen(scaled).report().steps.size(), 1u);
  const auto joined = [](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 9, 320});
    for (const std::int64_t heads : {4, 5, 3})
      b.output(x.dot(stored(b, {heads * 64, 320}, 0, static_cast<unsigned>(heads)).transpose({1, 0}))
                   .reshape({1, 9, heads, 64})
                   .transpose({0, 2, 1, 3}));
  };
  expect_same(joined, close);
  const auto read = [](builder& b) {
    const value w = stored(b, {400, 300}).transpose({1, 0});
    b.output(b.input("x", dtype::f32, {5, 300}).dot(w));
    b.output(w.reduce_sum({0}));
  };
  expect_same(read, tolerance{1e-4, 1e-3});
}

}  // namespace
}  // namespace kiln::testing
