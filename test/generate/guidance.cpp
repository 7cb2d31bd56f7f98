// Generators whose tokens a guide bars.
#include "kiln/generate/guidance.hpp"

#include <gmock/gmock.h>

#include <regex>

#include "generate/scripture.hpp"
#include "kiln/core/error.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::language::testing {
namespace {

const tokenizer& words() {
  static const tokenizer t = tokenizer::load(scripture_folder);
  return t;
}
guide guide_of(std::string_view pattern) { return guide::regex(guide_vocabulary::of(words(), {0}), pattern); }

// What a row appended to `prompt` tokens, without the end token.
std::string text_after(const generator& g, std::size_t prompt, std::size_t row = 0) {
  tokens all = g.sequence(row);
  return words().decode({all.data() + prompt, all.size() - prompt});
}

TEST(guidance, texts_are_what_the_guide_allows) {
  const tokens prompt = words().encode("In the beginning");
  const char* pattern = " [A-Z][a-z]{3,8} (and|or) [0-9]{3}\\.";
  generator g(scripture(), options_of(64));
  g.set_rule(guided_by(guide_of(pattern)));
  g.append_tokens(prompt);
  run_to_end(g);
  EXPECT_TRUE(g.is_done());
  const std::string text = text_after(g, prompt.size());
  EXPECT_TRUE(std::regex_match(text, std::regex(pattern))) << text;
}

TEST(guidance, rows_of_a_batch_have_texts_of_their_own) {
  const std::vector<tokens> prompts = {words().encode("And God said"), words().encode("In the")};
  search_options o = options_of(64);
  o.batch_size = 2;
  o.do_sample = true;
  o.random_seed = 3;
  generator g(scripture(), o);
  g.set_rule(guided_by(guide_of("( [a-z]{2,5}){2,3}!")));
  g.append_sequences(prompts);
  run_to_end(g);
  const std::size_t longest = std::max(prompts[0].size(), prompts[1].size());
  for (std::size_t row = 0; row < 2; ++row) {
    const std::string text = text_after(g, longest, row);
    EXPECT_TRUE(std::regex_match(text, std::regex("( [a-z]{2,5}){2,3}!"))) << text;
  }
}

TEST(guidance, goes_back_with_the_generator) {
  const tokens prompt = words().encode("And the LORD");
  generator g(scripture(), options_of(80));
  g.set_rule(guided_by(guide_of(" (spake|said) [0-9]{2}:[a-z]{4}")));
  g.append_tokens(prompt);
  const tokens whole = run_to_end(g);
  for (const std::size_t length : {prompt.size() + 3, prompt.size() + 1, prompt.size(), whole.size() - 1}) {
    g.rewind_to(length);
    EXPECT_EQ(run_to_end(g), whole) << length;
  }
  // Another prompt, and another turn after a text.
  const tokens other = words().encode("In the beginning God created the heaven and the earth, and");
  g.rewind_to(0);
  g.append_tokens(other);
  run_to_end(g);
  EXPECT_TRUE(std::regex_match(text_after(g, other.size()), std::regex(" (spake|said) [0-9]{2}:[a-z]{4}")));
  g.append_tokens(prompt);
  const std::size_t second = g.token_count();
  run_to_end(g);
  EXPECT_TRUE(std::regex_match(text_after(g, second), std::regex(" (spake|said) [0-9]{2}:[a-z]{4}")))
      << text_after(g, second);
}

TEST(guidance, beams_keep_to_it) {
  const tokens prompt = words().encode("And the LORD");
  search_options o = options_of(40);
  o.num_beams = 3;
  generator g(scripture(), o);
  g.set_rule(guided_by(guide_of("( [a-z]{3,6}){3}\\.")));
  g.append_tokens(prompt);
  run_to_end(g);
  EXPECT_TRUE(std::regex_match(text_after(g, prompt.size()), std::regex("( [a-z]{3,6}){3}\\.")))
      << text_after(g, prompt.size());
}

// Tokens that a schema leaves no choice for are appended without a run, and the text is still what it allows.
TEST(guidance, forced_tokens_save_runs) {
  const tokens prompt = words().encode("And the LORD");
  const auto vocabulary = guide_vocabulary::of(words(), {0});
  const char* schema = R"({"type": "object", "properties": {"firstborn son": {"enum": ["Cain", "Abel"]},
    "generation number": {"type": "integer", "minimum": 10, "maximum": 99}}, "required": ["firstborn son",
    "generation number"], "additionalProperties": false})";
  const std::regex wanted(R"re(\{\s*"firstborn son": ?"(Cain|Abel)"\s*,\s*"generation number": ?[1-9][0-9]\s*\})re");
  for (const bool ahead : {false, true}) {
    speculative_options guess;
    if (ahead) guess.ngram_size = 2;
    for (const bool forced : {false, true}) {
      search_options o = options_of(120);
      o.do_sample = true, o.random_seed = 4, o.top_k = 0;
      generator g(scripture(), o, guess);
      set_guidance(g, guide::json_schema(vocabulary, schema), forced);
      g.append_tokens(prompt);
      std::size_t n = 0;
      tokens made;
      for (; !g.is_done(); ++n) {
        g.generate_next_token();
        made.insert(made.end(), g.next_tokens().begin(), g.next_tokens().end());
      }
      EXPECT_EQ(made, tokens(g.sequence(0).begin() + static_cast<std::ptrdiff_t>(prompt.size()), g.sequence(0).end()));
      EXPECT_TRUE(std::regex_match(text_after(g, prompt.size()), wanted)) << text_after(g, prompt.size());
      if (forced) {
        EXPECT_LT(n + 5, made.size());
        g.rewind_to(prompt.size() + 4);
        run_to_end(g);
        EXPECT_TRUE(std::regex_match(text_after(g, prompt.size()), wanted)) << text_after(g, prompt.size());
      }
    }
  }
  search_options two = options_of(40);
  two.batch_size = 2;
  generator pair(scripture(), two);
  EXPECT_THROW(set_guidance(pair, guide_of("a"), true), error);
}

TEST(guidance, says_where_no_token_may_follow) {
  generator g(scripture(), options_of(40));
  g.set_rule(guided_by(guide::regex(guide_vocabulary(std::vector<std::string>{"", "a"}, {0}), "b")));
  g.append_tokens(words().encode("And"));
  EXPECT_THROW(g.generate_next_token(), error);
}

}  // namespace
}  // namespace kiln::language::testing
