// Caches of a target with a device lie there: in memory that nobody but its queues can touch.
#include "generate/scripture.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

namespace kiln::language::testing {
namespace {

// Sequences' caches are in blocks, or in one piece each where blocks would be of a type that the device does not read.
std::shared_ptr<const language_model> on_device(std::optional<dtype> kept = {}) {
  config c = read_config(scripture_folder);
  c.kv_cache_type = kept;
  return language_model::load(c, fake::gpu_target());
}

TEST(device_caches, sequences_are_the_processors) {
  const golden g = scripture_golden()[0];
  const auto length = static_cast<std::int64_t>(std::min<std::size_t>(g.all.size(), g.prompt.size() + 24));
  for (const auto kept : {std::optional<dtype>(), std::optional(dtype::i8)}) {
    const auto model = on_device(kept);
    EXPECT_EQ(model->joins_rows(), !kept);
    generator own(model, options_of(length));
    own.append_tokens(g.prompt);
    EXPECT_EQ(run_to_end(own), tokens(g.all.begin(), g.all.begin() + length));
  }
}

// Sequences of several lengths in one run, prompts beside steps, have the logits that each has alone.
TEST(device_caches, sequences_share_runs) {
  const auto model = on_device();
  tokens all;
  for (int k = 0; k < 80; ++k) all.push_back(static_cast<token>((7919 * k + 3) % model->vocabulary_size()));
  workspace w = model->program().make_workspace();
  const auto each = static_cast<std::size_t>(model->vocabulary_size());
  const std::size_t lengths[][2] = {{0, 70}, {40, 1}, {3, 5}, {31, 2}};  // before, and then
  std::vector<sequence_state> states;
  std::vector<std::vector<float>> alone;
  std::vector<row_run> runs;
  for (const auto& [before, now] : lengths) {
    std::vector<float> row(each);
    for (const bool is_alone : {true, false}) {
      sequence_state s = model->new_state();
      if (before > 0) model->run(s, w, std::span(all).first(before), 1, row);
      if (is_alone)
        model->run(s, w, std::span(all).subspan(before, now), 1, row), alone.push_back(row);
      else
        states.push_back(std::move(s));
    }
  }
  for (std::size_t k = 0; k < states.size(); ++k)
    runs.push_back({&states[k], std::span(all).subspan(lengths[k][0], lengths[k][1]), 1});
  std::vector<float> together(each * runs.size());
  model->run(w, runs, together);
  for (std::size_t k = 0; k < runs.size(); ++k)
    for (std::size_t i = 0; i < each; ++i) ASSERT_NEAR(together[k * each + i], alone[k][i], 1e-4) << k;
}

// A block that a clone has, too, is copied there before it is written.
TEST(device_caches, blocks_are_shared_and_copied_there) {
  const golden g = scripture_golden()[1];
  const auto m = on_device();
  workspace w = m->program().make_workspace();
  std::vector<float> row(static_cast<std::size_t>(m->vocabulary_size())), again = row, other = row;
  const auto run = [&](sequence_state& s, std::size_t from, std::size_t to, std::vector<float>& logits) {
    m->run(s, w, std::span(g.all).subspan(from, to - from), 1, logits);
  };
  sequence_state s = m->new_state();
  run(s, 0, 40, row);
  const std::size_t held = fake::live_bytes;
  sequence_state copy = s.clone();
  EXPECT_EQ(fake::live_bytes, held);
  run(s, 40, 41, row);
  EXPECT_GE(fake::live_bytes, held + m->block_bytes());
  run(copy, 40, 42, again);
  run(copy, 42, 43, again);
  copy.truncate(40);
  run(copy, 40, 41, again);
  sequence_state whole = m->new_state();
  run(whole, 0, 41, other);
  for (std::size_t k = 0; k < row.size(); ++k) ASSERT_NEAR(row[k], other[k], 1e-4);
  for (std::size_t k = 0; k < row.size(); ++k) ASSERT_NEAR(again[k], other[k], 1e-4);
}

TEST(device_caches, grow_there_and_are_cloned_and_cut_there) {
  const golden g = scripture_golden()[1];
  const auto model = on_device(dtype::i8);
  const language_model& m = *model;
  workspace w = m.program().make_workspace();
  std::vector<float> row(static_cast<std::size_t>(m.vocabulary_size())), again = row, other = row;
  const auto run = [&](sequence_state& s, std::size_t from, std::size_t to, std::vector<float>& logits) {
    m.run(s, w, std::span(g.all).subspan(from, to - from), 1, logits);
  };
  sequence_state s = m.new_state();
  run(s, 0, 8, row);
  const std::size_t small = s.bytes(), held = fake::live_bytes;
  run(s, 8, 40, row);  // beyond the first capacity
  EXPECT_GT(s.bytes(), small);
  EXPECT_GE(fake::live_bytes, held + s.bytes() - small);
  const std::size_t before = fake::live_bytes;
  sequence_state copy = s.clone();
  EXPECT_GE(fake::live_bytes, before + s.bytes());
  run(s, 40, 41, row);
  run(copy, 40, 41, again);
  EXPECT_EQ(row, again);
  copy.truncate(39);
  run(copy, 39, 41, again);  // in one run as in two
  for (std::size_t k = 0; k < row.size(); ++k) ASSERT_NEAR(row[k], again[k], 1e-4);
  sequence_state whole = m.new_state();
  run(whole, 0, 41, other);
  for (std::size_t k = 0; k < row.size(); ++k) ASSERT_NEAR(row[k], other[k], 1e-4);
}

}  // namespace
}  // namespace kiln::language::testing
