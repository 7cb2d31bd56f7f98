#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <sstream>

#include "command_line.hpp"
#include "genai.hpp"
#include "json.hpp"
#include "kiln/generate/weights/model_files.hpp"
#include "kiln/text/token_stream.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::driver {

namespace {

struct tokenize_flags {
  std::string folder;
  std::vector<std::string> texts;
  bool decode = false, as_json = false, add_special = false, keep_special = false, stream = false;
};

language::tokens read_numbers(const std::string& line) {
  std::istringstream in(line);
  language::tokens out;
  for (language::token id; in >> id;) out.push_back(id);
  if (!in.eof()) throw usage_error("genai tokenize --decode: expected numbers of tokens, found \"" + line + "\"");
  return out;
}

std::string decoded(const language::tokenizer& t, const language::tokens& ids, const tokenize_flags& flags) {
  const language::decode_options options{!flags.keep_special};
  if (!flags.stream) return t.decode(ids, options);
  language::token_stream stream(t, options);
  std::string out;
  for (const language::token id : ids) out += stream.put(id);
  return out + stream.finish();
}

// One line in, one line out; with --json each is one JSON value, so that a text may have any character.
int tokenize(const tokenize_flags& flags) {
  const std::filesystem::path at = flags.folder;
  const auto t = std::filesystem::is_regular_file(at) ? language::tokenizer_of(language::read_config(at))
                                                      : language::tokenizer::load(at);
  const auto one = [&](const std::string& line) {
    if (flags.decode) {
      const std::string text = decoded(t, read_numbers(line), flags);
      fmt::print("{}\n", flags.as_json ? json(text).dump() : text);
      return;
    }
    const language::tokens ids = t.encode(line, {flags.add_special});
    if (flags.as_json)
      fmt::print("{}\n", json({{"ids", ids}, {"text", decoded(t, ids, flags)}}).dump(-1, ' ', false));
    else
      fmt::print("{}\n", fmt::join(ids, " "));
  };
  for (const std::string& text : flags.texts) one(text);
  if (flags.texts.empty())
    for (std::string line; std::getline(std::cin, line);) one(line);
  return 0;
}

}  // namespace

void add_genai_tokenize(CLI::App& genai, std::function<int()>& run) {
  auto flags = std::make_shared<tokenize_flags>();
  CLI::App* verb = genai.add_subcommand("tokenize", "Turn lines of text into tokens, or tokens into text");
  verb->add_option("folder", flags->folder, "The folder with the tokenizer's files")->required();
  verb->add_option("--text", flags->texts, "A text, instead of the lines of standard input");
  verb->add_flag("--decode", flags->decode, "The lines are numbers of tokens; print their text");
  verb->add_flag("--stream", flags->stream, "Decode token by token");
  verb->add_flag("--special", flags->add_special, "Put the special tokens around each text");
  verb->add_flag("--keep-special", flags->keep_special, "Print special tokens when decoding");
  verb->add_flag("--json", flags->as_json, "Print JSON, a value a line: tokens and the text they decode to");
  verb->callback([flags, &run] { run = [flags] { return tokenize(*flags); }; });
}

}  // namespace kiln::driver
