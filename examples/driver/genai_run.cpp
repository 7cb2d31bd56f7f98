#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "command_line.hpp"
#include "genai.hpp"
#include "genai_model.hpp"
#include "json.hpp"
#include "kiln/text/token_stream.hpp"

namespace kiln::driver {

namespace {

struct run_flags : genai_flags {
  std::optional<std::string> prompt;
  bool chat = false, as_json = false, echo = false, add_special = false;
};

std::string prompt_of(const run_flags& flags, const language::tokenizer& t) {
  std::string text = flags.prompt
                         ? *flags.prompt
                         : std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  if (!flags.chat) return text;
  const auto form = language::chat_template::of(t);
  if (form.empty()) throw usage_error("genai run --chat: the folder has no chat template");
  const std::string messages = json::array({{{"role", "user"}, {"content", text}}}).dump();
  return form.render({.messages_json = messages});
}

// The text of tokens, up to a stop string.
std::string answer_of(const genai_model& m, std::span<const language::token> made) {
  language::token_stream text(m.tokens, {}, m.options.search.stop_strings);
  std::string out;
  for (const language::token id : made) out += text.put(id);
  return out + text.finish();
}

// Text appears as it is made; of several sequences, when all are done.
int run(const run_flags& flags) {
  const genai_model m = load_genai_model(flags);
  const language::tokens prompt = m.tokens.encode(prompt_of(flags, m.tokens), {flags.add_special});
  language::search_options search = m.options.search;
  if (search.batch_size != 1) throw usage_error("genai run: a prompt is one sequence: batch_size is 1");
  language::generator g = new_generator(m, search);
  g.append_tokens(prompt);
  const bool streams = !flags.as_json && g.sequence_count() == 1 && search.num_beams == 1;
  language::token_stream text(m.tokens, {}, search.stop_strings);
  if (flags.echo && streams && search.stop_strings.empty())
    for (const language::token id : prompt) fmt::print("{}", text.put(id));
  else if (flags.echo && streams)
    fmt::print("{}", m.tokens.decode(prompt));  // stop strings are those of the answer
  while (!g.is_done()) {
    g.generate_next_token();
    if (!streams) continue;
    for (const language::token id : g.next_tokens()) fmt::print("{}", text.put(id));
    std::fflush(stdout);
  }
  if (streams) {
    fmt::print("{}\n", text.finish());
    return 0;
  }
  json all = json::array();
  for (std::size_t k = 0; k < g.sequence_count(); ++k) {
    const std::span<const language::token> whole = g.sequence(k);
    const std::string made = flags.echo && search.stop_strings.empty() ? m.tokens.decode(whole)
                                                                       : (flags.echo ? m.tokens.decode(prompt) : "") +
                                                                             answer_of(m, whole.subspan(prompt.size()));
    if (!flags.as_json) fmt::print("{}\n", made);
    all.push_back({{"tokens", language::tokens(whole.begin(), whole.end())},
                   {"text", made},
                   {"ended_by", std::string(to_string(g.ended_by(k)))}});
  }
  if (flags.as_json) print_json({{"prompt_tokens", prompt.size()}, {"sequences", all}});
  return 0;
}

}  // namespace

void add_genai_run(CLI::App& genai, std::function<int()>& to) {
  auto flags = std::make_shared<run_flags>();
  CLI::App* verb = genai.add_subcommand("run", "Continue a prompt");
  add_genai_flags(*verb, *flags);
  verb->add_option("--prompt", flags->prompt, "The text to continue; else standard input's");
  verb->add_flag("--chat", flags->chat, "The prompt is a user's message in the form of the folder's chat template");
  verb->add_flag("--special", flags->add_special, "Put the special tokens around the prompt");
  verb->add_flag("--echo", flags->echo, "Print the prompt too");
  verb->add_flag("--json", flags->as_json, "print exactly one JSON object, also about an error");
  verb->callback([flags, &to] { to = [flags] { return run(*flags); }; });
}

}  // namespace kiln::driver
