#include "genai_model.hpp"

#include <cmath>

#include "command_line.hpp"
#include "compile_flags.hpp"
#include "files.hpp"
#include "json.hpp"
#include "kiln/interface/language_session.hpp"
#include "progress.hpp"

namespace kiln::driver {

namespace {

// The two parts of LEFT=RIGHT.
std::pair<std::string, std::string> parts_of(const std::string& flag, const std::string& text, const char* form) {
  const auto at = text.find('=');
  if (at == text.npos) throw usage_error(flag + ": expected " + form + ", found \"" + text + "\"");
  return {text.substr(0, at), text.substr(at + 1)};
}

// The value of NAME=VALUE: a number, true or false.
json value_of(const std::string& flag, const std::string& name, const std::string& value) {
  if (value == "true" || value == "false") return value == "true";
  std::size_t read = 0;
  double number = 0;
  try {
    number = std::stod(value, &read);
  } catch (const std::exception&) {
  }
  if (read == 0 || read != value.size() || !std::isfinite(number))
    throw usage_error(flag + " " + name + ": expected a number, true or false, found \"" + value + "\"");
  return number;
}
void set_search(language::search_options& to, const std::string& text) {
  const auto [name, value] = parts_of("--search", text, "NAME=VALUE");
  const json v = value_of("--search", name, value);
  if (v.is_boolean()) return language::set_flag(to, name, v.get<bool>());
  language::set_number(to, name, v.get<double>());
}

// KIND=TEXT or KIND=@FILE, with GenAI's words for the kinds.
language::guide guide_of(const std::string& flag, const language::guide_vocabulary& v) {
  auto [kind, text] = parts_of("--guidance", flag, "KIND=TEXT or KIND=@FILE");
  if (text.starts_with('@')) {
    const auto bytes = read_file(text.substr(1));
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return language::guide::of(kind, v, text);
}

}  // namespace

void add_decoder_flags(CLI::App& verb, decoder_flags& flags) {
  verb.add_option(
      "--speculative", flags.speculative,
      "An option of guessing tokens ahead as NAME=VALUE (ngram_size, max_draft_tokens, …); may be repeated");
  verb.add_option("--draft", flags.draft, "A draft model that guesses tokens ahead: its file .onnx, anywhere");
  verb.add_option("--compute-type", flags.compute_type,
                  "What a GGUF file or a folder of weights computes in: f32, f16 or bf16; else what the folder says");
  verb.add_option("--weights", flags.weight_type,
                  "What its matrices of floats are stored as when they are read: int4, int8, mxfp8, mxfp4 or nvfp4");
  verb.add_option("--cache-type", flags.cache_type,
                  "How keys and values are kept: f32, f16, bf16, int8 or fp8; else what the folder says");
  verb.add_option("-c,--context-length,--ctx-size,--max-model-len", flags.context,
                  "Tokens that a sequence may have at most, where the model can have more")
      ->check(CLI::PositiveNumber);
}

std::string overlay_of(const decoder_flags& flags) {
  json out = json::object();
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) out["model"][key] = value;
  };
  put("compute_type", flags.compute_type), put("weight_type", flags.weight_type);
  put("kv_cache_type", flags.cache_type);
  if (flags.context) out["model"]["context_length"] = *flags.context;
  if (!flags.draft.empty()) out["model"]["draft"]["filename"] = std::filesystem::absolute(flags.draft).string();
  for (const std::string& text : flags.speculative) {
    const auto [name, value] = parts_of("--speculative", text, "NAME=VALUE");
    out["speculative"][name] = value_of("--speculative", name, value);
  }
  return out.dump();
}

void add_genai_flags(CLI::App& verb, genai_flags& flags) {
  verb.add_option(
          "folder", flags.folder,
          "The model's folder: genai_config.json, or config.json with *.safetensors, and the tokenizer's files; "
          "or a GGUF file")
      ->required();
  verb.add_option("--target", flags.target, "where it runs; else what the provider of genai_config.json says");
  verb.add_option("--search", flags.search,
                  "A search option as NAME=VALUE, in place of genai_config.json's; may be repeated");
  add_decoder_flags(verb, flags.decoder);
  verb.add_option("--stop", flags.stop, "A text that ends the answer, and is not part of it; may be repeated");
  verb.add_option("--adapter", flags.adapters, "An .onnx_adapter file whose values are used; may be repeated");
  verb.add_option("--guidance", flags.guidance,
                  "What the text belongs to, as KIND=TEXT or KIND=@FILE: json_schema, regex or lark_grammar");
  verb.add_flag("--forced-tokens", flags.forced_tokens,
                "Append the tokens that --guidance leaves no choice for without a run of the model");
  verb.add_flag("--accuracy-level-4", flags.bytes_suffice,
                "Products with weights of few bits may round their other operand to 8 bits, as llama.cpp does");
  add_compile_flags(verb, flags.compile);
}

genai_model load_genai_model(const genai_flags& flags) {
  const busy_line busy("loading " + flags.folder);
  language::config c = language::read_config(flags.folder);
  if (!flags.share_prefixes) c.share_prefixes = false;
  language::overlay(c, overlay_of(flags.decoder), "the command line");
  // what the flags say comes before what the folder says
  language::session run = language::session_of(c);
  if (!flags.target.empty()) run.target = flags.target;
  compile_options options = flags.compile;
  if (options.threads == 0) options.threads = run.options.threads;
  if (options.cache.empty()) options.cache = run.options.cache;
  if (options.tuning_file.empty()) options.tuning_file = run.options.tuning_file;
  options.tune = options.tune || run.options.tune;
  run.options = std::move(options);
  run.bytes_suffice = run.bytes_suffice || flags.bytes_suffice;
  auto model = language::load_model(c, run);
  language::tokenizer t = model->text_tokenizer();
  genai_model out{std::move(model), std::move(t), {c.search, c.speculative, {}, flags.forced_tokens}, nullptr};
  auto& [search, speculative, guide, forced_tokens] = out.options;
  if (flags.decoder.context) search.max_length = std::min(search.max_length, *flags.decoder.context);
  for (const std::string& s : flags.search) set_search(search, s);
  out.adapters = std::make_shared<language::adapters>(out.model);
  for (const std::string& file : flags.adapters) out.adapters->load(std::filesystem::path(file), file);
  if (!flags.stop.empty()) search.stop_strings = flags.stop;
  if (!flags.guidance.empty()) guide = guide_of(flags.guidance, out.model->text_vocabulary());
  return out;
}

language::generator new_generator(const genai_model& m, const language::search_options& search) {
  language::generator_options o = m.options;
  o.search = search;
  language::generator g = language::generator_of(m.model, o);
  for (const std::string& name : m.adapters->names()) g.set_active_adapter(*m.adapters, name);
  return g;
}

}  // namespace kiln::driver
