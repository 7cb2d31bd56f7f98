#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generate/impl/families/decoder.hpp"
#include "kiln/generate/impl/join_rows.hpp"
#include "kiln/generate/impl/prefix_cache.hpp"
#include "kiln/generate/language_model.hpp"
#include "kiln/op/nn/paged_batch.hpp"

namespace kiln::language::detail {

/// What an input of a decoder is given.
enum class input_role : std::uint8_t {
  tokens,          ///< [1, n]
  mask,            ///< [1, past + n], ones
  positions,       ///< [1, n], counting from the past on
  past_length,     ///< one number
  total_length,    ///< one number: past + n
  current_length,  ///< one number: n
  cache,           ///< keys, values or another state
  rows,            ///< [r], the tokens whose logits are made
  parameter,       ///< a value of the model's file, or of an adapter
  batch,           ///< the address of an `op::paged_batch`
  table,           ///< of an `op::block_attention`
};
struct input_slot {
  input_role role = input_role::tokens;
  std::size_t index = 0;  ///< of the cache or parameter
};

/// A state that a run reads and writes again.
struct cache_slot {
  std::size_t input = 0, output = 0;
  shape empty;                      ///< before the first token
  std::optional<std::size_t> axis;  ///< along which it grows
  bool in_place = false;            ///< the output is the input's memory and what comes after it
};

/// How keys and values of a joined program are kept.
struct page_plan {
  std::vector<op::paged_layer> layers;
  std::int64_t block = 32;
  dtype stored = dtype::f32;
  std::int64_t row_tokens = 1, table_head = 5;  ///< of a device's tables: `use_block_tables`
  std::shared_ptr<prefix_cache> memory;         ///< of sequences whose owners set no limit
};
/// `stored`: unset, as the model has them; `where`: whose memory has them, null for the host's.
page_plan plan_pages(const std::vector<joined_layer>& layers, std::optional<dtype> stored,
                     std::shared_ptr<const device> where = nullptr);

/// A compiled decoder and what its inputs and outputs are.
struct model_plan {
  explicit model_plan(executable e) : exe(std::move(e)) {}
  config settings;
  executable exe;
  std::vector<input_slot> inputs;
  std::vector<cache_slot> caches;
  std::vector<port> parameters;
  std::vector<argument> defaults;       ///< of the parameters
  std::optional<page_plan> pages;       ///< sequences share runs
  std::shared_ptr<const device> where;  ///< holds the caches; null: the host does
  std::string unsure;                   ///< then, why only a run shows that their results are as alone
  std::size_t logits = 0;
  bool asks_rows = false;  ///< the program has the input `rows_input`
  std::int64_t vocabulary = 0, context = 0;
};

/// The name of the input that lists the tokens whose logits are made.
inline constexpr std::string_view rows_input = "kiln.rows";

/// Whether `compute_type` and `weight_type` hold for the decoder's file: it is one of weights alone.
bool takes_types(const config& c);

/// A decoder that is built of weights alone, as `make_plan` builds it; errors of `open_weights` and `build_decoder`.
built_decoder decoder_of(const config& c, bool blocks_stay = false);

/// The name of the note of a saved program that says how many tokens its decoder takes.
inline constexpr std::string_view context_note = "language.context_length";

/// Reads, changes and compiles the model; `refused`: sequences share no runs, for this reason.
std::unique_ptr<const model_plan> make_plan(const config& c, const target& t, compile_options options,
                                            const program_change& change, std::string refused = {});

}  // namespace kiln::language::detail
