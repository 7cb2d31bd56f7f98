// Sequences that share runs of the program: each is as it is alone.
#include <gmock/gmock.h>

#include <cmath>

#include "generate/scripture.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/engine.hpp"

namespace kiln::language::testing {
namespace {

constexpr std::size_t vocabulary = 2048;

std::vector<float> logits_alone(const language_model& model, std::span<const token> all, std::size_t rows) {
  sequence_state state = model.new_state();
  workspace w;
  std::vector<float> out(rows * vocabulary);
  model.run(state, w, all, rows, out);
  return out;
}
// Sums go in another order where more rows share a product.
void expect_near(std::span<const float> found, std::span<const float> wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], wanted[k], 2e-4) << what << ", " << k;
}

TEST(rows, the_program_joins_them) {
  EXPECT_TRUE(scripture()->joins_rows());
  EXPECT_EQ(scripture()->block_tokens(), 32);
  EXPECT_EQ(scripture()->block_bytes(), 32u * 6 * 2 * 2 * 32 * 4);  // layers, keys and values, heads, channels, bytes
  std::vector<std::string> names;
  for (const port& p : scripture()->program().inputs()) names.push_back(p.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("input_ids", "position_ids", "kiln.batch", "kiln.rows"));
}

TEST(rows, each_has_the_logits_that_it_has_alone) {
  const auto model = scripture();
  tokens text = scripture_golden()[0].all;
  std::vector<tokens> sequences;
  for (const std::size_t n : {1, 31, 32, 33, 7}) {
    tokens own;
    for (std::size_t k = 0; k < n; ++k) own.push_back(text[(k * 5 + n) % text.size()]);
    sequences.push_back(own);
  }
  std::vector<sequence_state> states;
  for (std::size_t k = 0; k < sequences.size(); ++k) states.push_back(model->new_state());
  workspace w;
  const auto run = [&](const std::vector<row_run>& runs) {
    std::size_t wanted = 0;
    for (const row_run& r : runs) wanted += r.rows;
    std::vector<float> out(wanted * vocabulary);
    model->run(w, runs, out);
    return out;
  };
  // whole prompts beside each other, of the last one the logits of three tokens, of the first one none
  std::vector<row_run> runs;
  for (std::size_t k = 0; k < sequences.size(); ++k)
    runs.push_back({&states[k], sequences[k], k == 4 ? 3u : k == 0 ? 0u : 1u});
  std::vector<float> made = run(runs);
  ASSERT_EQ(made.size(), 6 * vocabulary);
  for (std::size_t k = 1; k < 5; ++k) {
    const std::size_t rows = k == 4 ? 3 : 1;
    expect_near(std::span(made).subspan((k - 1) * vocabulary, rows * vocabulary),
                logits_alone(*model, sequences[k], rows), "prompt " + std::to_string(k));
  }
  // steps of some, beside more tokens of others
  for (int step = 0; step < 40; ++step) {
    runs.clear();
    std::vector<tokens> more(sequences.size());
    for (std::size_t k = 0; k < sequences.size(); ++k) {
      for (int n = 0; n < (k == 2 ? 5 : 1); ++n)
        more[k].push_back(text[(static_cast<std::size_t>(step) * 7 + k) % text.size()]);
      sequences[k].insert(sequences[k].end(), more[k].begin(), more[k].end());
    }
    for (std::size_t k = 0; k < sequences.size(); ++k) runs.push_back({&states[k], more[k], 1});
    made = run(runs);
  }
  for (std::size_t k = 0; k < sequences.size(); ++k) {
    EXPECT_EQ(states[k].length(), static_cast<std::int64_t>(sequences[k].size()));
    expect_near(std::span(made).subspan(k * vocabulary, vocabulary), logits_alone(*model, sequences[k], 1),
                "sequence " + std::to_string(k));
  }
}

TEST(rows, clones_share_blocks_until_they_differ) {
  const auto model = scripture();
  const tokens text = scripture_golden()[0].all;
  const tokens prompt(text.begin(), text.begin() + 40);
  sequence_state first = model->new_state();
  workspace w;
  std::vector<float> scores(vocabulary);
  model->run(first, w, prompt, 1, scores);
  sequence_state second = first.clone();
  const sequence_state* const both[] = {&first, &second};
  EXPECT_EQ(sequence_state::bytes_of(both), 2 * model->block_bytes());
  const token a[] = {17}, b[] = {99};
  std::vector<float> made(2 * vocabulary);
  const row_run runs[] = {{&first, a, 1}, {&second, b, 1}};
  model->run(w, runs, made);
  EXPECT_EQ(sequence_state::bytes_of(both), 3 * model->block_bytes());  // the full block is one
  tokens with_a = prompt, with_b = prompt;
  with_a.push_back(17), with_b.push_back(99);
  expect_near(std::span(made).first(vocabulary), logits_alone(*model, with_a, 1), "the first");
  expect_near(std::span(made).subspan(vocabulary), logits_alone(*model, with_b, 1), "the second");
  // cut back into the shared block, and on
  second.truncate(30);
  const token c[] = {5};
  model->run(second, w, c, 1, scores);
  tokens cut(text.begin(), text.begin() + 30);
  cut.push_back(5);
  expect_near(scores, logits_alone(*model, cut, 1), "cut");
  const token d[] = {6};
  with_a.push_back(6);
  model->run(first, w, d, 1, scores);
  expect_near(scores, logits_alone(*model, with_a, 1), "the first again");
}

TEST(rows, caches_may_be_stored_in_fewer_bits) {
  const golden g = scripture_golden()[0];
  const std::vector<float> exact = logits_alone(*scripture(), g.all, 1);
  const std::size_t values = 32u * 6 * 2 * 2 * 32, scales = 32u * 6 * 2 * 2 * 4;
  struct kind {
    const char* name;
    std::size_t bytes;
    float tolerance;  // of logits of up to 20
  };
  for (const kind& k : {kind{"f16", 2 * values, 0.01F}, kind{"bf16", 2 * values, 0.08F},
                        kind{"int8", values + scales, 0.15F}, kind{"fp8", values + scales, 0.6F}}) {
    config c = read_config(scripture_folder);
    overlay(c, std::string(R"({"model": {"kv_cache_type": ")") + k.name + R"("}})");
    const auto model = language_model::load(c, eigen_target());
    EXPECT_EQ(model->block_bytes(), k.bytes) << k.name;
    // token by token, so that all past ones are read as they are stored
    sequence_state state = model->new_state();
    workspace w;
    std::vector<float> made(vocabulary);
    for (const token t : g.all) model->run(state, w, std::span(&t, 1), 1, made);
    float worst = 0;
    for (std::size_t i = 0; i < vocabulary; ++i) worst = std::max(worst, std::abs(made[i] - exact[i]));
    EXPECT_LE(worst, k.tolerance) << k.name;
    EXPECT_GT(worst, 1e-4F) << k.name;
  }
  config c = read_config(scripture_folder);
  EXPECT_THROW(overlay(c, R"({"model": {"kv_cache_type": "int3"}})"), error);
}

// A greedy text is that of a generator alone, whatever else runs, however caches are stored: requests that come one
// after the other, prompts in pieces, beginnings in common, and too few blocks for all.
TEST(rows, greedy_texts_are_as_alone_in_each_type_of_caches) {
  const auto known = scripture_golden();
  for (const char* type : {"f32", "f16", "bf16", "int8", "fp8"}) {
    config c = read_config(scripture_folder);
    overlay(c, std::string(R"({"model": {"kv_cache_type": ")") + type + R"("}})");
    const auto model = language_model::load(c, eigen_target());
    engine_options o;
    o.max_scheduled_tokens = 24, o.cache_tokens = 32 * 6;
    engine e(model, o);
    std::vector<std::shared_ptr<request>> requests;
    std::vector<tokens> wanted;
    for (std::size_t k = 0; k < 6; ++k) {
      const tokens& text = known[k / 2 % known.size()].all;
      const tokens prompt(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), 5 + k * 7)));
      search_options s = model->settings().search;
      s.max_length = static_cast<std::int64_t>(prompt.size()) + 20;
      generator alone(model, s);
      alone.append_tokens(prompt);
      wanted.push_back(run_to_end(alone));
      requests.push_back(std::make_shared<request>(model, s));
      requests.back()->add_tokens(prompt);
      e.add(requests.back());
      e.step();
    }
    for (int step = 0; e.has_pending() && step < 500; ++step) e.step();
    for (std::size_t k = 0; k < requests.size(); ++k) EXPECT_EQ(requests[k]->sequence(), wanted[k]) << type << ' ' << k;
    EXPECT_GT(e.statistics().interruptions, 0u) << type;
  }
}

TEST(rows, what_is_no_run_is_an_error) {
  const auto model = scripture();
  sequence_state state = model->new_state();
  workspace w;
  std::vector<float> scores(vocabulary);
  const token one[] = {5};
  EXPECT_THROW(model->run(w, {}, scores), error);
  const row_run too_many[] = {{&state, one, 2}};
  EXPECT_THROW(model->run(w, too_many, scores), error);
  const row_run fine[] = {{&state, one, 1}};
  EXPECT_THROW(model->run(w, fine, std::span(scores).first(7)), error);
  EXPECT_EQ(state.length(), 0);
}

}  // namespace
}  // namespace kiln::language::testing
