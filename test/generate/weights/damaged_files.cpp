#include <gtest/gtest.h>

#include <random>

#include "generate/weights/tiny_model.hpp"
#include "kiln/core/error.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "kiln/generate/weights/safetensors.hpp"

// Files that are cut off, or have other bits and numbers than they should: an error that says what, or a table whose
// entries lie within the file.
namespace kiln::language::testing {
namespace {

std::string small_safetensors() {
  std::vector<float> a(12, 1), b(8, 2);
  return safetensors_file({tensor_of("a", {3, 4}, a), tensor_of("b.weight", {8}, b, "F16")});
}
std::string small_gguf() {
  gguf_writer w;
  w.text("general.architecture", "llama"), w.whole("llama.block_count", 1), w.whole("llama.embedding_length", 32);
  w.whole("llama.attention.head_count", 4), w.real("llama.rope.freq_base", 10000), w.flag("a.flag", true);
  w.text("tokenizer.ggml.model", "gpt2");
  w.texts("tokenizer.ggml.tokens", {"a", "b", "ab"}), w.texts("tokenizer.ggml.merges", {"a b"});
  w.wholes("tokenizer.ggml.token_type", {1, 1, 1}), w.reals("tokenizer.ggml.scores", {0, -1, -2});
  std::vector<float> a(64, 1);
  w.tensor(tensor_of("token_embd.weight", {2, 32}, a));
  w.tensor({"blocks.weight", "", {2, 32}, std::string(36, '\1'), 2});
  return w.file();
}

// What reads such a file all the way; every byte of an entry is touched.
using reading = void (*)(const buffer& file);
void touch(const std::vector<weight_entry>& all) {
  volatile unsigned sum = 0;
  for (const weight_entry& e : all)
    for (std::size_t i = 0; i < e.bytes.size(); ++i) sum = sum + static_cast<unsigned>(e.bytes.data()[i]);
}
void read_all_safetensors(const buffer& file) { touch(weight_table(read_safetensors(file, "a file")).all()); }
void read_all_gguf(const buffer& file) {
  const gguf_file g(file, "a file");
  touch(g.weights().all());
  (void)detail::facts_of(g);
  (void)tokenizer::load(tokenizer_files(g));
}

// The bytes in memory of exactly their size, so that a sanitizer sees what is read beyond them.
buffer exact(const std::string& bytes) {
  auto* own = new std::vector<char>(bytes.begin(), bytes.end());
  return buffer::borrow(reinterpret_cast<const std::byte*>(own->data()), own->size(), own,
                        [](void* v) { delete static_cast<std::vector<char>*>(v); });
}

void expect_errors(const std::string& good, reading read, unsigned seed) {
  read(exact(good));
  std::mt19937 random(seed);
  std::size_t refused = 0;
  constexpr std::size_t trials = 5000;
  constexpr std::uint64_t numbers[] = {0,          1,          0x7f,       0xff,       0xffff, 0x7fffffff,
                                       0xffffffff, 1ULL << 40, 1ULL << 62, 1ULL << 63, ~0ULL};
  for (std::size_t k = 0; k < trials; ++k) {
    std::string bad = good;
    const auto at = [&](std::size_t room) { return random() % (bad.size() > room ? bad.size() - room : 1); };
    switch (random() % 5) {
      case 0: bad.resize(random() % bad.size()); break;
      case 1: bad[at(0)] ^= static_cast<char>(1 << random() % 8); break;
      case 2: bad[at(0)] = static_cast<char>(random()); break;
      case 3: {
        const std::uint64_t n = numbers[random() % std::size(numbers)];
        std::memcpy(&bad[at(8)], &n, std::min<std::size_t>(bad.size(), random() % 2 ? 8 : 4));
        break;
      }
      default: bad.erase(at(4), 1 + random() % 4); break;
    }
    try {
      read(exact(bad));
    } catch (const error& e) {
      ++refused;
      ASSERT_FALSE(e.message().empty());
      ASSERT_NE(e.code(), errc::internal) << e.what();
    }
  }
  EXPECT_GT(refused, trials / 4);
}

TEST(damaged_files, safetensors) { expect_errors(small_safetensors(), read_all_safetensors, 1); }
TEST(damaged_files, gguf) { expect_errors(small_gguf(), read_all_gguf, 2); }

std::string said(reading read, const std::string& bytes) {
  try {
    read(exact(bytes));
  } catch (const error& e) {
    return e.message();
  }
  return "no error";
}
std::string with_header(const std::string& header, std::size_t data = 64) {
  std::string out;
  append(out, static_cast<std::uint64_t>(header.size()));
  return out + header + std::string(data, '\0');
}

TEST(damaged_files, safetensors_name_the_tensor_and_the_key) {
  const auto of = [&](const char* header) { return said(read_all_safetensors, with_header(header)); };
  EXPECT_EQ(said(read_all_safetensors, "short"), "a file: expected the header's length in 8 bytes, found 5");
  EXPECT_EQ(of(R"({"w":{"shape":[2],"data_offsets":[0,8]}})"), "a file: tensor 'w': expected \"dtype\", found none");
  EXPECT_EQ(of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"),
            "a file: tensor 'w'.data_offsets: expected 8 bytes for type and extents, found 4");
  EXPECT_EQ(of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[60,68]}})"),
            "a file: tensor 'w'.data_offsets: expected offsets in order up to 64, found 60 and 68");
  EXPECT_EQ(of(R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"),
            "a file: tensor 'w'.shape: expected a whole number from 0 on, found -2");
  EXPECT_EQ(
      of(R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})"),
      "a file: tensor 'w'.data_offsets: expected bytes of its own, found some of 'v'");
}

TEST(damaged_files, gguf_names_the_field) {
  std::string bad = small_gguf();
  bad[4] = 9;
  EXPECT_NE(said(read_all_gguf, bad).find("version (byte 8): expected 2 or 3 in little-endian order, found 9"),
            std::string::npos);
  bad = small_gguf();
  bad[8 + 7] = 1;
  EXPECT_NE(said(read_all_gguf, bad).find("number of tensors"), std::string::npos);
  EXPECT_NE(said(read_all_gguf, small_gguf().substr(0, 12))
                .find("number of tensors (byte 8): expected 8 bytes, found 4 before the end"),
            std::string::npos);
  gguf_writer twice;
  twice.whole("a", 1), twice.whole("a", 2);
  EXPECT_NE(said(read_all_gguf, twice.file()).find("'a' (byte"), std::string::npos);
  gguf_writer ragged;
  ragged.tensor({"w", "", {2, 33}, std::string(36, '\1'), 2});
  EXPECT_NE(said(read_all_gguf, ragged.file()).find("tensor 'w' (byte"), std::string::npos);
}

TEST(damaged_files, what_a_configuration_has_wrong_is_named) {
  const auto message = [](const tiny_model& m) -> std::string {
    try {
      load_folder(m);
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  tiny_model m = tiny_llama();
  m.config["model_type"] = "mamba";
  EXPECT_NE(message(m).find("'mamba'; expected one of llama"), std::string::npos) << message(m);
  m = tiny_llama();
  m.config["rope_scaling"] = {{"rope_type", "dynamic"}};
  EXPECT_NE(message(m).find("'dynamic'; expected default, linear"), std::string::npos) << message(m);
  m = tiny_llama();
  m.config["num_key_value_heads"] = 3;
  EXPECT_NE(message(m).find("num_key_value_heads: expected a divisor of the 4 heads, found 3"), std::string::npos);
  m = tiny_llama();
  m.config["hidden_size"] = "wide";
  EXPECT_NE(message(m).find("hidden_size: expected a whole number"), std::string::npos) << message(m);
  m = tiny_llama();
  m.tensors.erase(m.tensors.begin() + 3);
  EXPECT_NE(message(m).find("expected a tensor 'model.layers."), std::string::npos) << message(m);
  m = tiny_llama();
  m.config["head_dim"] = 16;
  EXPECT_NE(message(m).find("expected the extents [64, 32], found [32, 32]"), std::string::npos) << message(m);
  m.config["head_dim"] = 1 << 30;
  EXPECT_NE(message(m).find("head_dim: expected heads of at most 65536 elements, found 1073741824"), std::string::npos)
      << message(m);
  m = tiny_llama();
  m.config["partial_rotary_factor"] = 0.5;
  EXPECT_NE(message(m).find("partial_rotary_factor: heads of which 4 elements of 8 turn"), std::string::npos)
      << message(m);
  m.config["partial_rotary_factor"] = 1e300;
  EXPECT_NE(message(m).find("expected a number above 0, at most 1"), std::string::npos) << message(m);
  m = tiny_llama();
  m.tensors.pop_back();  // embeddings are the output matrix only where the configuration says so
  EXPECT_NE(message(m).find("expected a tensor 'lm_head.weight', found none"), std::string::npos) << message(m);
}

}  // namespace
}  // namespace kiln::language::testing
