#pragma once
#include <span>

#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// How a frozen graph of TensorFlow is read: the layout of nodes that do not say, the extent of open dims (0 keeps each
/// open, a symbol), extents of inputs, and the outputs wanted.
struct tf_options {
  bool is_nhwc = true;
  unsigned default_dim_value = 1;
  std::map<std::string, std::vector<std::size_t>> map_input_dims;
  std::vector<std::string> output_names;
};

/// A program of a file with one GraphDef, in binary or text form, and of its bytes. Errors are those of
/// `tensorflow::read_model`.
program parse_tf(const std::string& file, const tf_options& options = {});
program parse_tf_buffer(std::span<const std::byte> graph, const tf_options& options = {});

}  // namespace kiln::migraphx
