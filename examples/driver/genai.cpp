#include "genai.hpp"

namespace kiln::driver {

void add_genai(CLI::App& line, std::function<int()>& run) {
  CLI::App* genai = line.add_subcommand("genai", "Work with a folder of a language model");
  genai->require_subcommand(1);
  add_genai_run(*genai, run);
  add_genai_chat(*genai, run);
  add_genai_bench(*genai, run);
  add_genai_save(*genai, run);
  add_genai_tokenize(*genai, run);
}

}  // namespace kiln::driver
