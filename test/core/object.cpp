#include "kiln/core/object.hpp"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

argument numbers(const std::vector<float>& v) {
  return argument::of<float>({static_cast<std::int64_t>(v.size())}, std::span<const float>(v));
}

TEST(objects, strings_outlive_what_they_were_copied_from) {
  argument kept;
  {
    const std::vector<std::string> words = {"a long string that no small buffer holds", "", "c"};
    const argument all = string_argument({3}, words);
    const argument last(shape(dtype::string, {2}), const_cast<std::byte*>(all.data()) + sizeof(void*));
    kept = last.copy();
    EXPECT_EQ(strings_of(all), words);
  }
  EXPECT_EQ(strings_of(kept), (std::vector<std::string>{"", "c"}));
  EXPECT_THROW(strings_of(numbers({1})), error);
}

TEST(objects, literals_and_strided_copies_keep_them_alive) {
  literal held;
  {
    const argument grid = string_argument({2, 2}, std::vector<std::string>{"a", "b", "c", "d"});
    argument turned(shape(dtype::string, {2, 2}, {1, 2}), const_cast<std::byte*>(grid.data()));
    held = turned.to_literal();
  }
  EXPECT_EQ(strings_of(argument(held)), (std::vector<std::string>{"a", "c", "b", "d"}));
}

TEST(objects, sequences_and_optionals_are_equal_by_what_they_hold) {
  const argument x = numbers({1, 2}), y = numbers({3});
  EXPECT_TRUE(equal_values(sequence_argument({x, y}), sequence_argument({x.copy(), y.copy()})));
  EXPECT_FALSE(equal_values(sequence_argument({x, y}), sequence_argument({y, x})));
  EXPECT_FALSE(equal_values(sequence_argument({x}), sequence_argument({})));
  EXPECT_TRUE(equal_values(sequence_argument({}), argument(shape(dtype::sequence, {}))));
  EXPECT_TRUE(equal_values(optional_argument(x), optional_argument(x.copy())));
  EXPECT_FALSE(equal_values(optional_argument(x), empty_optional()));
  EXPECT_EQ(value_of_optional(empty_optional()), nullptr);
  EXPECT_EQ(items_of(sequence_argument({x, y})).size(), 2u);
}

TEST(objects, a_sequence_owns_items_whose_memory_was_borrowed) {
  argument s;
  {
    float memory[2] = {1, 2};
    s = sequence_argument({argument(shape(dtype::f32, {2}), memory)});
    memory[0] = 9;
  }
  EXPECT_EQ(items_of(s)[0].as<float>()[0], 1);
}

}  // namespace
}  // namespace kiln::test
