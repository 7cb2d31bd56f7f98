#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/generate/language_model.hpp"
#include "kiln/quantize/precision.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::language {

/// Where and how a configuration asks for its decoder to be run.
struct session {
  std::string target = "eigen";  ///< as in `named_target`
  compile_options options;
  quantize::precision precision = quantize::precision::as_written;
  bool bytes_suffice = false;        ///< products with weights of few bits may round their other operand to 8 bits
  std::vector<std::string> remarks;  ///< what is asked for and has no effect here
  bool on_gpu() const { return target.starts_with("hip"); }
};

/// Reads `session_options`: threads, and the provider. No provider and CPU mean the processor; so does MIGraphX (or
/// ROCM, AMDGPU, their ONNX Runtime names with ExecutionProvider at the end, in any case of letters), unless its option
/// `target` names another one or its `hardware_device_type` is gpu: then it is the GPU of `device_id`, or `gpu` where
/// that is not given. Options, with or without `migraphx_` before them: `target`, `device_id`, `threads`,
/// `exhaustive_tune`, `tuning_file`, `cache_dir`, `fp16_enable`, `bf16_enable`, `int8_enable`, `fp8_enable`,
/// `accuracy_level_4`. A device's number where the processor runs the decoder, and `hardware_device_id` and
/// `hardware_vendor_id`, have no effect: remarks say so. Errors: an option that is none of these is `not_found`, a
/// value that is none of its kind `invalid_argument`; `unsupported` names another provider, more than one beside CPU,
/// hardware of another type, or 8 bits, which need a table of ranges.
session session_of(const config& c, unsigned gpu = 0);

/// The tokenizer that a configuration names.
tokenizer load_tokenizer(const config& c);

/// Compiles a configuration's decoder as its session says. Where it names no end or padding tokens, those of the
/// tokenizer are taken, if the folder has one.
std::shared_ptr<const language_model> load_model(config c, const session& s);

}  // namespace kiln::language
