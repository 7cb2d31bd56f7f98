#include "kiln/generate/saved_model.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/model_plan.hpp"
#include "kiln/generate/weights/model_files.hpp"
#include "kiln/runtime/saved_program.hpp"

namespace kiln::language {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw error(errc::io, file.string() + ": can't be written");
}

// The genai_config.json that the model has, whose text `read_config` has taken already, or an empty one.
json written_settings(const fs::path& folder) {
  std::ifstream in(folder / "genai_config.json", std::ios::binary);
  json out = in ? json::parse(in, nullptr, false) : json::object();
  if (out.is_discarded() || !out.is_object())
    throw error(errc::malformed, (folder / "genai_config.json").string() + ": expected an object");
  return out;
}

// What the file says, but for the decoder's file, what is saved in it, and what files tell that do not come along.
json settings_of(const config& c, std::int64_t context) {
  json out = written_settings(c.folder);
  json& model = out["model"];
  const auto put = [](json& to, const char* key, const auto& value) {
    if (value) to[key] = *value;
  };
  model["type"] = c.type, model["context_length"] = context;
  for (const char* key : {"weight_type", "compute_type", "tokenizer_dir"}) model.erase(key);
  put(model, "vocab_size", c.vocab_size), put(model, "bos_token_id", c.bos_token_id);
  put(model, "pad_token_id", c.pad_token_id);
  if (!c.eos_token_id.empty()) model["eos_token_id"] = c.eos_token_id;
  json& decoder = model["decoder"];
  decoder["filename"] = "model.kiln";
  put(decoder, "hidden_size", c.decoder.hidden_size), put(decoder, "head_size", c.decoder.head_size);
  put(decoder, "num_attention_heads", c.decoder.num_attention_heads);
  put(decoder, "num_key_value_heads", c.decoder.num_key_value_heads);
  put(decoder, "num_hidden_layers", c.decoder.num_hidden_layers);
  return out;
}

// All that lies beside the weights and is no weight: the tokenizer, chat templates, options of generation.
void copy_texts(const fs::path& from, const fs::path& to) {
  for (const auto& f : fs::directory_iterator(from)) {
    const std::string name = f.path().filename().string(), ending = f.path().extension().string();
    const bool is_text = ending == ".json" || ending == ".jinja" || ending == ".txt" || ending == ".model";
    if (f.is_regular_file() && is_text && name != "genai_config.json" && !name.ends_with(".index.json"))
      fs::copy_file(f.path(), to / name);
  }
}

// A draft model of the folder's: its file, and those of its weights, which begin with the same name.
void copy_draft(const config& c, const fs::path& to) {
  if (!c.draft || fs::path(c.draft->filename).is_absolute()) return;
  const fs::path file = c.folder / c.draft->filename;
  if (format_of(file) == model_format::safetensors)
    throw error(errc::unsupported, file.string() + ": expected a draft model in one file, found safetensors");
  if (!fs::exists(file)) throw error(errc::not_found, file.string() + ": expected a draft model, found no file");
  for (const fs::path& part : gguf_parts(file))
    if (!fs::exists(part))
      throw error(errc::not_found, part.string() + ": expected a part of the draft model, found no file");
  const fs::path folder = (to / c.draft->filename).parent_path();
  fs::create_directories(folder);
  for (const fs::path& part : gguf_parts(file))
    for (const auto& f : fs::directory_iterator(file.parent_path()))
      if (f.is_regular_file() && f.path().filename().string().starts_with(part.filename().string()))
        fs::copy_file(f.path(), folder / f.path().filename());
}

void save_into(const fs::path& folder, const config& c, const detail::built_decoder& made) {
  const fs::path file = c.folder / c.decoder.filename;
  fs::create_directories(folder);
  copy_draft(c, folder);  // or is refused before anything is written
  const std::vector<std::pair<std::string, std::string>> notes{
      {std::string(detail::context_note), std::to_string(made.context)}};
  save(saved_parts{nullptr, &made.graph, notes}, folder / "model.kiln");
  write(folder / "genai_config.json",
        settings_of(c, std::min(c.context_length.value_or(made.context), made.context)).dump(1) + "\n");
  if (format_of(file) == model_format::safetensors) return copy_texts(c.folder / c.tokenizer_dir, folder);
  try {
    for (const auto& [name, text] : tokenizer_files(gguf_file::load(file))) write(folder / name, text);
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;  // tokens alone go in and out
  }
}

}  // namespace

void save_model(const config& c, const fs::path& folder) {
  const fs::path file = c.folder / c.decoder.filename;
  const model_format is = format_of(file);
  if (is != model_format::gguf && is != model_format::safetensors)
    throw error(errc::unsupported, file.string() + ": expected weights in safetensors or GGUF, found a graph");
  try {
    // what an older model left would be this one's
    if (fs::exists(folder) && !(fs::is_directory(folder) && fs::is_empty(folder)))
      throw error(errc::invalid_argument, folder.string() + ": expected a folder that is empty or not there, found " +
                                              (fs::is_directory(folder) ? "one with files" : "a file"));
    save_into(folder, c, detail::decoder_of(c));
  } catch (const fs::filesystem_error& e) {
    throw error(errc::io, e.what());
  }
}

}  // namespace kiln::language
