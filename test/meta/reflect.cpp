#include "kiln/meta/reflect.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reflected {

struct nothing {};
struct one {
  int only = 3;
};
struct mixed {
  int count = 1;
  float ratio = .5f;
  const char* label = "x";
};
struct nested {
  mixed inside;
  one last;
};
// more fields than one field has bytes, and more than eight a byte would give an empty count
struct many {
  char a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};

}  // namespace reflected

namespace kiln {
namespace {

using namespace reflected;

static_assert(field_count<nothing> == 0 && field_count<one> == 1 && field_count<mixed> == 3);
static_assert(field_count<nested> == 2, "fields of a field are not counted");
static_assert(field_count<many> == 17);

static_assert(field_name<one, 0> == "only");
static_assert(field_name<mixed, 0> == "count" && field_name<mixed, 1> == "ratio" && field_name<mixed, 2> == "label");
static_assert(field_name<nested, 1> == "last");
static_assert(field_name<many, 16> == "q");

constexpr mixed twos{.ratio = 2};
static_assert(get_field<1>(twos) == 2);
static_assert(std::is_same_v<decltype(get_field<0>(std::declval<const mixed&>())), const int&>);

constexpr int doubled_sum() {
  struct {
    int a = 1, b = 2, c = 3;
  } local;
  int sum = 0;
  for_each_field(local, [](auto, auto& value) { value *= 2; });
  for_each_field(local, [&](auto, const auto& value) { sum += value; });
  return sum;
}
static_assert(doubled_sum() == 12, "fields are given as references, in constant evaluation too");

static_assert(equal_fields(mixed{}, mixed{}) && !equal_fields(mixed{}, mixed{.ratio = 1}));
static_assert(equal_fields(nothing{}, nothing{}));

TEST(reflect, visits_fields_in_order_with_their_names) {
  std::vector<std::string> seen;
  const mixed m;
  for_each_field(m, [&](std::string_view name, const auto&) { seen.emplace_back(name); });
  EXPECT_EQ(seen, (std::vector<std::string>{"count", "ratio", "label"}));
  nothing n;
  for_each_field(n, [](std::string_view, auto&) { ADD_FAILURE(); });
}

TEST(reflect, fields_are_the_objects_own) {
  mixed m;
  get_field<0>(m) = 7;
  EXPECT_EQ(m.count, 7);
  EXPECT_EQ(&get_field<2>(m), &m.label);
}

}  // namespace
}  // namespace kiln
