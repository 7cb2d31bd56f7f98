#include "kiln/core/edit_distance.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(edit_distance, counts_letters_that_differ) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("relu", "relu"), 0u);
  EXPECT_EQ(edit_distance("softmox", "softmax"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 2u);
}

}  // namespace
}  // namespace kiln
