#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/core/memory_source.hpp"
#include "kiln/interface/onnxruntime/provider_options.hpp"
#include "kiln/onnx/fingerprint.hpp"
#include "kiln/runtime/program_store.hpp"

// A session's options in the words of the library.
namespace kiln::onnxruntime {

/// The target of the session's device, for `named_target`. Another device than the first of a target that has one only
/// is an `invalid_argument` error.
std::string target_name(const provider_options& o);

compile_options compile_options_of(const provider_options& o);

/// The most bytes that the session may take at a time; 0: no limit.
std::uint64_t memory_limit(const provider_options& o);

/// Where the session's memory comes from; null where the heap serves and nothing limits it.
std::shared_ptr<memory_source> memory_of(const provider_options& o);

store_settings store_of(const provider_options& o);

/// What tells a partition's program from others: the partition's content, extents that are fixed ("any" for none), and
/// the options that change it, a calibration table by its content.
program_identity identity_of(const onnx::fingerprint& content, const std::string& extents, const provider_options& o);

/// What a user should know of the calibration table: that its form is another than the options say, or that it has one
/// end only of each range. None where there is no table, or it can't be read.
std::vector<std::string> table_warnings(const provider_options& o);

/// A partition in the precision that the session asks for; `said` gets what was done.
program in_precision(program p, const provider_options& o, std::vector<std::string>& said);

}  // namespace kiln::onnxruntime
