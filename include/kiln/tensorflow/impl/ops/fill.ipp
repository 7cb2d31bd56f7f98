#include "kiln/tensorflow/impl/ops/common.hpp"

// Tensors of given values.
namespace kiln::tensorflow {

namespace {

variables import_fill(node_context& c) { return as_onnx(c, "Expand", {c.in(1), c.in(0).convert(dtype::i64)}); }
variables import_range(node_context& c) { return as_onnx(c, "Range", {c.in(0), c.in(1), c.in(2)}); }
value like(const node_context& c, int v) {
  return c.build.scalar(c.in(0).type(), v).broadcast_to(c.in(0).get_shape().lens);
}
variables import_zeros(node_context& c) { return {like(c, 0)}; }
variables import_ones(node_context& c) { return {like(c, 1)}; }

}  // namespace

op_importer_table fill_importers() {
  static constexpr op_importer table[] = {
      {domain, "Fill", 1, import_fill},
      {domain, "OnesLike", 1, import_ones},
      {domain, "Range", 1, import_range},
      {domain, "ZerosLike", 1, import_zeros},
  };
  return table;
}

}  // namespace kiln::tensorflow
