#include "kiln/lower/row_body.hpp"

#include <gtest/gtest.h>

#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/fuse_reduce.hpp"
#include "kiln/static_program/plan/row_records.hpp"
#include "pass/fusion_models.hpp"

namespace kiln::test {
namespace {

using lower::find_row_body;
using lower::row_op;
using lower::row_results;

// A fused body and its rows.
struct found {
  graph::module_type body;
  lower::row_body<dims> rows;

  // Instruction `which` of those with an op of that name.
  constexpr std::uint32_t id(std::string_view name, int which = 0) const {
    for (std::uint32_t k = 0;; ++k)
      if (body[k].kind == instruction_kind::op && body[k].op.name() == name && which-- == 0) return k;
  }
  constexpr const auto& value(std::string_view name, int which = 0) const { return rows.values[id(name, which)]; }
  // Which values a level needs, as the sum of their bits.
  constexpr std::uint64_t needed(int level, bool keeps) const {
    std::uint64_t bits = 0;
    const auto need = rows.needed(level, keeps);
    for (std::size_t k = 0; k < need.size(); ++k) bits |= std::uint64_t{need[k]} << k;
    return bits;
  }
  constexpr std::uint64_t bit(std::string_view name, int which = 0) const {
    return std::uint64_t{1} << id(name, which);
  }
};

constexpr auto fuse = [](graph& p) {
  fuse_reduce(p);
  fuse_pointwise(p);
};
// The rows of the one kernel that a model becomes.
template <class Build> constexpr found find(Build build, row_results when = row_results::at_own_level) {
  const graph p = after(build, fuse);
  found f{p.module(module_ref{1}), {}};
  f.rows = find_row_body(f.body, when).value();
  return f;
}
// Of a module that is no fused body.
template <class Build> constexpr bool serves(Build build) { return find_row_body(made_by(build).main()).has_value(); }

constexpr auto softmax = [](graph_builder& b) { b.output(b.input("x", dtype::f32, {4, 8}).softmax()); };
static_assert([] {
  const found f = find(softmax);
  return f.rows.levels == 3 && f.rows.reduces && f.rows.buffers == 1 && f.rows.row_elements() == 8 &&
         !f.rows.folded[0] && f.rows.folded[1];
}());
static_assert([] {
  const found f = find(softmax);
  const auto &top = f.value("reduce_max"), &e = f.value("exp"), &sum = f.value("reduce_sum"), &all = f.value("div");
  return top.level == 1 && !top.full && e.level == 1 && e.full && e.kept && sum.level == 2 && !sum.full &&
         all.level == 2 && all.full && !all.kept && !f.value("sub").kept;
}());
// a view is the value that it repeats
static_assert([] {
  const found f = find(softmax);
  const auto& repeated = f.value("multibroadcast");
  return repeated.op == row_op::view && repeated.source == f.id("reduce_max") && !repeated.full &&
         f.value("sub").in[1] == f.id("reduce_max");
}());
// the last level reads what is kept, or computes it again
static_assert([] {
  const found f = find(softmax);
  const std::uint64_t x = 1, own = f.bit("div") | f.bit("exp") | f.bit("reduce_sum");
  return f.needed(0, true) == x && f.needed(1, true) == (x | f.bit("sub") | f.bit("reduce_max") | f.bit("exp")) &&
         f.needed(2, true) == own && f.needed(2, false) == (own | x | f.bit("sub") | f.bit("reduce_max"));
}());

// a residual sum that is a result, too
constexpr auto layer_norm = [](graph_builder& b) {
  const node s = b.input("x", dtype::f32, {2, 3, 16}) + b.input("y", dtype::f32, {2, 3, 16});
  const node d = s - s.reduce_mean({-1});
  const node n = d / ((d * d).reduce_mean({-1}) + 1e-5f).sqrt();
  b.output(n * b.input("scale", dtype::f32, {16}) + b.input("bias", dtype::f32, {16}));
  b.output(s);
};
static_assert([] {
  const found f = find(layer_norm);
  return f.rows.levels == 3 && f.rows.parameters.size() == 4 && f.rows.results.size() == 2 && f.value("add").kept &&
         f.value("sub").kept && f.rows.buffers == 2 && f.value("sqrt").level == 2 && !f.value("sqrt").full &&
         f.value("reduce_mean", 1).level == 2;
}());
constexpr int level_of_sum(row_results when) {
  const found f = find(layer_norm, when);
  for (const auto& r : f.rows.results)
    if (r.value == f.id("add")) return r.level;
  return -1;
}
static_assert(level_of_sum(row_results::at_own_level) == 0);
static_assert(level_of_sum(row_results::at_last_level) == 2);

// [rms_norm]
constexpr auto rms_norm = [](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {1, 3, 16}), w = b.input("w", dtype::f32, {16});
  b.output(x * ((x * x).reduce_mean({-1}) + 1e-6f).rsqrt() * w);
};
static_assert([] {
  const found f = find(rms_norm);
  const auto &mean = f.value("reduce_mean"), &factor = f.value("rsqrt"), &scaled = f.value("mul", 1);
  return f.rows.levels == 2 && mean.level == 1 && !factor.full && factor.level == 1 && scaled.full &&
         scaled.level == 1 && f.rows.buffers == 0;
}());
// [/rms_norm]

// an input that only the last level reads is no load of the others
static_assert([] {
  const found f = find(layer_norm);
  std::uint64_t first = 0, last = 0;
  for (std::uint32_t k : f.rows.parameters) {
    first += f.needed(0, true) >> k & 1;
    last += f.needed(2, true) >> k & 1;
  }
  return first == 2 && last == 2;
}());

// what is computed before the reduction and read after it is kept, though the reduction does not read it
static_assert([] {
  const found f = find([](graph_builder& b) {
    const node x = b.input("x", dtype::f32, {4, 8});
    b.output(x.exp() - x.reduce_mean({1}));
  });
  return f.value("exp").kept && (f.needed(0, true) & f.bit("exp")) != 0 && (f.needed(0, false) & f.bit("exp")) == 0;
}());

// two reductions of one level, results with one element per row
static_assert([] {
  const found f = find([](graph_builder& b) {
    const node x = b.input("x", dtype::f32, {4, 8}).relu();
    b.output(x.reduce_max({1}) + x.reduce_sum({1}));
  });
  return f.rows.levels == 1 && f.rows.buffers == 0 && !f.rows.results[0].full && f.rows.results[0].level == 1 &&
         f.value("reduce_max").level == 1 && f.value("reduce_sum").level == 1;
}());

// a parameter with one element per row
static_assert([] {
  const found f = find([](graph_builder& b) {
    const node x = b.input("x", dtype::f32, {4, 8}), mean = x.reduce_mean({1});
    b.output((x - mean) * (mean + b.input("e", dtype::f32, {4, 1})).rsqrt());
  });
  int full = 0;
  for (std::uint32_t k : f.rows.parameters) full += f.rows.values[k].full;
  return f.rows.parameters.size() == 2 && full == 1 && f.rows.levels == 2;
}());

// any axes, several of them
static_assert([] {
  const found f = find([](graph_builder& b) {
    b.output(b.input("x", dtype::f32, {2, 3, 4, 5}).relu().reduce_mean({1, 3}));
  });
  return !f.rows.folded[0] && f.rows.folded[1] && !f.rows.folded[2] && f.rows.folded[3] && f.rows.row_elements() == 15;
}());

// rows of one element: everything but reductions and what follows them is full
static_assert([] {
  const found f = find([](graph_builder& b) { b.output(b.input("x", dtype::f32, {4, 8, 1}).softmax(2)); });
  return f.rows.reduces && f.rows.row_elements() == 1 && f.rows.values[0].full && !f.value("reduce_max").full &&
         f.value("sub").full && f.rows.results[0].full && f.rows.levels == 3;
}());

// a body without reductions has one level
static_assert([] {
  const found f = find([](graph_builder& b) {
    const node x = b.input("x", dtype::f32, {4, 8});
    b.output((x + 1.0f).relu() * x);
  });
  return !f.rows.reduces && f.rows.levels == 1 && f.rows.buffers == 0 && f.value("relu").full &&
         f.rows.results[0].full && f.needed(0, true) == f.needed(0, false);
}());

static_assert(serves([](graph_builder& b) { b.output(b.input("x", dtype::f32, {4, 8}).relu().reduce_sum({1})); }));
// reductions over different axes
static_assert(!serves([](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4});
  b.output(x.reduce_sum({1}));
  b.output(x.reduce_sum({0}));
}));
// of different extents
static_assert(!serves([](graph_builder& b) {
  b.output(b.input("x", dtype::f32, {4, 8}).reduce_sum({1}));
  b.output(b.input("y", dtype::f32, {4, 9}).reduce_sum({1}));
}));
// another op
static_assert(!serves([](graph_builder& b) {
  const node x = b.input("x", dtype::f32, {4, 4});
  b.output(x.dot(x).reduce_sum({1}));
}));
// a parameter whose extents are neither
static_assert(!serves([](graph_builder& b) {
  b.output(b.input("x", dtype::f32, {4, 8}).reduce_sum({1}));
  b.output(b.input("y", dtype::f32, {8}).relu());
}));

// The records of a static program give the same rows as its module.
template <class Body> constexpr bool agrees(const Body& rows, const found& f) {
  bool same = rows.levels == f.rows.levels && rows.buffers == f.rows.buffers && rows.reduces == f.rows.reduces;
  for (std::size_t k = 0; same && k < rows.values.size(); ++k) {
    const auto& a = rows.values[k];
    const auto& b = f.rows.values[k];
    same = a.op == b.op && a.source == b.source && a.full == b.full && a.level == b.level && a.kept == b.kept &&
           a.buffer == b.buffer;
  }
  return same;
}
static_assert([] {
  const found f = find(layer_norm);
  small_vector<aot::node> nodes;
  for (std::uint32_t k = 0; k < f.body.size(); ++k) {
    aot::node n;
    n.op = f.body[k].kind == instruction_kind::literal ? aot::node::literal : aot::node::parameter;
    if (f.body[k].kind == instruction_kind::op) n.op = 0, n.kind = f.body[k].op.kind();
    n.lens = to_ints(f.body[k].results[0].lens);
    for (value_id v : f.body[k].inputs) n.inputs.push_back(v.instruction);
    nodes.push_back(n);
  }
  small_vector<std::uint32_t> results;
  for (value_id v : f.body.outputs) results.push_back(v.instruction);
  return agrees(find_row_body(nodes, results).value(), f) && agrees(find_row_body<40>(nodes, results).value(), f);
}());

// ---- at run time: what each level needs is there when it needs it
void expect_levels_in_order(const found& f, bool keeps) {
  const auto& rows = f.rows;
  std::vector<int> written(rows.results.size());
  for (int level = 0; level < rows.levels; ++level) {
    const auto need = rows.needed(level, keeps);
    for (std::uint32_t k = 0; k < need.size(); ++k) {
      const auto& v = rows.values[k];
      const bool buffered = keeps && v.kept && v.level < level;
      if (!need[k]) continue;
      EXPECT_LE(v.level, level);
      if (v.op != row_op::pointwise || !v.full) continue;
      EXPECT_TRUE(!keeps || v.level == level || v.kept);
      if (buffered) {
        EXPECT_TRUE(rows.needed(v.level, keeps)[k]);
      }
      for (std::uint32_t i : v.in)
        if (!buffered) {
          EXPECT_TRUE(rows.values[i].full ? need[i] : rows.values[i].level <= level);
        }
    }
    for (std::uint32_t k = 0; k < need.size(); ++k)
      if (rows.folds_in(k, level)) {
        EXPECT_TRUE(need[rows.values[k].in[0]]);
      }
    for (std::size_t r = 0; r < rows.results.size(); ++r) written[r] += rows.writes_in(r, level);
  }
  for (std::size_t r = 0; r < rows.results.size(); ++r) EXPECT_EQ(written[r], rows.results[r].full);
}

TEST(RowBody, LevelsReadWhatEarlierOnesLeft) {
  const auto check = [](auto build) {
    for (const row_results when : {row_results::at_own_level, row_results::at_last_level})
      for (const bool keeps : {false, true}) expect_levels_in_order(find(build, when), keeps);
  };
  check(softmax);
  check(layer_norm);
  check(rms_norm);
  check([](graph_builder& b) {
    const node x = b.input("x", dtype::f32, {4, 8});
    const node e = (x - x.reduce_max({1})).exp(), s = e.reduce_sum({1});
    b.output(e / s * ((e / s) * (e / s)).reduce_sum({1}).rsqrt());
    b.output(x.exp());
    b.output(s);
  });
}

TEST(RowBody, ExtentsMayBeSymbols) {
  const dimension n = dimension::symbol("row_body_n", 1, 64), m = dimension::symbol("row_body_m", 1, 64);
  const found f = find([&](graph_builder& b) { b.output(b.input("x", dtype::f32, {n, m}).softmax()); });
  EXPECT_EQ(f.rows.levels, 3);
  EXPECT_EQ(f.rows.full[1], m);
  EXPECT_TRUE(f.rows.folded[1]);
  EXPECT_FALSE(f.rows.folded[0]);
  EXPECT_TRUE(f.value("exp").kept);
  EXPECT_FALSE(f.value("reduce_sum").full);
}

// A result that repeats what has one element per row is full; the level after the reduction writes it.
TEST(RowBody, ResultsMayRepeatAnElement) {
  graph_builder b;
  const node x = b.input("x", dtype::f32, {4, 8});
  b.output(x.reduce_sum({1}).broadcast_to({4, 8}));
  const graph p = b.finish();
  const auto rows = find_row_body(p.main());
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->levels, 2);
  EXPECT_TRUE(rows->results[0].full);
  EXPECT_EQ(rows->results[0].level, 1);
  EXPECT_FALSE(rows->values[rows->results[0].value].full);
}

}  // namespace
}  // namespace kiln::test
