#include "kiln/generate/weights/model_files.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include "kiln/core/error.hpp"
#include "kiln/generate/impl/weights/open_weights.hpp"
#include "kiln/generate/weights/safetensors.hpp"
#include "kiln/runtime/saved_program.hpp"

namespace kiln::language {

namespace {

using detail::facts;

facts read_facts(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw error(errc::not_found, file.string() + ": expected what says how the weights are used, found no file");
  try {
    return {nlohmann::json::parse(in), file.string()};
  } catch (const nlohmann::json::exception& e) {
    throw error(errc::malformed, file.string() + ": " + e.what());
  }
}

// The file of a folder with an ending, or nothing; of several that of the name `model`.
std::optional<std::filesystem::path> only_file(const std::filesystem::path& folder, std::string_view ending) {
  std::vector<std::string> found;
  bool has_graph = false;
  std::error_code none;
  for (const auto& f : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = f.path().filename().string();
    has_graph = has_graph || name.ends_with(".onnx");
    if (name.ends_with(ending)) found.push_back(name);
  }
  // parts are named by the first
  for (std::string& name : found) name = gguf_parts(name).front().string();
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) {
    if (!std::filesystem::exists(folder / found[0], none)) throw missing_part(folder / found[0], 0);
    return folder / found[0];
  }
  const std::string usual = "model" + std::string(ending);
  if (std::find(found.begin(), found.end(), usual) != found.end()) return folder / usual;
  if (has_graph) return std::nullopt;  // that is the model
  std::string all;
  for (const std::string& name : found) all += (all.empty() ? "" : ", ") + name;
  throw error(errc::invalid_argument, folder.string() + ": expected one file *" + std::string(ending) + ", or one of " +
                                          "the name " + usual + ", found " + all);
}

std::optional<std::filesystem::path> weights_of(const std::filesystem::path& at) {
  std::error_code none;
  if (std::filesystem::is_regular_file(at, none)) {
    const model_format is = format_of(at);
    return is == model_format::gguf || is == model_format::safetensors ? std::optional(at) : std::nullopt;
  }
  const bool described = std::filesystem::exists(at / "config.json", none);
  for (const std::string_view ending : {".safetensors.index.json", ".safetensors"})
    if (described)
      if (auto found = only_file(at, ending)) return found;
  return only_file(at, ".gguf");
}

template <class T> void put(std::optional<std::int64_t>& to, T value) {
  if (!to) to = static_cast<std::int64_t>(value);
}

void take_tokens(const gguf_file& file, config& c) {
  const auto id = [&](const char* key) -> std::optional<token> {
    const auto n = file.integer(std::string("tokenizer.ggml.") + key);
    if (!n) return std::nullopt;
    if (*n < 0 || *n > 2147483647)
      throw error(errc::malformed,
                  file.name() + ": 'tokenizer.ggml." + key + "': expected a token, found " + std::to_string(*n));
    return static_cast<token>(*n);
  };
  c.bos_token_id = id("bos_token_id"), c.pad_token_id = id("padding_token_id");
  c.eos_token_id.clear();
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (const auto end = id(key);
        end && std::find(c.eos_token_id.begin(), c.eos_token_id.end(), *end) == c.eos_token_id.end())
      c.eos_token_id.push_back(*end);
}

}  // namespace

model_format format_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::array<char, 9> head{};
  in.read(head.data(), head.size());
  if (in.gcount() >= 4 && std::string_view(head.data(), 4) == "GGUF") return model_format::gguf;
  if (is_saved_program(file)) return model_format::kiln;
  const std::string name = file.filename().string();
  if (name.ends_with(".safetensors.index.json") && in.gcount() > 0 && head[0] == '{') return model_format::safetensors;
  // a length whose upper bytes are zero, and an object; no ONNX begins so
  if (in.gcount() == 9 && head[8] == '{' && head[5] == 0 && head[6] == 0 && head[7] == 0)
    return model_format::safetensors;
  return model_format::onnx;
}

std::optional<config> find_weights(const std::filesystem::path& at) {
  const auto file = weights_of(at);
  if (!file) return std::nullopt;
  config c;
  c.folder = file->has_parent_path() ? file->parent_path() : std::filesystem::path(".");
  c.decoder.filename = file->filename().string();
  std::optional<facts> about;
  if (format_of(*file) == model_format::gguf) {
    const gguf_file read = gguf_file::load(*file);
    about = detail::facts_of(read);
    take_tokens(read, c);
  } else {
    about = read_facts(c.folder / "config.json");
  }
  c.type = about->text_or("model_type", "");
  const detail::family* const family = detail::find_family(c.type);
  if (!family)
    throw error(errc::unsupported, "not supported: weights of a model of type '" + c.type + "'; expected one of " +
                                       detail::served_types());
  const detail::architecture a = family->read(*about);
  put(c.vocab_size, a.vocabulary), put(c.context_length, a.context);
  put(c.decoder.hidden_size, a.width), put(c.decoder.num_attention_heads, a.heads);
  put(c.decoder.num_key_value_heads, a.kv_heads), put(c.decoder.num_hidden_layers, a.layers);
  put(c.decoder.head_size, a.depth);
  return c;
}

tokenizer tokenizer_of(const config& c) {
  const auto file = c.folder / c.decoder.filename;
  if (!c.model_data.contains(c.decoder.filename) && format_of(file) == model_format::gguf)
    return tokenizer::load(tokenizer_files(gguf_file::load(file)));
  return tokenizer::load(c.folder / c.tokenizer_dir);
}

namespace detail {

weight_source open_weights(const config& c) {
  const auto file = c.folder / c.decoder.filename;
  if (format_of(file) != model_format::gguf)
    return {load_safetensors(file), read_facts(c.folder / "config.json"), false, false};
  const gguf_file read = gguf_file::load(file);
  const auto architecture = read.text("general.architecture").value_or("");
  return {read.weights(), facts_of(read), true, architecture == "llama"};
}

}  // namespace detail

}  // namespace kiln::language
