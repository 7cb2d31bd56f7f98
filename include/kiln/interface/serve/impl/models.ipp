#include "kiln/interface/serve/models.hpp"

#include <ctime>
#include <filesystem>

#include "kiln/core/error.hpp"
#include "kiln/interface/language_session.hpp"

namespace kiln::serve {

namespace {

namespace fs = std::filesystem;

// NAME=PATH where no file has the whole as its path.
std::pair<std::string, fs::path> named(const std::string& text) {
  const auto at = text.find('=');
  if (at != text.npos && at > 0 && !fs::exists(text)) return {text.substr(0, at), text.substr(at + 1)};
  fs::path path = text;
  if (!fs::exists(path)) raise(errc::not_found, "kiln serve: there is no file or folder " + text);
  if (path.filename().empty()) path = path.parent_path();
  const fs::path whole = fs::weakly_canonical(path);
  return {(fs::is_directory(whole) ? whole.filename() : whole.stem()).string(), path};
}

std::shared_ptr<language_entry> load_language(const std::string& name, const fs::path& path, const model_options& o) {
  const language::config c = language::read_config(path);
  language::session run = language::session_of(c);
  if (!o.target.empty()) run.target = o.target;
  compile_options compile = o.compile;
  if (compile.threads == 0) compile.threads = run.options.threads;
  run.options = std::move(compile);
  auto model = language::load_model(c, run);
  language::tokenizer tokens = model->text_tokenizer();
  auto form = language::chat_template::of(tokens);
  const auto tools = tool_form_of(tokens.chat_template());
  const auto engine = o.engine_is_given ? o.engine : engine_options_of(model->settings());
  auto own = std::make_unique<scheduler>(model, engine, o.most_waiting);
  return std::make_shared<language_entry>(
      language_entry{name, std::move(model), c.search, std::move(tokens), std::move(form), tools, std::move(own)});
}

}  // namespace

std::shared_ptr<const model_set> load_models(const model_options& options) {
  auto out = std::make_shared<model_set>();
  out->created = static_cast<std::int64_t>(std::time(nullptr));
  for (const std::string& text : options.models) {
    const auto [name, path] = named(text);
    if (out->language.contains(name))
      raise(errc::invalid_argument, "kiln serve: two models are named " + name + "; give one a name as NAME=PATH");
    out->language.emplace(name, load_language(name, path, options));
  }
  return out;
}

}  // namespace kiln::serve
