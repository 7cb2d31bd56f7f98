#include <gmock/gmock.h>
#include <malloc.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "generate/weights/tiny_model.hpp"
#include "kiln/config.hpp"
#include "kiln/generate/saved_model.hpp"
#include "support/process_memory.hpp"

// Matrices of 16 bits that are large enough to stay so until they are packed.
namespace kiln::language::testing {
namespace {

tiny_model wide_llama(const std::string& stored, std::size_t layers) {
  tiny_model m;
  m.type = "llama";
  m.expected.layers = layers;
  m.expected.heads = 8, m.expected.kv_heads = 8, m.expected.depth = 96, m.expected.width = 768;
  m.expected.vocabulary = 1024;
  m.expected.inverse = {plain_angles(96, 10000)};
  m.config = common_config(m.expected, m.type);
  add_attention(m, stored);
  add_feed_forward(m, "post_attention_layernorm", stored);
  add_head(m, false, stored);
  return m;
}

std::vector<float> logits_of(const language_model& m) {
  const auto tokens = prompt_of(5, 1024);
  workspace w = m.program().make_workspace();
  sequence_state s = m.new_state();
  std::vector<float> logits(5 * 1024);
  m.run(s, w, tokens, 5, logits);
  return logits;
}

TEST(loading, matrices_of_16_bits_are_packed_as_the_file_has_them) {
  for (const char* stored : {"F16", "BF16"}) {
    SCOPED_TRACE(stored);
    tiny_model m = wide_llama(stored, 1);
    const auto narrow = load_folder(m);
    std::size_t packed = 0;
    const std::string kind = std::string("packed, ") + (stored[0] == 'F' ? "f16" : "bf16");
    for (const step_info& s : narrow->program().report().steps) {
      packed += s.kernel.find(kind) != std::string::npos;
      EXPECT_NE(s.kernel, "pointwise convert") << s.instruction;
    }
    EXPECT_GE(packed, 5U);  // query, key, value, output, head
    // the same numbers in f32
    for (file_tensor& t : m.tensors) {
      std::vector<float> values(t.bytes.size() / 2);
      decode(stored[0] == 'F' ? dtype::f16 : dtype::bf16, reinterpret_cast<const std::byte*>(t.bytes.data()),
             values.data(), static_cast<std::int64_t>(values.size()));
      t = tensor_of(t.name, t.extents, values);
    }
    const auto expected = logits_of(*load_folder(m)), found = logits_of(*narrow);
    float most = 0;
    for (const float x : expected) most = std::max(most, std::abs(x));
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5F * most) << i;
  }
}

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Exits with 0 where the peak is below 1.1 times the weights and `more` MiB; `unread` of them stay in the file.
[[noreturn]] void load_within_bounds(const std::filesystem::path& path, double least_weights, double more,
                                     double unread = 0) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins here
  const std::int64_t before = test::status_bytes("VmRSS:");
  const auto m = load_path(path);
  const double grown = mib(test::status_bytes("VmHWM:") - before);
  const compile_report& r = m->program().report();
  const double weights = mib(static_cast<std::int64_t>(r.packed_bytes + r.constant_bytes)) - unread;
  fprintf(stderr, "%.1f MiB of weights, %.1f MiB at the peak\n", weights, grown);
  _exit(weights > least_weights && weights < 1.7 * least_weights && grown < 1.1 * weights + more ? 0 : 1);
}

TEST(loading, takes_little_more_memory_than_the_packed_weights) {
  if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "shadow memory counts too";
  const test::temporary_folder folder;
  {
    const tiny_model m = wide_llama("F16", 4);
    folder.write("config.json", m.config.dump());
    folder.write("model.safetensors", safetensors_file(m.tensors));
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own
  // f32 of the matrices would be another 40 MiB; the code that is read and what attention joins take some 15
  EXPECT_EXIT(load_within_bounds(folder.path(), 18, 24), ::testing::ExitedWithCode(0), "");
}

// A llama of Q4_0 or Q8_0: blocks of 32 numbers, a scale in 16 bits before them. Or of f16.
std::string wide_blocks(std::size_t bits = 4, std::uint32_t layers = 6, std::int64_t vocabulary = 1024) {
  gguf_writer w;
  w.text("general.architecture", "llama");
  const std::pair<const char*, std::uint32_t> sizes[] = {{"block_count", layers},        {"context_length", 64},
                                                         {"embedding_length", 1024},     {"attention.head_count", 16},
                                                         {"attention.head_count_kv", 4}, {"feed_forward_length", 2816}};
  for (const auto& [key, n] : sizes) w.whole(std::string("llama.") + key, n);
  w.real("llama.attention.layer_norm_rms_epsilon", 1e-5F), w.real("llama.rope.freq_base", 10000);
  const bool plain = bits == 16;
  std::string block(plain ? 2 : 2 + 4 * bits, '\0');
  std::minstd_rand random;
  const half scale(bits == 4 ? 0.01F : 0.0006F);
  std::memcpy(block.data(), &scale, 2);
  const auto matrix = [&](const std::string& role, std::int64_t rows, std::int64_t columns) {
    std::string all;
    const std::int64_t blocks = rows * columns / (plain ? 1 : 32);
    all.reserve(static_cast<std::size_t>(blocks) * block.size());
    for (std::int64_t k = 0; k < blocks; ++k) {
      for (std::size_t i = 2; i < block.size(); ++i) block[i] = static_cast<char>(random());
      if (plain) block[0] = static_cast<char>(random()), block[1] = static_cast<char>((random() & 0x83) | 0x20);
      all += block;
    }
    w.tensor({role + ".weight", "", {rows, columns}, std::move(all), plain ? 1U : bits == 4 ? 2U : 8U});
  };
  std::vector<float> ones(1024, 1);
  const auto vector = [&](const std::string& role) { w.tensor(tensor_of(role + ".weight", {1024}, ones)); };
  matrix("token_embd", vocabulary, 1024);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    vector(at + "attn_norm"), vector(at + "ffn_norm");
    matrix(at + "attn_q", 1024, 1024), matrix(at + "attn_k", 256, 1024), matrix(at + "attn_v", 256, 1024);
    matrix(at + "attn_output", 1024, 1024);
    matrix(at + "ffn_gate", 2816, 1024), matrix(at + "ffn_up", 2816, 1024), matrix(at + "ffn_down", 1024, 2816);
  }
  vector("output_norm"), matrix("output", vocabulary, 1024);
  return w.file();
}

// A saved model has the numbers and the scales apart, and those of Q4_0 in their order: their sums are added in
// another.
TEST(loading, blocks_beside_their_scales_give_what_they_do_apart) {
  for (const std::size_t bits : {4, 8}) {
    SCOPED_TRACE(bits);
    const test::temporary_folder folder;
    const auto file = folder.write("model.gguf", wide_blocks(bits, 1));
    const auto found = logits_of(*load_path(file));
    save_model(read_config(file), folder.path() / "saved");
    const auto expected = logits_of(*load_path(folder.path() / "saved"));
    float most = 0;
    for (const float x : expected) most = std::max(most, std::abs(x));
    EXPECT_GT(most, 0.1F);
    if (bits == 8) {
      EXPECT_EQ(found, expected);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-5F * most) << i;
  }
}

// What is repacked lies in memory that what is packed takes over, matrix by matrix, and scales stay in 16 bits.
TEST(loading, blocks_take_little_more_memory_than_the_packed_weights) {
  if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "shadow memory counts too";
  const test::temporary_folder folder;
  const auto file = folder.write("model.gguf", wide_blocks());
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load_within_bounds(file, 36, 18), ::testing::ExitedWithCode(0), "");
}

// The last matrix that is packed is the largest one: of it no more than a strip is there as the file has it, too.
TEST(loading, a_large_matrix_is_not_in_memory_twice) {
  if (KILN_SANITIZES_ADDRESSES) GTEST_SKIP() << "shadow memory counts too";
  const test::temporary_folder folder;
  const auto blocks = folder.write("blocks.gguf", wide_blocks(4, 1, 65536));
  const auto halves = folder.write("halves.gguf", wide_blocks(16, 1, 16384));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load_within_bounds(blocks, 76, 18), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(load_within_bounds(halves, 52, 20, 32), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kiln::language::testing
