#include "kiln/interface/migraphx/tensorflow.hpp"

namespace kiln::migraphx {

namespace {

[[noreturn]] void refuse() {
  raise(errc::unsupported, "this build has no TensorFlow importer: convert the graph to ONNX and parse that");
}

}  // namespace

program parse_tf(const std::string&, const tf_options&) { refuse(); }
program parse_tf_buffer(std::span<const std::byte>, const tf_options&) { refuse(); }

}  // namespace kiln::migraphx
