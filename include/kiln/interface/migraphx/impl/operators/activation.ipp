#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

namespace kiln::migraphx {

namespace {

value_list add_elu(lowering& c) {
  c.expect(1);
  return {c.in(0).elu({static_cast<float>(c.real("alpha"))})};
}
value_list add_leaky_relu(lowering& c) {
  c.expect(1);
  return {c.in(0).leaky_relu({static_cast<float>(c.real("alpha"))})};
}
value_list add_softmax(lowering& c) {
  c.expect(1);
  return {c.in(0).softmax(c.axis("axis"))};
}
value_list add_logsoftmax(lowering& c) {
  c.expect(1);
  return {c.in(0).log_softmax(c.axis("axis"))};
}
value_list add_lrn(lowering& c) {
  c.expect(1);
  return {c.build.add(op::lrn{c.integer("size"), static_cast<float>(c.real("alpha")),
                              static_cast<float>(c.real("beta")), static_cast<float>(c.real("bias"))},
                      c.in(0))};
}
// (x - mean) / sqrt(variance + epsilon) * scale + bias; operands after x have a number for each channel.
value_list add_batch_norm(lowering& c) {
  c.expect(5);
  return {c.in(0).batch_norm(c.in(1), c.in(2), c.in(3), c.in(4), c.real("epsilon"))};
}

}  // namespace

operator_table activation_operators() {
  static constexpr operator_row table[] = {
      {"batch_norm_inference", "epsilon: 1e-6, momentum: 0.9, bn_mode: 1", add_batch_norm},
      {"elu", "alpha: 1.0", add_elu},
      {"leaky_relu", "alpha: 0.01", add_leaky_relu},
      {"logsoftmax", "axis: 1", add_logsoftmax},
      {"lrn", "alpha: 0.0001, beta: 0.75, bias: 1.0, size: 1", add_lrn},
      {"relu", "", add_unary<op::relu>},
      {"sigmoid", "", add_unary<op::sigmoid>},
      {"softmax", "axis: 1", add_softmax},
  };
  return table;
}

}  // namespace kiln::migraphx
