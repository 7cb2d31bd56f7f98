#include "kiln/text/tokenizer.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "kiln/core/error.hpp"
#include "kiln/text/token_stream.hpp"

namespace {

using namespace kiln::language;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string scripture = std::string(KILN_SOURCE_DIR) + "/examples/models/scripture/";

// Ids 0 to 5 for a, b, ab, a space's mark, <unk> and é's first byte; no step unless given.
json small() {
  return {{"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"▁", 3}, {"<unk>", 4}}},
            {"merges", {"a b"}},
            {"unk_token", "<unk>"}}},
          {"added_tokens",
           {{{"id", 5}, {"content", "<s>"}, {"special", true}}, {{"id", 6}, {"content", "<t>"}, {"special", true}}}}};
}
tokenizer from(const json& file, tokenizer::files others = {}) {
  others["tokenizer.json"] = file.dump();
  return tokenizer::load(others);
}
std::string message_of(const json& file) {
  try {
    from(file);
  } catch (const kiln::error& e) {
    return e.what();
  }
  return "no error";
}

TEST(tokenizer, scriptures_prompts_have_the_ids_that_its_trainer_gave_them) {
  const tokenizer t = tokenizer::load(std::filesystem::path(scripture));
  std::ifstream in(scripture + "golden.json");
  const json golden = json::parse(in);
  ASSERT_FALSE(golden.empty());
  for (const auto& one : golden) {
    EXPECT_EQ(t.encode(one["prompt"].get<std::string>()), one["prompt_ids"].get<tokens>());
    EXPECT_EQ(t.decode(one["greedy_ids"].get<tokens>()), one["text"].get<std::string>());
  }
  EXPECT_EQ(t.vocabulary_size(), 2048u);
  EXPECT_TRUE(t.is_special(0));
  EXPECT_EQ(t.token_bytes(*t.token_id("Ġthe")), " the");
}

// What guides follow: spaces and bytes as they stand in a text.
TEST(tokenizer, token_bytes_are_those_inside_a_text) {
  const auto with_decoder = [](std::string_view decoder) {
    return tokenizer::load(
        tokenizer::files{{"tokenizer.json", R"({"model": {"type": "BPE", "byte_fallback": true, "merges": [],
           "vocab": {"a": 0, "\u2581b": 1, "<0xE4>": 2, "##c": 3}}, "decoder": )" +
                                                std::string(decoder) + "}"}});
  };
  const tokenizer metaspace =
      with_decoder(R"({"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": true})");
  EXPECT_EQ(metaspace.token_bytes(0), "a");
  EXPECT_EQ(metaspace.token_bytes(1), " b");
  EXPECT_EQ(metaspace.decode(tokens{1, 1}), "b b");
  const tokenizer llama = with_decoder(R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  EXPECT_EQ(llama.token_bytes(1), " b");
  EXPECT_EQ(llama.token_bytes(2), "\xE4");
  EXPECT_EQ(llama.decode(tokens{1, 1}), "b b");
  const tokenizer pieces = with_decoder(R"({"type": "WordPiece", "prefix": "##", "cleanup": false})");
  EXPECT_EQ(pieces.token_bytes(0), " a");
  EXPECT_EQ(pieces.token_bytes(3), "c");
}

TEST(tokenizer, invalid_bytes_are_read_as_replacement_characters) {
  const tokenizer t = tokenizer::load(std::filesystem::path(scripture));
  EXPECT_EQ(t.decode(t.encode("a\xFFz\xE2\x82")), "a\xEF\xBF\xBDz\xEF\xBF\xBD");
}

TEST(tokenizer, a_stream_holds_back_the_bytes_of_a_character) {
  const tokenizer t = tokenizer::load(std::filesystem::path(scripture));
  const tokens ids = t.encode("é🙂");
  ASSERT_EQ(ids.size(), 6u);  // scripture's text has neither
  token_stream stream(t);
  std::vector<std::string> pieces;
  for (const token id : ids) pieces.push_back(stream.put(id));
  EXPECT_THAT(pieces, ElementsAre("", "é", "", "", "", "🙂"));
  EXPECT_EQ(stream.finish(), "");
  stream.put(ids[2]);
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

TEST(tokenizer, a_stream_follows_what_stands_before_it) {
  const tokenizer t = tokenizer::load(std::filesystem::path(scripture));
  const tokens ids = t.encode("the earth é🙂 and the earth");
  for (std::size_t cut = 0; cut <= ids.size(); ++cut) {
    const std::span<const token> all(ids);
    token_stream stream(t, {}, {"and the"});
    std::string text = stream.follow(all.first(cut));
    const std::size_t before = text.size();
    for (const token id : all.subspan(cut)) text += stream.put(id);
    text += stream.finish();
    const std::string whole = t.decode(ids);
    const std::size_t stop = whole.find("and the");
    EXPECT_EQ(text, before > stop ? whole : whole.substr(0, stop)) << cut;  // none that begins before it
  }
}

// Stop strings are found wherever tokens begin and end: a text up to the first that is complete, character by
// character.
TEST(tokenizer, a_stream_ends_before_a_stop_string) {
  const tokenizer t = tokenizer::load(std::filesystem::path(scripture));
  const std::string text = "In the beginning God created the heaven and the earth. And the earth was without form";
  const tokens ids = t.encode(text);
  const auto wanted = [&](const std::vector<std::string>& stops) {
    for (std::size_t end = 1; end <= text.size(); ++end)
      for (std::size_t begin = 0; begin < end; ++begin)
        for (const std::string& s : stops)
          if (text.compare(begin, end - begin, s) == 0) return text.substr(0, begin);
    return text;
  };
  std::vector<std::vector<std::string>> all = {
      {"the e"},   {"earth", "rth. A", "arthX"}, {"nothing of it"}, {"eth", "the"}, {"In t"}, {"form"}, {"formed"},
      {"ab", "ba"}};
  for (std::size_t at = 0; at + 9 < text.size(); at += 3) all.push_back({text.substr(at, 9), text.substr(at + 4, 2)});
  for (const auto& stops : all) {
    token_stream stream(t, {}, stops);
    std::string found;
    for (const token id : ids) found += stream.put(id);
    const bool is_stopped = stream.is_stopped();
    found += stream.finish();
    EXPECT_EQ(found, wanted(stops)) << stops[0];
    EXPECT_EQ(is_stopped, found != text) << stops[0];
    EXPECT_FALSE(stream.is_stopped());  // it begins anew
  }
  token_stream held(t, {}, {"earth."});
  std::string shown;
  for (const token id : t.encode("the earth")) shown += held.put(id);
  EXPECT_EQ(shown, "the ");
  EXPECT_EQ(held.finish(), "earth");
  const tokenizer small_one = from(small());
  token_stream special(small_one, {}, {"<s>"});
  EXPECT_EQ(special.put(2), "ab");
  EXPECT_EQ(special.put(5), "");
  EXPECT_TRUE(special.is_stopped());
  EXPECT_EQ(special.put(1), "");
  EXPECT_THROW(token_stream(t, {}, {"a", ""}), kiln::error);
}

TEST(tokenizer, added_tokens_are_found_first_and_special_ones_are_skipped) {
  const tokenizer t = from(small());
  EXPECT_THAT(t.encode("ab<s>ba"), ElementsAre(2, 5, 1, 0));
  EXPECT_EQ(t.decode(tokens{2, 5, 1}), "ab b");
  EXPECT_EQ(t.decode(tokens{2, 5, 1}, {false}), "ab <s> b");
  EXPECT_EQ(t.decode(tokens{-1, 99, 1}), "b");
}

TEST(tokenizer, added_tokens_take_whitespace_and_respect_words_where_they_say_so) {
  json file = small();
  file["added_tokens"][0]["lstrip"] = file["added_tokens"][0]["rstrip"] = true;
  file["added_tokens"][1]["single_word"] = true;
  const tokenizer t = from(file);
  EXPECT_THAT(t.encode("a \t<s>  b"), ElementsAre(0, 5, 1));
  EXPECT_THAT(t.encode("<t>"), ElementsAre(6));
  EXPECT_THAT(t.encode("a<t>"), ElementsAre(0, 4, 4, 4));
}

TEST(tokenizer, unknown_characters_side_by_side_are_one_where_they_are_fused) {
  json file = small();
  EXPECT_THAT(from(file).encode("axyb"), ElementsAre(0, 4, 4, 1));
  file["model"]["fuse_unk"] = true;
  EXPECT_THAT(from(file).encode("axyb"), ElementsAre(0, 4, 1));
}

TEST(tokenizer, long_words_merge_as_short_ones_do) {
  const tokenizer t = from(small());
  std::string text;
  for (int i = 0; i < 500; ++i) text += "abb";
  const tokens ids = t.encode(text);
  ASSERT_EQ(ids.size(), 1000u);
  for (std::size_t i = 0; i < ids.size(); i += 2) ASSERT_THAT((tokens{ids[i], ids[i + 1]}), ElementsAre(2, 1));
}

TEST(tokenizer, classes_say_what_is_around_a_text_where_the_file_does_not) {
  const std::string roles = R"("bos_token": "<s>", "eos_token": {"content": "<t>"})";
  const auto with = [&](const std::string& more) {
    return from(small(), {{"tokenizer_config.json", "{" + roles + more + "}"}});
  };
  EXPECT_THAT(with(R"(, "tokenizer_class": "LlamaTokenizerFast")").encode("a", {true}), ElementsAre(5, 0));
  EXPECT_THAT(with(R"(, "tokenizer_class": "LlamaTokenizer")").encode("a"), ElementsAre(0));
  EXPECT_THAT(with(R"(, "tokenizer_class": "GPT2Tokenizer")").encode("a", {true}), ElementsAre(0));
  EXPECT_THAT(with(R"(, "add_eos_token": true)").encode("a", {true}), ElementsAre(0, 6));
  EXPECT_THAT(with(R"(, "tokenizer_class": "LlamaTokenizer", "add_bos_token": false)").encode("a", {true}),
              ElementsAre(0));
  EXPECT_THAT(with(R"(, "tokenizer_class": "XLMRobertaTokenizer")").encode("a", {true}), ElementsAre(5, 0, 6));
  EXPECT_THAT(
      with(R"(, "tokenizer_class": "DebertaV2Tokenizer", "cls_token": "<t>", "sep_token": "<s>")").encode("a", {true}),
      ElementsAre(6, 0, 5));
  const tokenizer::files glm = {{"tokenizer_config.json", R"({"tokenizer_class": "ChatGLMTokenizer"})"},
                                {"added_tokens.json", R"({"[gMASK]": 7, "sop": 8})"}};
  EXPECT_THAT(from(small(), glm).encode("a", {true}), ElementsAre(7, 8, 0));
  const tokenizer::files whisper = {
      {"tokenizer_config.json", R"({"tokenizer_class": "WhisperTokenizer", "eos_token": "<t>"})"},
      {"added_tokens.json", R"({"<|startoftranscript|>": 7, "<|notimestamps|>": 8})"}};
  EXPECT_THAT(from(small(), whisper).encode("a", {true}), ElementsAre(7, 8, 0, 6));
  const tokenizer t =
      with(R"(, "chat_template": [{"name": "default", "template": "x"}, {"name": "tool", "template": "y"}])");
  EXPECT_EQ(t.special().bos, 5);
  EXPECT_THAT(t.special().eos, ElementsAre(6));
  EXPECT_EQ(t.chat_template(), "x");
  EXPECT_EQ(t.chat_template("tool"), "y");
  EXPECT_EQ(t.template_variables().at("eos_token"), "<t>");
}

TEST(tokenizer, vocabularies_come_as_text_files_too) {
  const tokenizer bert = tokenizer::load(tokenizer::files{{"vocab.txt", "[UNK]\n[CLS]\n[SEP]\nun\n##able\n,\n"}});
  EXPECT_THAT(bert.encode("Unable, x", {true}), ElementsAre(1, 3, 4, 5, 0, 2));
  EXPECT_EQ(bert.decode(tokens{3, 4, 5}), "unable,");
  const tokenizer gpt = tokenizer::load(
      tokenizer::files{{"vocab.json", R"({"a": 0, "Ġ": 1, "Ġa": 2})"}, {"merges.txt", "#version: 0.2\nĠ a\n"}});
  EXPECT_THAT(gpt.encode("a a"), ElementsAre(0, 2));
}

TEST(tokenizer, a_batch_is_what_its_texts_are_alone) {
  const tokenizer t = tokenizer::load(std::filesystem::path(scripture));
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("And the LORD said " + std::to_string(i * i));
  const auto batch = t.encode_batch(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(batch[i], t.encode(texts[i]));
  EXPECT_EQ(t.decode_batch(batch), texts);
}

TEST(tokenizer, errors_say_where_in_which_file_and_what_was_expected) {
  json file = small();
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}}, {{"type", "Syllables"}}}}};
  EXPECT_THAT(message_of(file),
              HasSubstr("tokenizer.json: pre_tokenizer.pretokenizers[1].type: expected a pre-tokenizer"));
  EXPECT_THAT(message_of(file), HasSubstr("found \"Syllables\""));
  file = small();
  file["model"]["merges"].push_back("a c");
  EXPECT_THAT(message_of(file), HasSubstr("merge 1 needs \"c\", which the vocabulary lacks"));
  file = small();
  file["model"]["vocab"]["far"] = 2000000000;
  EXPECT_THAT(message_of(file), HasSubstr("limit exceeded"));
  file = small();
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}};
  EXPECT_THAT(message_of(file), HasSubstr("normalizer.pattern.Regex"));
  EXPECT_THROW(tokenizer::load(tokenizer::files{}), kiln::error);
  EXPECT_THROW(tokenizer::load(std::filesystem::path("/nowhere")), kiln::error);
}

TEST(tokenizer, damaged_files_are_errors_or_tokenizers) {
  std::ifstream in(scripture + "tokenizer.json");
  json file = json::parse(in);
  json& model = file["model"];
  json vocab = json::object();
  for (const auto& [spelling, id] : model["vocab"].items())
    if (id < 200) vocab[spelling] = id;
  model["vocab"] = vocab;
  model["merges"] = {"t h", "h e"};
  file["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers", {{{"type", "NFKC"}}, {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}}}}};
  const std::string whole = file.dump();
  std::mt19937 random(7);
  int errors = 0;
  for (int n = 0; n < 4000; ++n) {
    std::string damaged = whole;
    for (unsigned k = 1 + random() % 3; k > 0; --k) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged.erase(at, 1 + random() % 8); break;
        case 1: damaged[at] = static_cast<char>(random()); break;
        case 2: damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 16)); break;
        default: damaged[at] = "0123456789{}[]\",:-"[random() % 18]; break;
      }
    }
    try {
      const tokenizer t = tokenizer::load(tokenizer::files{{"tokenizer.json", damaged}});
      t.decode(t.encode("the \xF0\x9F\x99\x82 thé"));
    } catch (const kiln::error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

}  // namespace
