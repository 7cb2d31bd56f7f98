// Guessing tokens ahead changes when scores are computed, and never which tokens are chosen.
#include <gmock/gmock.h>

#include "generate/scripture.hpp"
#include "generate/tiny_llama.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/impl/draft_width.hpp"
#include "kiln/generate/impl/ngram_lookup.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::HasSubstr;

speculative_options lookup(std::int64_t size, std::int64_t width, bool chained = false) {
  speculative_options o;
  o.ngram_size = size, o.max_draft_tokens = width, o.ngram_chained_lookup = chained;
  return o;
}

tokens proposed(detail::ngram_lookup& l, const tokens& sequence, std::size_t most, bool chained = false) {
  std::size_t of_chain = 0;
  return l.propose(sequence, most, chained, of_chain);
}

TEST(ngram_lookup, gives_what_followed_the_last_time) {
  detail::ngram_lookup l(3);
  EXPECT_EQ(proposed(l, {1}, 4), tokens{});
  EXPECT_EQ(proposed(l, {1, 2, 3, 4, 1, 2}, 4), (tokens{3, 4, 1, 2}));
  EXPECT_EQ(proposed(l, {1, 2, 3, 4, 1, 2}, 1), tokens{3});
  EXPECT_EQ(proposed(l, {1, 2, 3, 4, 1, 2, 5, 1, 2}, 2), (tokens{5, 1})) << "the later place";
  EXPECT_EQ(proposed(l, {1, 2, 3, 4}, 4), tokens{}) << "rewound";
  EXPECT_EQ(proposed(l, {9, 9, 9, 9}, 3), tokens{9});
}
TEST(ngram_lookup, chains_go_on_from_what_was_found) {
  detail::ngram_lookup l(3);
  EXPECT_EQ(proposed(l, {9, 9, 9, 9}, 5, true), (tokens{9, 9, 9, 9, 9}));
  EXPECT_EQ(proposed(l, {1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 1, 2}, 8, true), (tokens{3, 7, 1, 2, 3, 7, 1, 2}));
  std::size_t of_chain = 0;
  l.propose(tokens{9, 9, 9, 9}, 5, true, of_chain);
  EXPECT_EQ(of_chain, 4u);
}

TEST(draft_width, follows_the_measured_rate) {
  speculative_options o;
  o.min_adaptive_k = 2;
  speculative_stats s;
  detail::draft_width w(o);
  EXPECT_EQ(w.next(), 2u);
  w.observe(2, 2, 1, s);  // 3 tokens a ms, all right: try 3
  EXPECT_EQ(w.next(), 3u);
  w.observe(3, 3, 1, s), w.observe(3, 3, 1, s);  // 4 a ms: kept
  EXPECT_EQ(w.next(), 3u);
  w.observe(3, 3, 1, s);  // waits one
  EXPECT_EQ(w.next(), 3u);
  w.observe(3, 3, 1, s);
  EXPECT_EQ(w.next(), 4u);
  w.observe(4, 4, 2, s);  // 2.5 a ms of 4: at once back
  EXPECT_EQ(w.next(), 3u);
  for (int k = 0; k < 6; ++k) {
    w.observe(3, 3, 1, s);
    EXPECT_EQ(w.next(), 3u) << k;
  }
  w.observe(3, 3, 1, s);
  EXPECT_EQ(w.next(), 4u) << "after six rounds";
  EXPECT_EQ(s.adaptive_k_probes, 3);
  EXPECT_EQ(s.adaptive_k_increases, 3);
  EXPECT_EQ(s.adaptive_k_decreases, 1);
  w.show(s);
  EXPECT_EQ(s.effective_k, 4);
}
TEST(draft_width, goes_down_to_its_floor_and_pauses) {
  speculative_options o;
  o.min_adaptive_k = 1, o.cooldown = true;
  speculative_stats s;
  detail::draft_width w(o);
  for (int k = 0; k < 2; ++k) {
    w.observe(1, 0, 1, s);
    EXPECT_EQ(w.next(), 1u);
  }
  w.observe(1, 0, 1, s);
  EXPECT_EQ(w.next(), 0u);
  w.paused(s);
  EXPECT_EQ(w.next(), 1u);
  EXPECT_EQ(s.cooldown_entries, 1);
  EXPECT_EQ(s.cooldown_steps, 1);
  speculative_options fixed;
  detail::draft_width f(fixed);
  for (int k = 0; k < 20; ++k) {
    f.observe(4, k % 5, 1, s);
    EXPECT_EQ(f.next(), 4u);
  }
}

struct speculative_case {
  const char* name;
  speculative_options options;
};
std::vector<speculative_case> all_cases() {
  speculative_options adaptive = lookup(2, 4, true);
  adaptive.min_adaptive_k = 2, adaptive.cooldown = true;
  return {{"3-grams", lookup(3, 4)}, {"chained", lookup(2, 8, true)}, {"adaptive", adaptive}};
}

// A text that comes back again and again.
tokens repeated(const tokens& of, std::size_t times) {
  tokens out;
  for (std::size_t k = 0; k < times; ++k) out.insert(out.end(), of.begin(), of.end());
  return out;
}

TEST(speculation, greedy_tokens_are_the_plain_ones) {
  for (const golden& g : scripture_golden())
    for (const auto& [name, options] : all_cases()) {
      generator own(scripture(), options_of(static_cast<std::int64_t>(g.all.size())), options);
      own.append_tokens(g.prompt);
      EXPECT_EQ(run_to_end(own, g.all.size()), g.all) << name;
    }
}

TEST(speculation, guesses_save_runs_of_the_model) {
  const tokens prompt = scripture_golden()[0].prompt;
  search_options o = options_of(240);
  o.min_length = 240;  // a small model comes to say the same again and again
  const auto plain = [&] {
    generator g(scripture(), o, speculative_options());
    g.append_tokens(prompt);
    return run_to_end(g);
  }();
  for (const auto& [name, options] : all_cases()) {
    generator g(scripture(), o, options);
    g.append_tokens(prompt);
    EXPECT_EQ(run_to_end(g), plain) << name;
    const speculative_stats s = g.speculation();
    EXPECT_GT(s.draft_tokens_accepted, 0) << name;
    EXPECT_LT(s.target_forward_passes, static_cast<std::int64_t>(plain.size() - prompt.size()) - 1) << name;
    EXPECT_EQ(s.rounds, s.completed_rounds + s.active_rounds) << name;
    EXPECT_EQ(s.completed_rounds, s.full_accept_rounds + s.partial_accept_rounds + s.zero_accept_rounds) << name;
    EXPECT_EQ(s.completed_rounds, s.bonus_tokens + s.correction_tokens) << name;
    EXPECT_EQ(s.target_forward_passes, s.rounds + s.standard_fallback_steps) << name;
    EXPECT_EQ(get_stat(s, "acceptance_rate"), s.acceptance_rate());
  }
}

TEST(speculation, draws_of_a_seed_are_the_plain_ones) {
  const golden g = scripture_golden()[0];
  search_options o = options_of(static_cast<std::int64_t>(g.prompt.size()) + 60);
  o.do_sample = true, o.random_seed = 5, o.top_k = 8, o.temperature = 0.7, o.repetition_penalty = 1.1;
  const auto drawn = [&](const speculative_options& ahead) {
    generator own(scripture(), o, ahead);
    own.append_tokens(g.prompt);
    return run_to_end(own);
  };
  const tokens plain = drawn({});
  for (const auto& [name, options] : all_cases()) EXPECT_EQ(drawn(options), plain) << name;
}

TEST(speculation, goes_back_and_on_in_the_middle_of_guesses) {
  const tokens prompt = repeated({200, 31, 77, 5}, 5);
  const auto run = [&](const speculative_options& ahead) {
    generator g(scripture(), options_of(90), ahead);
    g.append_tokens(prompt);
    std::vector<float> seen;
    for (int k = 0; k < 40; ++k) {
      g.generate_next_token();
      if (k % 5 == 2) seen.push_back(g.logits().as<float>()[7]);
      if (k == 9 || k == 13) g.rewind_to(g.token_count() - 3);
      if (k == 17) g.append_tokens(tokens{31, 77});
      if (k == 23) {
        std::vector<float> scores(2048, 0.f);
        scores[400] = 1;
        g.set_logits(argument::of<float>({1, 1, 2048}, scores));
      }
    }
    return std::pair(g.sequence(0), seen);
  };
  const auto [wanted, scores] = run({});
  for (const auto& [name, options] : all_cases()) {
    const auto [found, own] = run(options);
    EXPECT_EQ(found, wanted) << name;
    for (std::size_t k = 0; k < scores.size(); ++k) EXPECT_NEAR(own[k], scores[k], 2e-4) << name << " " << k;
  }
}

// A draft model with other weights, and the model itself as its own.
TEST(speculation, a_draft_model_guesses) {
  const std::string file = tiny_llama::file(tiny_llama::update(1, 2)),
                    other = tiny_llama::file(tiny_llama::update(1, 3));
  const tokens prompt{3, 1, 4, 1, 5, 9, 2, 6};
  const auto run = [&](const std::string* draft, std::int64_t width, speculative_stats& stats) {
    config c = tiny_llama::settings(file);
    if (draft) {
      c.draft.emplace();
      c.draft->filename = "draft.onnx";
      const auto bytes = std::as_bytes(std::span(*draft));
      c.model_data["draft.onnx"] = {bytes.begin(), bytes.end()};
    }
    compile_options o;
    o.threads = 1;
    search_options search;
    search.max_length = 60;
    speculative_options ahead;
    ahead.max_draft_tokens = width;
    generator g(language_model::load(c, eigen_target(), o), search, ahead);
    g.append_tokens(prompt);
    run_to_end(g, 30);
    g.rewind_to(20);
    run_to_end(g);
    stats = g.speculation();
    return g.sequence(0);
  };
  speculative_stats stats;
  const tokens plain = run(nullptr, 4, stats);
  EXPECT_EQ(stats.rounds, 0);
  EXPECT_EQ(run(&file, 3, stats), plain);
  EXPECT_EQ(stats.correction_tokens, 0) << "the model is right about itself";
  EXPECT_EQ(stats.zero_accept_rounds + stats.partial_accept_rounds, 0);
  EXPECT_GT(stats.full_accept_rounds, 5);
  EXPECT_EQ(run(&other, 3, stats), plain);
  EXPECT_GT(stats.correction_tokens, 0);
  EXPECT_GT(stats.draft_forward_passes, stats.rounds);
}

TEST(speculation, says_what_does_not_go_together) {
  const auto fault = [](const speculative_options& ahead, search_options o) -> std::string {
    try {
      generator g(scripture(), o, ahead);
    } catch (const error& e) {
      return e.message();
    }
    return "no error";
  };
  const search_options plain = options_of(50);
  search_options two = plain;
  two.batch_size = 2;
  EXPECT_THAT(fault(lookup(3, 4), two), HasSubstr("expected one sequence"));
  EXPECT_EQ(fault({}, two), "no error");
  EXPECT_THAT(fault(lookup(1, 4), plain), HasSubstr("'ngram_size': expected 0 or 2 to 16, found 1"));
  EXPECT_THAT(fault(lookup(3, 17), plain), HasSubstr("'max_draft_tokens': expected 1 to 16, found 17"));
  EXPECT_THAT(fault(lookup(0, 4, true), plain), HasSubstr("'ngram_chained_lookup' needs ngram_size"));
}

}  // namespace
}  // namespace kiln::language::testing
