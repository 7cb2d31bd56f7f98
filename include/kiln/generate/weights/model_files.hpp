#pragma once
#include <filesystem>

#include "kiln/generate/config.hpp"
#include "kiln/generate/weights/gguf.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::language {

/// What a model's file is.
enum class model_format : std::uint8_t { onnx, safetensors, gguf, kiln };

/// What a file is by its content: GGUF and kiln's own by their magic; safetensors, or an index of its shards, by a
/// header in JSON; all else is taken for ONNX, as is a file that is not there.
model_format format_of(const std::filesystem::path& file);

/// The configuration of a folder of Hugging Face's (`config.json` and `*.safetensors`, one or with an index), of a file
/// of it, or of a GGUF file: numbers, types and tokens with a role are the file's. Empty where there is none of these.
/// Errors: `malformed` names the file and the key; `unsupported` a model type that no family serves; `invalid_argument`
/// lists several files of weights where none has the name `model`.
std::optional<config> find_weights(const std::filesystem::path& folder_or_file);

/// The tokenizer and chat template of a GGUF file's metadata (`tokenizer.ggml.*`), as the files that a folder would
/// have: SentencePiece's byte pairs with scores (`llama`), or byte pairs over bytes with merges (`gpt2`). Errors:
/// `not_found` where the file has no tokenizer; `malformed`, and `unsupported` for another model or an unknown
/// pre-tokenizer.
tokenizer::files tokenizer_files(const gguf_file& file);

/// The tokenizer of a configuration: of its GGUF file, or of its folder's files.
tokenizer tokenizer_of(const config& c);

}  // namespace kiln::language
