#include "kiln/meta/type_name.hpp"

#include <gtest/gtest.h>

struct at_global_scope {};
namespace my {
struct leaky {};
template <class T> struct of {};
}  // namespace my
namespace kiln::op {
struct named_for_this_test {};
namespace inner {
struct deeper {};
}  // namespace inner
}  // namespace kiln::op

namespace kiln {
namespace {

static_assert(type_name<int>() == "int");
static_assert(type_name<at_global_scope>() == "at_global_scope");
static_assert(type_name<my::leaky>() == "my::leaky", "namespaces of users stay");
static_assert(type_name<op::named_for_this_test>() == "named_for_this_test", "that of kiln's ops does not");
static_assert(type_name<op::inner::deeper>() == "inner::deeper");

TEST(type_name, tells_templates_by_their_arguments) {
  EXPECT_EQ(type_name<my::of<int>>(), "my::of<int>");
  EXPECT_NE(type_name<my::of<int>>(), type_name<my::of<float>>());
}

}  // namespace
}  // namespace kiln
