#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kiln/quantize/weight_type.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language {

/// How the states of a text's tokens become one vector: the first token's, their mean, the greatest of each number, the
/// sum over the root of their count, the mean with weights 1, 2, 3, ..., or the last token's.
enum class pooling : std::uint8_t { cls, mean, max, mean_sqrt, weighted_mean, last };

/// A model whose states are vectors for texts, as a folder of sentence-transformers describes it.
struct embedding_config {
  std::filesystem::path folder;  ///< of config.json and the tokenizer's files
  std::filesystem::path model;   ///< a file .onnx, or the folder of a decoder's weights
  pooling by = pooling::mean;
  bool normalizes = false;      ///< vectors have the length 1
  std::int64_t max_tokens = 0;  ///< of a text; 0: nobody says
  /// What a decoder's weights compute in (unset: f32), and what their matrices of floats are stored as; without effect
  /// for a file .onnx.
  std::optional<dtype> compute_type;
  std::optional<quantize::weight_type> weight_type;
  bool takes_types() const { return model.extension() != ".onnx"; }
};

/// Reads `modules.json` of a folder, with what it names: Transformer, Pooling and Normalize. Empty where there is no
/// such file. The model is `onnx/model.onnx` or `model.onnx`, else the weights of a decoder (`find_weights`). Errors:
/// `malformed` names the file; `unsupported` names a module, or ways of pooling that are joined.
std::optional<embedding_config> find_embedding(const std::filesystem::path& folder);

/// Makes a vector of each text. Any number of threads.
class embedder {
 public:
  /// Compiles the model. Of a file .onnx inputs are tokens, masks, types and positions of one text, and empty caches;
  /// the output is `last_hidden_state` or `token_embeddings`, else the only one of rank 3. Errors: those of
  /// `onnx::read_model` and `compile`; `unsupported` for other inputs or outputs.
  static std::shared_ptr<const embedder> load(const embedding_config& c, const target& t, compile_options options = {});

  /// Numbers of a vector.
  std::int64_t width() const { return width_; }
  const embedding_config& settings() const { return settings_; }
  const executable& program() const { return exe_; }
  /// The vector of a text, of its first numbers alone where `dimensions` is not 0. Errors: `invalid_argument` for no
  /// token, more than the model takes, or more numbers than a vector has; those of a run for tokens that are none.
  std::vector<float> embed(std::span<const token> text, std::int64_t dimensions = 0) const;

 private:
  enum class role : std::uint8_t { tokens, ones, zeros, positions, cache };
  embedder(embedding_config c, executable exe);
  embedding_config settings_;
  executable exe_;
  std::vector<role> roles_;  // of the inputs
  std::size_t states_ = 0;   // the output
  std::int64_t width_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<workspace> free_;
};

}  // namespace kiln::language
