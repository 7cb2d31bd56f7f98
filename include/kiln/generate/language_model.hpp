#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kiln/generate/config.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::language {

class guide_vocabulary;
class tokenizer;

namespace detail {
struct model_plan;
struct state_access;
}  // namespace detail

/// What a model keeps of one sequence: keys and values of the tokens so far, or other states. Keys and values are in
/// blocks of a fixed number of tokens, or in caches that grow in place and double their memory when it is full: memory
/// follows the tokens used. It must not outlive its model.
class sequence_state {
 public:
  sequence_state();
  sequence_state(sequence_state&&) noexcept;
  sequence_state& operator=(sequence_state&&) noexcept;
  ~sequence_state();
  /// The same tokens: full blocks are shared, and what is written later is each one's own.
  sequence_state clone() const;
  /// Tokens run so far.
  std::int64_t length() const;
  /// Bytes of the caches' memory, and of several sequences', in which what they share counts once.
  std::size_t bytes() const;
  static std::size_t bytes_of(std::span<const sequence_state* const> all);
  /// Forgets the tokens from `length` on. A model with states that hold all tokens at once (convolutions, recurrences)
  /// can only forget everything: other lengths are an `unsupported` error.
  void truncate(std::int64_t length);
  /// An output of the last run by its name; null where the model has none of that name, or the run had other sequences
  /// beside this one.
  const argument* output(std::string_view name) const;

 private:
  friend class language_model;
  friend struct detail::state_access;
  struct memory;
  std::unique_ptr<memory> memory_;
};

/// A sequence's part of a run: tokens that follow those of its state, and of how many of the last ones logits are made
/// (0: of none).
struct row_run {
  sequence_state* state = nullptr;
  std::span<const token> tokens;
  std::size_t rows = 1;
};

/// What is done to a decoder's program before it is compiled, such as another precision; what it says of it is a
/// remark.
using program_change = std::function<program(program p, std::vector<std::string>& remarks)>;

/// A decoder compiled for a target: immutable, shared by any number of generators. One program serves prompts and
/// steps of every length and any number of sequences, whose tokens stand one after the other: no work is done for
/// padding.
class language_model {
 public:
  /// Reads and compiles `model.decoder` of a configuration, and `model.draft` where it has one. Numbers the
  /// configuration leaves out are taken from the graph. Errors: those of `onnx::read_model` and `compile`;
  /// `unsupported` names a model type or part that is no decoder; `malformed` names an input that the configuration
  /// does not explain.
  static std::shared_ptr<const language_model> load(const config& c, const target& t, compile_options options = {},
                                                    const program_change& change = {});
  ~language_model();

  const config& settings() const;
  std::int64_t vocabulary_size() const;
  /// Tokens of a sequence at most; without a bound in the configuration, what 32 bits count.
  std::int64_t context_length() const;
  const executable& program() const;
  /// The inputs that an adapter may give values: those that the model's file has a default for (initializers that are
  /// inputs too, in files where not all of them are). An extent may be a symbol, such as the rank of a low-rank update.
  std::span<const port> parameters() const;
  const argument& default_of(std::size_t parameter) const;

  /// The tokenizer that the configuration names, read when it is first asked for; the errors of `tokenizer::load`.
  const tokenizer& text_tokenizer() const;
  /// The bytes of its tokens for guides, sorted when they are first asked for.
  const guide_vocabulary& text_vocabulary() const;

  /// The model of `model.draft`, which guesses tokens ahead and has the same vocabulary; null where there is none.
  const std::shared_ptr<const language_model>& draft() const { return draft_; }
  /// Whether a state can forget its last tokens.
  bool can_rewind() const;

  sequence_state new_state() const;
  /// Throws `invalid_argument` where a token is none of the vocabulary.
  void check_tokens(std::span<const token> tokens) const;
  /// Runs tokens that follow those of the state, and writes the logits of the last `rows` of them, f32[rows,
  /// vocabulary]. `parameters` are values of all parameters, empty ones for the default; none: all are the defaults.
  void run(sequence_state& state, workspace& w, std::span<const token> tokens, std::size_t rows,
           std::span<float> logits, std::span<const argument> parameters = {}) const;
  /// Runs tokens of several sequences, each with a state of its own, and writes the logits that were asked for, those
  /// of the first sequence first. One run of the program where `joins_rows`, else one after the other.
  void run(workspace& w, std::span<const row_run> rows, std::span<float> logits,
           std::span<const argument> parameters = {}) const;
  /// Whether sequences share a run, and keep their caches in blocks. The report of the program says why not.
  bool joins_rows() const;
  /// Tokens of a block of caches, and its bytes; 0 where there are none.
  std::int64_t block_tokens() const;
  std::size_t block_bytes() const;

 private:
  bool rows_agree() const;
  void check_run(const row_run& r) const;
  void run_alone(const row_run& r, workspace& w, std::span<float> logits, std::span<const argument> parameters) const;
  void run_joined(workspace& w, std::span<const row_run> rows, std::span<float> logits,
                  std::span<const argument> parameters) const;
  explicit language_model(std::unique_ptr<const detail::model_plan> plan);
  std::unique_ptr<const detail::model_plan> plan_;
  std::shared_ptr<const language_model> draft_;
  struct texts;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<texts> texts_;
};

}  // namespace kiln::language
