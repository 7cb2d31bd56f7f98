#pragma once
#include "kiln/generate/impl/families/architecture.hpp"
#include "kiln/generate/impl/families/facts.hpp"
#include "kiln/generate/weights/weight_table.hpp"
#include "kiln/graph/module.hpp"

namespace kiln::language::detail {

/// The weights of a decoder and what the file says of it, in the words of config.json.
struct weight_source {
  weight_table table;
  facts about;
  bool has_roles = false;           ///< names are GGUF's roles
  bool pairs_are_adjacent = false;  ///< rows of queries and keys are in the order of neighbors that turn together
};

/// How a decoder is built.
struct decoder_form {
  dimension now, past;                                ///< tokens of a run, and those before it
  dtype compute = dtype::f32;                         ///< a float of 32 or 16 bits, which caches have, too
  std::optional<quantize::weight_type> weights = {};  ///< matrices of floats are stored so, each as it is read
  bool states_alone = false;  ///< the only output is `last_hidden_state` f32[1, now, width] before logits
  bool blocks_stay = false;   ///< products read blocks of Q4_0 and Q8_0 as views of the file
};

/// A decoder of one sequence: inputs `input_ids` i64[1, now], `past_key_values.N.key` and `.value`
/// [1, key heads, past, depth]; outputs `logits` f32[1, now, vocabulary], `present.N.key` and `.value` with the new
/// ones after the past. Blocks and tables keep the type that they are stored in, plain matrices become the one that it
/// computes in; remarks say how many are stored as `weights`. Errors: `malformed` names a tensor that is missing or has
/// other extents, `unsupported` a type or fact that no block has; with `weights`, those of `quantize::stored`.
struct built_decoder {
  program graph;
  std::int64_t context = 0;
  std::vector<std::string> remarks;
};
built_decoder build_decoder(const weight_source& from, std::string_view type, const decoder_form& form);

}  // namespace kiln::language::detail
