// Generators and engines of a model share the blocks of what begins alike, and texts are as without.
#include <gmock/gmock.h>

#include <numeric>
#include <thread>

#include "generate/scripture.hpp"
#include "generate/tiny_llama.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/engine.hpp"
#include "quantize/message_of.hpp"

namespace kiln::language::testing {
namespace {

using kiln::test::message_of;
using ::testing::HasSubstr;

tokens text_of(std::size_t length, token seed) {
  tokens out;
  for (std::size_t k = 0; k < length; ++k) out.push_back(static_cast<token>(3 + (k * 37 + k * k * 11) % 2000));
  out[0] = seed;
  return out;
}
tokens run(const std::shared_ptr<const language_model>& model, const tokens& prompt, std::int64_t length,
           std::size_t shared, std::int64_t least = 0) {
  search_options o = options_of(length);
  o.min_length = least;
  generator own(model, o);
  own.append_tokens(prompt);
  EXPECT_EQ(own.shared_tokens(), shared);
  return run_to_end(own);
}
tokens alone(const tokens& prompt, std::int64_t length, std::int64_t least = 0) {
  return run(scripture(), prompt, length, 0, least);
}

TEST(prefixes, generators_run_what_is_new) {
  const auto model = load_scripture(true);
  const tokens prompt = text_of(80, 5);
  tokens other = prompt, first = prompt;
  other[70] = 9;  // the first two blocks of 32 are the same
  first[0] = 6;
  const tokens made = run(model, prompt, 100, 0, 100);
  ASSERT_EQ(made.size(), 100u);
  EXPECT_EQ(made, alone(prompt, 100, 100));
  EXPECT_EQ(run(model, other, 100, 64), alone(other, 100));
  EXPECT_EQ(run(model, prompt, 100, 64, 100), made);
  EXPECT_EQ(run(model, first, 100, 0), alone(first, 100));
  // what was made is known too; the last token runs in any case
  EXPECT_EQ(run(model, made, 120, 96), alone(made, 120));
  EXPECT_EQ(run(model, tokens(prompt.begin(), prompt.begin() + 64), 70, 32),
            alone(tokens(prompt.begin(), prompt.begin() + 64), 70));
}

TEST(prefixes, rows_and_beams_take_them) {
  const tokens prompt = text_of(70, 5);
  const auto model = load_scripture(true);
  run(model, prompt, 72, 0);
  search_options two = options_of(90), beams = two;
  two.batch_size = 2, beams.num_beams = 3;
  for (const search_options& o : {two, beams}) {
    generator own(model, o), plain(scripture(), o);
    for (generator* g : {&own, &plain}) {
      g->append_sequences(std::vector<tokens>(static_cast<std::size_t>(o.batch_size), prompt));
      while (!g->is_done()) g->generate_next_token();
    }
    EXPECT_EQ(own.shared_tokens(), 64u * static_cast<std::size_t>(o.batch_size));
    for (std::size_t k = 0; k < own.sequence_count(); ++k) EXPECT_EQ(own.sequence(k), plain.sequence(k)) << k;
  }
}

TEST(prefixes, generators_and_engines_share) {
  const auto model = load_scripture(true);
  const tokens prompt = text_of(70, 5), later = text_of(70, 6);
  const tokens made = run(model, prompt, 90, 0);
  engine e(model);
  std::vector<std::shared_ptr<request>> requests;
  for (const tokens& p : {prompt, later}) {
    requests.push_back(std::make_shared<request>(model, options_of(90)));
    requests.back()->add_tokens(p);
    e.add(requests.back());
  }
  while (e.has_pending()) e.step();
  EXPECT_EQ(e.statistics().shared_tokens, 64u);
  EXPECT_EQ(requests[0]->sequence(), made);
  EXPECT_EQ(run(model, later, 90, 64), requests[1]->sequence());
  EXPECT_EQ(requests[1]->sequence(), alone(later, 90));
}

// Told of each token once and in order, whatever began alike and runs beside it, in pieces, and after interruptions.
TEST(prefixes, a_watched_prompt_runs_whole) {
  const auto model = load_scripture(true);
  const auto vocabulary = static_cast<std::size_t>(model->vocabulary_size());
  run(model, text_of(90, 5), 92, 0);
  for (const std::size_t blocks : {0u, 5u}) {
    engine_options o;
    o.max_scheduled_tokens = 80;
    o.cache_bytes = blocks * model->block_bytes();
    engine e(model, o);
    std::vector<std::shared_ptr<request>> requests;
    std::vector<tokens> all;
    std::vector<std::vector<float>> told(4);
    for (std::size_t k = 0; k < told.size(); ++k) {
      all.push_back(text_of(80 - 23 * k, 5));
      requests.push_back(std::make_shared<request>(model, options_of(100)));
      requests[k]->add_tokens(all[k]);
      requests[k]->set_prompt_watch(
          [&, k](std::span<const token> sequence, std::size_t at, std::span<const float> scores) {
            EXPECT_EQ(at, told[k].size() / vocabulary + 1);
            EXPECT_EQ(sequence[at], all[k][at]);
            told[k].insert(told[k].end(), scores.begin(), scores.end());
          });
      e.add(requests[k]);
    }
    while (e.has_pending()) e.step();
    if (blocks > 0) {
      EXPECT_GT(e.statistics().interruptions, 0u);
    }
    for (std::size_t k = 0; k < told.size(); ++k) {
      EXPECT_EQ(requests[k]->sequence(), alone(all[k], 100)) << k;
      auto state = scripture()->new_state();
      workspace memory;
      const std::size_t rows = all[k].size() - 1;
      std::vector<float> wanted(rows * vocabulary);
      scripture()->run(state, memory, std::span(all[k]).first(rows), rows, wanted);
      ASSERT_EQ(told[k].size(), wanted.size()) << k;
      for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(told[k][i], wanted[i], 1e-3f) << k << " " << i;
    }
  }
  const auto bad = std::make_shared<request>(model, options_of(100));
  bad->add_tokens(text_of(9, 5));
  bad->set_prompt_watch(
      [](std::span<const token>, std::size_t, std::span<const float>) { throw std::runtime_error("no"); });
  engine e(model);
  e.add(bad);
  while (e.has_pending()) e.step();
  EXPECT_EQ(bad->failure(), "no");
  EXPECT_THROW(bad->set_end_tokens(tokens{1 << 30}), error);
}

// What a turn before it ran is told of, too.
TEST(prefixes, a_second_turn_is_told_of_whole) {
  const auto model = load_scripture(true);
  const auto r = std::make_shared<request>(model, options_of(100));
  engine e(model);
  e.add(r);
  tokens any(static_cast<std::size_t>(model->vocabulary_size()));
  std::iota(any.begin(), any.end(), 0);
  std::vector<std::size_t> places;
  const auto turn = [&](const tokens& more) {
    r->add_tokens(more);
    places.clear();
    r->set_prompt_watch([&](std::span<const token>, std::size_t at, std::span<const float>) { places.push_back(at); });
    const std::size_t prompt = r->sequence().size();
    r->set_end_tokens(any);  // one is made
    while (e.has_pending()) e.step();
    EXPECT_EQ(r->sequence().size(), prompt + 1);
    std::vector<std::size_t> all(prompt - 1);
    std::iota(all.begin(), all.end(), 1);
    EXPECT_EQ(places, all);
  };
  turn(text_of(9, 5));
  turn(text_of(7, 6));
}

// Rows of scores are there for so many tokens of all such prompts in a step, and others go on beside them.
TEST(prefixes, watched_prompts_share_the_rows_of_a_step) {
  const auto model = load_scripture(true);
  engine e(model);
  std::vector<std::shared_ptr<request>> all;
  std::size_t told = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    all.push_back(std::make_shared<request>(model, options_of(100)));
    all[k]->add_tokens(text_of(50, static_cast<token>(k + 3)));
    if (k < 3) all[k]->set_prompt_watch([&](auto, std::size_t, auto) { ++told; });
    e.add(all[k]);
  }
  e.step();
  EXPECT_EQ(told, 63u) << "49 of the first, and 14 of the second";
  EXPECT_EQ(all[3]->sequence().size(), 51u);
  while (told < 3 * 49u && e.has_pending()) {
    const std::size_t before = told;
    e.step();
    EXPECT_LE(told, before + 64);
  }
  EXPECT_EQ(told, 3 * 49u);
}

TEST(prefixes, a_prompt_may_be_all_there_is) {
  const auto model = load_scripture(true);
  const auto run_alone = [&](std::size_t length, std::size_t cache_tokens, bool watched) {
    engine_options o;
    o.cache_tokens = cache_tokens;
    engine e(model, o);
    const auto r = std::make_shared<request>(model, options_of(static_cast<std::int64_t>(length)));
    r->set_makes_none(true);
    r->add_tokens(text_of(length, 5));
    std::size_t told = 0;
    if (watched) r->set_prompt_watch([&](auto, std::size_t, auto) { ++told; });
    e.add(r);
    for (int k = 0; k < 20 && e.has_pending(); ++k) e.step();
    EXPECT_TRUE(r->is_turn_complete());
    EXPECT_EQ(r->ended_by(), text_end::max_length);
    EXPECT_EQ(r->sequence().size(), length);
    EXPECT_FALSE(r->has_unseen());
    EXPECT_EQ(told, watched ? length - 1 : 0);
    EXPECT_EQ(e.statistics().run_tokens, std::max<std::size_t>(1, length - 1));
    EXPECT_THROW(r->add_tokens(tokens{1}), error) << "beyond max_length";
  };
  for (const bool watched : {true, false}) {
    run_alone(1, 0, watched);
    run_alone(2, 0, watched);
    run_alone(256, 0, watched);
    run_alone(65, 64, watched);  // the last token has no place there, and needs none
  }
}

// A block that others may find is copied before anything else is written to it.
TEST(prefixes, rewinding_leaves_others_alone) {
  const auto model = load_scripture(true);
  const tokens prompt = text_of(80, 5), end = text_of(40, 6);
  const tokens made = run(model, prompt, 100, 0);
  tokens mixed(prompt.begin(), prompt.begin() + 41);
  mixed.insert(mixed.end(), end.begin(), end.end());
  for (const bool first_is_alive : {false, true}) {
    std::optional<generator> held;
    if (first_is_alive) {
      held.emplace(model, options_of(100));
      held->append_tokens(prompt);
    }
    generator own(model, options_of(100));
    own.append_tokens(prompt);
    own.rewind_to(41);
    own.append_tokens(end);
    EXPECT_EQ(run_to_end(own), alone(mixed, 100));
    EXPECT_EQ(run(model, prompt, 100, 64), made);
    if (held) {
      EXPECT_EQ(run_to_end(*held), made);
    }
  }
}

TEST(prefixes, guesses_are_not_shared) {
  speculative_options ahead;
  ahead.ngram_size = 3, ahead.max_draft_tokens = 8;
  const auto model = load_scripture(true);
  tokens prompt;
  for (int k = 0; k < 10; ++k)
    for (const token t : {7, 8, 9, 10, 11}) prompt.push_back(t);
  search_options o = options_of(150);
  o.min_length = 150;
  generator own(model, o, ahead), plain(scripture(), o);
  own.append_tokens(prompt), plain.append_tokens(prompt);
  const tokens made = run_to_end(own);
  EXPECT_GT(own.speculation().draft_tokens_proposed, 0);
  EXPECT_EQ(made, run_to_end(plain));
  generator next(model, o);
  next.append_tokens(tokens(made.begin(), made.end() - 1));
  EXPECT_GE(next.shared_tokens(), 96u);
  EXPECT_EQ(run_to_end(next), made);
}

TEST(prefixes, depend_on_adapters) {
  const auto model = tiny_llama::load(tiny_llama::file());
  ASSERT_TRUE(model->joins_rows());
  adapters all(model);
  all.load(tiny_llama::update(2, 1), "a");
  tokens prompt;
  for (token k = 0; k < 40; ++k) prompt.push_back(1 + k * 5 % 11);
  search_options o;
  o.max_length = tiny_llama::longest;
  const auto shared_by = [&](bool adapted, std::size_t before) {
    generator own(model, o);
    if (adapted && before == 0) own.set_active_adapter(all, "a");
    own.append_tokens(std::span(prompt).first(before == 0 ? prompt.size() : before));
    if (adapted && before != 0) own.set_active_adapter(all, "a");  // what ran keeps what it has
    if (before != 0) own.append_tokens(std::span(prompt).subspan(before));
    return own.shared_tokens();
  };
  EXPECT_EQ(shared_by(true, 20), 0u);
  EXPECT_EQ(shared_by(true, 0), 0u) << "of a generator whose values changed on the way nothing is known";
  EXPECT_EQ(shared_by(true, 0), 32u);
  EXPECT_EQ(shared_by(false, 0), 0u);
  EXPECT_EQ(shared_by(false, 0), 32u);
  all.unload("a");
  all.load(tiny_llama::update(2, 7), "a");  // another one of the name
  EXPECT_EQ(shared_by(true, 0), 0u);
}

TEST(prefixes, memory_is_given_back) {
  const auto model = tiny_llama::load(tiny_llama::file());
  search_options o;
  o.max_length = tiny_llama::longest;
  const engine counts(model);
  tokens prompt(static_cast<std::size_t>(tiny_llama::longest - 1), 1);
  const std::size_t each = prompt.size() / static_cast<std::size_t>(model->block_tokens());
  ASSERT_GE(each, 1u);
  std::vector<generator> held;
  for (std::size_t k = 0; k < 1000; ++k) {
    for (std::size_t i = 0, rest = k; i < 3; ++i, rest /= 10) prompt[i] = static_cast<token>(1 + rest % 10);
    generator own(model, o);
    own.append_tokens(prompt);
    if (k % 10 == 0) held.push_back(std::move(own));
  }
  const std::size_t used = held.size() * (each + 1);
  EXPECT_GE(counts.statistics().blocks, used);
  EXPECT_LE(counts.statistics().blocks, 2 * used + 64);
  held.clear();
  EXPECT_GT(counts.statistics().known_blocks, 0u);
  EXPECT_LE(counts.statistics().known_blocks, 64u);
  EXPECT_EQ(counts.statistics().blocks, counts.statistics().known_blocks) << "none is anybody's but the index's";
  generator lasting(model, o);
  for (std::size_t k = 0; k < 1000; ++k) {
    for (std::size_t i = 0, rest = k; i < 3; ++i, rest /= 10) prompt[i] = static_cast<token>(11 + rest % 10);
    lasting.rewind_to(0);
    lasting.append_tokens(prompt);
    ASSERT_LE(counts.statistics().blocks, 2 * (each + 1) + 64) << k;
  }
}

TEST(prefixes, threads_share_them) {
  const auto model = load_scripture(true);
  const std::vector<tokens> prompts{text_of(70, 5), text_of(70, 6)};
  const std::vector<tokens> made{alone(prompts[0], 80), alone(prompts[1], 80)};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t k = 0; k < 6; ++k) {
        const std::size_t which = (t + k) % 2;
        generator own(model, options_of(80));
        own.append_tokens(prompts[which]);
        EXPECT_EQ(run_to_end(own), made[which]);
        own.rewind_to(40);
        own.append_tokens(std::span(prompts[which]).subspan(40));
        EXPECT_EQ(run_to_end(own), made[which]);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(prefixes, the_folder_may_forbid_it) {
  config c = read_config(scripture_folder);
  EXPECT_TRUE(c.share_prefixes);
  overlay(c, R"({"model": {"share_prefixes": false}})");
  EXPECT_FALSE(c.share_prefixes);
  EXPECT_THAT(message_of([&] { overlay(c, R"({"model": {"share_prefixes": 1}})"); }),
              HasSubstr("model.share_prefixes: expected true or false, found number"));
  const tokens prompt = text_of(70, 5);
  run(scripture(), prompt, 72, 0);
  run(scripture(), prompt, 72, 0);
  engine e(scripture());
  for (int k = 0; k < 2; ++k) {
    const auto r = std::make_shared<request>(scripture(), options_of(72));
    r->add_tokens(prompt);
    e.add(r);
    while (e.has_pending()) e.step();
  }
  EXPECT_EQ(e.statistics().shared_tokens, 0u);
  EXPECT_EQ(e.statistics().known_blocks, 0u);
}

}  // namespace
}  // namespace kiln::language::testing
