// Vectors for texts: how states are pooled, and what a folder says of it.
#include "kiln/generate/embedder.hpp"

#include <gmock/gmock.h>

#include <thread>

#include "generate/weights/embedding_folder.hpp"
#include "generate/weights/tiny_model.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "quantize/message_of.hpp"

namespace kiln::language::testing {
namespace {

using kiln::test::message_of;
using ::testing::HasSubstr;

const tokens text{7, 1900, 3, 3, 12};

std::shared_ptr<const embedder> load(const std::filesystem::path& folder) {
  const auto c = find_embedding(folder);
  if (!c) throw std::runtime_error("no embedding model");
  compile_options o;
  o.threads = 1;
  return embedder::load(*c, eigen_target(), o);
}
double state(std::size_t place, std::size_t k) {
  return embedding_folder::state(text[place], static_cast<std::int64_t>(place), static_cast<std::int64_t>(k));
}

TEST(embedder, pools_as_the_folder_says) {
  const double n = static_cast<double>(text.size());
  const auto sum = [&](std::size_t k, auto&& weight) {
    double s = 0;
    for (std::size_t t = 0; t < text.size(); ++t) s += weight(t) * state(t, k);
    return s;
  };
  const auto greatest = [&](std::size_t k) {
    double m = state(0, k);
    for (std::size_t t = 1; t < text.size(); ++t) m = std::max(m, state(t, k));
    return m;
  };
  const std::vector<std::pair<std::string, std::function<double(std::size_t)>>> modes = {
      {"pooling_mode_cls_token", [&](std::size_t k) { return state(0, k); }},
      {"pooling_mode_lasttoken", [&](std::size_t k) { return state(text.size() - 1, k); }},
      {"pooling_mode_max_tokens", greatest},
      {"pooling_mode_mean_tokens", [&](std::size_t k) { return sum(k, [](std::size_t) { return 1.0; }) / n; }},
      {"pooling_mode_mean_sqrt_len_tokens",
       [&](std::size_t k) { return sum(k, [](std::size_t) { return 1.0; }) / std::sqrt(n); }},
      {"pooling_mode_weightedmean_tokens", [&](std::size_t k) {
         return sum(k, [](std::size_t t) { return static_cast<double>(t + 1); }) / (n * (n + 1) / 2);
       }}};
  for (const auto& [mode, expected] : modes) {
    const embedding_folder folder(mode, false);
    const auto made = load(folder.own.path())->embed(text);
    ASSERT_EQ(made.size(), static_cast<std::size_t>(embedding_folder::width)) << mode;
    for (std::size_t k = 0; k < made.size(); ++k) EXPECT_NEAR(made[k], expected(k), 1e-5) << mode << " " << k;
  }
}

TEST(embedder, cuts_before_it_normalizes) {
  const embedding_folder folder, plain("pooling_mode_mean_tokens", false);
  const auto model = load(folder.own.path());
  const auto whole = load(plain.own.path())->embed(text);
  for (const std::size_t dimensions : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{6}}) {
    const auto made = model->embed(text, static_cast<std::int64_t>(dimensions));
    const std::size_t n = dimensions == 0 ? whole.size() : dimensions;
    ASSERT_EQ(made.size(), n);
    double length = 0;
    for (std::size_t k = 0; k < n; ++k) length += static_cast<double>(whole[k]) * static_cast<double>(whole[k]);
    for (std::size_t k = 0; k < n; ++k) EXPECT_NEAR(made[k], static_cast<double>(whole[k]) / std::sqrt(length), 1e-6);
  }
  EXPECT_THAT(message_of([&] { model->embed(text, 7); }), HasSubstr("dimensions: expected 1 to 6, found 7"));
  EXPECT_THAT(message_of([&] { model->embed({}); }), HasSubstr("at least one token"));
  EXPECT_THAT(message_of([&] { model->embed(tokens(13, 1)); }), HasSubstr("at most 12 tokens: found 13"));
  EXPECT_EQ(model->embed(tokens(12, 1)).size(), 6u);
}

// A state of a decoder, times its output matrix, is the reference's logits.
TEST(embedder, takes_a_decoders_weights) {
  tiny_model m;
  m.expected.inverse = {plain_angles(8, 10000)};
  m.config = common_config(m.expected, "llama");
  add_attention(m), add_feed_forward(m, "post_attention_layernorm"), add_head(m, false);
  const auto output = m.expected.weights.at("output");
  // as files of a decoder without its head are
  std::erase_if(m.tensors, [](const file_tensor& t) { return t.name == "lm_head.weight"; });
  for (file_tensor& t : m.tensors) t.name = t.name.substr(std::string("model.").size());
  const embedding_folder folder("pooling_mode_lasttoken", false);
  std::filesystem::remove_all(folder.own.path() / "onnx");
  folder.own.write("config.json", m.config.dump());
  folder.own.write("model.safetensors", safetensors_file(m.tensors));
  const auto model = load(folder.own.path());
  ASSERT_EQ(model->width(), static_cast<std::int64_t>(m.expected.width));
  const auto prompt = prompt_of(9, m.expected.vocabulary);
  const auto logits = m.expected.run({prompt.begin(), prompt.end()});
  for (const std::size_t n : {std::size_t{1}, std::size_t{9}, std::size_t{4}}) {
    const auto made = model->embed(std::span(prompt).first(n));
    for (std::size_t v = 0; v < m.expected.vocabulary; ++v) {
      double one = 0;
      for (std::size_t k = 0; k < made.size(); ++k)
        one += static_cast<double>(output[v * made.size() + k]) * static_cast<double>(made[k]);
      ASSERT_NEAR(one, logits[n - 1][v], 1e-3) << n << " " << v;
    }
  }
  auto c = find_embedding(folder.own.path());
  ASSERT_TRUE(c && c->takes_types());
  c->weight_type = quantize::weight_type::int8, c->compute_type = dtype::f16;
  const auto narrow = embedder::load(*c, eigen_target());
  EXPECT_THAT(narrow->program().report().remarks,
              ::testing::Contains("weight_type int8: 14 matrices are stored so, 0 are in blocks of the file"));
  const auto whole = model->embed(prompt), rounded = narrow->embed(prompt);
  double apart = 0, most = 0;
  for (std::size_t k = 0; k < whole.size(); ++k) {
    apart = std::max(apart, std::abs(static_cast<double>(whole[k] - rounded[k])));
    most = std::max(most, std::abs(static_cast<double>(whole[k])));
  }
  EXPECT_LT(apart, 0.05 * most);
  EXPECT_GT(apart, 0);
}

TEST(embedder, states_of_a_decoder_of_16_bits_are_floats) {
  tiny_model m;
  m.config = common_config(m.expected, "llama");
  add_attention(m), add_feed_forward(m, "post_attention_layernorm"), add_head(m, false);
  const test::temporary_folder folder;
  folder.write("config.json", m.config.dump());
  folder.write("model.safetensors", safetensors_file(m.tensors));
  const auto about = find_weights(folder.path());
  ASSERT_TRUE(about);
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    const auto made = detail::build_decoder(detail::open_weights(*about), about->type,
                                            {.now = dimension::symbol("tokens", 1),
                                             .past = dimension::symbol("past", 0),
                                             .compute = type,
                                             .states_alone = true});
    compile_options o;
    o.threads = 1;
    const executable exe = compile(made.graph, eigen_target(), o);
    ASSERT_EQ(exe.outputs().size(), 1u);
    EXPECT_EQ(exe.outputs()[0].name, "last_hidden_state");
    EXPECT_EQ(exe.outputs()[0].type.type, dtype::f32) << to_string(type);
  }
}

TEST(embedder, serves_several_threads) {
  const embedding_folder folder;
  const auto model = load(folder.own.path());
  const auto expected = model->embed(text), other = model->embed(tokens{5, 6});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        EXPECT_EQ(model->embed(text), expected);
        EXPECT_EQ(model->embed(tokens{5, 6}), other);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(embedder, folders_that_say_something_else_are_named) {
  EXPECT_FALSE(find_embedding("/nowhere"));
  const embedding_folder folder;
  const auto says = [&](const std::string& file, const std::string& bytes) {
    folder.own.write(file, bytes);
    return message_of([&] { find_embedding(folder.own.path()); });
  };
  const auto module = [](const std::string& type, const std::string& path) {
    return nlohmann::json{{"path", path}, {"type", "sentence_transformers.models." + type}};
  };
  const auto modules = [&](std::initializer_list<nlohmann::json> all) {
    return says("modules.json", nlohmann::json(all).dump());
  };
  EXPECT_THAT(says("modules.json", "[1"), HasSubstr("modules.json"));
  EXPECT_THAT(says("modules.json", "[]"), HasSubstr("expected a list of modules"));
  EXPECT_THAT(says("modules.json", "[3]"), HasSubstr("type: expected a string"));
  EXPECT_THAT(modules({module("Transformer", ""), module("Pooling", "1_Pooling"), module("Dense", "2")}),
              HasSubstr("found sentence_transformers.models.Dense at place 2"));
  EXPECT_THAT(modules({module("Transformer", "")}), HasSubstr("expected a module Pooling"));
  EXPECT_THAT(modules({module("Transformer", "../other"), module("Pooling", "1_Pooling")}),
              HasSubstr("inside the model's"));
  modules({module("Transformer", ""), module("Pooling", "1_Pooling")});
  EXPECT_THAT(says("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true})"),
              HasSubstr("expected one way of pooling, found 2"));
  EXPECT_THAT(says("1_Pooling/config.json", R"({"pooling_mode_cls_token": 1})"), HasSubstr("expected true or false"));
  EXPECT_THAT(says("1_Pooling/config.json", "{}"), HasSubstr("found 0"));
  EXPECT_EQ(says("1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})"), "no error");
  EXPECT_EQ(find_embedding(folder.own.path())->by, pooling::last);
}

}  // namespace
}  // namespace kiln::language::testing
