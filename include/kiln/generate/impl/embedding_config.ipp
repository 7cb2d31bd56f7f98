#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/core/error.hpp"
#include "kiln/generate/embedder.hpp"

namespace kiln::language {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A file's object or list, or nothing where there is no file.
std::optional<json> read_json(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  try {
    return json::parse(in);
  } catch (const json::exception& e) {
    throw error(errc::malformed, file.string() + ": " + e.what());
  }
}
[[noreturn]] void refuse(errc code, const fs::path& file, const std::string& what) {
  throw error(code, file.string() + ": " + what);
}
std::string text_of(const json& of, const char* key, const fs::path& file) {
  const auto at = of.is_object() ? of.find(key) : of.end();
  if (at == of.end() || !at->is_string()) refuse(errc::malformed, file, std::string(key) + ": expected a string");
  return at->get<std::string>();
}
// A module's folder stays inside the model's.
fs::path inside(const fs::path& folder, const std::string& path, const fs::path& file) {
  const fs::path p(path);
  for (const fs::path& part : p)
    if (part == "..") refuse(errc::malformed, file, "path: expected a folder inside the model's, found " + path);
  if (p.is_absolute()) refuse(errc::malformed, file, "path: expected a relative one, found " + path);
  return folder / p;
}

pooling pooling_of(const fs::path& file) {
  constexpr std::pair<const char*, pooling> flags[] = {{"pooling_mode_cls_token", pooling::cls},
                                                       {"pooling_mode_mean_tokens", pooling::mean},
                                                       {"pooling_mode_max_tokens", pooling::max},
                                                       {"pooling_mode_mean_sqrt_len_tokens", pooling::mean_sqrt},
                                                       {"pooling_mode_weightedmean_tokens", pooling::weighted_mean},
                                                       {"pooling_mode_lasttoken", pooling::last}};
  constexpr std::pair<std::string_view, pooling> names[] = {{"cls", pooling::cls},
                                                            {"mean", pooling::mean},
                                                            {"max", pooling::max},
                                                            {"mean_sqrt_len_tokens", pooling::mean_sqrt},
                                                            {"weightedmean", pooling::weighted_mean},
                                                            {"lasttoken", pooling::last}};
  const auto all = read_json(file);
  if (!all || !all->is_object()) refuse(errc::malformed, file, "expected an object that says how states are pooled");
  std::vector<pooling> asked;
  for (const auto& [key, p] : flags)
    if (const auto at = all->find(key); at != all->end()) {
      if (!at->is_boolean()) refuse(errc::malformed, file, std::string(key) + ": expected true or false");
      if (at->get<bool>()) asked.push_back(p);
    }
  if (const auto mode = all->find("pooling_mode"); mode != all->end() && mode->is_string()) {
    const auto& name = mode->get_ref<const std::string&>();
    const auto* const known =
        std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == name; });
    if (known == std::end(names)) refuse(errc::unsupported, file, "pooling_mode " + name);
    if (asked.empty()) asked.push_back(known->second);
  }
  if (asked.size() != 1)
    refuse(errc::unsupported, file, "expected one way of pooling, found " + std::to_string(asked.size()));
  return asked[0];
}

// The least of the bounds that the files have.
std::int64_t max_tokens_of(const fs::path& folder, const fs::path& transformer) {
  std::int64_t least = 0;
  const auto bound = [&](const fs::path& file, const char* key) {
    const auto all = read_json(file);
    if (!all || !all->is_object()) return;
    const auto at = all->find(key);
    // tokenizers have 1e30 where there is no bound
    if (at == all->end() || !at->is_number() || at->get<double>() < 1 || at->get<double>() > 1e9) return;
    const auto n = static_cast<std::int64_t>(at->get<double>());
    least = least == 0 ? n : std::min(least, n);
  };
  for (const fs::path& at : {folder, transformer}) {
    bound(at / "sentence_bert_config.json", "max_seq_length");
    bound(at / "tokenizer_config.json", "model_max_length");
    bound(at / "config.json", "max_position_embeddings");
  }
  return least;
}

}  // namespace

std::optional<embedding_config> find_embedding(const fs::path& folder) {
  const fs::path file = folder / "modules.json";
  const auto modules = read_json(file);
  if (!modules) return std::nullopt;
  if (!modules->is_array() || modules->empty()) refuse(errc::malformed, file, "expected a list of modules");
  embedding_config c;
  bool pools = false;
  for (std::size_t k = 0; k < modules->size(); ++k) {
    const json& m = (*modules)[k];
    const std::string type = text_of(m, "type", file), kind = type.substr(type.rfind('.') + 1);
    const fs::path at = inside(folder, text_of(m, "path", file), file);
    if (kind == "Transformer" && k == 0) {
      c.folder = at;
    } else if (kind == "Pooling" && k == 1) {
      c.by = pooling_of(at / "config.json");
      pools = true;
    } else if (kind == "Normalize" && pools) {
      c.normalizes = true;
    } else {
      refuse(errc::unsupported, file,
             "expected Transformer, Pooling and then Normalize or nothing, found " + type + " at place " +
                 std::to_string(k));
    }
  }
  if (!pools) refuse(errc::unsupported, file, "expected a module Pooling, found none");
  c.max_tokens = max_tokens_of(folder, c.folder);
  c.model = c.folder;
  for (const fs::path& at : {c.folder / "onnx/model.onnx", c.folder / "model.onnx", folder / "onnx/model.onnx"})
    if (fs::is_regular_file(at)) {
      c.model = at;
      break;
    }
  return c;
}

}  // namespace kiln::language
