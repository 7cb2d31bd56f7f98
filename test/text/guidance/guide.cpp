#include "kiln/text/guidance/guide.hpp"

#include <gmock/gmock.h>

#include <regex>
#include <thread>

#include "kiln/core/error.hpp"
#include "text/guidance/vocabularies.hpp"

namespace {

using namespace kiln::language;
using testing::HasSubstr;

// Token 0 ends, 5 has no bytes, 7 and 8 have the same.
const std::vector<std::string> few = {"</s>", "a", "b", "ab", "ba", "", "aab", "bb", "bb", "abab", "c"};
const guide_vocabulary small(few, {0});

std::vector<token> allowed(const guide& g) {
  const auto bits = mask_of(g, few.size());
  std::vector<token> out;
  for (token id = 0; id < static_cast<token>(few.size()); ++id)
    if (allows(bits, id)) out.push_back(id);
  return out;
}

std::string message_of(std::string_view pattern) {
  try {
    guide::regex(small, pattern);
  } catch (const kiln::error& e) {
    return e.what();
  }
  return "no error";
}

bool matches(std::string_view pattern, std::string_view text) {
  guide g = guide::regex(bytes(), pattern);
  for (const char c : text) {
    const token id = static_cast<token>(static_cast<unsigned char>(c)) + 1;
    if (!allows(mask_of(g, bytes().size()), id)) return false;
    g.advance(id);
  }
  return g.is_accepting();
}

// std::regex says which texts of a and b match; some text continues a prefix where a longer one that matches has it.
TEST(guide, masks_are_what_all_texts_say) {
  for (const char* pattern : {"a",
                              "a*",
                              "(ab)*",
                              "(a|b)*abb",
                              "a?b?a?b",
                              "(?:aa|bb){1,2}",
                              "[ab]{3}",
                              "a{2,}b",
                              "(a*)*b",
                              "(a|ab)(b|)",
                              "",
                              "(|a)b",
                              "b+a+",
                              "[^a]*a",
                              "(ab|ba)*a{0,2}",
                              "((a?){2}b){1,2}",
                              ".b.",
                              "a|bb|aba",
                              "(a|b)(a|b)(ab)?",
                              "(?:(?:a)b*)+"}) {
    constexpr std::size_t longest = 11;
    const std::regex oracle(pattern);
    std::set<std::string> whole, begun;
    for (std::size_t n = 0; n <= longest; ++n)
      for (std::size_t code = 0; code < std::size_t{1} << n; ++code) {
        std::string text;
        for (std::size_t k = 0; k < n; ++k) text += (code >> k & 1) != 0 ? 'b' : 'a';
        if (!std::regex_match(text, oracle)) continue;
        whole.insert(text);
        for (std::size_t k = 0; k <= n; ++k) begun.insert(text.substr(0, k));
      }
    const std::function<void(const guide&, const std::string&)> check = [&](const guide& g, const std::string& text) {
      const auto bits = mask_of(g, few.size());
      EXPECT_EQ(allows(bits, 0), whole.contains(text)) << pattern << " at " << text;
      EXPECT_EQ(g.is_accepting(), whole.contains(text)) << pattern << " at " << text;
      for (token id = 1; id < 10; ++id) {
        const std::string& t = few[static_cast<std::size_t>(id)];
        EXPECT_EQ(allows(bits, id), !t.empty() && begun.contains(text + t))
            << pattern << " at " << text << " with " << t;
        if (!allows(bits, id) || text.size() + t.size() > 4) continue;
        guide next = g;
        next.advance(id);
        check(next, text + t);
      }
    };
    check(guide::regex(small, pattern), "");
  }
}

TEST(guide, classes_are_pythons) {
  EXPECT_TRUE(matches("\\d+", "0٣"));
  EXPECT_FALSE(matches("\\d", "²"));
  EXPECT_TRUE(matches("\\w+", "aé日_²"));
  EXPECT_FALSE(matches("\\w", "́"));  // a mark
  EXPECT_TRUE(matches("\\s+", " \t\x1c  　"));
  EXPECT_TRUE(matches("\\D\\W\\S", "a-b"));
  EXPECT_FALSE(matches("\\D", "٣"));
  EXPECT_TRUE(matches(".", "😀"));
  EXPECT_FALSE(matches(".", "\n"));
  EXPECT_TRUE(matches("[^a]", "\n"));
  EXPECT_TRUE(matches("[]a-]+", "a]-"));
  EXPECT_TRUE(matches("[à-ü\\x41\\u00df]+", "éAß"));
  EXPECT_FALSE(matches("[à-ü]", "ý"));
  EXPECT_TRUE(matches("[\\s\\d.]{3}", "1. "));
  EXPECT_TRUE(matches("\\u{1F600}\\U0001F600\\x{e9}", "😀😀é"));
  EXPECT_TRUE(matches("^(?P<year>\\d{4})-(?<day>a)$", "2026-a"));
  EXPECT_TRUE(matches("^a|b$", "b"));
  EXPECT_TRUE(matches("a{,2}b??", "aab"));
}

// Every character of the borders of UTF-8's forms, and no surrogate or overlong form.
TEST(guide, characters_are_utf8) {
  for (const char* text :
       {"\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"})
    EXPECT_TRUE(matches("[^x]", text)) << text;
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff"})
    EXPECT_FALSE(matches("[^x]", text));
  EXPECT_TRUE(matches("[\\u07f0-\\u0810]", "\u07ff"));
  EXPECT_TRUE(matches("[\\u07f0-\\u0810]", "\u0810"));
  EXPECT_FALSE(matches("[\\u07f0-\\u0810]", "\u0811"));
  EXPECT_FALSE(matches("[\\u07f0-\\u0810]", "\u07ef"));
}

TEST(guide, end_tokens_follow_a_whole_text_and_then_alone) {
  guide g = guide::regex(small, "ab");
  EXPECT_THAT(allowed(g), testing::ElementsAre(1, 3));
  EXPECT_THROW(g.advance(0), kiln::error);
  EXPECT_THROW(g.advance(2), kiln::error);
  EXPECT_THROW(g.advance(5), kiln::error);
  EXPECT_THROW(g.advance(-1), kiln::error);
  EXPECT_THROW(g.advance(11), kiln::error);
  EXPECT_THAT(allowed(g), testing::ElementsAre(1, 3));  // as before the errors
  g.advance(3);
  EXPECT_THAT(allowed(g), testing::ElementsAre(0));
  EXPECT_FALSE(g.is_finished());
  g.advance(0);
  EXPECT_TRUE(g.is_finished());
  EXPECT_THAT(allowed(g), testing::ElementsAre(0));
  EXPECT_THROW(g.advance(1), kiln::error);
  g.reset();
  EXPECT_FALSE(g.is_finished());
  EXPECT_THAT(allowed(g), testing::ElementsAre(1, 3));
}

TEST(guide, copies_continue_on_their_own) {
  guide g = guide::regex(small, "a(b|c)c");
  g.advance(1);
  guide before = g;
  g.advance(2);
  EXPECT_THAT(allowed(g), testing::ElementsAre(10));
  EXPECT_THAT(allowed(before), testing::ElementsAre(2, 10));
  before.advance(10);
  before.advance(10);
  EXPECT_TRUE(before.is_accepting());
  EXPECT_FALSE(g.is_accepting());
}

TEST(guide, clears_bits_behind_the_vocabulary_and_refuses_too_few) {
  const guide g = guide::regex(small, "a");
  std::vector<std::uint32_t> bits(3, ~0u);
  g.mask(bits);
  EXPECT_THAT(bits, testing::ElementsAre(2, 0, 0));
  EXPECT_THROW(g.mask({}), kiln::error);
}

// 30000 states: the states that guides share are made anew on the way.
TEST(guide, goes_on_where_states_have_become_many) {
  const guide_vocabulary v(std::vector<std::string>{"", "xxxxx", "yyyyy", "zzzzz", "x", "y", "z"}, {0});
  guide g = guide::regex(v, "x{0,10000}y{0,10000}z{0,10000}");
  guide early = g;
  for (const token id : {1, 2, 3})
    for (int k = 0; k < 2000; ++k) {
      g.advance(id);
      if (id == 2 && k == 1000) early = g;
    }
  EXPECT_THAT(mask_of(g, 7), testing::ElementsAre(1));
  EXPECT_TRUE(g.is_accepting());
  for (int k = 0; k < 4995; ++k) early.advance(5);
  EXPECT_THAT(mask_of(early, 7), testing::ElementsAre(0b1001001));
}

TEST(guide, copies_may_be_in_several_threads) {
  const guide_vocabulary v(byte_complete_texts(2000), {0});
  const guide start = guide::regex(v, "(?:[a-c]{1,3} [\\w.]+\n)*");
  std::vector<std::vector<std::uint32_t>> last(4);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < last.size(); ++k)
    threads.emplace_back([&, k] {
      guide g = start;
      std::mt19937 random(3);
      for (int step = 0; step < 60; ++step) {
        last[k] = mask_of(g, v.size());
        token id = 1;
        do id = static_cast<token>(1 + random() % (v.size() - 1));
        while (!allows(last[k], id));
        g.advance(id);
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& one : last) EXPECT_EQ(one, last[0]);
}

TEST(guide, errors_name_the_position) {
  EXPECT_THAT(message_of("ab)c"), HasSubstr("position 2: expected '(' before ')', found ')'"));
  EXPECT_THAT(message_of("é(a"), HasSubstr("position 3: expected ')' for the '(' at 1, found the end"));
  EXPECT_THAT(message_of("a**"), HasSubstr("position 2: expected one repeat"));
  EXPECT_THAT(message_of("a*+"), HasSubstr("position 2: expected one repeat"));
  EXPECT_THAT(message_of("|*"), HasSubstr("position 1: expected what is repeated"));
  EXPECT_THAT(message_of("a{2"), HasSubstr("position 3: expected {n}"));
  EXPECT_THAT(message_of("a{x}"), HasSubstr("position 2: expected {n}, {n,}, {,m} or {n,m}, found 'x'"));
  EXPECT_THAT(message_of("a{,}"), HasSubstr("position 3: expected {n}"));
  EXPECT_THAT(message_of("a{3,2}"), HasSubstr("position 2: expected counts in order"));
  EXPECT_THAT(message_of("a{99999999999}"), HasSubstr("at most 10000"));
  EXPECT_THAT(message_of("[a"), HasSubstr("position 2: expected ']'"));
  EXPECT_THAT(message_of("[b-a]"), HasSubstr("position 1: expected a range"));
  EXPECT_THAT(message_of("[\\d-a]"), HasSubstr("position 1: expected a range"));
  EXPECT_THAT(message_of("[[:alpha:]]"), HasSubstr("position 1: expected no class"));
  EXPECT_THAT(message_of("[a&&b]"), HasSubstr("position 2: expected no class or operator"));
  EXPECT_THAT(message_of("a\\b"), HasSubstr("position 2: expected one of the escapes"));
  EXPECT_THAT(message_of("(a)\\1"), HasSubstr("position 4: expected one of the escapes"));
  EXPECT_THAT(message_of("(?=a)"), HasSubstr("position 2: expected (?:, (?i:, (?s: or a name"));
  EXPECT_THAT(message_of("(?<!a)"), HasSubstr("position 2: expected (?:, (?i:, (?s: or a name"));
  EXPECT_THAT(message_of("(?i)a"), HasSubstr("position 3: expected (?:, (?i:, (?s: or a name"));
  EXPECT_THAT(message_of("a^b"), HasSubstr("position 1: expected ^ and $ at the ends"));
  EXPECT_THAT(message_of("a$b"), HasSubstr("position 1: expected ^ and $ at the ends"));
  EXPECT_THAT(message_of("\\x4"), HasSubstr("expected 2 hexadecimal digits"));
  EXPECT_THAT(message_of("\\ud800"), HasSubstr("expected a character's number"));
  EXPECT_THAT(message_of("a\xff"), HasSubstr("position 1: expected UTF-8"));
  EXPECT_THAT(message_of("a\\"), HasSubstr("position 2: expected an escaped character"));
  EXPECT_THAT(message_of("[^\\s\\S]"), HasSubstr("no text matches"));
  EXPECT_THAT(message_of("((a{1000}){1000})"), HasSubstr("more than"));
  EXPECT_THAT(message_of(std::string(300, '(') + std::string(300, ')')), HasSubstr("at most 200 groups"));
  EXPECT_EQ(message_of("a([^\\s\\S]|b)"), "no error");
}

TEST(guide, dead_ends_are_pruned) {
  EXPECT_THAT(allowed(guide::regex(small, "a[^\\s\\S]|b")), testing::ElementsAre(2));
}

TEST(guide, end_tokens_must_be_in_the_vocabulary) {
  EXPECT_THROW(guide_vocabulary(few, {11}), kiln::error);
  EXPECT_THROW(guide_vocabulary(few, {-1}), kiln::error);
}

}  // namespace
