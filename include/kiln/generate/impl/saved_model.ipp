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

json settings_of(const config& c, std::int64_t context) {
  json model = {{"type", c.type}, {"context_length", context}};
  const auto put = [](json& to, const char* key, const auto& value) {
    if (value) to[key] = *value;
  };
  put(model, "vocab_size", c.vocab_size), put(model, "bos_token_id", c.bos_token_id);
  put(model, "pad_token_id", c.pad_token_id);
  if (!c.eos_token_id.empty()) model["eos_token_id"] = c.eos_token_id;
  json& decoder = model["decoder"] = {{"filename", "model.kiln"}};
  put(decoder, "hidden_size", c.decoder.hidden_size), put(decoder, "head_size", c.decoder.head_size);
  put(decoder, "num_attention_heads", c.decoder.num_attention_heads);
  put(decoder, "num_key_value_heads", c.decoder.num_key_value_heads);
  put(decoder, "num_hidden_layers", c.decoder.num_hidden_layers);
  return {{"model", std::move(model)}};
}

// All that lies beside the weights and is no weight: the tokenizer, chat templates, options of generation.
void copy_texts(const fs::path& from, const fs::path& to) {
  for (const auto& f : fs::directory_iterator(from)) {
    const std::string name = f.path().filename().string(), ending = f.path().extension().string();
    const bool is_text = ending == ".json" || ending == ".jinja" || ending == ".txt" || ending == ".model";
    if (f.is_regular_file() && is_text && name != "genai_config.json" && !name.ends_with(".index.json"))
      fs::copy_file(f.path(), to / name, fs::copy_options::overwrite_existing);
  }
}

}  // namespace

void save_model(const config& c, const fs::path& folder) {
  const fs::path file = c.folder / c.decoder.filename;
  const model_format is = format_of(file);
  if (is != model_format::gguf && is != model_format::safetensors)
    throw error(errc::unsupported, file.string() + ": expected weights in safetensors or GGUF, found a graph");
  std::error_code fault;
  if (fs::equivalent(folder, c.folder, fault))
    throw error(errc::invalid_argument, folder.string() + ": expected another folder than that of the weights");
  const detail::built_decoder made = detail::decoder_of(c);
  fs::create_directories(folder, fault);
  save(made.graph, folder / "model.kiln");
  write(folder / "genai_config.json",
        settings_of(c, std::min(c.context_length.value_or(made.context), made.context)).dump(1) + "\n");
  if (is == model_format::safetensors) return copy_texts(c.folder / c.tokenizer_dir, folder);
  try {
    for (const auto& [name, text] : tokenizer_files(gguf_file::load(file))) write(folder / name, text);
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;  // tokens alone go in and out
  }
}

}  // namespace kiln::language
