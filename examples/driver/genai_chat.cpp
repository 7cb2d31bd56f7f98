#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "command_line.hpp"
#include "genai.hpp"
#include "genai_model.hpp"
#include "json.hpp"
#include "kiln/text/token_stream.hpp"

namespace kiln::driver {

namespace {

struct chat_flags : genai_flags {
  std::string system;
};

// Keeps what the caches have of the conversation and runs only what is new of it.
void feed(language::generator& g, const language::tokens& wanted) {
  const language::tokens& had = g.sequence(0);
  const auto differ = std::mismatch(had.begin(), had.end(), wanted.begin(), wanted.end()).second;
  const auto same = std::min<std::size_t>(static_cast<std::size_t>(differ - wanted.begin()), wanted.size() - 1);
  std::size_t kept = same;
  if (same < had.size()) try {
      g.rewind_to(same);
    } catch (const error& e) {
      if (e.code() != errc::unsupported) throw;
      g.rewind_to(kept = 0);  // states that hold all tokens at once
    }
  g.append_tokens(std::span(wanted).subspan(kept));
}

int chat(const chat_flags& flags) {
  const genai_model m = load_genai_model(flags);
  const auto form = language::chat_template::of(m.tokens);
  if (form.empty()) throw usage_error("genai chat: the folder has no chat template");
  if (m.options.search.batch_size != 1 || m.options.search.num_beams != 1)
    throw usage_error("genai chat: a conversation is one sequence: batch_size and num_beams are 1");
  language::generator g = new_generator(m, m.options.search);
  json messages = json::array();
  if (!flags.system.empty()) messages.push_back({{"role", "system"}, {"content", flags.system}});
  for (std::string line; fmt::print("> "), std::fflush(stdout), std::getline(std::cin, line);) {
    if (line.empty()) continue;
    messages.push_back({{"role", "user"}, {"content", line}});
    const std::string all = messages.dump();
    feed(g, m.tokens.encode(form.render({.messages_json = all})));
    language::token_stream text(m.tokens, {}, m.options.search.stop_strings);
    std::string answer;
    const auto show = [&](const std::string& piece) {
      answer += piece;
      fmt::print("{}", piece);
      std::fflush(stdout);
    };
    while (!g.is_done()) {
      g.generate_next_token();
      for (const language::token id : g.next_tokens()) show(text.put(id));
    }
    show(text.finish());
    fmt::print("\n");
    messages.push_back({{"role", "assistant"}, {"content", answer}});
  }
  fmt::print("\n");
  return 0;
}

}  // namespace

void add_genai_chat(CLI::App& genai, std::function<int()>& to) {
  auto flags = std::make_shared<chat_flags>();
  CLI::App* verb = genai.add_subcommand("chat", "Talk with a model, a line a turn");
  add_genai_flags(*verb, *flags);
  verb->add_option("--system", flags->system, "The system's message");
  verb->callback([flags, &to] { to = [flags] { return chat(*flags); }; });
}

}  // namespace kiln::driver
