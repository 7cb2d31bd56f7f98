#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

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

std::vector<std::string_view> names_of(const provider_option& o) {
  std::vector<std::string_view> names{o.name};
  names.insert(names.end(), o.also.begin(), o.also.end());
  return names;
}

// Options that ask for what kiln does not do: every value but the default is refused.
bool is_refused(const provider_option& o) {
  static const std::vector<std::string_view> refused{
      "dump_ep_context_model", "static_pad_seq", "static_pad_seq_len",        "static_pad_inputs",
      "static_pad_outputs",    "coalesce_io",    "migraphx_hip_graph_enable", "mlss_use_specific_ops"};
  return std::find(refused.begin(), refused.end(), o.name) != refused.end();
}

TEST(provider_options, every_name_sets_its_option_and_every_spelling_of_a_flag_is_read) {
  for (const provider_option& o : provider_option_table()) {
    if (o.kind != option_kind::flag) continue;
    for (const std::string_view name : names_of(o))
      for (const auto& [yes, no] : {std::pair{"1", "0"}, {"true", "false"}, {"True", "False"}}) {
        pairs given{{std::string(name), yes}};
        if (o.name == "migraphx_int8_enable" || o.name == "migraphx_fp8_enable")
          given.emplace_back("migraphx_int8_calibration_table_name", "t");
        if (o.name == "has_user_compute_stream")
          given.insert(given.end(), {{"user_compute_stream", "64"}, {"target", "gpu"}});
        if (is_refused(o)) {
          EXPECT_THAT(fault_of(given), ::testing::HasSubstr(std::string(o.name) + ": "));
        } else {
          EXPECT_EQ(o.get(read(given)), "true") << name;
        }
        EXPECT_EQ(o.get(read({{std::string(name), no}})), "false") << name;
      }
  }
}

TEST(provider_options, what_kiln_does_not_do_is_refused_with_the_reason) {
  for (const provider_option& o : provider_option_table()) {
    if (!is_refused(o)) continue;
    for (const std::string_view name : names_of(o)) {
      EXPECT_THAT(fault_of({{std::string(name), o.kind == option_kind::text ? "x" : "1"}}),
                  ::testing::HasSubstr(std::string(o.name) + ": "));
      EXPECT_EQ(fault_of({{std::string(name), o.default_text()}}), "") << name;
    }
  }
  EXPECT_THAT(fault_of({{"user_compute_stream", "64"}}), ::testing::HasSubstr("target gpu"));
}

TEST(provider_options, every_value_of_other_kinds_is_read_by_every_name) {
  const std::map<std::string_view, pairs> values{
      {"migraphx_mem_limit", {{"1048576", "1048576"}, {"18446744073709551615", "18446744073709551615"}}},
      {"migraphx_arena_extend_strategy",
       {{"kSameAsRequested", "kSameAsRequested"}, {"0", "kNextPowerOfTwo"}, {"1", "kSameAsRequested"}}},
      {"compute_mode", {{"0", "eager"}, {"50", "balanced"}, {"100", "maximum"}, {"maximum", "maximum"}}},
      {"migraphx_compile_batches", {{"1,4,8", "1,4,8"}}},
      {"migraphx_max_dynamic_batch", {{"8", "8"}}},
      {"migraphx_max_compiled_models", {{"3", "3"}}},
      {"model_arch", {{"bert", "bert"}}},
      {"problem_cache", {{"/tmp/p", "/tmp/p"}}},
      {"migraphx_save_compiled_path", {{"/tmp/a.mxr", "/tmp/a.mxr"}}},
      {"migraphx_load_compiled_path", {{"/tmp/a.mxr", "/tmp/a.mxr"}}}};
  for (const auto& [option, all] : values) {
    const auto table = provider_option_table();
    const auto o = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == option; });
    ASSERT_NE(o, table.end()) << option;
    for (const auto& [text, stored] : all)
      for (const std::string_view name : names_of(*o)) EXPECT_EQ(o->get(read({{std::string(name), text}})), stored);
    for (const std::string_view variable : o->environment)
      EXPECT_EQ(o->get(read({}, {{std::string(variable), all.front().first}})), all.front().second) << variable;
  }
}

TEST(provider_options, batches_are_listed_or_follow_from_the_greatest) {
  using sizes = std::vector<std::int64_t>;
  EXPECT_EQ(read({}).batches(), sizes());
  EXPECT_EQ(read({{"compile_batches", "8, 1,4,4"}}).batches(), (sizes{1, 4, 8}));
  EXPECT_EQ(read({{"max_dynamic_batch", "12"}}).batches(), (sizes{12}));
  EXPECT_EQ(read({{"max_dynamic_batch", "12"}, {"max_compiled_models", "2"}}).batches(), (sizes{1, 12}));
  EXPECT_EQ(read({{"max_dynamic_batch", "16"}, {"max_compiled_models", "3"}}).batches(), (sizes{1, 4, 16}));
  EXPECT_EQ(read({{"max_dynamic_batch", "5"}, {"max_compiled_models", "9"}}).batches(), (sizes{1, 2, 4, 5}));
  EXPECT_EQ(read({{"max_dynamic_batch", "1"}, {"max_compiled_models", "3"}}).batches(), (sizes{1}));
  for (const char* bad : {"1,,2", "0", "x", "1,", "-1"})
    EXPECT_THAT(fault_of({{"compile_batches", bad}}), ::testing::HasSubstr("whole numbers from 1")) << bad;
}

TEST(provider_options, a_table_of_a_relative_name_lies_in_its_folder) {
  const pairs int8{{"migraphx_int8_enable", "1"}, {"migraphx_int8_calibration_table_name", "t.json"}};
  EXPECT_EQ(read(int8).table_file(), "t.json");
  EXPECT_EQ(read(int8, {{"ORT_MIGRAPHX_CACHE_PATH", "/tmp/tables"}}).table_file(), "/tmp/tables/t.json");
  EXPECT_EQ(read({{"migraphx_int8_enable", "1"}, {"migraphx_int8_calibration_table_name", "/a/t.json"}},
                 {{"ORT_MIGRAPHX_CACHE_PATH", "/tmp/tables"}})
                .table_file(),
            "/a/t.json");
}

TEST(provider_options, json_has_the_table_and_the_values) {
  const auto table = nlohmann::json::parse(provider_option_table_json());
  ASSERT_EQ(table.size(), provider_option_table().size());
  EXPECT_EQ(table[1]["name"], "migraphx_fp16_enable");
  EXPECT_EQ(table[1]["also"][0], "fp16_enable");
  EXPECT_EQ(table[1]["default"], "0");
  const auto values = nlohmann::json::parse(
      provider_options_json(read({{"fp16_enable", "True"}}, {{"ORT_MIGRAPHX_SAVE_COMPILE_PATH", "/a.mxr"}})));
  EXPECT_EQ(values.size(), table.size());
  EXPECT_EQ(values["migraphx_fp16_enable"], "1");
  EXPECT_EQ(values["migraphx_bf16_enable"], "0");
  EXPECT_EQ(values["migraphx_save_compiled_path"], "/a.mxr");
}

TEST(provider_options, the_environment_comes_before_the_session) {
  EXPECT_TRUE(read({}, {{"ORT_MIGRAPHX_FP16_ENABLE", "1"}}).fp16);
  EXPECT_FALSE(read({{"migraphx_fp16_enable", "1"}}, {{"ORT_MIGRAPHX_FP16_ENABLE", "0"}}).fp16);
  const provider_options by_environment_alone =
      read({}, {{"ORT_MIGRAPHX_INT8_ENABLE", "1"}, {"ORT_MIGRAPHX_INT8_CALIBRATION_TABLE_NAME", "t.json"}});
  EXPECT_TRUE(by_environment_alone.int8);
  EXPECT_EQ(by_environment_alone.calibration_table, "t.json");
  EXPECT_THAT(fault_of({}, {{"ORT_MIGRAPHX_FP16_ENABLE", "maybe"}}), ::testing::HasSubstr("ORT_MIGRAPHX_FP16_ENABLE"));
  EXPECT_EQ(read({{"cache_dir", "/s"}}, {{"ORT_MIGRAPHX_CACHE_DIR", "/e"}}).cache_dir, "/e");
}

TEST(provider_options, two_variables_of_one_option_have_one_value) {
  const auto both = [](const char* first, const char* second) {
    return fault_of({}, {{"ORT_MIGRAPHX_SAVE_COMPILED_PATH", first}, {"ORT_MIGRAPHX_SAVE_COMPILE_PATH", second}});
  };
  EXPECT_EQ(both("/a", "/a"), "");
  EXPECT_THAT(both("/a", "/b"), AllOf(::testing::HasSubstr("one option has one value"),
                                      ::testing::HasSubstr("ORT_MIGRAPHX_SAVE_COMPILED_PATH = '/a'"),
                                      ::testing::HasSubstr("ORT_MIGRAPHX_SAVE_COMPILE_PATH = '/b'")));
  EXPECT_EQ(fault_of({}, {{"ORT_MIGRAPHX_DUMP_MODEL_OPS", "1"}, {"ORT_MIGRAPHX_DUMP_SUBGRAPHS", "True"}}), "");
}

TEST(provider_options, contradictions_are_errors) {
  EXPECT_THAT(fault_of({{"migraphx_fp16_enable", "1"}, {"migraphx_bf16_enable", "1"}}),
              ::testing::HasSubstr("exclude"));
  EXPECT_THAT(fault_of({{"migraphx_int8_enable", "1"}}), ::testing::HasSubstr("calibration table"));
  EXPECT_THAT(fault_of({{"fp16_enable", "1"}, {"migraphx_fp16_enable", "0"}}), ::testing::HasSubstr("one value"));
  EXPECT_EQ(fault_of({{"fp16_enable", "1"}, {"migraphx_fp16_enable", "True"}}), "");
  EXPECT_THAT(fault_of({{"migraphx_fp61_enable", "1"}}), ::testing::HasSubstr("migraphx_fp16_enable"));
  EXPECT_THAT(fault_of({{"threads", "-1"}}), ::testing::HasSubstr("a whole number"));
  EXPECT_THAT(fault_of({{"external_alloc", "64"}}), ::testing::HasSubstr("come together"));
  EXPECT_THAT(fault_of({{"external_empty_cache", "64"}}), ::testing::HasSubstr("migraphx_external_alloc"));
  for (const char* name : {"exhaustive_tune", "compile_batches", "max_dynamic_batch"})
    EXPECT_THAT(fault_of({{"compute_mode", "eager"}, {name, "1"}}),
                ::testing::HasSubstr("compute_mode eager and migraphx_" + std::string(name) + " exclude each other"));
  EXPECT_EQ(fault_of({{"compute_mode", "eager"}, {"compile_batches", ""}, {"max_dynamic_batch", "0"}}), "");
  const pairs stream{{"target", "gpu"}, {"user_compute_stream", "64"}};
  EXPECT_TRUE(read(stream).has_user_stream);
  pairs none = stream;
  none.emplace_back("has_user_compute_stream", "0");
  EXPECT_THAT(fault_of(none), ::testing::HasSubstr("has_user_compute_stream 0 and user_compute_stream exclude"));
  EXPECT_EQ(fault_of({{"user_compute_stream", "0"}, {"has_user_compute_stream", "0"}}), "");
  EXPECT_THAT(fault_of({{"save_compiled_model", "1"}, {"save_compiled_path", ""}}),
              ::testing::HasSubstr("migraphx_save_compiled_path"));
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
