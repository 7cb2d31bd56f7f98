#include "kiln/core/argument.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace kiln {
namespace {

TEST(argument, of_a_literal_shares_aligned_data_and_copies_other) {
  const std::array<double, 3> values{1, -2, 0.5};
  std::vector<std::byte> memory(sizeof values + 8);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::memcpy(memory.data() + offset, values.data(), sizeof values);
    const literal l({dtype::f64, {3}}, buffer::borrow(memory.data() + offset, sizeof values));
    const argument a(l);
    EXPECT_EQ(a.data() == l.bytes(), offset == 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % alignof(double), 0u);
    EXPECT_TRUE(std::ranges::equal(a.as<double>(), values));
    EXPECT_EQ(a.to_literal(), l);
  }
}

}  // namespace
}  // namespace kiln
