#pragma once
#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/generate/generator.hpp"

namespace kiln::language::testing {

inline const std::filesystem::path scripture_folder = KILN_SOURCE_DIR "/examples/models/scripture";

inline std::shared_ptr<const language_model> load_scripture(bool share_prefixes) {
  config c = read_config(scripture_folder);
  c.share_prefixes = share_prefixes;
  compile_options o;
  o.threads = 2;
  return language_model::load(c, eigen_target(), o);
}
/// The trained model of the examples, compiled once. Its sequences share nothing, so that each runs all of its tokens.
inline std::shared_ptr<const language_model> scripture() {
  static const auto model = load_scripture(false);
  return model;
}
/// The same, whose sequences share blocks.
inline std::shared_ptr<const language_model> sharing_scripture() {
  static const auto model = load_scripture(true);
  return model;
}

/// A prompt and what PyTorch continued it with.
struct golden {
  tokens prompt, all;
};
inline std::vector<golden> scripture_golden() {
  std::vector<golden> out;
  for (const auto& g : nlohmann::json::parse(std::ifstream(scripture_folder / "golden.json")))
    out.push_back({g["prompt_ids"].get<tokens>(), g["greedy_ids"].get<tokens>()});
  return out;
}

inline search_options options_of(std::int64_t max_length) {
  search_options o = scripture()->settings().search;
  o.max_length = max_length;
  return o;
}
inline tokens run_to_end(generator& g, std::size_t length = 0) {
  while (!g.is_done() && (length == 0 || g.token_count() < length)) g.generate_next_token();
  return g.sequence(0);
}

}  // namespace kiln::language::testing
