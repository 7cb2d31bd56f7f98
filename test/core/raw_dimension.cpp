#include "kiln/core/raw_dimension.hpp"

#include <gmock/gmock.h>

namespace {

using kiln::dimension;

TEST(raw_dimension, expressions_of_this_process_and_numbers_are_taken) {
  const dimension n = dimension::symbol("rows of raw", 1, 7);
  EXPECT_EQ(kiln::checked_dimension((n * 2 + 1).raw()), n * 2 + 1);
  EXPECT_EQ(kiln::checked_dimension(-5), dimension(-5));
}

TEST(raw_dimension, words_that_name_nothing_are_refused) {
  EXPECT_THROW((void)kiln::checked_dimension(dimension::least_constant - 1), kiln::error);
  EXPECT_THROW((void)kiln::checked_dimension(dimension::first_expression + (1 << 30)), kiln::error);
}

}  // namespace
