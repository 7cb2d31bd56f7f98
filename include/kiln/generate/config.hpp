#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/core/dtype.hpp"
#include "kiln/generate/search_options.hpp"
#include "kiln/generate/speculative_options.hpp"
#include "kiln/quantize/weight_type.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language {

/// An entry of `provider_options`: a provider of ONNX Runtime by name, and its options as text. What they mean, the
/// interface decides that compiles the model.
struct provider {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
  std::optional<std::string> hardware_device_type;  ///< "cpu", "gpu" or "npu"
  std::optional<std::int64_t> hardware_device_id, hardware_vendor_id;
};

/// `session_options`.
struct session_options {
  std::optional<std::int64_t> intra_op_num_threads;
  std::vector<provider> providers;
  /// All other keys with their values as text.
  std::vector<std::pair<std::string, std::string>> entries;
};

/// `model.decoder`. Names with %d stand for one name a layer.
struct decoder_config {
  std::string filename = "model.onnx";
  session_options session;
  std::optional<std::int64_t> hidden_size, num_attention_heads, num_key_value_heads, num_hidden_layers, head_size;
  std::optional<std::int64_t> sliding_window;  ///< of `sliding_window.window_size`
  struct {
    std::string input_ids = "input_ids", attention_mask = "attention_mask", position_ids = "position_ids";
    std::string past_key_names = "past_key_values.%d.key", past_value_names = "past_key_values.%d.value";
    std::string past_names = "past_%d", past_conv_names = "past_conv.%d";
    std::string past_recurrent_names = "past_key_values.%d.recurrent_state";
    std::string past_sequence_length = "past_sequence_length", total_sequence_length = "total_sequence_length";
    std::string current_sequence_length = "current_sequence_length";
  } inputs;
  struct {
    std::string logits = "logits";
    std::string present_key_names = "present.%d.key", present_value_names = "present.%d.value";
    std::string present_names = "present_%d", present_conv_names = "present_conv.%d";
    std::string present_recurrent_names = "present.%d.recurrent_state";
    std::string hidden_states = "hidden_states";
  } outputs;
};

/// `engine.dynamic_batching`, with GenAI's defaults.
struct dynamic_batching {
  std::int64_t block_size = 256, max_batch_size = 16, max_scheduled_tokens = 2048;
  std::optional<std::int64_t> num_blocks;
};

/// genai_config.json of ONNX Runtime GenAI, as far as decoders need it. Where the file leaves out a number that the
/// model's graph or the tokenizer tells, it stays unset.
struct config {
  std::filesystem::path folder;
  std::string type;  ///< of the model: "llama", "gpt2", …; empty where the file has none
  std::optional<std::int64_t> vocab_size, context_length;
  std::optional<std::int64_t> own_context;  ///< `context_length` as the folder has it
  std::optional<token> pad_token_id, bos_token_id, sep_token_id, decoder_start_token_id;
  std::optional<token> bot_token_id, eot_token_id, bor_token_id, eor_token_id;
  std::vector<token> eos_token_id;  ///< one of these ends a sequence
  std::string tokenizer_dir;        ///< relative to the folder; empty: the folder
  decoder_config decoder;
  /// How keys and values are kept: f32, f16, bf16, i8, f8e4m3fn or f8e5m2 ("f32", …, "int8", "fp8"); unset: as in the
  /// model, numbers below 16 bits as f32. Without effect where sequences are run one by one.
  std::optional<dtype> kv_cache_type;
  /// Whether generators and engines of the model keep full blocks of keys and values, and let sequences that begin
  /// alike share them.
  bool share_prefixes = true;
  /// What a model of weights alone computes in: f32, f16 or bf16; unset: f32. A model's own graph says it itself.
  std::optional<dtype> compute_type;
  /// What the matrices of such a model are stored as when they are read, where the file has them as floats; unset: as
  /// the file has them. Tables that tokens are looked up in stay as they are.
  std::optional<quantize::weight_type> weight_type;
  std::optional<decoder_config> draft;  ///< a smaller model that guesses tokens ahead
  search_options search;
  speculative_options speculative;
  std::optional<language::dynamic_batching> dynamic_batching;
  std::optional<std::int64_t> static_batch_size;  ///< `engine.static_batching.max_batch_size`
  /// Parts that the file has and this library does not run ("vision", "speech", …).
  std::vector<std::string> other_parts;
  /// Files of the model from memory; they come before those of the folder.
  std::map<std::string, std::vector<std::byte>, std::less<>> model_data;
};

/// Reads FOLDER/genai_config.json; a folder with one file .onnx may do without it. Numbers it leaves out are taken from
/// transformers' generation_config.json and config.json where these are there. Without it, a folder of config.json and
/// weights in safetensors, or a GGUF file, is a model too (`find_weights`). Errors: `not_found`; `malformed` names
/// the file and the key that is unknown, of another type, not whole or out of range.
config read_config(const std::filesystem::path& folder_or_file);
/// Merges JSON text over a configuration: keys it has replace what stands there. `source` is named in errors. Files
/// that a folder names stay inside it; of `model.draft` an overlay, which is the program's word, may name any file.
void overlay(config& to, std::string_view json, std::string_view source = "the overlay");

/// Whether two names are one provider's: without regard to case and to the ending "ExecutionProvider".
bool is_same_provider(std::string_view a, std::string_view b);
/// Edits of the decoder's providers. Appending one that is there has no effect; an option of one that is not there
/// appends it.
void append_provider(config& to, std::string_view provider);
void clear_providers(config& of);
void set_provider_option(config& of, std::string_view provider, std::string_view option, std::string_view value);
/// Which device a provider runs on; null: any. Without effect for a provider that is not there, as in GenAI.
void set_hardware_device_type(config& of, std::string_view provider, std::optional<std::string> type);
void set_hardware_device_id(config& of, std::string_view provider, std::optional<std::int64_t> id);
void set_hardware_vendor_id(config& of, std::string_view provider, std::optional<std::int64_t> id);

/// A printf-style name of a layer: "past.%d.key" and 3 give "past.3.key". A name without %d stands for all layers.
std::string layer_name(std::string_view pattern, std::size_t layer);

}  // namespace kiln::language
