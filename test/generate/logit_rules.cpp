#include "kiln/generate/logit_rules.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace kiln::language {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;

constexpr float never = -std::numeric_limits<float>::infinity();

std::vector<float> changed(logit_changes c, std::size_t prompt, tokens sequence, std::vector<float> logits) {
  changed_by(std::move(c), prompt)(0, sequence, logits);
  return logits;
}

TEST(logit_rules, a_bias_is_added_where_there_is_a_token) {
  EXPECT_THAT(changed({.bias = {{1, 2.f}, {-1, 5.f}, {7, 5.f}}}, 0, {}, {1, 1, 1}), ElementsAre(1, 3, 1));
}

TEST(logit_rules, penalties_count_what_was_made_and_not_the_prompt) {
  const std::vector<float> zeros(4, 0.f);
  EXPECT_THAT(changed({.presence_penalty = 0.5}, 2, {0, 1, 1, 2, 2}, zeros), ElementsAre(0, -0.5f, -0.5f, 0));
  EXPECT_THAT(changed({.frequency_penalty = 0.5}, 2, {0, 1, 1, 2, 2, 9}, zeros), ElementsAre(0, -0.5f, -1.f, 0));
  EXPECT_THAT(changed({.presence_penalty = -1, .frequency_penalty = 2}, 0, {3, 3}, zeros), ElementsAre(0, 0, 0, -3.f));
}

TEST(logit_rules, min_p_is_a_part_of_the_likeliest_probability) {
  const float half = std::log(0.5f);
  EXPECT_THAT(changed({.min_p = 0.49}, 0, {}, {0, half, -1, never}), ElementsAre(0, FloatEq(half), never, never));
  // a temperature of 2 makes probabilities alike: e^(-1/2) is 0.61
  EXPECT_THAT(changed({.min_p = 0.6, .temperature = 2}, 0, {}, {0, half, -1, -1.1f}),
              ElementsAre(0, FloatEq(half), -1, never));
}

TEST(logit_rules, follow_one_another) {
  std::string order;
  const auto says = [&](char c) {
    return [&order, c](std::size_t, std::span<const token>, std::span<float>) { order += c; };
  };
  std::vector<float> logits(1);
  in_order({says('a'), nullptr, says('b')})(0, {}, logits);
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(in_order({nullptr}), nullptr);
}

TEST(logit_rules, a_record_has_the_scores_before_other_rules) {
  score_record record(2);
  const auto see = record.rule();
  std::vector<float> first{0, std::log(2.f), 0}, second{never, 0, NAN};
  see(0, tokens{9}, first);
  EXPECT_TRUE(record.take(tokens{9}).empty());  // nothing is chosen yet
  first.assign(3, never);
  see(0, tokens{9, 2}, second);  // another step before anybody asks
  const auto made = record.take(tokens{9, 2, 1});
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].id, 2);
  EXPECT_THAT(made[0].logprob, FloatNear(std::log(0.25f), 1e-6f));
  ASSERT_EQ(made[0].top.size(), 2u);
  EXPECT_EQ(made[0].top[0].first, 1);
  EXPECT_THAT(made[0].top[0].second, FloatNear(std::log(0.5f), 1e-6f));
  EXPECT_EQ(made[0].top[1].first, 0);
  EXPECT_EQ(made[1].id, 1);
  EXPECT_EQ(made[1].logprob, 0.f);
  EXPECT_TRUE(record.take(tokens{9, 2, 1}).empty());
}

TEST(logit_rules, a_record_puts_what_is_no_number_last) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  score_record record(6);
  std::vector<float> logits{none, 1, none, 3, 1, none, 2};
  record.rule()(0, {}, logits);
  const token chosen[] = {3};
  const auto made = record.take(chosen);
  ASSERT_EQ(made.size(), 1u);
  std::vector<token> order;
  for (const auto& [id, logprob] : made[0].top) order.push_back(id);
  EXPECT_THAT(order, testing::ElementsAre(3, 6, 1, 4, 0, 2));
}

}  // namespace
}  // namespace kiln::language
