#include "kiln/interface/serve/models.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "kiln/core/error.hpp"
#include "kiln/interface/language_session.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/interface/serve/kserve.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/saved_program.hpp"

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
  language::config c = language::read_config(path);
  if (!o.overlay.empty()) language::overlay(c, o.overlay, "the command line");
  language::session run = language::session_of(c);
  if (!o.target.empty()) run.target = o.target;
  run.bytes_suffice = run.bytes_suffice || o.bytes_suffice;
  compile_options compile = o.compile;
  if (compile.threads == 0) compile.threads = run.options.threads;
  run.options = std::move(compile);
  auto model = language::load_model(c, run);
  language::tokenizer tokens = model->text_tokenizer();
  auto form = o.chat_template.empty() ? language::chat_template::of(tokens)
                                      : language::chat_template::of(tokens, o.chat_template);
  const auto tools = tool_form_of(o.chat_template.empty() ? tokens.chat_template() : o.chat_template);
  const auto engine = o.engine_is_given ? o.engine : engine_options_of(model->settings());
  auto own = std::make_unique<scheduler>(model, engine, o.most_waiting);
  return std::make_shared<language_entry>(
      language_entry{name, std::move(model), c.search, std::move(tokens), std::move(form), tools, std::move(own)});
}

std::shared_ptr<embedding_entry> load_embeddings(const std::string& name, language::embedding_config c,
                                                 const model_options& o) {
  language::config told;
  if (!o.overlay.empty()) language::overlay(told, o.overlay, "the command line");
  c.compute_type = told.compute_type, c.weight_type = told.weight_type;
  const auto where = named_target(o.target.empty() ? "eigen" : o.target, o.compile);
  auto tokens = language::tokenizer::load(c.folder);
  return std::shared_ptr<embedding_entry>(
      new embedding_entry{name, language::embedder::load(c, *where, o.compile), std::move(tokens), o.most_waiting});
}

bool is_of_tensors(const fs::path& path) {
  return fs::is_regular_file(path) && (path.extension() == ".onnx" || is_saved_program(path));
}

std::shared_ptr<tensor_entry> load_tensors(const std::string& name, const fs::path& path, const model_options& o) {
  const auto where = named_target(o.target.empty() ? "eigen" : o.target, o.compile);
  auto make = [&] {
    if (is_saved_program(path)) return load(path, *where, o.compile);
    onnx::imported read = onnx::read_model(path.string());
    compile_options compiling = o.compile;
    compiling.remarks = std::move(read.remarks);
    return compile(std::move(read.graph), *where, compiling);
  };
  executable exe = make();
  const auto check = [&](const port& p) {
    if (kserve_name(p.type.type).empty())
      raise(errc::unsupported,
            p.name + " is of " + std::string(to_string(p.type.type)) + ", which the protocol has no name for");
  };
  for (const port& p : exe.inputs()) check(p);
  for (const port& p : exe.outputs()) check(p);
  return std::make_shared<tensor_entry>(
      tensor_entry{name, std::make_unique<tensor_runner>(std::move(exe), o.batching, o.most_waiting)});
}

// Keys of the command line hold for language models, and two of them for embeddings of a decoder's weights: an error
// where no model takes one.
void check_taken(const model_set& all, const std::string& overlay) {
  if (overlay.empty() || !all.language.empty()) return;
  language::config well_formed;
  language::overlay(well_formed, overlay, "the command line");
  const bool embeds = std::any_of(all.embeddings.begin(), all.embeddings.end(),
                                  [](const auto& e) { return e.second->model->settings().takes_types(); });
  const auto told = nlohmann::json::parse(overlay);
  for (const auto& [part, keys] : told.items())
    for (const auto& [key, value] : keys.items())
      if (!embeds || (key != "compute_type" && key != "weight_type"))
        raise(errc::invalid_argument,
              "kiln serve: " + part + "." + key + " of the command line is of language models" +
                  (key == "compute_type" || key == "weight_type" ? ", or of embeddings of a decoder's weights" : "") +
                  ": found no such model");
}

}  // namespace

std::shared_ptr<const model_set> load_models(const model_options& options) {
  auto out = std::make_shared<model_set>();
  out->created = static_cast<std::int64_t>(std::time(nullptr));
  for (const std::string& text : options.models) {
    const auto [name, path] = named(text);
    if (out->language.contains(name) || out->tensors.contains(name) || out->embeddings.contains(name))
      raise(errc::invalid_argument, "kiln serve: two models are named " + name + "; give one a name as NAME=PATH");
    try {
      if (is_of_tensors(path))
        out->tensors.emplace(name, load_tensors(name, path, options));
      else if (const auto c = language::find_embedding(path))
        out->embeddings.emplace(name, load_embeddings(name, *c, options));
      else
        out->language.emplace(name, load_language(name, path, options));
    } catch (const error& e) {
      // all that it says, but for the code before it
      const std::string_view whole = e.what();
      throw error(e.code(),
                  "kiln serve " + path.string() + ": " + std::string(whole.substr(to_string(e.code()).size() + 2)));
    }
  }
  check_taken(*out, options.overlay);
  if (!options.chat_template.empty() && out->language.empty())
    raise(errc::invalid_argument, "kiln serve: a chat template is of language models: found no such model");
  return out;
}

}  // namespace kiln::serve
