#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generate/adapters.hpp"
#include "kiln/interface/language_requests.hpp"
#include "kiln/text/chat_template.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::driver {

/// What is said of a language model beside its folder; empty: as the folder says.
struct decoder_flags {
  std::string draft, compute_type, weight_type, cache_type;
  std::vector<std::string> speculative;  ///< NAME=VALUE
  std::optional<std::int64_t> context;   ///< tokens
};
void add_decoder_flags(CLI::App& verb, decoder_flags& flags);
/// The keys of genai_config.json that the flags are, as JSON text. Errors: `usage_error`.
std::string overlay_of(const decoder_flags& flags);

/// What the subcommands that continue texts share.
struct genai_flags {
  std::string folder, target;
  decoder_flags decoder;
  std::vector<std::string> search;    ///< NAME=VALUE
  std::vector<std::string> adapters;  ///< files
  std::vector<std::string> stop;
  std::string guidance;  ///< KIND=TEXT or KIND=@FILE
  bool forced_tokens = false, bytes_suffice = false;
  bool share_prefixes = true;  ///< a prompt that was run before is not run again
  compile_options compile;
};
void add_genai_flags(CLI::App& verb, genai_flags& flags);

/// A folder's model and tokenizer, loaded.
struct genai_model {
  std::shared_ptr<const language::language_model> model;
  language::tokenizer tokens;
  language::generator_options options;           ///< of the folder and the flags
  std::shared_ptr<language::adapters> adapters;  ///< all are active
};
genai_model load_genai_model(const genai_flags& flags);
/// A generator with what the flags ask for.
language::generator new_generator(const genai_model& m, const language::search_options& search);

}  // namespace kiln::driver
