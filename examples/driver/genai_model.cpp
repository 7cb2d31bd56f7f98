#include "genai_model.hpp"

#include "command_line.hpp"
#include "compile_flags.hpp"
#include "json.hpp"
#include "kiln/interface/named_target.hpp"
#include "progress.hpp"

namespace kiln::driver {

namespace {

// --search NAME=VALUE: a number, true or false.
void set_search(language::search_options& to, const std::string& text) {
  const auto at = text.find('=');
  if (at == text.npos) throw usage_error("--search: expected NAME=VALUE, found \"" + text + "\"");
  const std::string name = text.substr(0, at), value = text.substr(at + 1);
  if (value == "true" || value == "false") return language::set_flag(to, name, value == "true");
  std::size_t read = 0;
  double number = 0;
  try {
    number = std::stod(value, &read);
  } catch (const std::exception&) {
  }
  if (read == 0 || read != value.size())
    throw usage_error("--search " + name + ": expected a number, true or false, found \"" + value + "\"");
  language::set_number(to, name, number);
}

}  // namespace

void add_genai_flags(CLI::App& verb, genai_flags& flags) {
  verb.add_option("folder", flags.folder, "The model's folder, with genai_config.json and the tokenizer's files")
      ->required();
  verb.add_option("--target", flags.target, "where it runs")->capture_default_str();
  verb.add_option("--search", flags.search,
                  "A search option as NAME=VALUE, in place of genai_config.json's; may be repeated");
  add_compile_flags(verb, flags.compile);
}

genai_model load_genai_model(const genai_flags& flags) {
  const busy_line busy("loading " + flags.folder);
  language::config c = language::read_config(flags.folder);
  compile_options options = flags.compile;
  if (options.threads == 0 && c.decoder.session.intra_op_num_threads)
    options.threads = static_cast<unsigned>(*c.decoder.session.intra_op_num_threads);
  language::tokenizer t = language::tokenizer::load(c.folder / c.tokenizer_dir);
  if (c.eos_token_id.empty()) c.eos_token_id = t.special().eos;
  if (!c.pad_token_id) c.pad_token_id = t.special().pad;
  auto model = language::language_model::load(c, *named_target(flags.target, options), options);
  genai_model out{std::move(model), std::move(t), c.search};
  for (const std::string& s : flags.search) set_search(out.search, s);
  return out;
}

}  // namespace kiln::driver
