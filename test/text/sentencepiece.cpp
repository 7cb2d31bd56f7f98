#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/text/token_stream.hpp"
#include "kiln/text/tokenizer.hpp"

namespace {

using namespace kiln::language;
using testing::ElementsAre;
using testing::HasSubstr;

enum piece_type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// Protobuf's wire format, for short texts.
std::string counted(int field, const std::string& bytes) {
  std::string out(1, static_cast<char>(field << 3 | 2));
  std::size_t n = bytes.size();
  for (; n > 127; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n) + bytes;
}
std::string number(int field, int value) {
  std::string out(1, static_cast<char>((field << 3 & 127) | (field > 15 ? 128 : 0)));
  if (field > 15) out += static_cast<char>(field >> 4);
  return out + static_cast<char>(value);
}
std::string piece(const std::string& text, float score, int type = normal) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return counted(1, counted(1, text) + "\x15" + bits + number(3, type));
}
constexpr int unigram = 1, bpe = 2;
// <unk>, <s> and </s> are 0, 1 and 2.
std::string model_of(int type, const std::string& pieces, const std::string& trainer = "",
                     const std::string& normalizer = "") {
  return piece("<unk>", 0, unknown) + piece("<s>", 0, control) + piece("</s>", 0, control) + pieces +
         counted(2, number(3, type) + trainer) + counted(3, normalizer);
}
tokenizer from(const std::string& model, tokenizer::files others = {}) {
  others["tokenizer.model"] = model;
  return tokenizer::load(others);
}
std::string message_of(const std::string& model) {
  try {
    from(model);
  } catch (const kiln::error& e) {
    return e.what();
  }
  return "no error";
}
std::string all_bytes() {
  std::string out;
  for (int b = 0; b < 256; ++b) {
    char spelling[8];
    std::snprintf(spelling, sizeof spelling, "<0x%02X>", static_cast<unsigned>(b));
    out += piece(spelling, 0, byte);
  }
  return out;
}
const std::string small = piece("▁", -3) + piece("a", -2) + piece("b", -2.5F) + piece("ab", -1) + piece("▁ab", -4.5F);

TEST(sentencepiece, unigram_takes_the_pieces_of_the_greatest_sum_and_bpe_merges_the_greatest_score_first) {
  EXPECT_THAT(from(model_of(unigram, small)).encode(" ab  b "), ElementsAre(3, 6, 3, 5));
  EXPECT_THAT(from(model_of(bpe, small)).encode(" ab  b "), ElementsAre(7, 3, 5));
  // of one score the leftmost comes first
  const std::string even = piece("a", 0) + piece("aa", -1) + piece("▁", 0) + piece("▁a", -1);
  EXPECT_THAT(from(model_of(bpe, even)).encode("aaa"), ElementsAre(6, 4));
}

TEST(sentencepiece, unknown_parts_are_one_token_or_bytes) {
  const tokenizer plain = from(model_of(bpe, small));
  EXPECT_THAT(plain.encode("axyb"), ElementsAre(3, 4, 0, 5));
  EXPECT_EQ(plain.decode(plain.encode("axyb")), "a ⁇ b");
  const tokenizer bytes = from(model_of(unigram, small + all_bytes(), number(35, 1)));
  EXPECT_THAT(bytes.encode("aé"), ElementsAre(3, 4, 8 + 0xC3, 8 + 0xA9));
  EXPECT_EQ(bytes.decode(bytes.encode("aéa")), "aéa");
  EXPECT_EQ(bytes.token_bytes(8 + 0xC3), "\xC3");
}

TEST(sentencepiece, user_defined_symbols_come_before_all_else_and_unused_pieces_never) {
  for (const int type : {unigram, bpe}) {
    const std::string pieces = small + piece("ba", 0, user_defined) + piece("bb", -1, unused);
    const tokenizer t = from(model_of(type, pieces));
    EXPECT_THAT(t.encode("aba"), ElementsAre(3, 4, 8)) << type;
    EXPECT_THAT(t.encode("bb"), ElementsAre(3, 5, 5)) << type;
  }
}

TEST(sentencepiece, control_symbols_are_found_in_text_where_a_configuration_names_them) {
  const tokenizer alone = from(model_of(bpe, small));
  EXPECT_THAT(alone.encode("a<s>"), ElementsAre(3, 4, 0));
  EXPECT_EQ(alone.special().bos, 1);
  EXPECT_THAT(alone.special().eos, ElementsAre(2));
  EXPECT_EQ(alone.template_variables().at("eos_token"), "</s>");
  EXPECT_EQ(alone.decode(tokens{1, 3, 4, 2}), "a");
  EXPECT_EQ(alone.decode(tokens{1, 3, 4, 2}, {false}), "<s> a</s>");

  const std::string config = R"({"bos_token": "<s>", "tokenizer_class": "LlamaTokenizer")";
  const tokenizer named = from(model_of(bpe, small), {{"tokenizer_config.json", config + "}"}});
  EXPECT_THAT(named.encode("a<s>a", {true}), ElementsAre(1, 3, 4, 1, 3, 4));
  const tokenizer modern = from(model_of(bpe, small), {{"tokenizer_config.json", config + R"(, "legacy": false})"}});
  EXPECT_THAT(modern.encode("a<s>a"), ElementsAre(3, 4, 1, 4));
}

TEST(sentencepiece, whitespace_is_what_the_normalizer_says) {
  const std::string keeps = number(3, 0) + number(4, 0);
  const tokenizer t = from(model_of(bpe, small, "", keeps));
  EXPECT_THAT(t.encode(" a  "), ElementsAre(3, 4, 3, 3));
  EXPECT_EQ(t.decode(t.encode(" a  ")), " a  ");
  const tokenizer prefix = from(model_of(bpe, small, "", number(4, 0)));
  EXPECT_EQ(prefix.decode(prefix.encode("  a")), "  a");
  EXPECT_EQ(prefix.decode(tokens{3, 3, 4}), " a");
  EXPECT_EQ(from(model_of(bpe, small)).decode(tokens{3, 3, 4}), "a");
  EXPECT_TRUE(prefix.encode("").empty());
}

TEST(sentencepiece, errors_say_what_was_expected) {
  EXPECT_THAT(message_of("\x0A\x7F"), HasSubstr("tokenizer.model: the model, byte 2 of 2: expected 127 bytes"));
  EXPECT_THAT(message_of(piece("a", 0)), HasSubstr("expected one of type unknown, found none"));
  EXPECT_THAT(message_of(model_of(bpe, piece("<unk>", 0))), HasSubstr("found that of piece 0"));
  EXPECT_THAT(message_of(model_of(7, small)), HasSubstr("trainer_spec.model_type: expected 1 to 4, found 7"));
  EXPECT_THAT(message_of(model_of(bpe, small, number(35, 1))), HasSubstr("expected <0x00> to <0xFF>"));
  EXPECT_THAT(message_of(model_of(bpe, piece("<0x00>", 0, byte))), HasSubstr("without byte_fallback"));
  EXPECT_THAT(message_of(model_of(bpe, small, "", counted(2, "rules"))), HasSubstr("precompiled_charsmap"));
  EXPECT_THAT(message_of(""), HasSubstr("pieces: expected one or more"));
}

TEST(sentencepiece, damaged_files_are_errors_or_tokenizers) {
  std::mt19937 random(5);
  int errors = 0, made = 0;
  for (int n = 0; n < 20000; ++n) {
    const int type = 1 + n % 4;
    std::string damaged = model_of(type, small + piece("ba", 0, user_defined) + piece("bb", -1, unused));
    for (unsigned k = 1 + random() % 3; k > 0 && !damaged.empty(); --k) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged.erase(at, 1 + random() % 4); break;
        case 1: damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 16)); break;
        case 2: damaged.resize(at); break;
        default: damaged[at] = static_cast<char>(random() % 2 == 0 ? random() : random() % 8); break;
      }
    }
    try {
      const tokenizer t = from(damaged);
      t.decode(t.encode("abba <s> thé \xF0\x9F\x99\x82 \xFF"));
      ++made;
    } catch (const kiln::error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
  EXPECT_GT(made, 1000);
}

}  // namespace
