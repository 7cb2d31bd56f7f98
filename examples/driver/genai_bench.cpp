#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "command_line.hpp"
#include "files.hpp"
#include "genai.hpp"
#include "genai_model.hpp"
#include "json.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {

struct bench_flags : genai_flags {
  std::size_t batch = 1, prompt = 16, made = 128, runs = 10, warm_up = 2;
  std::string csv;
  bool as_json = false;
};

// One generation, in milliseconds; the tokenizer's time is of the prompt's text.
struct timed_run {
  double tokenize = 0, prompt = 0, first = 0, steps = 0, choose = 0, whole = 0;
};

timed_run once(const genai_model& m, const bench_flags& flags, const std::string& text,
               const language::tokens& prompt) {
  timed_run t;
  stopwatch whole;
  {
    const stopwatch since;
    for (std::size_t b = 0; b < flags.batch; ++b) m.tokens.encode(text);
    t.tokenize = since.ms();
  }
  language::search_options search = m.options.search;
  search.batch_size = static_cast<std::int64_t>(flags.batch);
  search.max_length = static_cast<std::int64_t>(flags.prompt + flags.made);
  search.min_length = search.max_length;  // every run makes as many
  language::generator g = new_generator(m, search);
  const stopwatch since;
  g.append_sequences(std::vector<language::tokens>(flags.batch, prompt));
  t.prompt = since.ms();
  for (std::size_t k = 0; !g.is_done(); ++k) {
    const stopwatch step;
    if (k > 0) g.logits();
    const stopwatch choice;
    g.generate_next_token();
    t.choose += choice.ms();
    if (k == 0)
      t.first = since.ms();
    else
      t.steps += step.ms();
  }
  t.whole = whole.ms();
  return t;
}

int bench(const bench_flags& flags) {
  if (flags.prompt == 0 || flags.made < 2 || flags.runs == 0 || flags.batch == 0)
    throw usage_error("genai bench: at least one run, one sequence, one token of a prompt and two made ones");
  genai_flags given = flags;
  given.share_prefixes = false;  // all repetitions have one prompt
  const genai_model m = load_genai_model(given);
  std::mt19937 random(1);
  std::uniform_int_distribution<language::token> any(0, static_cast<language::token>(m.model->vocabulary_size() - 1));
  language::tokens prompt(flags.prompt);
  const auto padding = m.model->settings().pad_token_id;
  for (language::token& t : prompt) do
      t = any(random);
    while (padding && t == *padding);
  const std::string text = m.tokens.decode(prompt);
  std::vector<timed_run> all;
  for (std::size_t k = 0; k < flags.warm_up; ++k) once(m, flags, text, prompt);
  for (std::size_t k = 0; k < flags.runs; ++k) all.push_back(once(m, flags, text, prompt));
  const auto median = [&](double timed_run::*part) {
    std::vector<double> values;
    for (const timed_run& r : all) values.push_back(r.*part);
    return summarize(values).median;
  };
  const auto b = static_cast<double>(flags.batch), n = static_cast<double>(flags.made),
             p = static_cast<double>(flags.prompt);
  const double tokenize = median(&timed_run::tokenize), first = median(&timed_run::first),
               prompts = median(&timed_run::prompt), step = median(&timed_run::steps) / (n - 1),
               choose = median(&timed_run::choose) / n, whole = median(&timed_run::whole);
  const std::vector<std::pair<std::string, double>> columns{
      {"Batch Size", b},
      {"Prompt Length", p},
      {"Tokens Generated", n},
      {"Max Length", p + n},
      {"Tokenization Throughput (tps)", b * p / tokenize * 1e3},
      {"Tokenization Latency (ms)", tokenize},
      {"Prompt Processing Throughput (tps)", b * p / prompts * 1e3},
      {"Prompt Processing Latency (ms)", prompts},
      {"Time to First Token (ms)", first},
      {"Token Generation Throughput (tps)", b / step * 1e3},
      {"Token Generation Latency (ms)", step},
      {"Sampling Throughput (tps)", b / choose * 1e3},
      {"Sampling Latency (ms)", choose},
      {"Wall Clock Throughput (tps)", b * (p + n) / whole * 1e3},
      {"Wall Clock Time (s)", whole / 1e3}};
  if (!flags.csv.empty()) {
    std::string names, values;
    for (const auto& [name, value] : columns) {
      names += (names.empty() ? "" : ",") + name;
      values += (values.empty() ? "" : ",") + fmt::format("{:.6g}", value);
    }
    write_file(flags.csv, names + "\n" + values + "\n");
  }
  if (flags.as_json) {
    json out = json::object();
    for (const auto& [name, value] : columns) out[name] = value;
    print_json(out);
    return 0;
  }
  for (const auto& [name, value] : columns) fmt::print("{:<36}{:.6g}\n", name, value);
  return 0;
}

}  // namespace

void add_genai_bench(CLI::App& genai, std::function<int()>& to) {
  auto flags = std::make_shared<bench_flags>();
  CLI::App* verb = genai.add_subcommand("bench", "Time prompts and steps, with the columns of GenAI's benchmark");
  add_genai_flags(*verb, *flags);
  verb->add_option("-b,--batch-size", flags->batch, "sequences side by side")->capture_default_str();
  verb->add_option("-l,--prompt-length", flags->prompt, "random tokens of each prompt")->capture_default_str();
  verb->add_option("-g,--generation-length", flags->made, "tokens made after each prompt")->capture_default_str();
  verb->add_option("-r,--repetitions", flags->runs, "timed generations; medians are printed")->capture_default_str();
  verb->add_option("-w,--warmup", flags->warm_up, "generations before them")->capture_default_str();
  verb->add_option("-o,--output", flags->csv, "a CSV file for the columns");
  verb->add_flag("--json", flags->as_json, "print exactly one JSON object, also about an error");
  verb->callback([flags, &to] { to = [flags] { return bench(*flags); }; });
}

}  // namespace kiln::driver
