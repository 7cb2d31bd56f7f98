// Requests that share steps: greedy results are a generator's, whatever else runs.
#include "kiln/generate/engine.hpp"

#include <gmock/gmock.h>

#include "generate/scripture.hpp"
#include "generate/tiny_llama.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/guidance.hpp"
#include "kiln/text/token_stream.hpp"
#include "quantize/message_of.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::HasSubstr;

// Prompts of several lengths, some of which begin alike.
std::vector<tokens> prompts(std::size_t count) {
  const auto golden = scripture_golden();
  std::vector<tokens> out;
  for (std::size_t k = 0; k < count; ++k) {
    const tokens& text = golden[k % golden.size()].all;
    tokens own(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), 3 + (k * 11) % 45)));
    if (k % 3 == 2) own.back() = static_cast<token>(100 + k);
    out.push_back(own);
  }
  return out;
}
tokens alone(const tokens& prompt, std::int64_t max_length) {
  generator own(scripture(), options_of(max_length));
  own.append_tokens(prompt);
  return run_to_end(own);
}
std::shared_ptr<request> make_request(const tokens& prompt, std::int64_t max_length) {
  auto r = std::make_shared<request>(sharing_scripture(), options_of(max_length));
  r->add_tokens(prompt);
  return r;
}
using kiln::test::message_of;

void run_all(engine& e, std::size_t most = 2000) {
  for (std::size_t k = 0; e.has_pending() && k < most; ++k) e.step();
  ASSERT_FALSE(e.has_pending());
}

TEST(engine, requests_end_as_a_generator_does) {
  engine_options o;
  o.max_scheduled_tokens = 24;
  engine e(sharing_scripture(), o);
  const auto all = prompts(9);
  std::vector<std::shared_ptr<request>> requests;
  std::vector<tokens> streamed(all.size());
  std::size_t arrived = 0;
  for (int step = 0; step < 500 && (e.has_pending() || arrived < all.size()); ++step) {
    if (step % 3 == 0 && arrived < all.size()) {
      requests.push_back(make_request(all[arrived], 50 + static_cast<std::int64_t>(arrived)));
      e.add(requests.back());
      ++arrived;
    }
    for (const auto& r : e.step()) EXPECT_TRUE(r->has_unseen());
    for (std::size_t k = 0; k < requests.size(); ++k)
      while (requests[k]->has_unseen()) streamed[k].push_back(requests[k]->take_unseen());
  }
  ASSERT_FALSE(e.has_pending());
  for (std::size_t k = 0; k < all.size(); ++k) {
    const tokens wanted = alone(all[k], 50 + static_cast<std::int64_t>(k));
    EXPECT_EQ(requests[k]->sequence(), wanted) << k;
    EXPECT_EQ(streamed[k], tokens(wanted.begin() + static_cast<std::ptrdiff_t>(all[k].size()), wanted.end())) << k;
    EXPECT_TRUE(requests[k]->is_turn_complete());
  }
}

TEST(engine, too_few_blocks_interrupt_but_change_nothing) {
  engine_options o;
  o.cache_bytes = 5 * sharing_scripture()->block_bytes();
  o.share_prefixes = false;
  engine e(sharing_scripture(), o);
  const auto all = prompts(5);
  std::vector<std::shared_ptr<request>> requests;
  for (const tokens& p : all) e.add(requests.emplace_back(make_request(p, 100)));
  requests[4]->set_priority(3);
  std::size_t finished_first = 9;
  for (int k = 0; e.has_pending() && k < 2000; ++k) {
    e.step();
    EXPECT_LE(e.statistics().blocks, 5u);
    for (std::size_t r = 0; r < all.size() && finished_first == 9; ++r)
      if (requests[r]->is_turn_complete()) finished_first = r;
  }
  EXPECT_EQ(finished_first, 4u);
  EXPECT_GT(e.statistics().interruptions, 0u);
  for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(requests[k]->sequence(), alone(all[k], 100)) << k;
  EXPECT_THAT(message_of([&] { e.add(make_request(all[0], 200)); }), HasSubstr("needs 7 blocks"));
}

TEST(engine, prefixes_are_run_once) {
  engine e(sharing_scripture());
  tokens prompt = scripture_golden()[0].all;
  prompt.resize(80, 7);
  prompt.front() = 11;  // nothing else begins so
  e.add(make_request(prompt, 100));
  run_all(e);
  const std::size_t before = e.statistics().run_tokens;
  tokens other = prompt;
  other[70] = 9;  // the first two blocks are the same
  const auto second = make_request(other, 100), third = make_request(prompt, 100);
  e.add(second);
  e.add(third);
  run_all(e);
  EXPECT_EQ(e.statistics().shared_tokens, 2u * 64);
  EXPECT_EQ(e.statistics().run_tokens, before + 2 * (99 - 64));
  EXPECT_EQ(second->sequence(), alone(other, 100));
  EXPECT_EQ(third->sequence(), alone(prompt, 100));
  EXPECT_GT(e.statistics().known_blocks, 0u);
}

TEST(engine, turns_go_on_and_requests_leave) {
  engine e(sharing_scripture());
  const auto all = prompts(3);
  const auto talk = make_request(all[0], 30), gone = make_request(all[1], 200);
  e.add(talk), e.add(gone);
  for (int k = 0; k < 5; ++k) e.step();
  e.remove(*gone);
  EXPECT_TRUE(gone->is_turn_complete());
  run_all(e);
  EXPECT_EQ(talk->sequence().size(), 30u);
  EXPECT_THAT(message_of([&] { talk->add_tokens(tokens{4}); }), HasSubstr("max length (30)"));
  e.remove(*talk);
  e.remove(*talk);
  EXPECT_FALSE(e.has_pending());
  EXPECT_EQ(e.statistics().blocks, e.statistics().known_blocks);

  config c = read_config(scripture_folder);
  const golden g = scripture_golden()[0];
  c.eos_token_id = {g.all[g.prompt.size() + 3]};
  const auto model = language_model::load(c, eigen_target());
  engine own(model);
  const auto turns = std::make_shared<request>(model, options_of(100));
  turns->add_tokens(g.prompt);
  own.add(turns);
  run_all(own);
  EXPECT_EQ(turns->sequence().back(), c.eos_token_id[0]);
  turns->add_tokens(tokens{11, 12});
  EXPECT_TRUE(own.has_pending());
  own.step();
  generator fresh(model, options_of(100));
  tokens whole(turns->sequence().begin(), turns->sequence().end() - 1);
  fresh.append_tokens(whole);
  fresh.generate_next_token();
  EXPECT_EQ(turns->sequence(), fresh.sequence(0));
}

// What waits for its next turn gives its blocks to those that run.
TEST(engine, a_waiting_turn_holds_no_blocks) {
  engine_options o;
  o.max_requests = 1, o.cache_tokens = 4 * static_cast<std::size_t>(sharing_scripture()->block_tokens());
  engine e(sharing_scripture(), o);
  tokens longer = scripture_golden()[0].all;
  longer.resize(90, 7);
  const tokens shorter = prompts(1)[0];
  const auto talk = make_request(longer, 100), other = make_request(shorter, 110);
  talk->set_rule([](std::size_t, std::span<const token> all, std::span<float> scores) {  // ends each turn at once
    if (all.size() < 95) scores[static_cast<std::size_t>(sharing_scripture()->settings().eos_token_id[0])] = 1e9F;
  });
  e.add(talk);
  run_all(e);
  ASSERT_EQ(talk->ended_by(), text_end::end_token);
  e.add(other);
  e.step();
  talk->add_tokens(tokens{11, 12});
  run_all(e);
  EXPECT_EQ(other->sequence(), alone(shorter, 110));
  EXPECT_EQ(talk->ended_by(), text_end::end_token);
  EXPECT_EQ(talk->sequence().size(), 94u);
}

TEST(engine, what_fails_for_one_fails_for_it_alone) {
  engine e(sharing_scripture());
  const auto all = prompts(2);
  const auto bad = make_request(all[0], 60), good = make_request(all[1], 60);
  bad->set_rule([](std::size_t, std::span<const token> sequence, std::span<float>) {
    if (sequence.size() > 40) throw std::runtime_error("no token fits");
  });
  e.add(bad), e.add(good);
  run_all(e);
  EXPECT_EQ(bad->failure(), "no token fits");
  EXPECT_EQ(good->sequence(), alone(all[1], 60));
  EXPECT_EQ(good->failure(), "");
}

speculative_options lookup(std::int64_t width) {
  speculative_options o;
  o.ngram_size = 3, o.max_draft_tokens = width;
  return o;
}

// Guesses change how many steps there are, and no token: drawn ones, and with too few blocks, too.
TEST(engine, requests_guess_ahead) {
  for (const bool is_tight : {false, true}) {
    engine_options o;
    if (is_tight) o.cache_tokens = 8 * 32, o.share_prefixes = false;
    engine e(sharing_scripture(), o), plain(sharing_scripture(), o);
    std::vector<std::shared_ptr<request>> ahead, without;
    tokens prompt;
    for (int k = 0; k < 6; ++k) prompt.insert(prompt.end(), {200, 31, 77, 5});
    for (const std::int64_t seed : {0, 1, 2}) {
      search_options s = options_of(180);
      s.min_length = 180;                                                               // it comes to repeat itself
      s.do_sample = seed > 0, s.random_seed = seed, s.top_k = 2, s.temperature = .01f;  // scores are flat
      ahead.push_back(std::make_shared<request>(sharing_scripture(), s, lookup(5)));
      without.push_back(std::make_shared<request>(sharing_scripture(), s));
      prompt.push_back(static_cast<token>(90 + seed));
      ahead.back()->add_tokens(prompt), without.back()->add_tokens(prompt);
      e.add(ahead.back()), plain.add(without.back());
    }
    run_all(e), run_all(plain);
    for (std::size_t k = 0; k < ahead.size(); ++k) {
      EXPECT_EQ(ahead[k]->sequence(), without[k]->sequence()) << k << is_tight;
      EXPECT_EQ(without[k]->speculation().rounds, 0);
    }
    EXPECT_GT(ahead[0]->speculation().draft_tokens_accepted, 20);
    EXPECT_GT(ahead[0]->speculation().correction_tokens, 0);
    EXPECT_LT(e.statistics().steps, plain.statistics().steps);
    EXPECT_LE(e.statistics().blocks, is_tight ? 8u : 1000u);
  }
}

TEST(engine, what_a_guide_leaves_no_choice_for_is_not_run_alone) {
  const tokenizer& words = sharing_scripture()->text_tokenizer();
  const guide only = guide::regex(sharing_scripture()->text_vocabulary(), " Jerusalem and Babylon, (yea|nay)!");
  std::size_t steps[2] = {};
  for (const speculative_options& ahead : {speculative_options(), lookup(3)})
    for (const bool forced : {false, true}) {
      engine e(sharing_scripture());
      const tokens prompt = words.encode("And the LORD");
      const auto guided = std::make_shared<request>(sharing_scripture(), options_of(60), ahead),
                 free = make_request(prompt, 40);
      set_guidance(*guided, only, forced);
      guided->add_tokens(prompt);
      e.add(guided), e.add(free);
      while (!guided->is_turn_complete()) e.step(), ++steps[forced];
      run_all(e);
      const tokens made(guided->sequence().begin() + static_cast<std::ptrdiff_t>(prompt.size()),
                        guided->sequence().end());
      EXPECT_THAT(words.decode(made), ::testing::MatchesRegex(" Jerusalem and Babylon, (yea|nay)!"));
      EXPECT_EQ(guided->ended_by(), text_end::end_token);
      EXPECT_EQ(free->sequence(), alone(prompt, 40));
    }
  EXPECT_LT(steps[true] + 8, steps[false]);
}

TEST(engine, requests_end_at_a_stop_string) {
  const golden g = scripture_golden()[0];
  const tokenizer& words = sharing_scripture()->text_tokenizer();
  const tokens made(g.all.begin() + static_cast<std::ptrdiff_t>(g.prompt.size()), g.all.end());
  const std::string text = words.decode(made);
  for (const speculative_options& ahead : {speculative_options(), lookup(4)})
    for (const std::size_t at : {7u, 20u, 31u}) {
      search_options o = options_of(static_cast<std::int64_t>(g.all.size()));
      o.stop_strings = {text.substr(at, 6), "no text of it"};
      engine e(sharing_scripture());
      const auto r = std::make_shared<request>(sharing_scripture(), o, ahead);
      r->add_tokens(g.prompt);
      e.add(r);
      run_all(e);
      EXPECT_EQ(r->ended_by(), text_end::stop_string);
      token_stream shown(words, {}, o.stop_strings);
      std::string found;
      while (r->has_unseen()) found += shown.put(r->take_unseen());
      found += shown.finish();
      EXPECT_EQ(found, text.substr(0, text.find(o.stop_strings[0])));
      generator own(scripture(), o, ahead);
      own.append_tokens(g.prompt);
      EXPECT_EQ(run_to_end(own), r->sequence());
      EXPECT_EQ(own.ended_by(0), text_end::stop_string);
      // cut behind the stop string, it goes on with a text of its own
      generator cut(scripture(), o, ahead);
      cut.append_tokens(g.prompt);
      const std::size_t length = run_to_end(cut).size();
      cut.rewind_to(length);
      ASSERT_LT(length, g.all.size());
      cut.generate_next_token();
      EXPECT_NE(cut.ended_by(0), text_end::stop_string);
      EXPECT_EQ(cut.sequence(0), tokens(g.all.begin(), g.all.begin() + static_cast<std::ptrdiff_t>(length) + 1));
      // the next turn has a text of its own, and goes on after what was made
      own.append_tokens(tokens{31}), r->add_tokens(tokens{31});
      EXPECT_EQ(own.ended_by(0), text_end::open);
      EXPECT_EQ(r->ended_by(), text_end::open);
      run_all(e);
      EXPECT_EQ(run_to_end(own), r->sequence());
    }
}

// Requests with adapters, and beside them those without: each as in a generator, and blocks are shared among the same.
TEST(engine, requests_have_adapters) {
  const auto model = tiny_llama::load(tiny_llama::file());
  const auto separate = tiny_llama::load(tiny_llama::file(), false);
  adapters all(model), of_separate(separate);
  for (adapters* each : {&all, &of_separate})
    each->load(tiny_llama::update(2, 1), "a"), each->load(tiny_llama::update(4, 9), "b");
  tokens prompt;
  for (token k = 0; k < 40; ++k) prompt.push_back(1 + k * 5 % 11);
  search_options o;
  o.max_length = 50;
  engine e(model);
  std::vector<std::shared_ptr<request>> requests;
  const std::vector<const char*> names = {"", "a", "b", "a", "", "b"};
  const auto add = [&](const char* name) {
    const auto r = requests.emplace_back(std::make_shared<request>(model, o));
    r->add_tokens(prompt);
    if (*name) r->set_active_adapter(all, name);
    e.add(r);
  };
  for (const char* name : names) add(name);
  run_all(e);
  const std::size_t before = e.statistics().shared_tokens;
  for (const char* name : names) add(name);
  run_all(e);
  ASSERT_TRUE(model->joins_rows());
  EXPECT_EQ(e.statistics().shared_tokens, before + 6 * 32);
  for (std::size_t k = 0; k < requests.size(); ++k) {
    generator own(separate, o);
    if (*names[k % 6]) own.set_active_adapter(of_separate, names[k % 6]);
    own.append_tokens(prompt);
    EXPECT_EQ(requests[k]->sequence(), run_to_end(own)) << k;
  }
  EXPECT_NE(requests[0]->sequence(), requests[1]->sequence());
  EXPECT_THAT(message_of([&] { all.unload("a"); }), HasSubstr("in use"));
  for (const auto& r : requests) e.remove(*r);
  requests.clear();
  all.unload("a");
  all.load(tiny_llama::update(2, 7), "a");  // another one of the name: nothing of the first is found
  add("a");
  run_all(e);
  of_separate.unload("a");
  of_separate.load(tiny_llama::update(2, 7), "a");
  generator own(separate, o);
  own.set_active_adapter(of_separate, "a");
  own.append_tokens(prompt);
  EXPECT_EQ(requests[0]->sequence(), run_to_end(own));
  EXPECT_THAT(message_of([&] { request(sharing_scripture(), options_of(9)).set_active_adapter(all, "a"); }),
              HasSubstr("another model"));
}

TEST(engine, is_as_the_configuration_says) {
  config c;
  EXPECT_EQ(engine_options_of(c).max_requests, engine_options().max_requests);
  overlay(c, R"({"engine": {"static_batching": {"max_batch_size": 2}}})");
  EXPECT_FALSE(engine_options_of(c).joins_late);
  engine e(sharing_scripture(), engine_options_of(c));
  const auto all = prompts(3);
  std::vector<std::shared_ptr<request>> requests;
  for (std::size_t k = 0; k < 3; ++k)
    e.add(requests.emplace_back(make_request(all[k], 50 + static_cast<std::int64_t>(k) * 5)));
  std::size_t most = 0;
  for (int k = 0; e.has_pending() && k < 300; ++k) {
    e.step();
    most = std::max(most, e.statistics().running);
    const bool is_batch_done = requests[0]->is_turn_complete() && requests[1]->is_turn_complete();
    EXPECT_TRUE(is_batch_done || !requests[2]->has_unseen());
  }
  EXPECT_EQ(most, 2u);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_EQ(requests[k]->sequence(), alone(all[k], 50 + static_cast<std::int64_t>(k) * 5));
  overlay(c,
          R"({"engine": {"dynamic_batching": {"block_size": 16, "num_blocks": 10, "gpu_utilization_factor": 0.9}}})");
  overlay(c, R"({"engine": {"dynamic_batching": {"max_scheduled_tokens": 64}}})");
  const engine_options o = engine_options_of(c);
  EXPECT_EQ(o.max_requests, 16u);
  EXPECT_EQ(o.max_scheduled_tokens, 64u);
  EXPECT_EQ(o.cache_tokens, 160u);
  EXPECT_TRUE(o.joins_late);
  EXPECT_THAT(message_of([&] { engine(sharing_scripture(), o).add(make_request({5}, 200)); }),
              HasSubstr("and the engine has 5"));
}

TEST(engine, says_what_is_wrong) {
  search_options o = options_of(40);
  o.num_beams = 2;
  EXPECT_THAT(message_of([&] { request(sharing_scripture(), o); }), HasSubstr("expected num_beams 1, found 2"));
  o.num_beams = 1, o.batch_size = 3;
  EXPECT_THAT(message_of([&] { request(sharing_scripture(), o); }), HasSubstr("expected batch_size 1, found 3"));
  const auto r = make_request({5, 6}, 40);
  EXPECT_THAT(message_of([&] { r->add_tokens(tokens{4000}); }), HasSubstr("token 4000"));
  EXPECT_THAT(message_of([&] { r->take_unseen(); }), HasSubstr("no token"));
  engine e(sharing_scripture());
  e.add(r);
  EXPECT_THAT(message_of([&] { e.add(r); }), HasSubstr("added before"));
  engine other(sharing_scripture());
  EXPECT_THAT(message_of([&] { other.add(r); }), HasSubstr("another engine's"));
  e.step();
  EXPECT_THAT(message_of([&] { r->add_tokens(tokens{4}); }), HasSubstr("turn is complete"));
  EXPECT_THAT(message_of([&] { engine(sharing_scripture(), {.max_requests = 0}); }), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace kiln::language::testing
