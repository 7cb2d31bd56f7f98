#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace kiln::driver {

/// Adds the subcommand `genai`, whose own subcommands work on folders of language models; the one that is given becomes
/// `run`.
void add_genai(CLI::App& line, std::function<int()>& run);

/// Add `genai run`, `genai chat`, `genai bench`, `genai save` and `genai tokenize`.
void add_genai_run(CLI::App& genai, std::function<int()>& run);
void add_genai_chat(CLI::App& genai, std::function<int()>& run);
void add_genai_bench(CLI::App& genai, std::function<int()>& run);
void add_genai_save(CLI::App& genai, std::function<int()>& run);
void add_genai_tokenize(CLI::App& genai, std::function<int()>& run);

}  // namespace kiln::driver
