#pragma once
#include <cstdint>
#include <span>

#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// How a model is read, as in MIGraphX: extents that a model leaves open are `default_dyn_dim_value`, or where it is
/// not 0 `default_dim_value`, unless a map says otherwise of an input or of a dimension's name.
struct onnx_options {
  std::size_t default_dim_value = 0;
  dynamic_dimension default_dyn_dim_value{1, 1, {}};
  std::map<std::string, std::vector<std::size_t>> map_input_dims;
  std::map<std::string, std::vector<dynamic_dimension>> map_dyn_input_dims;
  std::map<std::string, dynamic_dimension> dim_params;
  // Taken for their callers' sake, without effect: an operator that is not known is an error in any case, a loop runs
  // as often as the model says, and instructions keep the names of the model's nodes.
  bool skip_unknown_operators = false, print_program_on_error = false, use_debug_symbols = false;
  std::int64_t max_loop_iterations = 10, limit_max_iterations = 65535;
  /// Folder of files with weights; empty: the model's own, or the current one for a buffer.
  std::string external_data_path;
};

/// Errors are those of `onnx::read_model`. A range beside an extent for one input, and both defaults, are
/// `invalid_argument`; extents of an input that the model does not have are `not_found`.
program parse_onnx(const std::string& file, const onnx_options& options = {});
program parse_onnx_buffer(std::span<const std::byte> model, const onnx_options& options = {});
/// Names of the operators that the importer knows, sorted.
const std::vector<std::string>& onnx_operators();

}  // namespace kiln::migraphx
