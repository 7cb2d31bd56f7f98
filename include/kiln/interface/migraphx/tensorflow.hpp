#pragma once
#include <span>

#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// How a TensorFlow graph would be read.
struct tf_options {
  bool is_nhwc = true;
  unsigned default_dim_value = 1;
  std::map<std::string, std::vector<std::size_t>> map_input_dims;
  std::vector<std::string> output_names;
};

/// An `unsupported` error: this build has no importer for TensorFlow.
program parse_tf(const std::string& file, const tf_options& options = {});
program parse_tf_buffer(std::span<const std::byte> graph, const tf_options& options = {});

}  // namespace kiln::migraphx
