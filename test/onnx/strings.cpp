#include "onnx/run_model.hpp"

// Operators over strings.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<argument> run_texts(const std::string& op, std::int64_t version, const std::vector<argument>& inputs,
                                const std::vector<message>& attributes = {}, std::size_t outputs = 1,
                                const std::string& domain = "") {
  graph_parts parts;
  strings names, results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names.push_back("in" + std::to_string(i));
    const shape& s = inputs[i].get_shape();
    std::vector<dim> open;
    for (const dimension d : s.lens) open.emplace_back(d.value());
    parts.inputs.push_back(value_info(names.back(), static_cast<int>(onnx::to_element(s.type)), open));
  }
  for (std::size_t k = 0; k < outputs; ++k) {
    results.push_back("out" + std::to_string(k));
    parts.outputs.push_back(value_info(results.back()));
  }
  parts.nodes.push_back(node(op, names, results, attributes, "", domain));
  return run_model(model_of(parts, version), inputs);
}
strings run_text(const std::string& op, std::int64_t version, const std::vector<argument>& inputs,
                 const std::vector<message>& attributes = {}) {
  return strings_of(run_texts(op, version, inputs, attributes)[0]);
}

TEST(import_strings, normalizer_drops_stop_words_and_changes_case) {
  const argument days = texts({4}, {"monday", "Tuesday", "MONDAY", "été"});
  const auto run = [&](const char* action, int sensitive) {
    return run_text("StringNormalizer", 10, {days},
                    {attr("case_change_action", action), attr("is_case_sensitive", sensitive),
                     strings_attr("stopwords", {"monday"})});
  };
  EXPECT_THAT(run("NONE", 1), ElementsAre("Tuesday", "MONDAY", "été"));
  EXPECT_THAT(run("UPPER", 1), ElementsAre("TUESDAY", "MONDAY", "ÉTÉ"));
  EXPECT_THAT(run("LOWER", 0), ElementsAre("tuesday", "été"));
}

TEST(import_strings, normalizer_leaves_one_empty_string_of_nothing) {
  const auto out = run_texts("StringNormalizer", 10, {texts({1, 2}, {"a", "a"})}, {strings_attr("stopwords", {"a"})});
  EXPECT_EQ(lens_of(out[0]), (std::vector<std::int64_t>{1, 1}));
  EXPECT_THAT(strings_of(out[0]), ElementsAre(""));
}

TEST(import_strings, concatenation_broadcasts) {
  EXPECT_THAT(run_text("StringConcat", 20, {texts({2, 1}, {"a", "b"}), texts({2}, {"x", ""})}),
              ElementsAre("ax", "a", "bx", "b"));
}

TEST(import_strings, split_pads_with_empty_strings) {
  const auto split = [](const strings& s, const std::vector<message>& attributes) {
    auto out = run_texts("StringSplit", 20, {texts({static_cast<std::int64_t>(s.size())}, s)}, attributes, 2);
    return std::pair(strings_of(out[0]), floats_of(out[1]));
  };
  const auto by_comma = split({"a,b,c", "d", ""}, {attr("delimiter", ",")});
  EXPECT_THAT(by_comma.first, ElementsAre("a", "b", "c", "d", "", "", "", "", ""));
  EXPECT_THAT(by_comma.second, ElementsAre(3, 1, 1));
  const auto words = split({"  one two  three ", ""}, {attr("maxsplit", 1)});
  EXPECT_THAT(words.first, ElementsAre("one", "two  three ", "", ""));
  EXPECT_THAT(words.second, ElementsAre(2, 0));
  EXPECT_THAT(split({"a--b", "--"}, {attr("delimiter", "--")}).first, ElementsAre("a", "b", "", ""));
}

TEST(import_strings, a_pattern_matches_the_whole_string) {
  const auto out = run_texts("RegexFullMatch", 20, {texts({3}, {"a@gmail.com", "xa@gmail.com!", "b@mail.com"})},
                             {attr("pattern", "[a-z]+@(gmail|yahoo)\\.com")});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(1, 0, 0));
  EXPECT_THAT(failure(model_of({{node("RegexFullMatch", {"x"}, {"y"}, {attr("pattern", "(")})},
                                {},
                                {value_info("x", 8, {1})},
                                {value_info("y")}},
                               20),
                      {texts({1}, {"a"})}),
              HasSubstr("'('"));
}

TEST(import_strings, a_pattern_is_read_as_re2_does) {
  const auto matches = [](const char* pattern, const std::string& text) {
    return floats_of(run_texts("RegexFullMatch", 20, {texts({1}, {text})}, {attr("pattern", pattern)})[0])[0] == 1;
  };
  try {
    matches("(?i)a", "a");
  } catch (const error& e) {
    ASSERT_THAT(e.what(), HasSubstr("without RE2"));
    GTEST_SKIP() << "kiln was built without RE2";
  }
  EXPECT_TRUE(matches("(?i)abc", "aBC"));
  EXPECT_TRUE(matches("caf.", "caf\u00e9"));
  EXPECT_TRUE(matches("(?P<word>\\pL+)\\z", "stra\u00dfe"));
  EXPECT_FALSE(matches("a.c", "a\nc"));
  EXPECT_THROW(matches("(a)\\1", "aa"), error);
  EXPECT_FALSE(matches("(a*)*b", std::string(20000, 'a')));
}

TEST(import_strings, a_pattern_is_of_bounded_size) {
  for (const std::string& hostile :
       {std::string(200, '(') + "a" + std::string(200, ')'), std::string("(a{300}){300}"), std::string(5000, 'a')}) {
    const message pattern = attribute("pattern", 3).text(4, hostile);
    const auto m = model_of(
        {{node("RegexFullMatch", {"x"}, {"y"}, {pattern})}, {}, {value_info("x", 8, {1})}, {value_info("y")}}, 20);
    EXPECT_THAT(failure(m, {texts({1}, {"a"})}), HasSubstr("a pattern has at most"));
  }
}

TEST(import_strings, numbers_are_written_and_read) {
  const auto cast = [](const argument& a, int to) { return run_texts("Cast", 19, {a}, {attr("to", to)})[0]; };
  EXPECT_THAT(strings_of(cast(reals({4}, {0.1f, -2, 1e-7f, std::numeric_limits<float>::infinity()}), 8)),
              ElementsAre("0.1", "-2.0", "1e-07", "INF"));
  EXPECT_THAT(strings_of(cast(whole({2}, {-7, 12}), 8)), ElementsAre("-7", "12"));
  EXPECT_THAT(floats_of(cast(texts({4}, {"1e3", " -0.5", "+INF", "100.5"}), 1)),
              ElementsAre(1000, -0.5f, std::numeric_limits<float>::infinity(), 100.5f));
  EXPECT_THAT(floats_of(cast(texts({3}, {"1e3", "100.5", "-9"}), 7)), ElementsAre(1000, 100, -9));
  const auto read =
      model_of({{node("Cast", {"x"}, {"y"}, {attr("to", 1)})}, {}, {value_info("x", 8, {1})}, {value_info("y")}});
  EXPECT_THAT(failure(read, {texts({1}, {"pear"})}), HasSubstr("found 'pear'"));
}

TEST(import_strings, move_as_numbers_do) {
  const argument x = texts({2, 2}, {"a", "b", "c", ""});
  EXPECT_THAT(run_text("Identity", 16, {x}), ElementsAre("a", "b", "c", ""));
  EXPECT_THAT(run_text("Transpose", 13, {x}), ElementsAre("a", "c", "b", ""));
  EXPECT_THAT(run_text("Gather", 13, {x, whole({1}, {-1})}, {attr("axis", 0)}), ElementsAre("c", ""));
  EXPECT_THAT(run_text("Concat", 13, {x, x}, {attr("axis", 1)}), ElementsAre("a", "b", "a", "b", "c", "", "c", ""));
  EXPECT_THAT(run_text("Where", 16, {truth(false), x, texts({1}, {"z"})}), ElementsAre("z", "z", "z", "z"));
  EXPECT_THAT(floats_of(run_texts("Equal", 19, {x, texts({2}, {"a", ""})})[0]), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(run_text("Reshape", 14, {x, whole({1}, {-1})}), ElementsAre("a", "b", "c", ""));
  EXPECT_THAT(strings_of(run_texts("Unique", 11, {x}, {}, 4)[0]), ElementsAre("", "a", "b", "c"));
}

TEST(import_strings, constants_and_labels_may_be_strings) {
  const auto m = model_of(
      {{node("Constant", {}, {"c"}, {strings_attr("value_strings", {"no", "yes"})}), node("Gather", {"c", "i"}, {"y"})},
       {},
       {value_info("i", 7, {3})},
       {value_info("y")}});
  EXPECT_THAT(strings_of(run_model(m, {whole({3}, {1, 0, 1})})[0]), ElementsAre("yes", "no", "yes"));
  const auto label = [](const std::vector<message>& attributes, const argument& x) {
    return run_texts("LabelEncoder", 17, {x}, attributes, 1, "ai.onnx.ml")[0];
  };
  EXPECT_THAT(floats_of(label({strings_attr("keys_strings", {"a", "b"}),
                               attribute("values_int64s", 7).numbers(8, {5, 6}), attr("default_int64", -3)},
                              texts({3}, {"b", "z", "a"}))),
              ElementsAre(6, -3, 5));
  EXPECT_THAT(
      strings_of(label({attribute("keys_int64s", 7).numbers(8, {5, 6}), strings_attr("values_strings", {"a", "b"})},
                       whole({3}, {6, 1, 5}))),
      ElementsAre("b", "_Unused", "a"));
}

TEST(import_strings, an_input_of_strings_is_checked) {
  const auto m = model_of({{node("Identity", {"x"}, {"y"})}, {}, {value_info("x", 8, {2})}, {value_info("y")}});
  EXPECT_THAT(failure(m, {reals({2}, {1, 2})}), HasSubstr("expected string[2], found f32[2]"));
}

}  // namespace
}  // namespace kiln::test
