// Caches of a target with a device lie there: in memory that nobody but its queues can touch.
#include "generate/scripture.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

namespace kiln::language::testing {
namespace {

std::shared_ptr<const language_model> on_device() {
  static const auto out = language_model::load(read_config(scripture_folder), fake::gpu_target());
  return out;
}

TEST(device_caches, sequences_are_the_processors) {
  const golden g = scripture_golden()[0];
  const auto length = static_cast<std::int64_t>(std::min<std::size_t>(g.all.size(), g.prompt.size() + 24));
  generator own(on_device(), options_of(length));
  own.append_tokens(g.prompt);
  EXPECT_EQ(run_to_end(own), tokens(g.all.begin(), g.all.begin() + length));
}

TEST(device_caches, grow_there_and_are_cloned_and_cut_there) {
  const golden g = scripture_golden()[1];
  const language_model& m = *on_device();
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
