#include "kiln/interface/migraphx/tensorflow.hpp"

#include "kiln/tensorflow/import.hpp"

namespace kiln::migraphx {

namespace {

tensorflow::import_options import_options_of(const tf_options& options) {
  tensorflow::import_options out;
  out.layout = options.is_nhwc ? tensorflow::data_format::nhwc : tensorflow::data_format::nchw;
  out.open_extent = options.default_dim_value;
  out.outputs = options.output_names;
  out.common.shapes_replace_declared = true;
  for (const auto& [name, lens] : options.map_input_dims) {
    dims extents;
    for (const std::size_t n : lens) extents.push_back(static_cast<std::int64_t>(n));
    out.common.shapes.emplace_back(name, extents);
  }
  return out;
}
program program_of(onnx::imported read) { return program(std::move(read.graph), std::move(read.remarks)); }

}  // namespace

program parse_tf(const std::string& file, const tf_options& options) {
  return program_of(tensorflow::read_model(file, import_options_of(options)));
}
program parse_tf_buffer(std::span<const std::byte> graph, const tf_options& options) {
  return program_of(tensorflow::parse_model(graph, import_options_of(options)));
}

}  // namespace kiln::migraphx
