#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generate/generator.hpp"
#include "kiln/text/chat_template.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::driver {

/// What the subcommands that continue texts share.
struct genai_flags {
  std::string folder, target = "eigen";
  std::vector<std::string> search;  ///< NAME=VALUE
  compile_options compile;
};
void add_genai_flags(CLI::App& verb, genai_flags& flags);

/// A folder's model and tokenizer, loaded.
struct genai_model {
  std::shared_ptr<const language::language_model> model;
  language::tokenizer tokens;
  language::search_options search;  ///< of the folder and the flags
};
genai_model load_genai_model(const genai_flags& flags);

}  // namespace kiln::driver
