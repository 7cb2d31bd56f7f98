#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "kiln/core/error.hpp"
#include "kiln/interface/onnxruntime/provider_options.hpp"

namespace kiln::onnxruntime {
namespace {

using pairs = std::vector<std::pair<std::string, std::string>>;
using variables = std::map<std::string, std::string>;

provider_options read(const pairs& given, const variables& set = {}) {
  return read_provider_options(given, [&](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

std::string fault_of(const pairs& given, const variables& set = {}) {
  try {
    read(given, set);
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

TEST(provider_options, every_name_sets_its_option_and_every_spelling_of_a_flag_is_read) {
  for (const provider_option& o : provider_option_table()) {
    std::vector<std::string_view> names{o.name};
    names.insert(names.end(), o.also.begin(), o.also.end());
    if (o.kind != option_kind::flag) continue;
    for (const std::string_view name : names)
      for (const char* yes : {"1", "true", "True"}) {
        pairs given{{std::string(name), yes}};
        if (o.name == "migraphx_int8_enable" || o.name == "migraphx_fp8_enable")
          given.emplace_back("migraphx_int8_calibration_table_name", "t");
        EXPECT_EQ(o.get(read(given)), "true") << name;
        given[0].second = yes[0] == '1' ? "0" : "False";
        EXPECT_EQ(o.get(read(given)), "false") << name;
      }
  }
}

TEST(provider_options, the_environment_comes_before_the_session) {
  EXPECT_TRUE(read({}, {{"ORT_MIGRAPHX_FP16_ENABLE", "1"}}).fp16);
  EXPECT_FALSE(read({{"migraphx_fp16_enable", "1"}}, {{"ORT_MIGRAPHX_FP16_ENABLE", "0"}}).fp16);
  const provider_options by_environment_alone =
      read({}, {{"ORT_MIGRAPHX_INT8_ENABLE", "1"}, {"ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME", "t.json"}});
  EXPECT_TRUE(by_environment_alone.int8);
  EXPECT_EQ(by_environment_alone.calibration_table, "t.json");
  EXPECT_THAT(fault_of({}, {{"ORT_MIGRAPHX_FP16_ENABLE", "maybe"}}), ::testing::HasSubstr("ORT_MIGRAPHX_FP16_ENABLE"));
}

TEST(provider_options, contradictions_are_errors) {
  EXPECT_THAT(fault_of({{"migraphx_fp16_enable", "1"}, {"migraphx_bf16_enable", "1"}}),
              ::testing::HasSubstr("exclude"));
  EXPECT_THAT(fault_of({{"migraphx_int8_enable", "1"}}), ::testing::HasSubstr("calibration table"));
  EXPECT_THAT(fault_of({{"fp16_enable", "1"}, {"migraphx_fp16_enable", "0"}}), ::testing::HasSubstr("one value"));
  EXPECT_EQ(fault_of({{"fp16_enable", "1"}, {"migraphx_fp16_enable", "True"}}), "");
  EXPECT_THAT(fault_of({{"migraphx_fp61_enable", "1"}}), ::testing::HasSubstr("migraphx_fp16_enable"));
  EXPECT_THAT(fault_of({{"threads", "-1"}}), ::testing::HasSubstr("a whole number"));
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view n : names) out += (out.empty() ? "`" : ", `") + std::string(n) + "`";
  return out;
}

std::string cell(const std::string& text) { return text.empty() ? " |" : " " + text + " |"; }

TEST(provider_options, the_page_has_the_table) {
  std::string expected = "| option | also | environment | default | meaning |\n|---|---|---|---|---|\n";
  for (const provider_option& o : provider_option_table())
    expected += "| `" + std::string(o.name) + "` |" + cell(listed(o.also)) + cell(listed(o.environment)) +
                cell(o.default_text()) + cell(std::string(o.help)) + "\n";
  std::ifstream in(KILN_SOURCE_DIR "/docs/onnxruntime.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::string from = "<!-- options -->\n";
  const std::size_t begin = page.find(from) + from.size();
  EXPECT_EQ(page.substr(begin, page.find("<!-- end of options -->") - begin), expected);
}

TEST(provider_options, names_are_unique) {
  std::vector<std::string_view> seen;
  for (const provider_option& o : provider_option_table()) {
    std::vector<std::string_view> names{o.name};
    names.insert(names.end(), o.also.begin(), o.also.end());
    names.insert(names.end(), o.environment.begin(), o.environment.end());
    for (const std::string_view name : names) {
      EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0) << name;
      seen.push_back(name);
    }
  }
}

}  // namespace
}  // namespace kiln::onnxruntime
