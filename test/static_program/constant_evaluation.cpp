#include <array>

#include "kiln/pass/passes.hpp"
#include "static_program/equal.hpp"

namespace kiln::test {
namespace {

// A perceptron that was trained on "exactly one of two": its answers are facts of this translation unit.
// [xor]
constexpr float hidden[] = {1.194f, 3.463f, -3.386f, -0.482f, 0.79f, -3.463f, 3.386f, -0.393f},
                hidden_bias[] = {-0.44f, -0.001f, 0, 0}, head[] = {-1.364f, 4.822f, 4.763f, 0.009f},
                head_bias[] = {-6.614f};
constexpr float questions[] = {0, 0, 0, 1, 1, 0, 1, 1};

constexpr std::array<bool, 4> answers() {
  static_builder<> b;
  auto x = b.constant(dtype::f32, {4, 2}, std::span<const float>(questions));
  x = x.dot(b.constant(dtype::f32, {2, 4}, std::span<const float>(hidden))) +
      b.constant(dtype::f32, {4}, std::span<const float>(hidden_bias));
  x = x.relu().dot(b.constant(dtype::f32, {4, 1}, std::span<const float>(head))) +
      b.constant(dtype::f32, {1}, std::span<const float>(head_bias));
  b.output(x.sigmoid());
  auto p = b.finish();
  optimize_graph(p);  // nothing is left but a constant
  std::array<bool, 4> out{};
  const auto values = p.main().producer(p.main().outputs[0]).constant.template to<float>();
  for (std::size_t i = 0; i < 4; ++i) out[i] = values[i] > 0.5f;
  return out;
}
static_assert(answers() == std::array{false, true, true, false});
// [/xor]

// The same answers from the same text at run time.
TEST(constant_evaluation, a_trained_perceptron_answers_as_it_does_while_compiling) {
  for (std::size_t i = 0; i < 4; ++i) {
    float sum = head_bias[0];
    for (std::size_t j = 0; j < 4; ++j)
      sum += head[j] *
             std::max(0.0f, questions[2 * i] * hidden[j] + questions[2 * i + 1] * hidden[4 + j] + hidden_bias[j]);
    EXPECT_EQ(sum > 0, answers()[i]) << i;
  }
}

}  // namespace
}  // namespace kiln::test
