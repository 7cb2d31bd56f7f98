// What a configuration says of where and how its decoder is run.
#include "kiln/interface/language_session.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "kiln/core/error.hpp"
#include "kiln/generate/generator.hpp"

namespace kiln::language {
namespace {

using ::testing::HasSubstr;

config with(std::string_view provider_options, std::string_view rest = "") {
  config c;
  overlay(c, R"({"model": {"decoder": {"session_options": {"provider_options": )" + std::string(provider_options) +
                 std::string(rest) + "}}}}");
  return c;
}
std::string message_of(const config& c) {
  try {
    session_of(c);
  } catch (const error& e) {
    return e.message();
  }
  return "no error";
}

TEST(language_session, no_provider_and_cpu_are_the_processor) {
  for (const char* options : {"[]", R"([{"cpu": {}}])", R"([{"CPUExecutionProvider": {}}])", R"([{"MIGraphX": {}}])"}) {
    const session s = session_of(with(options, R"(, "intra_op_num_threads": 3)"), 5);
    EXPECT_EQ(s.target, "eigen") << options;
    EXPECT_EQ(s.options.threads, 3u);
    EXPECT_FALSE(s.on_gpu());
  }
}

TEST(language_session, a_gpu_is_asked_for_by_hardware_or_target) {
  const auto target_of = [](std::string_view options) { return session_of(with(options), 5).target; };
  EXPECT_EQ(target_of(R"([{"rocm": {"device_id": "2", "device_filtering_options": {"hardware_device_type": "GPU"}}}])"),
            "hip:2");
  EXPECT_EQ(target_of(R"([{"MIGraphX": {"device_filtering_options": {"hardware_device_type": "gpu"}}}])"), "hip:5");
  EXPECT_EQ(target_of(R"([{"name": "AMDGPU", "options": {"migraphx_target": "gpu", "migraphx_device_id": 1}}])"),
            "hip:1");
  EXPECT_EQ(target_of(R"([{"MIGraphX": {"target": "hip:gfx90a"}}])"), "hip:gfx90a");
  EXPECT_TRUE(session_of(with(R"([{"MIGraphX": {"target": "gpu"}}])")).on_gpu());
}

TEST(language_session, a_device_that_is_not_used_is_remarked) {
  const auto remarks_of = [](std::string_view options) { return session_of(with(options), 5).remarks; };
  EXPECT_THAT(remarks_of(R"([{"MIGraphX": {"device_id": "2"}}])"),
              ::testing::ElementsAre(HasSubstr("device_id 2 of provider MIGraphX has no effect")));
  EXPECT_THAT(remarks_of(R"([{"MIGraphX": {"device_id": "2", "target": "gpu"}}])"), ::testing::IsEmpty());
  EXPECT_THAT(
      remarks_of(R"([{"rocm": {"device_filtering_options": {"hardware_device_id": 3, "hardware_vendor_id": 1}}}])"),
      ::testing::ElementsAre(HasSubstr("hardware_device_id 3"), HasSubstr("hardware_vendor_id 1")));
}

TEST(language_session, options_are_compile_options) {
  const session s = session_of(with(
      R"([{"MIGraphX": {"threads": "4", "exhaustive_tune": "1", "tuning_file": "t", "cache_dir": "c", "fp16_enable": "1",
           "bf16_enable": "0", "int8_enable": "0", "accuracy_level_4": "1"}}])"));
  EXPECT_EQ(s.options.threads, 4u);
  EXPECT_TRUE(s.options.tune);
  EXPECT_EQ(s.options.tuning_file, "t");
  EXPECT_EQ(s.options.cache, "c");
  EXPECT_EQ(s.precision, quantize::precision::f16);
  EXPECT_TRUE(s.bytes_suffice);
  EXPECT_FALSE(session_of(with(R"([{"MIGraphX": {}}])")).bytes_suffice);
}

// Products of 16-bit floats, and caches that still grow in place.
TEST(language_session, a_model_is_computed_in_16_bits) {
  const auto scores_of = [](const char* options) {
    config c = read_config(KILN_SOURCE_DIR "/examples/models/scripture");
    c.decoder.session = with(options).decoder.session;
    const auto model = load_model(c, session_of(c));
    generator g(model);
    g.append_tokens(tokens{5, 6, 7, 8});
    g.generate_next_token();
    EXPECT_GT(g.cache_bytes(), 0u);
    const argument made = g.logits();
    return std::vector<float>(made.as<float>().begin(), made.as<float>().end());
  };
  const auto plain = scores_of("[]"), half = scores_of(R"([{"MIGraphX": {"fp16_enable": "1"}}])");
  ASSERT_EQ(plain.size(), half.size());
  double most = 0;
  for (std::size_t k = 0; k < plain.size(); ++k) most = std::max(most, std::abs(double(plain[k]) - half[k]));
  EXPECT_GT(most, 1e-5) << "nothing was rounded";
  EXPECT_LT(most, 0.1) << "scores of 11 bits";
}

TEST(language_session, says_what_is_wrong) {
  EXPECT_THAT(message_of(with(R"([{"cuda": {}}])")), HasSubstr("provider 'cuda'"));
  EXPECT_THAT(message_of(with(
                  R"([{"MIGraphX": {"target": "gpu", "device_filtering_options": {"hardware_device_type": "cpu"}}}])")),
              HasSubstr("hardware_device_type cpu and target gpu exclude each other"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"speed": "1"}}])")), HasSubstr("expected one of target, device_id"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"device_id": "one"}}])")), HasSubstr("a whole number, found 'one'"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"fp8_enable": "true"}}])")), HasSubstr("'fp8_enable'"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"fp16_enable": "1", "bf16_enable": "1"}}])")),
              HasSubstr("exclude each other"));
  config two = with(R"([{"MIGraphX": {}}])");
  append_provider(two, "cpu"), append_provider(two, "MIGRAPHX");
  EXPECT_EQ(message_of(two), "no error");
  append_provider(two, "rocm");
  EXPECT_THAT(message_of(two), HasSubstr("found 'MIGraphX' and 'rocm'"));
}

}  // namespace
}  // namespace kiln::language
