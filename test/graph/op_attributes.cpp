#include "kiln/graph/op_attributes.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

attribute_value list(std::initializer_list<std::int64_t> numbers) {
  std::vector<attribute_value> out(numbers.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].is = numbers.begin()[i];
  attribute_value all;
  all.is = std::move(out);
  return all;
}

errc code_of(std::string_view op, const named_attribute& attribute, std::string* what = nullptr) {
  try {
    make_operation(op, std::span(&attribute, 1));
  } catch (const error& e) {
    if (what) *what = e.what();
    return e.code();
  }
  return errc::internal;
}

struct scaled {
  float by = 2;
  template <class T> constexpr T operator()(T x) const { return x * splat<T>(by); }
};

TEST(op_attributes, an_op_by_name_is_the_op_by_its_struct) {
  EXPECT_EQ(make_operation("relu"), operation(op::relu{}));
  const named_attribute pooling[] = {
      {"mode", {std::string("average")}}, {"lengths", list({2, 3})}, {"ceil_mode", {true}}};
  op::pooling expected;
  expected.mode = op::pooling_mode::average;
  expected.lengths = {2, 3};
  expected.ceil_mode = true;
  EXPECT_EQ(make_operation("pooling", pooling), operation(expected));
  const named_attribute convert[] = {{"to", {std::string("bf16")}}};
  EXPECT_EQ(make_operation("convert", convert), operation(op::convert{dtype::bf16}));
  const dimension n = dimension::symbol("n", 1);
  const named_attribute reshape[] = {{"to", {std::vector<attribute_value>{{n}, {std::int64_t{4}}}}}};
  EXPECT_EQ(make_operation("reshape", reshape).name(), "reshape");
  const named_attribute alpha[] = {{"alpha", {std::int64_t{3}}}};
  EXPECT_EQ(make_operation("elu", alpha), operation(op::elu{3}));
}

TEST(op_attributes, refuses_names_and_values) {
  std::string what;
  EXPECT_THROW(make_operation("rellu"), error);
  try {
    make_operation("rellu");
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_found);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("'rellu'"), HasSubstr("'relu'")));
  }
  EXPECT_EQ(code_of("pooling", {"size", list({2})}, &what), errc::not_found);
  EXPECT_THAT(what, AllOf(HasSubstr("one of mode"), HasSubstr("'size'")));
  EXPECT_EQ(code_of("pooling", {"mode", {std::string("mean")}}, &what), errc::invalid_argument);
  EXPECT_THAT(what, AllOf(HasSubstr("max|average|lp"), HasSubstr("'mean'")));
  EXPECT_EQ(code_of("pooling", {"ceil_mode", {std::int64_t{1}}}), errc::invalid_argument);
  EXPECT_EQ(code_of("convert", {"to", {std::string("f31")}}), errc::invalid_argument);
  EXPECT_EQ(code_of("transpose", {"permutation", list({0, 1, 2, 3, 4, 5, 6, 7, 8})}), errc::invalid_argument);
  EXPECT_EQ(code_of("flatten", {"axis", {1.5}}), errc::invalid_argument);
  EXPECT_EQ(code_of("flatten", {"axis", {dimension::symbol("n", 1)}}), errc::invalid_argument);
  EXPECT_EQ(code_of("relu", {"x", {true}}, &what), errc::not_found);
  EXPECT_THAT(what, HasSubstr("expected none"));
}

TEST(op_attributes, rows_describe_every_op_that_stands_alone) {
  const auto rows = op_rows();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const op_row& a, const op_row& b) { return a.table->name < b.table->name; }));
  std::size_t described = 0;
  for (const op_row& row : rows) {
    EXPECT_NE(row.table->kind, op_kind::control) << row.table->name;
    EXPECT_EQ(row.make({}).name(), row.table->name);
    for (const attribute_info& a : row.attributes()) {
      EXPECT_FALSE(a.kind.empty()) << row.table->name << ' ' << a.name;
      ++described;
    }
  }
  EXPECT_GT(rows.size(), 100u);
  EXPECT_GT(described, 50u);
}

TEST(op_attributes, a_users_op_has_a_row) {
  const op_row row = op_row_of<scaled>();
  ASSERT_EQ(row.attributes().size(), 1u);
  EXPECT_EQ(row.attributes()[0].name, "by");
  EXPECT_EQ(row.attributes()[0].kind, "float");
  const named_attribute by[] = {{"by", {0.5}}};
  EXPECT_EQ(row.make(std::span<const named_attribute>(by)), operation(scaled{0.5f}));
}

}  // namespace
}  // namespace kiln
