#include "kiln/tensorflow/impl/ops/common.hpp"

// Reductions, softmax and running sums.
namespace kiln::tensorflow {

namespace {

// Over the axes of input 1; none of them leaves the input as it is.
variables reduce(node_context& c, std::string_view op_type) {
  return as_onnx(c, op_type, {c.in(0), c.in(1)},
                 {number_attribute("keepdims", c.flag("keep_dims")), number_attribute("noop_with_empty_axes", 1)});
}
variables import_sum(node_context& c) { return reduce(c, "ReduceSum"); }
variables import_mean(node_context& c) { return reduce(c, "ReduceMean"); }
variables import_max(node_context& c) { return reduce(c, "ReduceMax"); }
variables import_min(node_context& c) { return reduce(c, "ReduceMin"); }
variables import_prod(node_context& c) { return reduce(c, "ReduceProd"); }
variables import_norm(node_context& c) { return reduce(c, "ReduceL2"); }

variables import_l2_loss(node_context& c) {
  const value x = c.in(0);
  const value sum = x.rank() ? (x * x).reduce_sum(axes_from(0, x.rank())).reshape({}) : x * x;
  return {sum * .5f};
}

variables arg(node_context& c, std::string_view op_type) {
  const std::int64_t axis = c.has(1) ? c.number(1, "the axis") : 0;
  const value found =
      as_onnx(c, op_type, {c.in(0)}, {number_attribute("axis", axis), number_attribute("keepdims", 0)})[0].tensor;
  return {found.convert(c.type_attribute("output_type", dtype::i64))};
}
variables import_arg_max(node_context& c) { return arg(c, "ArgMax"); }
variables import_arg_min(node_context& c) { return arg(c, "ArgMin"); }

variables import_softmax(node_context& c) { return {c.in(0).softmax(-1)}; }
variables import_log_softmax(node_context& c) { return {c.in(0).log_softmax(-1)}; }

variables running(node_context& c, std::string_view op_type) {
  return as_onnx(c, op_type, {c.in(0), c.in(1)},
                 {number_attribute("exclusive", c.flag("exclusive")), number_attribute("reverse", c.flag("reverse"))});
}
variables import_cumsum(node_context& c) { return running(c, "CumSum"); }
variables import_cumprod(node_context& c) { return running(c, "CumProd"); }

}  // namespace

op_importer_table reduce_importers() {
  static constexpr op_importer table[] = {
      {domain, "All", 1, import_min},
      {domain, "Any", 1, import_max},
      {domain, "ArgMax", 1, import_arg_max},
      {domain, "ArgMin", 1, import_arg_min},
      {domain, "Cumprod", 1, import_cumprod},
      {domain, "Cumsum", 1, import_cumsum},
      {domain, "EuclideanNorm", 1, import_norm},
      {domain, "L2Loss", 1, import_l2_loss},
      {domain, "LogSoftmax", 1, import_log_softmax},
      {domain, "Max", 1, import_max},
      {domain, "Mean", 1, import_mean},
      {domain, "Min", 1, import_min},
      {domain, "Prod", 1, import_prod},
      {domain, "Softmax", 1, import_softmax},
      {domain, "Sum", 1, import_sum},
  };
  return table;
}

}  // namespace kiln::tensorflow
