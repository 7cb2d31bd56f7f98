#include <vector>

#include "kiln/pass/common_subexpression.hpp"
#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/fold_batch_norm.hpp"
#include "kiln/pass/move_pooling.hpp"
#include "kiln/pass/normalize.hpp"
#include "kiln/pass/reduce_before_reshape.hpp"
#include "kiln/pass/remove_identity.hpp"
#include "kiln/pass/simplify_algebra.hpp"
#include "kiln/pass/simplify_views.hpp"
#include "kiln/pass/unread_taps.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

/// A program of random ops over a few inputs and constants; the constants that rewrites look for are likely.
class random_program {
 public:
  explicit random_program(std::uint64_t seed) : d_{seed} {}

  program make(int ops) {
    for (int i = 0; i < 3; ++i) values_.push_back(b_.input("x" + std::to_string(i), dtype::f32, lens()));
    values_.push_back(b_.input("i", dtype::i32, lens()));
    for (int i = 0; i < ops; ++i) {
      const auto before = values_.size();
      while (values_.size() == before) step();
    }
    for (int i = 0; i < 3; ++i) b_.output(values_[values_.size() - 1 - static_cast<std::size_t>(d_.below(6))]);
    return b_.finish();
  }

 private:
  dims lens() {
    dims out;
    for (std::int64_t r = d_.below(4); r > 0; --r) out.push_back(1 + d_.below(3));
    return out;
  }
  value pick() {
    // recent values more often: long chains
    const auto n = static_cast<std::int64_t>(values_.size());
    return values_[static_cast<std::size_t>(d_.below(2) ? n - 1 - d_.below(n < 4 ? n : 4) : d_.below(n))];
  }
  value tame(value x) { return is_float(x.type()) ? x.tanh() : x; }
  value constant_for(value x) {
    constexpr double likely[] = {0, 1, -1, 2, 0.5, 3, 4, -0.25};
    if (d_.below(3)) return b_.scalar(x.type(), likely[d_.below(is_float(x.type()) ? 8 : 4)]);
    dims l = x.get_shape().lens;
    for (auto& e : l)
      if (d_.below(2)) e = 1;
    return b_.constant(random_literal({x.type(), l}, d_));
  }
  void keep(value v) {
    if (v.get_shape().elements().value() <= 400 && v.rank() <= 5) values_.push_back(v);
  }

  void step() {
    const value x = pick();
    const bool real = is_float(x.type());
    const auto rank = static_cast<std::int64_t>(x.rank());
    switch (d_.below(25)) {
      case 0: return keep(-x);
      case 1: return keep(real ? x.relu() : x.abs());
      case 2: return keep(real ? tame(x).exp() : x * x);
      case 3: return keep(real ? (x * x + 0.5f).sqrt() : x);
      case 4: return keep(d_.below(2) ? x + constant_for(x) : constant_for(x) + x);
      case 5: return keep(d_.below(2) ? x - constant_for(x) : constant_for(x) - x);
      case 6: return keep(d_.below(2) ? x * constant_for(x) : constant_for(x) * x);
      case 7: return keep(x / b_.scalar(x.type(), d_.below(2) ? 3 : 4));
      case 8: return keep(real ? x / (tame(x).exp().reduce_sum({}) + 1.0f).sqrt() : x);
      case 9: {
        const value y = pick();
        if (y.type() != x.type() || !broadcast(x.get_shape().lens, y.get_shape().lens)) return;
        constexpr int most = 4;
        switch (d_.below(most)) {
          case 0: return keep(x + y);
          case 1: return keep(x - y);
          case 2: return keep(tame(x) * tame(y));
          default: return keep(x.max(y));
        }
      }
      case 10: return keep(real ? tame(x).pow(b_.scalar(x.type(), 1 + d_.below(3))) : x);
      case 11: return keep(x.convert(d_.below(2) ? dtype::f32 : dtype::i64).convert(x.type()));
      case 12: {
        ints p;
        for (std::int64_t i = 0; i < rank; ++i) p.insert(static_cast<std::size_t>(d_.below(i + 1)), i);
        return keep(x.transpose(p));
      }
      case 13: return keep(x.reshape({x.get_shape().elements()}));
      case 14: {
        dims to;
        for (dimension e : x.get_shape().lens) {
          if (e.value() % 2 == 0 && to.size() < 4) to.push_back(2), e = e / 2;
          to.push_back(e);
        }
        return to.size() <= 5 ? keep(x.reshape(to)) : void();
      }
      case 15: return keep(x.unsqueeze({d_.below(rank + 1)}));
      case 16: return keep(x.squeeze({}));
      case 17: {
        if (rank == 0) return;
        const std::int64_t axis = d_.below(rank), n = x.dim(axis).value();
        const std::int64_t start = d_.below(n + 1), step = 1 + d_.below(2);
        return n ? keep(x.slice({{axis}, {start - (d_.below(2) ? n : 0)}, {start + 1 + d_.below(n)}, {step}})) : void();
      }
      case 18: {
        dims to = x.get_shape().lens;
        for (auto& e : to)
          if (e == dimension(1)) e = 1 + d_.below(3);
        if (d_.below(2)) to.insert(0, 1 + d_.below(2));
        return keep(x.broadcast_to(to));
      }
      case 19: return rank ? keep(x.reduce_sum({d_.below(rank) - (d_.below(2) ? rank : 0)})) : void();
      case 20: {
        if (!real || rank < 2) return;
        const dimension k = x.dim(-1);
        value y = tame(x);
        if (d_.below(2)) y = y * constant_for(y);
        if (y.dim(-1) != k) return;
        y = y.dot(b_.constant(random_literal({x.type(), {k, 1 + d_.below(3)}}, d_)));
        if (d_.below(2)) y = y + constant_for(y);
        return keep(d_.below(2) ? y * constant_for(y) : y);
      }
      case 21: {
        if (!real || rank != 3) return;
        const dimension c = x.dim(1);
        value y = tame(x);
        if (d_.below(2)) y = y * y.make_along(1, b_.constant(random_literal({x.type(), {c}}, d_)));
        y = y.conv(b_.constant(random_literal({x.type(), {2, c, 1}}, d_)), {.pads = {1, 0}});
        return keep(y * y.make_along(1, b_.constant(random_literal({x.type(), {2}}, d_))) + constant_for(y));
      }
      case 22: return keep(real ? x * 0.5f * ((x * 0.70710678f).erf() + 1.0f) : x);
      case 23: {
        // sums of merged dims, over a count of elements that a constant gives
        if (!real || rank < 2) return;
        const dims lens = x.get_shape().lens;
        const auto split = static_cast<std::size_t>(1 + d_.below(rank - 1));
        dimension rows = 1, columns = 1;
        for (std::size_t k = 0; k < lens.size(); ++k) (k < split ? rows : columns) *= lens[k];
        const dimension counted = d_.below(2) ? columns : dimension(1 + d_.below(5));
        const value y = tame(x).reshape({rows, columns});
        const value mean = y.reduce_sum({1}) / b_.scalar(x.type(), 1).broadcast_to({rows, counted}).reduce_sum({1});
        return keep(d_.below(2) ? (y - mean).reshape(lens) : mean.reshape({rows}));
      }
      default: return rank ? keep(x.concat(x, d_.below(rank))) : void();
    }
  }

  dice d_;
  builder b_;
  std::vector<value> values_;
};

struct named {
  std::string_view name;
  pass_note (*run)(program&);
  double tolerance;
};
constexpr named passes[] = {
    {"normalize", [](program& p) { return normalize(p); }, 0},
    {"dead_code", [](program& p) { return dead_code(p); }, 0},
    {"common_subexpression", [](program& p) { return common_subexpression(p); }, 0},
    {"remove_identity", [](program& p) { return remove_identity(p); }, 0},
    {"constant_folding", [](program& p) { return constant_folding(p); }, 0},
    {"simplify_views", [](program& p) { return simplify_views(p); }, 0},
    {"reduce_before_reshape", [](program& p) { return reduce_before_reshape(p); }, 2e-6},
    {"simplify_algebra", [](program& p) { return simplify_algebra(p); }, 2e-5},
    {"fold_batch_norm", [](program& p) { return fold_batch_norm(p); }, 2e-5},
    {"move_pooling", [](program& p) { return move_pooling(p); }, 2e-5},
    {"cut_unread_taps", [](program& p) { return cut_unread_taps(p); }, 2e-6},
};

TEST(random_programs, each_pass_keeps_the_results) {
  int changed = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    const program before = random_program(seed).make(14);
    for (const named& pass : passes) {
      program after = before;
      changed += pass.run(after).changed();
      ASSERT_TRUE(find_faults(after).empty()) << pass.name << " breaks seed " << seed;
      ASSERT_TRUE(same_results(before, after, pass.tolerance, seed)) << pass.name << " changes seed " << seed << '\n'
                                                                     << print(before).view() << print(after).view();
      if (pass.name == "simplify_algebra" || pass.name == "fold_batch_norm") continue;  // one may enable another
      const text once = print(after);
      EXPECT_FALSE(pass.run(after).changed()) << pass.name << " is not idempotent on seed " << seed << '\n'
                                              << print(before).view() << once.view() << print(after).view();
    }
  }
  EXPECT_GT(changed, 500);  // the programs do give the passes something to do
}

TEST(random_programs, all_passes_together_come_to_rest) {
  for (std::uint64_t seed = 1001; seed <= 1250; ++seed) {
    const program before = random_program(seed).make(20);
    program after = before;
    int rounds = 0;
    for (bool changed = true; changed && rounds < 12; ++rounds) {
      changed = false;
      for (const named& pass : passes) changed = pass.run(after).changed() || changed;
    }
    EXPECT_LT(rounds, 8) << "seed " << seed;
    ASSERT_TRUE(find_faults(after).empty()) << "seed " << seed;
    ASSERT_TRUE(same_results(before, after, 1e-4, seed)) << "seed " << seed << '\n'
                                                         << print(before).view() << print(after).view();
    EXPECT_LE(after.main().size(), before.main().size() + 4) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kiln::test
