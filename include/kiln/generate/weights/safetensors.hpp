#pragma once
#include <filesystem>

#include "kiln/generate/weights/weight_table.hpp"

namespace kiln::language {

/// The tensors of a file in the format safetensors (https://huggingface.co/docs/safetensors): a length, a header in
/// JSON, and the tensors' bytes, of which the entries are parts. `name` is that of the file, for errors. Errors:
/// `malformed` names the tensor and the key: a header that is longer than the file, no JSON, extents or offsets that
/// are no numbers, lie outside the file or do not fit the type, two tensors that overlap.
std::vector<weight_entry> read_safetensors(const buffer& file, std::string_view name);

/// The tensors of a file, mapped; or of all shards that an index (`*.safetensors.index.json`) names in its
/// `weight_map`, each of which lies in the index's folder and has the tensors that the map says. Errors: those of
/// `read_safetensors` and `map_file`.
weight_table load_safetensors(const std::filesystem::path& file);

}  // namespace kiln::language
