#pragma once
#include "kiln/generate/impl/families/decoder.hpp"
#include "kiln/generate/weights/model_files.hpp"

namespace kiln::language::detail {

/// A GGUF file's metadata in the words of config.json.
facts facts_of(const gguf_file& file);
/// The weights that a configuration's file has, with what is said of them. The file is no ONNX.
weight_source open_weights(const config& c);

}  // namespace kiln::language::detail
