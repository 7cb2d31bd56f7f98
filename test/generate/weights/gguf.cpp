#include <gtest/gtest.h>

#include "generate/weights/tiny_model.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "kiln/generate/saved_model.hpp"
#include "kiln/generate/weights/model_files.hpp"
#include "quantize/message_of.hpp"

// Models of GGUF files: blocks, the order of rows, metadata, tokenizers.
namespace kiln::language::testing {
namespace {

// A kind of block with a plain dequantization, written from the format's description.
struct block_kind {
  const char* name;
  std::uint32_t type;
  std::size_t numbers, bytes;
  std::vector<std::size_t> halves;  // where scales are
  void (*write_out)(const std::uint8_t* block, float* to);
};
float half_of(const std::uint8_t* at) {
  half h;
  std::memcpy(&h, at, 2);
  return static_cast<float>(h);
}
void small_scale(const std::uint8_t* s, int j, int& scale, int& least) {
  if (j < 4) {
    scale = s[j] & 63, least = s[j + 4] & 63;
  } else {
    scale = (s[j + 4] & 15) + 16 * (s[j - 4] >> 6);
    least = (s[j + 4] >> 4) + 16 * (s[j] >> 6);
  }
}
const block_kind kinds[] = {
    {"Q4_0",
     2,
     32,
     18,
     {0},
     [](const std::uint8_t* b, float* to) {
       for (int i = 0; i < 16; ++i) {
         to[i] = static_cast<float>((b[2 + i] & 15) - 8) * half_of(b);
         to[i + 16] = static_cast<float>((b[2 + i] >> 4) - 8) * half_of(b);
       }
     }},
    {"Q8_0",
     8,
     32,
     34,
     {0},
     [](const std::uint8_t* b, float* to) {
       for (int i = 0; i < 32; ++i) to[i] = static_cast<float>(static_cast<std::int8_t>(b[2 + i])) * half_of(b);
     }},
    {"Q4_K",
     12,
     256,
     144,
     {0, 2},
     [](const std::uint8_t* b, float* to) {
       for (int i = 0; i < 256; ++i) {
         const int j = i / 32, byte = b[16 + j / 2 * 32 + i % 32], q = j % 2 ? byte >> 4 : byte & 15;
         int scale = 0, least = 0;
         small_scale(b + 4, j, scale, least);
         to[i] = half_of(b) * static_cast<float>(scale * q) - half_of(b + 2) * static_cast<float>(least);
       }
     }},
    {"Q5_K",
     13,
     256,
     176,
     {0, 2},
     [](const std::uint8_t* b, float* to) {
       for (int i = 0; i < 256; ++i) {
         const int j = i / 32, byte = b[48 + j / 2 * 32 + i % 32];
         const int q = (j % 2 ? byte >> 4 : byte & 15) + 16 * (b[16 + i % 32] >> j & 1);
         int scale = 0, least = 0;
         small_scale(b + 4, j, scale, least);
         to[i] = half_of(b) * static_cast<float>(scale * q) - half_of(b + 2) * static_cast<float>(least);
       }
     }},
    {"Q6_K", 14, 256, 210, {208}, [](const std::uint8_t* b, float* to) {
       for (int n = 0; n < 2; ++n)
         for (int l = 0; l < 32; ++l) {
           const std::uint8_t *low = b + 64 * n, *high = b + 128 + 32 * n;
           const auto* s = reinterpret_cast<const std::int8_t*>(b + 192 + 8 * n);
           const int q[] = {(low[l] & 15) | (high[l] & 3) << 4, (low[l + 32] & 15) | (high[l] >> 2 & 3) << 4,
                            low[l] >> 4 | (high[l] >> 4 & 3) << 4, low[l + 32] >> 4 | (high[l] >> 6 & 3) << 4};
           for (int k = 0; k < 4; ++k)
             to[128 * n + 32 * k + l] =
                 half_of(b + 208) * static_cast<float>(s[2 * k + l / 16]) * static_cast<float>(q[k] - 32);
         }
     }}};

// A tensor of random blocks whose numbers have about the size of weights; `values` become what they mean.
file_tensor random_blocks(const block_kind& kind, const std::string& name, std::int64_t rows, std::int64_t columns,
                          std::vector<float>& values) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
  file_tensor t{name, "", {rows, columns}, {}, kind.type};
  const auto n = static_cast<std::size_t>(rows * columns) / kind.numbers;
  t.bytes.resize(n * kind.bytes);
  values.resize(static_cast<std::size_t>(rows * columns));
  for (std::size_t k = 0; k < n; ++k) {
    auto* const block = reinterpret_cast<std::uint8_t*>(t.bytes.data()) + k * kind.bytes;
    for (std::size_t i = 0; i < kind.bytes; ++i) block[i] = static_cast<std::uint8_t>(random());
    const float size = kind.type == 2 ? 0.05F : kind.type == 8 ? 0.003F : kind.type == 14 ? 1e-4F : 1.5e-4F;
    for (std::size_t h = 0; h < kind.halves.size(); ++h) {
      const half d(size * (h == 0 ? 1.0F : 7.5F) * (0.5F + static_cast<float>(random() % 100) / 100));
      std::memcpy(block + kind.halves[h], &d, 2);
    }
    if (kind.type == 12 || kind.type == 13) block[4] &= 0xc0;  // a scale of zero
    kind.write_out(block, values.data() + k * kind.numbers);
  }
  return t;
}

// A llama of blocks: rows of queries and keys are of neighbors that turn together.
struct gguf_model {
  reference expected;
  gguf_writer file;
};
gguf_model llama_of(const block_kind& kind, const std::string& architecture = "llama") {
  gguf_model m;
  reference& r = m.expected;
  r.width = 256, r.heads = 4, r.kv_heads = 2, r.depth = 64, r.layers = 1, r.epsilon = 1e-5;
  r.adjacent = architecture == "llama";
  r.inverse = {plain_angles(64, 10000)};
  m.file.text("general.architecture", architecture);
  const std::string at = architecture + ".";
  m.file.whole(at + "block_count", 1), m.file.whole(at + "context_length", 64);
  m.file.whole(at + "embedding_length", 256), m.file.whole(at + "feed_forward_length", 256);
  m.file.whole(at + "attention.head_count", 4), m.file.whole(at + "attention.head_count_kv", 2);
  m.file.real(at + "attention.layer_norm_rms_epsilon", 1e-5F), m.file.real(at + "rope.freq_base", 10000);
  const auto matrix = [&](const std::string& role, std::int64_t rows) {
    m.file.tensor(random_blocks(kind, role + ".weight", rows, 256, r.weights[role]));
  };
  const auto vector = [&](const std::string& role, std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    std::mt19937 random(static_cast<unsigned>(n) + 1);
    for (float& v : values) v = 1 + 0.1F * static_cast<float>(random() % 10);
    m.file.tensor(tensor_of(role + ".weight", {n}, values));
    r.weights[role] = values;
  };
  matrix("token_embd", 48);
  vector("blk.0.attn_norm", 256), vector("blk.0.ffn_norm", 256), vector("output_norm", 256);
  matrix("blk.0.attn_q", 256), matrix("blk.0.attn_k", 128), matrix("blk.0.attn_v", 128);
  matrix("blk.0.attn_output", 256), matrix("blk.0.ffn_gate", 256), matrix("blk.0.ffn_up", 256);
  matrix("blk.0.ffn_down", 256), matrix("output", 48);
  return m;
}

double difference(const language_model& m, const reference& r) {
  const auto tokens = prompt_of(9, r.vocabulary);
  const auto expected = r.run({tokens.begin(), tokens.end()});
  workspace w = m.program().make_workspace();
  sequence_state s = m.new_state();
  std::vector<float> logits(9 * r.vocabulary);
  m.run(s, w, tokens, 9, logits);
  double worst = 0, most = 0;
  for (std::size_t t = 0; t < 9; ++t)
    for (std::size_t i = 0; i < r.vocabulary; ++i) {
      most = std::max(most, std::abs(expected[t][i]));
      worst = std::max(worst, std::abs(expected[t][i] - static_cast<double>(logits[t * r.vocabulary + i])));
    }
  EXPECT_GT(most, 0.1);
  return worst / most;
}

TEST(gguf_models, blocks_mean_what_a_plain_dequantization_gives) {
  for (const block_kind& kind : kinds) {
    const gguf_model m = llama_of(kind);
    const test::temporary_folder folder;
    const auto model = load_path(folder.write("model.gguf", m.file.file()));
    EXPECT_LT(difference(*model, m.expected), 1e-4) << kind.name;
  }
}

TEST(gguf_models, a_file_is_known_by_its_magic_and_a_folder_by_its_file) {
  const gguf_model m = llama_of(kinds[0], "qwen2");
  const test::temporary_folder folder;
  const auto file = folder.write("weights.bin", m.file.file());
  EXPECT_EQ(format_of(file), model_format::gguf);
  EXPECT_LT(difference(*load_path(file), m.expected), 1e-4);
  std::filesystem::rename(file, folder.path() / "weights.gguf");
  const config c = read_config(folder.path());
  EXPECT_EQ(c.type, "qwen2");
  EXPECT_EQ(c.context_length, 64);
  EXPECT_EQ(c.decoder.num_key_value_heads, 2);
  EXPECT_EQ(c.decoder.filename, "weights.gguf");
}

using kiln::test::message_of;

TEST(gguf_models, of_several_files_one_is_named) {
  const gguf_model m = llama_of(kinds[0]);
  const test::temporary_folder folder;
  folder.write("b.gguf", m.file.file()), folder.write("a.gguf", m.file.file());
  const std::string said = message_of([&] { read_config(folder.path()); });
  EXPECT_NE(said.find("expected one file *.gguf, or one of the name model.gguf, found a.gguf, b.gguf"),
            std::string::npos)
      << said;
  folder.write("model.gguf", m.file.file());
  EXPECT_EQ(read_config(folder.path()).decoder.filename, "model.gguf");
}

// A saved model needs its file no more, and gives the same numbers: of blocks, and of floats that become blocks.
TEST(gguf_models, are_saved_with_their_weights_as_they_are_used) {
  for (const block_kind* const kind : {&kinds[0], &kinds[1], &kinds[3], static_cast<const block_kind*>(nullptr)}) {
    const bool is_gguf = kind != nullptr;
    SCOPED_TRACE(is_gguf ? kind->name : "floats");
    const test::temporary_folder from, to;
    const tiny_model floats = tiny_llama("llama", "F16");
    std::filesystem::path at = from.path();
    if (is_gguf) at = from.write("model.gguf", llama_of(*kind).file.file());
    if (!is_gguf) from.write("config.json", floats.config.dump());
    if (!is_gguf) from.write("model.safetensors", safetensors_file(floats.tensors));
    if (!is_gguf) from.write("chat_template.jinja", "{{ messages }}");
    const std::string more = is_gguf ? "{}" : R"({"model": {"weight_type": "int4"}})";
    const auto expected = logits_of(*load_path(at, more));
    config c = read_config(at);
    overlay(c, more);
    save_model(c, to.path() / "saved");
    for (const auto& f : std::filesystem::directory_iterator(from.path())) std::filesystem::remove(f.path());
    const auto saved = to.path() / "saved";
    EXPECT_EQ(format_of(saved / "model.kiln"), model_format::kiln);
    EXPECT_EQ(std::filesystem::exists(saved / "chat_template.jinja"), !is_gguf);
    const auto model = load_path(saved);
    const auto found = logits_of(*model);
    if (kind == &kinds[0]) {  // the numbers of its blocks are saved in their order, and added in it
      const float most = std::abs(*std::max_element(expected.begin(), expected.end(),
                                                    [](float a, float b) { return std::abs(a) < std::abs(b); }));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5F * most) << i;
    } else {
      EXPECT_EQ(found, expected);
    }
    EXPECT_TRUE(model->joins_rows());
    EXPECT_EQ(model->context_length(), 64);
    EXPECT_NE(message_of([&] {
                load_path(saved, R"({"model": {"weight_type": "int8"}})");
              }).find("a saved model has the types that it was saved with"),
              std::string::npos);
    EXPECT_NE(message_of([&] { save_model(read_config(saved), to.path() / "again"); }).find("found a graph"),
              std::string::npos);
  }
}

// Short factors divide the angles, cosine and sine are multiplied, and the context is the original one.
TEST(gguf_models, longrope_by_its_tensor) {
  for (const bool is_named : {false, true}) {
    gguf_model m = llama_of(kinds[1]);
    std::vector<float> factors;
    for (std::size_t i = 0; i < 32; ++i) factors.push_back(1 + 0.1F * static_cast<float>(i));
    for (std::size_t i = 0; i < 32; ++i) m.expected.inverse[0][i] /= static_cast<double>(factors[i]);
    m.expected.turn_factor = 1.25;
    m.file.tensor(tensor_of("rope_factors_short.weight", {32}, factors));
    if (is_named) m.file.text("llama.rope.scaling.type", "longrope");
    m.file.real("llama.rope.scaling.attn_factor", 1.25F);
    m.file.whole("llama.rope.scaling.original_context_length", 32);
    const test::temporary_folder folder;
    folder.write("model.gguf", m.file.file());
    folder.write("genai_config.json",
                 R"({"model": {"type": "llama", "context_length": 4096, "decoder": {"filename": "model.gguf"}}})");
    const auto model = load_path(folder.path());
    EXPECT_LT(difference(*model, m.expected), 1e-4) << is_named;
    EXPECT_EQ(model->context_length(), 32) << "whatever the configuration says";
    EXPECT_EQ(model->settings().context_length, 32);
    const auto& remarks = model->program().report().remarks;
    EXPECT_NE(std::find(remarks.begin(), remarks.end(), "longrope: the short factors are taken, for up to 32 tokens"),
              remarks.end());
    EXPECT_NE(std::find(remarks.begin(), remarks.end(), "context_length 4096 is cut to the 32 of the weights"),
              remarks.end());
  }
}

TEST(gguf_models, numbers_of_layers_and_of_yarn) {
  const auto read = [](const std::function<void(gguf_writer&)>& more) {
    gguf_model m = llama_of(kinds[1]);
    more(m.file);
    const std::string bytes = m.file.file();
    const gguf_file file(buffer::borrow(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), "a file");
    return detail::find_family("llama")->read(detail::facts_of(file));
  };
  const auto yarn = [](gguf_writer& w) {
    w.text("llama.rope.scaling.type", "yarn"), w.real("llama.rope.scaling.factor", 4);
    w.whole("llama.rope.scaling.original_context_length", 16);
  };
  const float own = read(yarn).rotations[0].factor;
  EXPECT_FLOAT_EQ(own, static_cast<float>(0.1 * std::log(4.0) + 1));
  const auto more = read([&](gguf_writer& w) { yarn(w), w.real("llama.rope.scaling.attn_factor", 1.5F); });
  EXPECT_FLOAT_EQ(more.rotations[0].factor, own * 1.5F);
  const std::string said = message_of([&] {
    read([](gguf_writer& w) { w.reals("llama.attention.key_length", {1e30F, 1e30F}); });
  });
  EXPECT_NE(said.find("'llama.attention.key_length': expected whole numbers up to 1073741824"), std::string::npos)
      << said;
}

TEST(gguf_models, without_a_tokenizer_tokens_go_in_and_out) {
  const std::string bytes = llama_of(kinds[0]).file.file();
  const gguf_file file(buffer::borrow(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), "a file");
  try {
    tokenizer_files(file);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_found) << e.what();
  }
}

TEST(gguf_models, sentencepiece_of_scores) {
  gguf_writer w;
  w.text("general.architecture", "llama"), w.text("tokenizer.ggml.model", "llama");
  std::vector<std::string> texts{"<unk>", "<s>", "</s>"};
  std::vector<float> scores{0, 0, 0};
  std::vector<std::int32_t> types{2, 3, 3};
  for (int b = 0; b < 256; ++b) {
    char spelled[8];
    std::snprintf(spelled, sizeof spelled, "<0x%02X>", b);
    texts.emplace_back(spelled), scores.push_back(0), types.push_back(6);
  }
  for (const char* piece : {"\xE2\x96\x81", "h", "e", "l", "o", "he", "ll", "hell", "hello", "\xE2\x96\x81hello"})
    texts.emplace_back(piece), scores.push_back(-static_cast<float>(texts.size())), types.push_back(1);
  w.texts("tokenizer.ggml.tokens", texts), w.reals("tokenizer.ggml.scores", scores);
  w.wholes("tokenizer.ggml.token_type", types);
  w.whole("tokenizer.ggml.bos_token_id", 1), w.whole("tokenizer.ggml.eos_token_id", 2);
  w.whole("tokenizer.ggml.unknown_token_id", 0);
  w.text("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}");
  const std::string bytes = w.file();
  const gguf_file file(buffer::borrow(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), "a file");
  const tokenizer t = tokenizer::load(tokenizer_files(file));
  // the last piece joins all; 'z' has no piece, so it is its byte
  EXPECT_EQ(t.encode("hello", {.add_special_tokens = true}), (tokens{1, static_cast<token>(texts.size() - 1)}));
  EXPECT_EQ(t.encode("z").back(), 3 + 'z');
  EXPECT_EQ(t.decode(t.encode("hello hello")), "hello hello");
  EXPECT_EQ(t.special().bos, 1);
  EXPECT_EQ(t.special().eos, tokens{2});
  EXPECT_TRUE(t.is_special(2));
  EXPECT_EQ(t.encode("</s>hello").front(), 2);
  EXPECT_EQ(t.chat_template(), "{{ bos_token }}{{ messages[0].content }}");
}

TEST(gguf_models, byte_pairs_of_merges) {
  gguf_writer w;
  w.text("general.architecture", "llama"), w.text("tokenizer.ggml.model", "gpt2"),
      w.text("tokenizer.ggml.pre", "llama-bpe");
  const std::vector<std::string> texts{"h", "i",  "\xC4\xA0",   "1",  "2",   "3",
                                       "4", "hi", "\xC4\xA0hi", "12", "123", "<|end|>"};
  w.texts("tokenizer.ggml.tokens", texts);
  w.wholes("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3});
  w.texts("tokenizer.ggml.merges", {"h i", "\xC4\xA0 hi", "1 2", "12 3"});
  w.whole("tokenizer.ggml.eos_token_id", 11), w.whole("tokenizer.ggml.bos_token_id", 11);
  const std::string bytes = w.file();
  const gguf_file file(buffer::borrow(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), "a file");
  const tokenizer t = tokenizer::load(tokenizer_files(file));
  EXPECT_EQ(t.encode("hi hi<|end|>"), (tokens{7, 8, 11}));
  EXPECT_EQ(t.encode("1234"), (tokens{10, 6}));  // numbers are cut after three digits
  EXPECT_EQ(t.decode(tokens{7, 8, 11}), "hi hi");
  EXPECT_EQ(t.special().eos, tokens{11});
  EXPECT_EQ(t.encode("hi", {.add_special_tokens = true}), (tokens{11, 7})) << "texts of Llama 3 have a begin";

  gguf_writer other;
  other.text("tokenizer.ggml.model", "gpt2"), other.text("tokenizer.ggml.pre", "viking");
  other.texts("tokenizer.ggml.tokens", {"a"});
  const std::string more = other.file();
  const gguf_file unknown(buffer::borrow(reinterpret_cast<const std::byte*>(more.data()), more.size()), "a file");
  gguf_writer plain;
  plain.text("tokenizer.ggml.model", "gpt2"), plain.text("tokenizer.ggml.pre", "gpt-2");
  plain.texts("tokenizer.ggml.tokens", {"h", "<|end|>"}), plain.wholes("tokenizer.ggml.token_type", {1, 3});
  plain.whole("tokenizer.ggml.bos_token_id", 1);
  const std::string least = plain.file();
  const gguf_file gpt2(buffer::borrow(reinterpret_cast<const std::byte*>(least.data()), least.size()), "a file");
  EXPECT_EQ(tokenizer::load(tokenizer_files(gpt2)).encode("h", {.add_special_tokens = true}), tokens{0});
  const std::string said = message_of([&] { tokenizer_files(unknown); });
  EXPECT_NE(said.find("'tokenizer.ggml.pre': expected one of default"), std::string::npos) << said;
  EXPECT_NE(said.find("found 'viking'"), std::string::npos) << said;
}

}  // namespace
}  // namespace kiln::language::testing
