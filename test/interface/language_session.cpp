// What a configuration says of where and how its decoder is run.
#include "kiln/interface/language_session.hpp"

#include <gmock/gmock.h>

#include "kiln/core/error.hpp"

namespace kiln::language {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
    EXPECT_THAT(s.remarks, IsEmpty());
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

TEST(language_session, options_are_compile_options) {
  const session s = session_of(with(
      R"([{"MIGraphX": {"threads": "4", "exhaustive_tune": "1", "tuning_file": "t", "cache_dir": "c", "fp16_enable": "1",
           "bf16_enable": "0", "int8_enable": "0"}}])"));
  EXPECT_EQ(s.options.threads, 4u);
  EXPECT_TRUE(s.options.tune);
  EXPECT_EQ(s.options.tuning_file, "t");
  EXPECT_EQ(s.options.cache, "c");
  EXPECT_THAT(s.remarks, ElementsAre(HasSubstr("fp16_enable")));
}

TEST(language_session, says_what_is_wrong) {
  EXPECT_THAT(message_of(with(R"([{"cuda": {}}])")), HasSubstr("provider 'cuda'"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"speed": "1"}}])")), HasSubstr("expected one of target, device_id"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"device_id": "one"}}])")), HasSubstr("a whole number, found 'one'"));
  EXPECT_THAT(message_of(with(R"([{"MIGraphX": {"fp8_enable": "true"}}])")), HasSubstr("'fp8_enable'"));
  config two = with(R"([{"MIGraphX": {}}])");
  append_provider(two, "cpu"), append_provider(two, "MIGRAPHX");
  EXPECT_EQ(message_of(two), "no error");
  append_provider(two, "rocm");
  EXPECT_THAT(message_of(two), HasSubstr("found 'MIGraphX' and 'rocm'"));
}

}  // namespace
}  // namespace kiln::language
