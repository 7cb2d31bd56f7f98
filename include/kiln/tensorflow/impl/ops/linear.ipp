#include "kiln/tensorflow/impl/ops/window.hpp"

// Matrix products.
namespace kiln::tensorflow {

namespace {

value swap_last(const node_context& c, value x) {
  if (x.rank() < 2) c.malformed("a matrix has two dims, found " + kiln::to_string(x.get_shape()));
  ints order = axes_from(0, x.rank());
  std::swap(order[x.rank() - 2], order[x.rank() - 1]);
  return x.transpose(order);
}
variables product(node_context& c, bool left, bool right) {
  const value a = left ? swap_last(c, c.in(0)) : c.in(0), b = right ? swap_last(c, c.in(1)) : c.in(1);
  const dtype wanted = c.type_attribute("Tout", a.type());  // BatchMatMulV3
  return {a.convert(wanted).dot(b.convert(wanted))};
}
variables import_matmul(node_context& c) { return product(c, c.flag("transpose_a"), c.flag("transpose_b")); }
variables import_batch_matmul(node_context& c) { return product(c, c.flag("adj_x"), c.flag("adj_y")); }
variables import_fused_matmul(node_context& c) { return {with_fused_ops(c, import_matmul(c)[0].tensor)}; }
variables import_einsum(node_context& c) {
  return as_onnx(c, "Einsum", c.inputs, {text_attribute("equation", c.text("equation", ""))});
}

}  // namespace

op_importer_table linear_importers() {
  static constexpr op_importer table[] = {
      {domain, "_FusedMatMul", 1, import_fused_matmul},
      {domain, "BatchMatMul", 1, import_batch_matmul},
      {domain, "BatchMatMulV2", 1, import_batch_matmul},
      {domain, "BatchMatMulV3", 1, import_batch_matmul},
      {domain, "Einsum", 1, import_einsum},
      {domain, "MatMul", 1, import_matmul},
  };
  return table;
}

}  // namespace kiln::tensorflow
