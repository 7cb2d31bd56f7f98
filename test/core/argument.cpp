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

// Shapes on both sides of a tile, and every width.
TEST(argument, a_copy_of_strided_elements_is_row_major) {
  for (const dtype type : {dtype::u8, dtype::i16, dtype::f32, dtype::i64})
    for (const auto& [a, b, c] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {2, 33, 70}, {3, 32, 5}, {1, 64, 31}, {2, 0, 3}}) {
      argument dense(shape(type, {a, b, c}));
      const auto bytes = static_cast<std::size_t>(dense.get_shape().bytes().value());
      for (std::size_t i = 0; i < bytes; ++i) dense.data()[i] = static_cast<std::byte>(i * 7 + i / 251);
      const std::int64_t width = static_cast<std::int64_t>(size_of(type));
      // dims in the order 2, 0, 1, every second element of the last one read
      const std::int64_t half = (b + 1) / 2;
      const shape seen(type, {c, a, half}, {1, b * c, 2 * c});
      const argument copied = argument(seen, buffer::borrow(dense.data(), bytes), dense.data()).copy();
      ASSERT_TRUE(copied.get_shape().standard());
      const std::byte* at = copied.data();
      for (std::int64_t k = 0; k < c; ++k)
        for (std::int64_t i = 0; i < a; ++i)
          for (std::int64_t j = 0; j < half; ++j, at += width)
            ASSERT_EQ(std::memcmp(at, dense.data() + ((i * b + 2 * j) * c + k) * width, size_of(type)), 0);
      const argument again = dense.copy();
      EXPECT_NE(again.data(), dense.data());
      EXPECT_EQ(std::memcmp(again.data(), dense.data(), bytes), 0);
      const argument line = argument(shape(type, {b}, {c}), buffer::borrow(dense.data(), bytes), dense.data()).copy();
      for (std::int64_t j = 0; j < b; ++j)
        ASSERT_EQ(std::memcmp(line.data() + j * width, dense.data() + j * c * width, size_of(type)), 0);
    }
}

}  // namespace
}  // namespace kiln
