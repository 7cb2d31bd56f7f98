#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/generate/embedder.hpp"
#include "kiln/generate/engine_options.hpp"
#include "kiln/interface/serve/scheduler.hpp"
#include "kiln/interface/serve/tensor_runner.hpp"
#include "kiln/interface/serve/tool_calls.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/text/chat_template.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::serve {

/// What is served, and how it runs.
struct model_options {
  std::vector<std::string> models;  ///< folders and files, each as PATH or NAME=PATH
  std::string target;               ///< empty: what a folder's configuration says, else eigen
  std::string overlay;              ///< keys of genai_config.json, as JSON, in place of those of all language models
  std::string chat_template;        ///< in place of those of all language models; empty: their own
  compile_options compile;
  bool bytes_suffice = false;  ///< as `language::session` has it
  language::engine_options engine;
  bool engine_is_given = false;     ///< else a folder's own options come first
  batch_options batching;           ///< of models of tensors
  std::size_t most_waiting = 1024;  ///< sequences, or requests for tensors, of a model that wait or run
};

/// A language model with its engine.
struct language_entry {
  std::string name;
  std::shared_ptr<const language::language_model> model;
  language::search_options search;  ///< of its folder
  language::tokenizer tokens;
  language::chat_template form;
  tool_form tools;
  std::unique_ptr<scheduler> engine;
};

/// A model of tensors with what runs it.
struct tensor_entry {
  std::string name;
  std::unique_ptr<tensor_runner> runner;
};

/// A model whose vectors stand for texts.
struct embedding_entry {
  std::string name;
  std::shared_ptr<const language::embedder> model;
  language::tokenizer tokens;
  std::size_t most_waiting = 0;
  std::atomic<std::size_t> running{};  ///< requests
  std::atomic<bool> is_stopped{};      ///< requests end before their next text
};

/// The models that a server has, by name. Requests own the set that they began with.
struct model_set {
  std::map<std::string, std::shared_ptr<language_entry>, std::less<>> language;
  std::map<std::string, std::shared_ptr<tensor_entry>, std::less<>> tensors;
  std::map<std::string, std::shared_ptr<embedding_entry>, std::less<>> embeddings;
  std::int64_t created = 0;  ///< seconds since 1970
};

/// Loads all of them: files .onnx and saved programs as models of tensors, folders of sentence-transformers
/// (`find_embedding`) as models of embeddings, others as language models. The name of a
/// folder or a file is its own without the extension. Errors: those of `read_config`, `load_model`, `onnx::read_model`
/// and `compile`; `invalid_argument` for two models of one name.
std::shared_ptr<const model_set> load_models(const model_options& options);

}  // namespace kiln::serve
