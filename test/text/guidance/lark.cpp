// Grammars in Lark's syntax: which texts they allow, byte by byte, and what is wrong with broken ones.
#include <gmock/gmock.h>

#include "kiln/core/error.hpp"
#include "kiln/text/tokenizer.hpp"
#include "text/guidance/vocabularies.hpp"

namespace {

using namespace kiln::language;
using testing::HasSubstr;

class grammar {
 public:
  explicit grammar(std::string_view text) : guide_(guide::lark(bytes(), text)) {}
  bool operator()(std::string_view text) const {
    guide g = guide_;
    for (const char c : text)
      if (!g.try_advance(static_cast<token>(static_cast<unsigned char>(c)) + 1)) return false;
    return g.is_accepting();
  }

 private:
  guide guide_;
};

std::string message_of(std::string_view text) {
  try {
    guide::lark(bytes(), text);
  } catch (const kiln::error& e) {
    return e.what();
  }
  return "no error";
}

void expect_texts(std::string_view of, const std::vector<std::string>& in, const std::vector<std::string>& out) {
  const grammar g(of);
  for (const std::string& text : in) EXPECT_TRUE(g(text)) << text << " of " << of;
  for (const std::string& text : out) EXPECT_FALSE(g(text)) << text << " of " << of;
}

TEST(lark, strings_ranges_and_regular_expressions) {
  expect_texts(R"(start: "a\"\n" /[0-9]{2}/ "x".."z" | "Ünd"i)", {"a\"\n12y", "Ünd", "ÜND"},
               {"a\"\n1y", "a", "ünd", ""});
  expect_texts(R"(start: /a.b/s | /Q+/i | /a\/b/)", {"a\nb", "axb", "qQ", "a/b"}, {"a", "ab", "QA"});
}
TEST(lark, groups_and_counts) {
  expect_texts("start: (\"a\" | \"b\")+ [\"c\"] \"d\"? \"e\"* \"f\"~2 \"g\"~1..2 \"h\"{,1} \"i\"{2,}",
               {"affgii", "abacdeeffgghiii", "bffgii"}, {"ffgii", "affgi", "affgggii", "afffgii", "affghhii"});
}
TEST(lark, terminals_are_made_of_terminals_and_ignored_ones_stand_before_them) {
  const char* const sum = R"(
    // a sum
    start: NUMBER (SIGN NUMBER)*   # of numbers
    NUMBER: DIGIT+ ("." DIGIT+)?
    SIGN: "+" | "-"
    DIGIT: "0".."9"
    %ignore " "
  )";
  expect_texts(sum, {"1", "1+2", " 1.5  +  20 - 3"}, {"", "1 . 5", "1+", "1 2", "1+2 "});
}
TEST(lark, rules_begin_with_themselves) {
  const char* const expression = R"lark(
    start: sum
    ?sum: product | sum "+" product -> add | sum "-" product
    ?product: atom
            | product "*" atom
    ?atom: NUMBER | "-" atom | "(" sum ")"
    %import common.INT -> NUMBER
    %import common.WS_INLINE
    %ignore WS_INLINE
  )lark";
  expect_texts(expression, {"1", "1+2*3", "(1 - 2) *-3", "((7))", "1-2-3-4-5"}, {"", "1+", "(1", "1)", "1 2", "*1"});
  std::string deep = "1";
  for (int k = 0; k < 60; ++k) deep = "(" + deep + ")";
  EXPECT_TRUE(grammar(expression)(deep));
  // through another rule, both ways
  expect_texts("start: a\na: b \"x\" | \"p\"\nb: a \"y\" | \"q\"", {"p", "qx", "pyx", "qxyx", "pyxyx"},
               {"q", "px", "py"});
  expect_texts("start: list\nlist: list \",\" item | item\nitem: \"a\"", {"a", "a,a,a"}, {"", "a,", ",a"});
}
TEST(lark, long_lists_that_end_with_themselves_stay_small) {
  const grammar g("start: list\nlist: \"a\" \",\" list | \"a\"");
  std::string text = "a";
  for (int k = 0; k < 3000; ++k) text += ",a";
  EXPECT_TRUE(g(text));
  EXPECT_FALSE(g(text + ","));
}
TEST(lark, common_terminals) {
  const auto one = [](const std::string& name) { return "start: " + name + "\n%import common." + name; };
  expect_texts(one("SIGNED_NUMBER"), {"1", "-1.5e+3", "+.5", "2."}, {"", "1e", "e5", "--1"});
  expect_texts(one("ESCAPED_STRING"), {R"("")", R"("a\"b\\")"}, {R"("a)", R"("a"b")"});
  expect_texts(one("CNAME"), {"_a1", "B"}, {"1a", "a-b"});
  expect_texts(one("C_COMMENT"), {"/**/", "/* a * b */"}, {"/* */ */", "/*"});
  expect_texts("start: INT WORD\n%import common (INT, WORD)", {"12ab"}, {"12", "ab"});
}
TEST(lark, schemas_are_rules) {
  const char* const call = R"(
    start: "call " NAME " " body
    NAME: /[a-z]+/
    body: %json { "type": "object", "properties": {"a}": {"type": "integer"}}, "required": ["a}"],
                  "additionalProperties": false }
  )";
  expect_texts(call, {R"(call f {"a}":1})", R"(call gh { "a}": -20 })"}, {R"(call f {})", R"(call f {"a}":null})"});
}
TEST(lark, terminals_are_joined_and_turned_round) {
  const char* const both = "start: A \";\"\nA: /[a-f]{2,5}/ & /.*d.*/ & ~(BAD | /a.*/)\nBAD: \"dd\"";
  expect_texts(both, {"bd;", "db;", "ddd;", "edde;"}, {"dd;", "ad;", "be;", "d;", "bdbdbd;", "bd"});
  expect_texts("start: ~/(.|\\n)*é(.|\\n)*/ \"é!\"", {"é!", "aé!", "日é!"}, {"éé!", "!", "é"});
  expect_texts("start: (\"a\" | \"b\")~2 ~\"c\" \"d\"", {"abd", "abxd", "abccd"}, {"ad"});
}
TEST(lark, lazy_ones_end_where_they_can) {
  const char* const lazy = "start: body \"!\"\nbody[lazy]: /[a-z]*end/";
  expect_texts(lazy, {"end!", "abend!", "eend!"}, {"endend!", "endx!", "en!"});
  const char* const suffix = "start: body[capture] \"?\"\nbody[capture=\"x\", suffix=\"</a>\"]: /(.|\\n)*/";
  expect_texts("start: body \"?\"\nbody[suffix=\"</a>\"]: /(.|\\n)*/", {"</a>?", "b</a</a>?"},
               {"</a></a>?", "</a>", "b?"});
  EXPECT_THAT(message_of(suffix), HasSubstr("line 1"));
}
TEST(lark, parts_of_a_text_follow_each_other) {
  expect_texts("start: \"[\" %regex {\"substring_chars\": \"aéb\"} \"]\"", {"[]", "[a]", "[éb]", "[aéb]"},
               {"[ab]", "[ba]"});
  expect_texts("start: S\nS: %regex {\"substring_words\": \"In the  beginning, God\"} \".\"",
               {".", "the.", " the  beginning.", "beginning, God.", "In the  beginning, God."},
               {"th.", "the God.", "In  the."});
  expect_texts("start: %regex {\"substring_chunks\": [\"ab\", \"c\", \"ab\"]}", {"", "ab", "abc", "cab", "abcab"},
               {"a", "abab"});
}
// Special tokens are chosen as they are, and never spelled.
TEST(lark, special_tokens_are_tokens) {
  const tokenizer t = tokenizer::load(tokenizer::files{{"tokenizer.json", R"({"model": {"type": "BPE",
    "vocab": {"a": 0, "b": 1, "<": 2, "|": 3, ">": 4, "[": 5, "]": 6, "9": 7}, "merges": []}, "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 8, "content": "</s>", "special": true}, {"id": 9, "content": "<|t|>", "special": true},
                     {"id": 10, "content": "<u>", "special": true}]})"}});
  const guide_vocabulary v = guide_vocabulary::of(t, {8});
  const auto reads = [&](std::string_view grammar, const tokens& all) {
    guide g = guide::lark(v, grammar);
    for (const token id : all) {
      const bool is_allowed = allows(mask_of(g, v.size()), id);
      EXPECT_EQ(g.try_advance(id), is_allowed);
      if (!is_allowed) return false;
    }
    return g.is_accepting();
  };
  const char* const call = "start: \"a\"* <|t|> /[ab]+/ <[9,10]>";
  EXPECT_TRUE(reads(call, {0, 9, 1, 10}));
  EXPECT_TRUE(reads(call, {9, 1, 0, 9}));
  EXPECT_FALSE(reads(call, {0, 9, 10}));
  EXPECT_FALSE(reads(call, {0, 2, 3}));
  EXPECT_FALSE(reads("start: /.*/", {0, 9}));
  guide g = guide::lark(v, "start: \"a\" <u> \"b\"");
  EXPECT_EQ(g.forced(), (tokens{0, 10, 1}));
  try {
    guide::lark(v, "start: \"a\" </s>");
    FAIL();
  } catch (const kiln::error& e) {
    EXPECT_THAT(e.message(), HasSubstr("</s> is an end token"));
  }
}
TEST(lark, faults_have_a_line) {
  EXPECT_THAT(message_of("x: \"a\""), HasSubstr("there is no rule 'start'"));
  EXPECT_THAT(message_of("start: a\n\na: b"), HasSubstr("line 3: there is no rule 'b'"));
  EXPECT_THAT(message_of("start: A"), HasSubstr("line 1: there is no terminal 'A'"));
  EXPECT_THAT(message_of("start: A\nA: B\nB: \"x\" A"), HasSubstr("terminal 'A' is made of itself"));
  EXPECT_THAT(message_of("start: A\nA: start"), HasSubstr("line 2: a terminal is made of terminals"));
  EXPECT_THAT(message_of("start: \"a"), HasSubstr("line 1: expected '\"' at a string's end"));
  EXPECT_THAT(message_of("start: (\"a\""), HasSubstr("line 1: expected ')', found the end"));
  EXPECT_THAT(message_of("start: \"a\"\nstart: \"b\""), HasSubstr("line 2: 'start' is defined twice"));
  EXPECT_THAT(message_of("start: /a(/"), HasSubstr("line 1: regular expression: position 2"));
  EXPECT_THAT(message_of("start: <|tool|>"), HasSubstr("line 1: the vocabulary has no special token '<|tool|>'"));
  EXPECT_THAT(message_of("start: \"a\"\nstart: <|tool"), HasSubstr("line 2: expected a special token"));
  EXPECT_THAT(message_of("start: <[0]>"), HasSubstr("<[0]> is an end token"));
  EXPECT_THAT(message_of("start: <[7]>"), HasSubstr("token 7 is no special token"));
  EXPECT_THAT(message_of("start: <[7-x]>"), HasSubstr("expected numbers of tokens"));
  EXPECT_THAT(message_of("start: A\nA: <[7]>"), HasSubstr("line 2: a special token belongs in rules"));
  EXPECT_THAT(message_of("start: %regex {\"any\": \"a\"}"), HasSubstr("line 1: %regex: expected one of"));
  EXPECT_THAT(message_of("start: a & \"x\"\na: \"x\""), HasSubstr("line 1: a terminal is made of terminals"));
  EXPECT_THAT(message_of("start: A\nA: /.*a.{20}/ & /.*b.{20}/"), HasSubstr("more than 5000 states"));
  EXPECT_THAT(message_of("start: A\nA: /(.?){1500}/ & /a*/"), HasSubstr("more than 1000000 places"));
  EXPECT_THAT(message_of("start: x[max_tokens=5] \"a\"\nx[max_tokens=5]: /a/"), HasSubstr("line"));
  EXPECT_THAT(message_of("start: x{\"a\"}\nx{y}: y"), HasSubstr("line"));
  EXPECT_THAT(message_of("%import python.NAME\nstart: NAME"), HasSubstr("line 1: expected %import common"));
  EXPECT_THAT(message_of("%declare A\nstart: A"), HasSubstr("line 1: expected %ignore, %import or %llguidance"));
  EXPECT_THAT(message_of("start: %json {\"type\": 5}"), HasSubstr("line 1: JSON schema: #: expected a \"type\""));
  EXPECT_THAT(message_of("start: [\"a\"] start \"b\" | \"c\""), HasSubstr("rule 'start' begins with itself"));
  EXPECT_THAT(message_of("start: start"), HasSubstr("no text matches"));
  EXPECT_THAT(message_of("start: \"a\"~3..2"), HasSubstr("expected counts in order"));
  EXPECT_THAT(message_of("start: " + std::string(500, '(')), HasSubstr("at most 200 groups"));
}

TEST(forced, tokens_are_the_longest_that_nothing_could_replace) {
  const std::vector<std::string> texts{"</s>", "a", "ab", "abc", "b", "c", "d", "x", "y", "cd", "ca"};
  const guide_vocabulary v(texts, {0});
  const auto after = [&](std::string_view pattern, const tokens& chosen) {
    guide g = guide::regex(v, pattern);
    for (const token t : chosen) g.advance(t);
    return g.forced();
  };
  EXPECT_EQ(after("xabcdab(x|y)", {7}), (tokens{3, 6})) << "'ab' might go on as 'abc'";
  EXPECT_EQ(after("xabcdd(x|y)", {7}), (tokens{3, 6, 6}));
  EXPECT_EQ(after("x(a|b)", {7}), tokens{});
  EXPECT_EQ(after("xd(d)?", {7}), tokens{6}) << "the text may end after it";
  EXPECT_EQ(after("xc", {7}), tokens{}) << "'c' might go on in another text";
  EXPECT_EQ(after("d", {6, 0}), tokens{});
}

}  // namespace
