// genai_config.json: what is read, how overlays merge, what is an error.
#include <gmock/gmock.h>

#include <fstream>

#include "kiln/core/error.hpp"
#include "kiln/generate/config.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::language::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

config parsed(std::string_view json) {
  config c;
  overlay(c, json, "genai_config.json");
  return c;
}
std::string fault_of(std::string_view json) {
  try {
    parsed(json);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::malformed);
    return e.message();
  }
  return "no error";
}

TEST(config, reads_what_a_decoder_needs) {
  const config c = parsed(R"({"model": {"type": "llama", "vocab_size": 10, "context_length": 20, "eos_token_id": [3, 4],
    "pad_token_id": 5, "bos_token_id": 1, "decoder": {"filename": "a/m.onnx", "head_size": 8,
    "session_options": {"log_id": "x", "intra_op_num_threads": 2, "enable_profiling": true},
    "sliding_window": {"window_size": 16}, "inputs": {"past_names": "past.%d"}, "outputs": {"logits": "scores"}}},
    "search": {"do_sample": true, "top_p": 0.5, "max_length": 12, "chunk_size": null}})");
  EXPECT_EQ(c.type, "llama");
  EXPECT_EQ(c.vocab_size, 10);
  EXPECT_EQ(c.context_length, 20);
  EXPECT_EQ(c.eos_token_id, (std::vector<token>{3, 4}));
  EXPECT_EQ(c.pad_token_id, 5);
  EXPECT_EQ(c.decoder.filename, "a/m.onnx");
  EXPECT_EQ(c.decoder.head_size, 8);
  EXPECT_EQ(c.decoder.session.intra_op_num_threads, 2);
  EXPECT_EQ(c.decoder.session.entries,
            (std::vector<std::pair<std::string, std::string>>{{"enable_profiling", "1"}, {"log_id", "x"}}));
  EXPECT_EQ(c.decoder.sliding_window, 16);
  EXPECT_EQ(c.decoder.inputs.past_names, "past.%d");
  EXPECT_EQ(c.decoder.outputs.logits, "scores");
  EXPECT_TRUE(c.search.do_sample);
  EXPECT_EQ(c.search.top_p, 0.5);
  EXPECT_EQ(c.search.max_length, 12);
}

provider provider_of(const std::string& entry) {
  const auto all = parsed(R"({"model": {"decoder": {"session_options": {"provider_options": [)" + entry + "]}}}}")
                       .decoder.session.providers;
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

TEST(config, providers_come_in_two_forms) {
  const provider stock = provider_of(R"({"MIGraphX": {"device_id": "0", "fp16_enable": 1}})");
  EXPECT_EQ(stock.name, "MIGraphX");
  EXPECT_EQ(stock.options,
            (std::vector<std::pair<std::string, std::string>>{{"device_id", "0"}, {"fp16_enable", "1"}}));
  const provider named = provider_of(R"({"name": "kiln", "options": {"threads": "2"}})");
  EXPECT_EQ(named.name, "kiln");
  EXPECT_EQ(named.options[0].second, "2");
  const provider filtered =
      provider_of(R"({"X": {"device_filtering_options": {"hardware_device_type": "gpu", "hardware_vendor_id": 3}}})");
  EXPECT_EQ(filtered.hardware_device_type, "gpu");
  EXPECT_EQ(filtered.hardware_vendor_id, 3);
}

TEST(config, providers_are_edited_by_any_spelling) {
  config c = parsed(R"({"model": {"decoder": {"session_options": {"provider_options": [{"cuda": {"a": "1"}}]}}}})");
  append_provider(c, "CUDAExecutionProvider");
  const auto& all = c.decoder.session.providers;
  EXPECT_EQ(all.size(), 1u);
  clear_providers(c);
  EXPECT_TRUE(all.empty());
  set_provider_option(c, "MIGraphX", "device_id", "1");
  set_provider_option(c, "migraphxexecutionprovider", "fp16_enable", "1");
  set_provider_option(c, "MIGraphXExecutionProvider", "device_id", "0");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "MIGraphX");
  EXPECT_EQ(all[0].options,
            (std::vector<std::pair<std::string, std::string>>{{"fp16_enable", "1"}, {"device_id", "0"}}));
  set_hardware_device_type(c, "migraphx", "gpu"), set_hardware_device_id(c, "migraphx", 2);
  set_hardware_vendor_id(c, "migraphx", 3), set_hardware_device_type(c, "OpenVINO", "npu");
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].hardware_device_type, "gpu");
  EXPECT_EQ(all[0].hardware_device_id, 2);
  EXPECT_EQ(all[0].hardware_vendor_id, 3);
  set_hardware_device_type(c, "migraphx", {}), set_hardware_device_id(c, "migraphx", {});
  set_hardware_vendor_id(c, "migraphx", {});
  EXPECT_FALSE(all[0].hardware_device_type || all[0].hardware_device_id || all[0].hardware_vendor_id);
}

TEST(config, an_overlay_replaces_what_it_names) {
  config c = parsed(R"({"model": {"type": "phi", "context_length": 64, "eos_token_id": 2}, "search": {"top_k": 3}})");
  overlay(c, R"({"model": {"eos_token_id": [7], "decoder": {"head_size": 4}}, "search": {"top_p": 0.25}})");
  EXPECT_EQ(c.type, "phi");
  EXPECT_EQ(c.eos_token_id, std::vector<token>{7});
  EXPECT_EQ(c.decoder.head_size, 4);
  EXPECT_EQ(c.search.top_k, 3);
  EXPECT_EQ(c.search.top_p, 0.25);
  EXPECT_THROW(overlay(c, R"({"model": {"context_length": 9, "surprise": 1}})"), error);
  EXPECT_EQ(c.context_length, 64) << "an error changes nothing";
}

// Refused when the model is made ready: its graph has tables of so many places.
TEST(config, a_folder_with_a_graph_bounds_its_context) {
  const auto names = [](const char* genai) {
    const test::temporary_folder f;
    f.write("genai_config.json", genai);
    return read_config(f.path());
  };
  config c = names(R"({"model": {"type": "llama", "context_length": 64}})");
  EXPECT_EQ(c.own_context, 64);
  for (const char* n : {"512", "32", "128"}) {
    overlay(c, R"({"model": {"context_length": )" + std::string(n) + "}}");
    EXPECT_EQ(c.own_context, 64) << n;
  }
  EXPECT_EQ(c.context_length, 128);
  config none = names(R"({"model": {"type": "llama"}})");
  for (const char* n : {"32", "512"}) overlay(none, R"({"model": {"context_length": )" + std::string(n) + "}}");
  EXPECT_FALSE(none.own_context) << "an overlay is not the folder's word";
  EXPECT_EQ(none.context_length, 512);
}

TEST(config, an_empty_end_list_is_the_padding_token) {
  EXPECT_EQ(parsed(R"({"model": {"pad_token_id": 9}})").eos_token_id, std::vector<token>{9});
}

TEST(config, faults_name_file_and_key) {
  EXPECT_THAT(fault_of(R"({"model": {"surprise": 1}})"),
              AllOf(HasSubstr("Error encountered while parsing 'genai_config.json'"), HasSubstr("model.surprise"),
                    HasSubstr("unknown key")));
  EXPECT_THAT(fault_of(R"({"search": {"best_of": 1}})"), AllOf(HasSubstr("search.best_of"), HasSubstr("max_length")));
  EXPECT_THAT(fault_of(R"({"search": {"do_sample": 1}})"), HasSubstr("true or false"));
  EXPECT_THAT(fault_of(R"({"search": {"top_p": 1.5}})"), HasSubstr("0 to 1"));
  EXPECT_THAT(fault_of(R"({"model": {"vocab_size": 1.5}})"), HasSubstr("whole number"));
  EXPECT_THAT(fault_of(R"({"model": {"vocab_size": 1e12}})"), HasSubstr("out of range"));
  EXPECT_THAT(fault_of(R"({"model": {"vocab_size": "8"}})"), HasSubstr("found string"));
  EXPECT_THAT(fault_of(R"({"model": {"context_length": 0}})"), HasSubstr("context_length must be greater than 0"));
  EXPECT_THAT(fault_of(R"({"model": {"decoder": {"filename": "../m.onnx"}}})"), HasSubstr("inside the model's folder"));
  EXPECT_THAT(fault_of(R"({"model": {"decoder": {"filename": "/m.onnx"}}})"), HasSubstr("inside the model's folder"));
  EXPECT_THAT(fault_of(R"({"engine": {"dynamic_batching": {"num_blocks": 0}}})"), HasSubstr("out of range"));
  EXPECT_THAT(fault_of(R"({"engine": {"dynamic_batching": {"gpu_utilization_factor": 2}}})"), HasSubstr("up to 1"));
  EXPECT_THAT(fault_of(R"({"engine": {"static_batching": {"block_size": 2}}})"), HasSubstr("unknown key"));
  EXPECT_THAT(fault_of(R"({"search": {"stop_strings": ["a", 2]}})"), HasSubstr("stop_strings[1]"));
  EXPECT_THAT(fault_of(R"({"model": {"decoder": {"session_options": {"provider_options": [{"A": {}, "B": {}}]}}}})"),
              HasSubstr("one provider in an object"));
  EXPECT_THAT(fault_of(R"({"model": {"decoder": {"session_options": {"provider_options": [{"A": {}}, {"B": {}}]}}}})"),
              HasSubstr("expected one provider, found 2"));
  EXPECT_THAT(fault_of(R"({"model": )"), HasSubstr("JSON"));
  EXPECT_THAT(fault_of("[]"), HasSubstr("expected an object"));
}

// A folder names no files of its reader's; a program may, of a draft model.
TEST(config, a_draft_model_may_lie_elsewhere_if_the_program_says_so) {
  const test::temporary_folder folder;
  folder.write("genai_config.json", R"({"model": {"draft": {"filename": "../draft/model.onnx"}}})");
  try {
    read_config(folder);
    FAIL();
  } catch (const error& e) {
    EXPECT_THAT(e.message(),
                AllOf(HasSubstr("model.draft.filename"), HasSubstr("a program's overlay may name another")));
  }
  for (const char* file : {"../draft/model.onnx", "/models/draft.onnx"}) {
    config c;
    overlay(c, R"({"model": {"draft": {"filename": ")" + std::string(file) + R"("}}})");
    EXPECT_EQ(c.draft->filename, file);
  }
}

TEST(search_options, stop_strings_are_texts_without_beams) {
  config c = parsed(R"({"search": {"stop_strings": "end"}})");
  EXPECT_EQ(c.search.stop_strings, std::vector<std::string>{"end"});
  overlay(c, R"({"search": {"stop_strings": ["a", "b"]}})");
  EXPECT_EQ(c.search.stop_strings, (std::vector<std::string>{"a", "b"}));
  check(c.search, 100, 40);
  search_options beams = c.search, empty = c.search;
  beams.num_beams = 2, empty.stop_strings.push_back("");
  EXPECT_THROW(check(beams, 100, 40), error);
  EXPECT_THROW(check(empty, 100, 40), error);
}

TEST(search_options, go_by_name_and_say_their_bounds) {
  search_options o;
  for (const option_name& i : search_option_table())
    i.is_flag ? set_flag(o, i.name, true) : set_number(o, i.name, i.name == "top_p" ? 0.5 : 2);
  EXPECT_EQ(o.chunk_size, 2);
  EXPECT_EQ(get_number(o, "no_repeat_ngram_size"), 2);
  EXPECT_TRUE(get_flag(o, "do_sample"));
  set_number(o, "chunk_size", -1);
  EXPECT_FALSE(o.chunk_size);
  EXPECT_THROW(set_number(o, "num_beams", 33), error);
  EXPECT_THROW(set_number(o, "batch_size", 0), error);
  EXPECT_THROW(set_number(o, "top_k", 2.5), error);
  EXPECT_THROW(set_number(o, "do_sample", 1), error);
  EXPECT_THROW(set_flag(o, "top_k", true), error);
  EXPECT_THROW(get_number(o, "nothing"), error);
}

TEST(speculative_options, go_by_name_and_come_from_the_configuration) {
  const config c = parsed(R"({"speculative": {"ngram_size": 4, "ngram_chained_lookup": true, "min_adaptive_k": 2}})");
  EXPECT_EQ(c.speculative.ngram_size, 4);
  EXPECT_TRUE(c.speculative.ngram_chained_lookup);
  EXPECT_EQ(get_number(c.speculative, "min_adaptive_k"), 2);
  EXPECT_EQ(get_number(c.speculative, "max_draft_tokens"), 4);
  EXPECT_FALSE(get_flag(c.speculative, "cooldown"));
  EXPECT_EQ(speculative_option_table().size(), 5u);
  EXPECT_THAT(fault_of(R"({"speculative": {"k": 4}})"), AllOf(HasSubstr("speculative.k"), HasSubstr("ngram_size")));
  EXPECT_THAT(fault_of(R"({"speculative": {"max_draft_tokens": 17}})"), HasSubstr("1 to 16"));
  EXPECT_THAT(fault_of(R"({"speculative": {"cooldown": 1}})"), HasSubstr("true or false"));
}

TEST(search_options, agree_with_each_other_and_the_model) {
  const auto fault = [](search_options o) -> std::string {
    try {
      check(o, 100, 40);
    } catch (const error& e) {
      return e.message();
    }
    return "";
  };
  search_options o;
  check(o, 100, 40);
  EXPECT_EQ(o.max_length, 100);
  EXPECT_THAT(fault({.num_beams = 0}), HasSubstr("'num_beams': expected 1 to 32"));
  EXPECT_THAT(fault({.batch_size = 33}), HasSubstr("'batch_size'"));
  EXPECT_THAT(fault({.max_length = 101}), HasSubstr("context_length (100)"));
  EXPECT_THAT(fault({.min_length = 51, .max_length = 50}), HasSubstr("min_length (51)"));
  EXPECT_THAT(fault({.do_sample = true, .top_k = 41}), HasSubstr("vocabulary, 40"));
  EXPECT_THAT(fault({.num_beams = 2, .num_return_sequences = 3}), HasSubstr("num_beams (2)"));
  EXPECT_EQ(fault({.do_sample = true, .num_beams = 2, .top_k = 5}), "TopK and TopP cannot be used with a beam search");
}

TEST(layer_name, stands_for_one_layer) {
  EXPECT_EQ(layer_name("past.%d.key", 12), "past.12.key");
  EXPECT_EQ(layer_name("state", 3), "state");
}

TEST(config, what_the_file_leaves_out_comes_from_those_of_transformers) {
  const test::temporary_folder f;
  f.write("genai_config.json", R"({"model": {"context_length": 64, "decoder": {"num_attention_heads": 4}}})");
  f.write("generation_config.json", R"({"eos_token_id": [7, 8], "pad_token_id": null, "temperature": 0.5})");
  f.write("config.json",
          R"({"model_type": "phi3", "max_position_embeddings": 4096, "eos_token_id": 2, "pad_token_id": 0,
    "bos_token_id": 1, "hidden_size": 96, "num_attention_heads": 8, "num_key_value_heads": 2, "rope_scaling": null})");
  const config c = read_config(f.path());
  EXPECT_EQ(c.type, "phi3");
  EXPECT_EQ(c.context_length, 64);
  EXPECT_EQ(c.eos_token_id, (std::vector<token>{7, 8}));
  EXPECT_EQ(c.pad_token_id, 0);
  EXPECT_EQ(c.bos_token_id, 1);
  EXPECT_EQ(c.decoder.num_attention_heads, 4);
  EXPECT_EQ(c.decoder.num_key_value_heads, 2);
  EXPECT_EQ(c.decoder.head_size, 24);
  EXPECT_EQ(c.decoder.filename, "model.onnx");
}

TEST(config, a_folder_with_one_model_needs_no_file) {
  const test::temporary_folder f;
  const auto fault = [&] {
    try {
      read_config(f.path());
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::not_found);
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_THAT(fault(), AllOf(HasSubstr("no genai_config.json in"), HasSubstr("but 0")));
  f.write("decoder.onnx", "");
  EXPECT_EQ(read_config(f.path()).decoder.filename, "decoder.onnx");
  f.write("config.json", R"({"eos_token_id": "end"})");
  EXPECT_THROW(read_config(f.path()), error);
  f.write("config.json", R"({"n_positions": 1024, "model_type": "gpt2"})");
  EXPECT_EQ(read_config(f.path()).context_length, 1024);
  EXPECT_EQ(read_config(f.path()).type, "");
  f.write("other.onnx", "");
  EXPECT_THAT(fault(), HasSubstr("but 2"));
}

}  // namespace
}  // namespace kiln::language::testing
