// Generators over the trained model: what PyTorch continued, however the tokens come in.
#include <gmock/gmock.h>

#include <cmath>

#include "generate/scripture.hpp"
#include "kiln/core/error.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.message();
  }
  return "no error";
}

TEST(generator, continues_as_pytorch_does) {
  for (const golden& g : scripture_golden()) {
    generator own(scripture());
    own.append_tokens(g.prompt);
    EXPECT_EQ(run_to_end(own, g.all.size()), g.all);
  }
}

TEST(generator, prompts_in_pieces_give_the_same) {
  for (const std::int64_t piece : {1, 3, 1000}) {
    const golden g = scripture_golden()[0];
    search_options o = options_of(static_cast<std::int64_t>(g.all.size()));
    o.chunk_size = piece;
    generator own(scripture(), o);
    own.append_tokens(g.prompt);
    EXPECT_EQ(run_to_end(own), g.all) << piece;
  }
}

TEST(generator, sequences_side_by_side_are_each_as_alone) {
  const auto all = scripture_golden();
  search_options o = options_of(60);
  o.batch_size = static_cast<std::int64_t>(all.size());
  generator own(scripture(), o);
  std::vector<tokens> prompts;
  std::size_t longest = 0;
  for (const golden& g : all) prompts.push_back(g.prompt), longest = std::max(longest, g.prompt.size());
  own.append_sequences(prompts);
  constexpr std::size_t steps = 12;
  for (std::size_t k = 0; k < steps; ++k) own.generate_next_token();
  for (std::size_t b = 0; b < all.size(); ++b) {
    tokens wanted = all[b].prompt;
    wanted.resize(longest, 0);  // padding
    wanted.insert(wanted.end(), all[b].all.begin() + static_cast<std::ptrdiff_t>(all[b].prompt.size()),
                  all[b].all.begin() + static_cast<std::ptrdiff_t>(all[b].prompt.size() + steps));
    EXPECT_EQ(own.sequence(b), wanted) << b;
    EXPECT_EQ(own.next_tokens()[b], wanted.back());
  }
}

TEST(generator, goes_back_and_on) {
  const golden g = scripture_golden()[0];
  generator own(scripture(), options_of(static_cast<std::int64_t>(g.all.size())));
  own.append_tokens(g.prompt);
  const tokens whole = run_to_end(own);
  EXPECT_TRUE(own.is_done());
  for (const std::size_t length : {g.prompt.size() + 5, g.prompt.size(), g.prompt.size() - 1, std::size_t{1}}) {
    own.rewind_to(length);
    EXPECT_EQ(own.token_count(), length);
    EXPECT_FALSE(own.is_done());
    const auto at = static_cast<std::ptrdiff_t>(length);
    if (length < g.prompt.size()) own.append_tokens(std::span(g.prompt).subspan(length));
    EXPECT_EQ(run_to_end(own), whole) << at;
  }
  own.rewind_to(0);
  own.append_tokens(g.prompt);
  EXPECT_EQ(run_to_end(own), whole);
  EXPECT_THAT(message_of([&] { own.rewind_to(whole.size() + 1); }), HasSubstr("Cannot rewind"));
}

TEST(generator, logits_are_those_of_the_last_token_however_it_came) {
  const golden g = scripture_golden()[0];
  const auto logits_after = [&](std::size_t first) {
    generator own(scripture(), options_of(100));
    own.append_tokens(std::span(g.prompt).first(first));
    if (first < g.prompt.size()) own.append_tokens(std::span(g.prompt).subspan(first));
    return own.logits();
  };
  const argument whole = logits_after(g.prompt.size());
  EXPECT_EQ(whole.get_shape().lens, (dims{1, 1, 2048}));
  for (const std::size_t first : {std::size_t{1}, g.prompt.size() / 2}) {
    const argument parts = logits_after(first);
    for (std::size_t k = 0; k < 2048; ++k) ASSERT_NEAR(parts.as<float>()[k], whole.as<float>()[k], 2e-4) << k;
  }
  generator own(scripture(), options_of(100));
  own.append_tokens(g.prompt);
  own.generate_next_token();
  own.rewind_to(g.prompt.size());
  const argument again = own.logits();
  for (std::size_t k = 0; k < 2048; ++k) ASSERT_NEAR(again.as<float>()[k], whole.as<float>()[k], 2e-4) << k;
}

TEST(generator, scores_may_be_replaced_and_tokens_barred) {
  generator own(scripture(), options_of(100));
  own.append_tokens(tokens{5, 6, 7});
  std::vector<float> scores(2048, 0.f);
  scores[77] = 3;
  own.set_logits(argument::of<float>({1, 1, 2048}, scores));
  own.generate_next_token();
  EXPECT_EQ(own.next_tokens()[0], 77);
  own.set_rule([](std::size_t, std::span<const token> sequence, std::span<float> logits) {
    EXPECT_EQ(sequence.size(), 4u);
    for (std::size_t k = 0; k < logits.size(); ++k)
      if (k != 99) logits[k] = -std::numeric_limits<float>::infinity();
  });
  own.generate_next_token();
  EXPECT_EQ(own.sequence(0), (tokens{5, 6, 7, 77, 99}));
}

TEST(generator, an_end_token_ends_and_more_tokens_go_on) {
  config c = read_config(scripture_folder);
  const golden g = scripture_golden()[0];
  const token end = g.all[g.prompt.size() + 3];
  c.eos_token_id = {end};
  compile_options o;
  o.threads = 1;
  const auto model = language_model::load(c, eigen_target(), o);
  generator own(model, options_of(100));
  own.append_tokens(g.prompt);
  const tokens first = run_to_end(own);
  EXPECT_EQ(own.next_tokens()[0], end);
  EXPECT_EQ(first.back(), end);
  EXPECT_EQ(first, tokens(g.all.begin(), g.all.begin() + static_cast<std::ptrdiff_t>(first.size())));
  own.append_tokens(tokens{11, 12});
  EXPECT_FALSE(own.is_done());
  own.generate_next_token();
  tokens all = first;
  all.insert(all.end(), {11, 12});
  generator fresh(model, options_of(100));
  fresh.append_tokens(all);
  fresh.generate_next_token();
  EXPECT_EQ(own.sequence(0), fresh.sequence(0));
}

TEST(generator, a_sequence_that_ends_first_is_padded) {
  config c = read_config(scripture_folder);
  const auto all = scripture_golden();
  const token end = all[0].all[all[0].prompt.size() + 1];
  c.eos_token_id = {end};
  c.pad_token_id = 3;
  const auto model = language_model::load(c, eigen_target());
  search_options o = options_of(60);
  o.batch_size = 2;
  generator own(model, o);
  own.append_sequences(std::vector<tokens>{all[0].prompt, all[1].prompt});
  for (int k = 0; k < 4 && !own.is_done(); ++k) own.generate_next_token();
  const std::size_t longest = std::max(all[0].prompt.size(), all[1].prompt.size());
  const tokens& first = own.sequence(0);
  EXPECT_EQ(first[longest + 1], end);
  EXPECT_EQ(first[longest + 2], 3);
}

TEST(generator, beams_side_by_side_are_as_alone_and_no_worse_than_greedy) {
  const auto all = scripture_golden();
  const std::size_t length = std::min(all[0].prompt.size(), all[1].prompt.size());
  const auto prompt = [&](std::size_t k) {
    return tokens(all[k].prompt.begin(), all[k].prompt.begin() + static_cast<std::ptrdiff_t>(length));
  };
  search_options o = options_of(static_cast<std::int64_t>(length) + 10);
  o.num_beams = 3, o.num_return_sequences = 2;
  std::vector<tokens> alone;
  for (std::size_t k = 0; k < 2; ++k) {
    generator own(scripture(), o);
    own.append_tokens(prompt(k));
    run_to_end(own);
    for (std::size_t n = 0; n < 2; ++n) alone.push_back(own.sequence(n));
  }
  o.batch_size = 2;
  generator both(scripture(), o);
  both.append_sequences(std::vector<tokens>{prompt(0), prompt(1)});
  run_to_end(both);
  ASSERT_EQ(both.sequence_count(), 4u);
  for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ(both.sequence(n), alone[n]) << n;
  const tokens &a = both.sequence(0), &b = both.sequence(1);
  EXPECT_NE(a, b);
  // the sum of log-probabilities by the model itself
  const auto sum_of = [&](const tokens& whole) {
    double sum = 0;
    generator own(scripture(), options_of(100));
    own.append_tokens(std::span(whole).first(length));
    for (std::size_t k = length; k < whole.size(); ++k) {
      const argument scores = own.logits();
      double all_of = 0;
      for (const float x : scores.as<float>()) all_of += std::exp(double(x));
      sum += scores.as<float>()[static_cast<std::size_t>(whole[k])] - std::log(all_of);
      own.append_tokens(std::span(whole).subspan(k, 1));
    }
    return sum;
  };
  generator greedy(scripture(), options_of(static_cast<std::int64_t>(length) + 10));
  greedy.append_tokens(prompt(0));
  EXPECT_GE(sum_of(a), sum_of(run_to_end(greedy)) - 1e-3);
  EXPECT_GE(sum_of(a), sum_of(b) - 1e-3);
}

TEST(generator, a_refused_prompt_leaves_nothing) {
  search_options o = options_of(40);
  o.batch_size = 2;
  generator own(scripture(), o);
  EXPECT_THAT(message_of([&] {
                own.append_sequences(std::vector<tokens>{{5, 6}, {5, 4000}});
              }),
              HasSubstr("token 4000"));
  EXPECT_EQ(own.token_count(), 0u);
  own.append_sequences(std::vector<tokens>{{5, 6}, {5, 7}});
  own.generate_next_token();
  EXPECT_EQ(own.token_count(), 3u);
}

TEST(generator, types_that_are_no_decoders_of_texts_are_refused_by_name) {
  config c = read_config(scripture_folder);
  for (const char* type : {"whisper", "qwen2_5_vl", "decoder-pipeline", "t5"}) {
    c.type = type;
    EXPECT_EQ(message_of([&] { language_model::load(c, eigen_target()); }), "not supported: " + c.type);
  }
  for (const char* type : {"", "mixtral", "phimoe", "smollm3"}) {
    c.type = type;
    EXPECT_EQ(language_model::load(c, eigen_target())->vocabulary_size(), scripture()->vocabulary_size());
  }
}

TEST(generator, min_length_bars_the_end_token) {
  config c = read_config(scripture_folder);
  const golden g = scripture_golden()[0];
  c.eos_token_id = {g.all[g.prompt.size()]};
  const auto model = language_model::load(c, eigen_target());
  search_options o = options_of(100);
  o.min_length = static_cast<std::int64_t>(g.prompt.size()) + 4;
  generator own(model, o);
  own.append_tokens(g.prompt);
  for (int k = 0; k < 4; ++k) {
    own.generate_next_token();
    EXPECT_NE(own.next_tokens()[0], c.eos_token_id[0]);
  }
}

TEST(generator, memory_follows_the_tokens) {
  config c = read_config(scripture_folder);
  c.context_length = 131072;
  c.own_context.reset();  // the graph says none
  c.search.max_length = 131072, c.search.min_length = 1000;
  compile_options o;
  o.threads = 1;
  const auto model = language_model::load(c, eigen_target(), o);
  generator own(model);
  own.append_tokens(tokens{5, 6, 7});
  for (int k = 0; k < 10; ++k) own.generate_next_token();
  constexpr std::size_t each = 6 * 2 * 2 * 32 * 4;  // layers, keys and values, heads, channels, bytes
  EXPECT_LE(own.cache_bytes(), 32 * each);
  while (own.token_count() < 200) own.generate_next_token();
  EXPECT_GE(own.cache_bytes(), 199 * each);
  EXPECT_LE(own.cache_bytes(), 2 * 200 * each);
}

// Resident memory, in pages.
std::size_t resident_pages() {
  std::ifstream in("/proc/self/statm");
  std::size_t whole = 0, resident = 0;
  in >> whole >> resident;
  return resident;
}

TEST(generator, a_thousand_made_and_dropped_leave_nothing) {
  const tokens prompt{5, 6, 7, 8, 9};
  const auto once = [&] {
    generator own(scripture(), options_of(40));
    own.append_tokens(prompt);
    own.generate_next_token();
  };
  for (int k = 0; k < 50; ++k) once();  // pools fill
  const std::size_t before = resident_pages();
  for (int k = 0; k < 1000; ++k) once();
  EXPECT_LT(resident_pages(), before + 64) << "pages of 4096 bytes; one generator's caches alone are 192 kB";
}

TEST(generator, says_what_is_wrong_in_genais_words) {
  generator own(scripture(), options_of(8));
  EXPECT_EQ(message_of([&] { own.append_tokens({}); }), "input_ids is empty");
  EXPECT_EQ(message_of([&] { own.append_tokens(tokens(9, 5)); }),
            "input_ids size (9) + current sequence length (0) exceeds max length (8)");
  EXPECT_THAT(message_of([&] { own.append_tokens(tokens{5, 4000}); }), HasSubstr("token 4000"));
  EXPECT_THAT(message_of([&] { own.generate_next_token(); }), HasSubstr("before any tokens"));
  own.append_tokens(tokens(7, 5));
  own.generate_next_token();
  EXPECT_EQ(message_of([&] { own.generate_next_token(); }),
            "GenerateNextToken called with sequence length already at max_length (8)");
  search_options two = options_of(20);
  two.batch_size = 2;
  generator pair(scripture(), two);
  pair.append_tokens(tokens{5, 6, 7, 8});
  EXPECT_THAT(message_of([&] {
                pair.append_tokens(tokens{5, 6});
              }),
              HasSubstr("AppendTokens can only be called once for batch_size > 1"));
  EXPECT_THAT(message_of([&] { pair.rewind_to(1); }), HasSubstr("new_length=0"));
}

}  // namespace
}  // namespace kiln::language::testing
