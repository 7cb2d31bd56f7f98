#pragma once
#include "kiln/tensorflow/impl/ops/common.hpp"
#include "kiln/tensorflow/impl/tflite/ops/op_tables.hpp"

// What the importers of TFLite's operators share. An option that is left out in a file has the value 0, but where the
// format says otherwise.
namespace kiln::tensorflow {

/// What TensorFlow's operator of this name gives for the inputs.
variables as_tensorflow(node_context& c, std::string_view op_type, variables inputs,
                        std::vector<onnx::attribute> attributes = {});

/// y under an activation by its number in the format. Errors: `unsupported`.
value activated(const node_context& c, value y, std::int64_t activation);

/// The type that the file declares of output k.
dtype declared_type(const node_context& c, std::size_t k);

inline value scalar_like(const node_context& c, value x, double v) { return c.build.scalar(x.type(), v); }
inline dims lens_of(value x) { return x.get_shape().lens; }

}  // namespace kiln::tensorflow
