// Expressions compiled to straight-line code agree with the expressions.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

const dimension n = dimension::symbol("n"), m = dimension::symbol("m");

struct expressions {
  small_vector<dimension> all;
  dimension_program code;
  std::vector<std::uint32_t> slots;
  explicit expressions(std::initializer_list<dimension> list) : all(list) {
    for (dimension d : all) slots.push_back(code.slot(d));
  }
  std::vector<std::int64_t> values(const bindings& b) const {
    std::vector<std::int64_t> room(code.size()), out;
    code.evaluate(b, room.data());
    for (std::uint32_t s : slots) out.push_back(room[s]);
    return out;
  }
};

bindings bound(std::int64_t n_value, std::int64_t m_value) {
  bindings b;
  b.bind(n, n_value);
  b.bind(m, m_value);
  return b;
}

TEST(dimension_program, agrees_with_evaluating_each_expression) {
  const expressions e{0,
                      7,
                      -3,
                      n,
                      n + m,
                      n - m,
                      2 * n * m + 5,
                      (n + 1) / 2,
                      (n - 9) / 4,
                      n % 3,
                      (n * m + 7) % (m + 1),
                      smaller(n, m + 2),
                      larger(n - m, 3),
                      smaller(larger(n, 2 * m) / 3, n * n * n) * m,
                      (n + m) / (m + 1) * (n + m) / (m + 1)};
  for (std::int64_t i : {0, 1, 2, 5, 17, 1000})
    for (std::int64_t j : {0, 1, 3, 8, 1001}) {
      const bindings b = bound(i, j);
      const auto found = e.values(b);
      for (std::size_t k = 0; k < e.all.size(); ++k)
        EXPECT_EQ(found[k], b.evaluate(e.all[k])) << to_string(e.all[k]) << " with " << i << ", " << j;
      EXPECT_EQ(found[7], (i + 1) / 2);
      EXPECT_EQ(found[8], static_cast<std::int64_t>(std::floor(static_cast<double>(i - 9) / 4)));
      EXPECT_EQ(found[10], (i * j + 7) % (j + 1));
      EXPECT_EQ(found[12], std::max<std::int64_t>(i - j, 3));
    }
}

TEST(dimension_program, equal_expressions_share_a_slot) {
  dimension_program code;
  EXPECT_EQ(code.slot(n + m), code.slot(m + n));
  EXPECT_EQ(code.slot(12), code.slot(12));
  EXPECT_NE(code.slot(n), code.slot(m));
  const std::size_t size = code.size();
  code.slot(n + m);
  EXPECT_EQ(code.size(), size);
}

TEST(dimension_program, an_open_symbol_is_named) {
  bindings b;
  b.bind(n, 4);
  const auto [code, message] = error_of([&] { expressions({n * m}).values(b); });
  EXPECT_EQ(code, errc::not_found);
  EXPECT_THAT(message, HasSubstr("'m'"));
  const auto single = error_of([&] { b.evaluate(n * m + 1); });
  EXPECT_EQ(single.first, errc::not_found);
  EXPECT_THAT(single.second, HasSubstr("'4*m + 1'"));
}

TEST(dimension_program, what_does_not_fit_into_64_bits_is_an_error) {
  const std::int64_t big = std::int64_t{1} << 40;
  for (dimension d : {n * m, n * n - m * m})
    EXPECT_EQ(error_of([&] { expressions({d}).values(bound(big, big + 1)); }).first, errc::limit);
  EXPECT_EQ(error_of([&] { bound(big, big).evaluate(n * m); }).first, errc::limit);
  EXPECT_EQ(error_of([&] { expressions({n / m}).values(bound(3, 0)); }).first, errc::invalid_argument);
}

TEST(dimension_program, substitution_leaves_open_symbols) {
  bindings b;
  b.bind(n, 4);
  EXPECT_EQ(b.substitute(n + m), m + 4);
  EXPECT_EQ(b.substitute(n * 2 + 1), dimension(9));
}

}  // namespace
}  // namespace kiln::testing
