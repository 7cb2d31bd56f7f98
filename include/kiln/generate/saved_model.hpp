#pragma once
#include <filesystem>

#include "kiln/generate/config.hpp"

namespace kiln::language {

/// Writes a model of weights alone into a folder that needs their file no more, and that `read_config` takes:
/// `model.kiln`, the decoder's program with its weights as `weight_type` and `compute_type` of the configuration have
/// them, mapped when it is loaded; `genai_config.json`, with all that the model's own says but those two; the files of
/// the tokenizer; and a draft model that lies in the folder. Errors: those of reading the weights; `unsupported` for a
/// model with a graph, or a draft model in safetensors; `invalid_argument` for a folder that isn't empty; `io` where a
/// file can't be written.
void save_model(const config& c, const std::filesystem::path& folder);

}  // namespace kiln::language
