// Rows of an output, computed alone.
#include "kiln/pass/keep_rows.hpp"

#include "kiln/op/index/gather.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

const dimension rows = dimension::symbol("rows", 1), count = dimension::symbol("count", 1);

literal numbers(const dims& lens) {
  std::vector<float> x;
  for (std::int64_t k = 0; k < product(lens).value(); ++k) x.push_back(static_cast<float>((k * 37 % 19) - 9) / 4.f);
  return literal::of<float>(shape(dtype::f32, lens), x);
}

// A projection, a norm beside it, a bias, a scale of each row.
program head() {
  builder b;
  const value x = b.input("x", dtype::f32, {1, count, 4});
  const value norm = x * (x * x).reduce_mean({2}).rsqrt();
  const value y = norm.dot(b.constant(numbers({1, 4, 3}))) + b.constant(numbers({3})) + x.reduce_max({2});
  b.output(y.tanh(), "y");
  return b.finish();
}

TEST(keep_rows, gives_the_rows_that_are_asked_for) {
  const program whole = head();
  program p = head();
  keep_rows(p.main(), 0, 1, "rows", rows);
  verify(p);
  EXPECT_EQ(p.main().shape_of(p.main().outputs[0]).lens, (dims{1, rows, 3}));
  const literal x = numbers({1, 6, 4}),
                asked = literal::of<std::int64_t>(shape(dtype::i64, {3}), std::vector<std::int64_t>{5, 0, 5});
  const auto bound = [](program q, std::int64_t r) {
    bindings values;
    values.bind(count, 6), values.bind(rows, r);
    for (std::uint32_t i = 0; i < q.main().size(); ++i) {
      for (shape& s : q.main()[i].results)
        for (dimension& d : s.lens) d = d == count ? dimension(6) : d == rows ? dimension(r) : d;
      if (q.main()[i].kind == instruction_kind::op) q.main()[i].op.substitute(values);
    }
    return q;
  };
  const auto all = evaluate(bound(whole, 3), {x})[0], some = evaluate(bound(p, 3), {x, asked})[0];
  for (int c = 0; c < 3; ++c)
    for (int to = 0; to < 3; ++to)
      EXPECT_EQ(some.at<float>(3 * to + c), all.at<float>(3 * std::array{5, 0, 5}[to] + c));
}

TEST(keep_rows, computes_no_other_rows) {
  program p = head();
  keep_rows(p.main(), 0, 1, "rows", rows);
  std::size_t whole = 0, gathers = 0;
  for (const std::uint32_t k : p.main().order()) {
    const auto& i = p.main()[k];
    if (i.kind != instruction_kind::op) continue;
    gathers += i.op.is<op::gather>();
    for (const dimension d : i.results[0].lens) whole += d == count;
  }
  EXPECT_EQ(gathers, 1u);
  EXPECT_EQ(whole, 0u);
}

TEST(keep_rows, what_others_read_is_computed_once) {
  builder b;
  const value x = b.input("x", dtype::f32, {1, count, 4});
  const value y = x.dot(b.constant(numbers({1, 4, 4}))), z = y.exp();
  b.output(z.dot(b.constant(numbers({1, 4, 2}))), "logits");
  b.output(y.reduce_sum({1}), "sum");
  program p = b.finish();
  keep_rows(p.main(), 0, 1, "rows", rows);
  std::size_t dots = 0, few = 0;
  for (const std::uint32_t k : p.main().order()) {
    const auto& i = p.main()[k];
    if (i.kind != instruction_kind::op || !i.op.is<op::dot>()) continue;
    ++dots;
    few += i.results[0].lens[1] == rows;
  }
  EXPECT_EQ(dots, 2u);
  EXPECT_EQ(few, 1u);
}

}  // namespace
}  // namespace kiln::test
