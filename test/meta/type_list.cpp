#include "kiln/meta/type_list.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

struct incomplete;
using three = type_list<char, incomplete, long>;

static_assert(type_list<>::size == 0 && three::size == 3);
static_assert(index_of<char>(three{}) == 0 && index_of<incomplete>(three{}) == 1 && index_of<long>(three{}) == 2);
static_assert(index_of<int>(three{}) == static_cast<std::size_t>(-1));
static_assert(index_of<int>(type_list<>{}) == static_cast<std::size_t>(-1));
static_assert(std::is_same_v<decltype(type_at<1>(three{}))::type, incomplete>);
static_assert(std::is_same_v<three::append<int, bool>, type_list<char, incomplete, long, int, bool>>);
static_assert(std::is_same_v<decltype(join(type_list<>{}, three{})), three>);
static_assert(std::is_same_v<decltype(join(type_list<int>{}, three{}, type_list<bool>{})),
                             type_list<int, char, incomplete, long, bool>>);

TEST(type_list, visits_types_in_order) {
  std::string sizes;
  type_list<char, double, short>::for_each(
      [&](auto type) { sizes += std::to_string(sizeof(typename decltype(type)::type)) + " "; });
  EXPECT_EQ(sizes, "1 8 2 ");
  type_list<>::for_each([](auto) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace kiln
