#include "kiln/graph/fold.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "kiln/graph/operation.hpp"
#include "kiln/op/ops.hpp"

namespace kiln {
namespace {

literal numbers(const dims& lens, unsigned seed) {
  std::vector<float> x(static_cast<std::size_t>(product(lens).value()));
  for (float& one : x) {
    seed = seed * 1664525u + 1013904223u;
    one = static_cast<float>(seed >> 8) / (1 << 20) - 8;
  }
  return literal::of<float>({dtype::f32, lens}, small_vector<float>(std::span<const float>(x)));
}

// Bits of the op's own text, which computes one sum after the other.
void check(const operation& op, const dims& left, const dims& right) {
  const literal l = numbers(left, 1), r = numbers(right, 2);
  const literal* const constants[] = {&l, &r};
  const shape types[] = {l.get_shape(), r.get_shape()};
  const shapes results = op.shape_rule(types).value();
  const auto folded = fold(op, std::span<const literal* const>(constants), results);
  ASSERT_EQ(folded.size(), 1u);
  std::vector<float> expected(static_cast<std::size_t>(results[0].elements().value()));
  small_vector<evaluation::operand> in, out;
  for (const literal* c : constants) in.push_back({c->get_shape(), c, const_cast<std::byte*>(c->bytes())});
  out.push_back({results[0], nullptr, reinterpret_cast<std::byte*>(expected.data())});
  evaluation e(in, out);
  op.evaluate(e, false);
  e.finish();
  const auto found = folded[0].to<float>();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << op.name() << ' ' << i;
}

TEST(fold, products_have_the_bits_of_their_text) {
  for (const std::int64_t columns : {1, 3, 15, 16, 17, 31, 40}) {
    check(op::dot{}, {7, 5}, {5, columns});
    check(op::dot{}, {2, 3, 4, 9}, {2, 3, 9, columns});
  }
  check(op::dot{}, {1, 300}, {300, 33});
}

TEST(fold, convolutions_have_the_bits_of_their_text) {
  check(op::convolution{}, {2, 6, 9, 21}, {8, 6, 1, 1});
  check(op::convolution{}, {1, 3, 7, 40}, {4, 3, 3, 3});
  op::convolution padded;
  padded.pads = {1, 1, 1, 1};
  check(padded, {1, 3, 7, 20}, {4, 3, 3, 3});
  op::convolution strided;
  strided.stride = {2, 2};
  strided.group = 2;
  check(strided, {1, 4, 9, 41}, {6, 2, 3, 3});
}

}  // namespace
}  // namespace kiln
