// Caches of a target with a device lie there: in memory that nobody but its queues can touch.
#include <gmock/gmock.h>

#include "generate/scripture.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/engine.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

namespace kiln::language::testing {
namespace {

// Sequences' caches are in blocks, or in one piece each where blocks would be of a type that the device does not read.
std::shared_ptr<const language_model> on_device(std::optional<dtype> kept = {}) {
  config c = read_config(scripture_folder);
  c.kv_cache_type = kept;
  return language_model::load(c, fake::block_gpu_target());
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

// Blocks that no sequence has any more make room for one's own, and for the memory of a run.
TEST(device_caches, what_no_sequence_has_makes_room) {
  const auto m = on_device();
  const std::size_t vocabulary = static_cast<std::size_t>(m->vocabulary_size());
  const auto prompt = [&](int seed, int count) {
    tokens out;
    for (int k = 0; k < count; ++k)
      out.push_back(static_cast<token>(static_cast<std::size_t>(7919 * k + seed) % vocabulary));
    return out;
  };
  std::vector<float> row(vocabulary), expected = row;
  const auto run = [&](const tokens& all, std::vector<float>& logits, workspace& w) {
    sequence_state s = m->new_state();
    m->run(s, w, all, 1, logits);
  };
  workspace w = m->program().make_workspace();
  run(prompt(5, 4), expected, w);
  run(prompt(7, 100), row, w);
  const std::size_t before = fake::live_bytes;
  for (int seed = 11; seed < 14; ++seed) {  // blocks that others may find
    generator g(m, options_of(101));
    g.append_tokens(prompt(seed, 100));
    run_to_end(g);
  }
  ASSERT_GT(fake::live_bytes, before + 3 * m->block_bytes());
  struct limited {
    ~limited() { fake::most_bytes = ~std::size_t{0}; }
  } end;
  fake::most_bytes = fake::live_bytes.load();
  {
    std::vector<sequence_state> all;
    for (int seed = 21; seed < 23; ++seed) {
      all.push_back(m->new_state());
      m->run(all.back(), w, prompt(seed, 100), 1, row);
    }
  }
  fake::most_bytes = fake::live_bytes.load();
  workspace another = m->program().make_workspace();
  run(prompt(5, 4), row, another);  // in memory of a run's own
  EXPECT_EQ(row, expected);
  fake::most_bytes = 0;
  sequence_state s = m->new_state();
  try {
    m->run(s, w, prompt(31, 100), 1, row);
    FAIL() << "ran without memory";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::limit);
  }
}

// A device without attention over blocks runs sequences one by one.
TEST(device_caches, are_in_one_piece_where_the_target_reads_no_blocks) {
  const auto m = language_model::load(read_config(scripture_folder), fake::gpu_target());
  EXPECT_FALSE(m->joins_rows());
  const auto& remarks = m->program().report().remarks;
  EXPECT_TRUE(std::any_of(remarks.begin(), remarks.end(), [](const std::string& r) {
    return r.find("one by one: the target has no attention over blocks of caches") != std::string::npos;
  }));
  const golden g = scripture_golden()[0];
  generator own(m, options_of(static_cast<std::int64_t>(g.prompt.size() + 8)));
  own.append_tokens(g.prompt);
  EXPECT_EQ(run_to_end(own), tokens(g.all.begin(), g.all.begin() + static_cast<std::ptrdiff_t>(g.prompt.size() + 8)));
}

// Such a prompt would run in one piece, with the scores of all of it in memory.
TEST(device_caches, a_prompt_is_not_scored_where_angles_change_with_the_length) {
  config c = read_config(scripture_folder);
  c.type = "phi3", c.context_length = 5000, c.search.max_length = 5000;
  c.own_context.reset();
  const auto m = language_model::load(c, fake::gpu_target());
  ASSERT_FALSE(m->joins_rows());
  request r(m, m->settings().search);
  r.add_tokens(tokens(4096, 5));
  const prompt_watch watch = [](std::span<const token>, std::size_t, std::span<const float>) {};
  r.set_prompt_watch(watch);
  const auto expect_refused = [](const auto& f) {
    try {
      f();
      ADD_FAILURE();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::unsupported);
      EXPECT_THAT(e.message(), ::testing::HasSubstr("at most 4096 tokens, found 4097"));
    }
  };
  expect_refused([&] { r.add_tokens(tokens{1}); });
  EXPECT_EQ(r.sequence().size(), 4096u);
  r.set_prompt_watch(nullptr);
  r.add_tokens(tokens{1});
  expect_refused([&] { r.set_prompt_watch(watch); });
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
