#include <cstdlib>
#include <regex>

#include "driver/program.hpp"

// kiln genai: folders of language models at the command line.
namespace kiln::driver {
namespace {

const std::string scripture = KILN_SOURCE_DIR "/examples/models/scripture";

class genai_program : public program {
 protected:
  static json golden() { return json::parse(content(scripture + "/golden.json")); }
  // The folder with a template, as chat models have one.
  std::string folder_with_template() {
    for (const char* name : {"genai_config.json", "model.onnx", "tokenizer.json"})
      fs::copy_file(scripture + "/" + name, (fs::create_directories(at("model")), at("model/" + std::string(name))));
    write("model/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    return at("model");
  }
};

TEST_F(genai_program, run_continues_a_prompt_as_pytorch_does) {
  for (const json& g : golden()) {
    const std::size_t length = g["greedy_ids"].size();
    const outcome o = kiln("genai run " + scripture + " --echo --prompt '" + g["prompt"].get<std::string>() +
                           "' --search max_length=" + std::to_string(length));
    EXPECT_EQ(o.status, 0) << o.error;
    EXPECT_EQ(o.out, g["text"].get<std::string>() + "\n");
  }
}

TEST_F(genai_program, run_guesses_ahead_and_keeps_to_a_grammar) {
  const json g = golden()[0];
  const std::string prompt = " --prompt '" + g["prompt"].get<std::string>() + "' ";
  const outcome ahead = kiln("genai run " + scripture + " --echo" + prompt +
                             "--search max_length=" + std::to_string(g["greedy_ids"].size()) +
                             " --speculative ngram_size=3 --speculative ngram_chained_lookup=true");
  EXPECT_EQ(ahead.out, g["text"].get<std::string>() + "\n") << ahead.error;
  for (const char* number : {"nan", "inf", "-inf", "1e999"}) {
    const outcome odd = kiln("genai run " + scripture + prompt + "--speculative ngram_size=" + number);
    EXPECT_NE(odd.status, 0);
    EXPECT_NE(odd.error.find("--speculative ngram_size: expected a number"), std::string::npos) << odd.error;
  }
  write("g.lark", "start: \"number \" INT\nINT: /[1-9]{2}/");
  const outcome guided =
      kiln("genai run " + scripture + prompt + "--forced-tokens --guidance lark_grammar=@" + at("g.lark"));
  EXPECT_EQ(guided.status, 0) << guided.error;
  EXPECT_TRUE(std::regex_match(guided.out, std::regex("number [1-9]{2}\n"))) << guided.out;
  EXPECT_NE(kiln("genai run " + scripture + prompt + "--guidance lark=a").status, 0);
  const outcome none = kiln("genai run " + scripture + prompt + "--adapter " + at("g.lark"));
  EXPECT_NE(none.status, 0);
  EXPECT_NE(none.error.find("TORT"), std::string::npos) << none.error;
}

TEST_F(genai_program, run_ends_at_a_stop_string_and_takes_a_draft_model_from_elsewhere) {
  const json g = golden()[0];
  const std::string prompt = " --prompt '" + g["prompt"].get<std::string>() +
                             "' --search max_length=" + std::to_string(g["greedy_ids"].size());
  const std::string all = g["text"].get<std::string>(), made = all.substr(g["prompt"].get<std::string>().size());
  const std::string stop = made.substr(11, 5);
  const outcome cut = kiln("genai run " + scripture + prompt + " --stop '" + stop + "' --stop 'no text of it'");
  EXPECT_EQ(cut.out, made.substr(0, made.find(stop)) + "\n") << cut.error;
  const outcome as_json = kiln("genai run " + scripture + prompt + " --json --stop '" + stop + "'");
  const json out = json::parse(as_json.out)["sequences"][0];
  EXPECT_EQ(out["text"], made.substr(0, made.find(stop)));
  EXPECT_EQ(out["ended_by"], "stop_string");
  const outcome ahead = kiln("genai run " + scripture + " --echo" + prompt + " --draft " + scripture + "/model.onnx");
  EXPECT_EQ(ahead.out, all + "\n") << ahead.error;
}

TEST_F(genai_program, run_gives_tokens_of_beams_as_json) {
  const json g = golden()[0];
  const outcome o = kiln("genai run " + scripture + " --json --prompt '" + g["prompt"].get<std::string>() +
                         "' --search max_length=12 --search num_beams=4 --search num_return_sequences=2");
  ASSERT_EQ(o.status, 0) << o.error;
  const json out = json::parse(o.out);
  EXPECT_EQ(out["prompt_tokens"], g["prompt_ids"].size());
  ASSERT_EQ(out["sequences"].size(), 2u);
  EXPECT_NE(out["sequences"][0]["tokens"], out["sequences"][1]["tokens"]);
  for (const json& s : out["sequences"])
    EXPECT_EQ(json(std::vector<json>(s["tokens"].begin(), s["tokens"].begin() + 4)), g["prompt_ids"]);
}

TEST_F(genai_program, chat_answers_each_line_after_all_that_was_said) {
  const std::string folder = folder_with_template(), prompt = golden()[0]["prompt"];
  write("lines", prompt + "\n");
  const std::string one =
      KILN_PROGRAM " genai chat " + folder + " --search max_length=24 <" + at("lines") + " >" + at("out");
  ASSERT_EQ(std::system(one.c_str()), 0);
  const outcome run = kiln("genai run " + folder + " --chat --prompt '" + prompt + "' --search max_length=24");
  EXPECT_EQ(content(at("out")), "> " + run.out + "> \n");
  expect_refused("genai chat " + scripture, "no chat template");
}

TEST_F(genai_program, bench_has_genais_columns) {
  const outcome o = kiln("genai bench " + scripture + " -l 8 -g 4 -r 2 -w 1 -b 2 --json -o " + at("bench.csv"));
  ASSERT_EQ(o.status, 0) << o.error;
  const json out = json::parse(o.out);
  EXPECT_EQ(out["Batch Size"], 2);
  EXPECT_EQ(out["Max Length"], 12);
  EXPECT_GT(out["Token Generation Throughput (tps)"], 0);
  EXPECT_LE(out["Time to First Token (ms)"], 1e3 * out["Wall Clock Time (s)"].get<double>());
  EXPECT_THAT(content(at("bench.csv")), HasSubstr("Batch Size,Prompt Length,Tokens Generated,Max Length,Tokenization"));
}

TEST_F(genai_program, tokenize_goes_there_and_back) {
  const json g = golden()[0];
  const outcome o = kiln("genai tokenize " + scripture + " --json --text '" + g["prompt"].get<std::string>() + "'");
  ASSERT_EQ(o.status, 0) << o.error;
  EXPECT_EQ(json::parse(o.out)["ids"], g["prompt_ids"]);
  EXPECT_EQ(json::parse(o.out)["text"], g["prompt"]);
}

TEST_F(genai_program, faults_are_told) {
  expect_refused("genai run " + at("nothing"), "genai_config.json");
  expect_refused("genai run " + scripture + " --prompt x --search best_of=3", "no search option 'best_of'");
  expect_refused("genai run " + scripture + " --prompt x --search top_k", "NAME=VALUE");
  expect_refused("genai run " + scripture + " --prompt x --search top_k=many", "a number, true or false");
  expect_refused("genai run " + scripture + " --prompt x --search max_length=1000", "context_length (256)");
}

}  // namespace
}  // namespace kiln::driver
