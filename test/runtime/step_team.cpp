#include "kiln/runtime/step_team.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <vector>

namespace kiln::testing {
namespace {

TEST(step_team, takes_steps_in_order_and_each_part_once) {
  for (const unsigned parts : {1U, 2U, 5U, step_team::most_parts + 6}) {
    thread_pool pool(3);
    const std::int64_t steps = 2000;
    std::vector<std::atomic<std::int64_t>> count(parts);
    std::atomic<int> early{0};
    step_team::run(pool, parts, steps, [&](std::int64_t step, unsigned part) {
      for (auto& c : count) early += c.load() < step || c.load() > step + 1;
      early += count[part]++ != step;
    });
    EXPECT_EQ(early.load(), 0);
    for (auto& c : count) EXPECT_EQ(c.load(), steps);
  }
}

TEST(step_team, ends_each_step_when_its_parts_are_done) {
  for (const unsigned parts : {1U, 2U, 5U, step_team::most_parts + 6}) {
    thread_pool pool(3);
    const std::int64_t steps = 500;
    std::vector<std::int64_t> of(parts, -1), ended;  // plain values: what follows a step sees what its parts wrote
    bool apart = false;
    step_team::run(
        pool, parts, steps,
        [&](std::int64_t step, unsigned part) {
          of[part] = step == static_cast<std::int64_t>(ended.size()) ? step : -1;
        },
        [&](std::int64_t step) {
          for (const std::int64_t at : of) apart = apart || at != step;
          ended.push_back(step);
        });
    EXPECT_FALSE(apart);
    EXPECT_EQ(static_cast<std::int64_t>(ended.size()), steps);
  }
}

TEST(step_team, one_thread_alone_takes_all_parts) {
  thread_pool pool(3);
  std::vector<std::int64_t> done;
  pool.parallel_for(2, [&](std::int64_t task, unsigned) {
    if (task == 1) return;  // nested, so that one thread has the team's tasks one by one
    step_team::run(pool, 2, 3, [&](std::int64_t step, unsigned part) { done.push_back(2 * step + part); });
  });
  EXPECT_THAT(done, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace kiln::testing
