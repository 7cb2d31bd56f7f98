#include "kiln/onnx/impl/ops/common.hpp"

// Optimizer steps (ai.onnx.preview.training). Inputs: learning rate, step count, then the values of all tensors, their
// gradients, and their running means.
namespace kiln::onnx {

namespace {

struct groups {
  std::size_t tensors = 0;
  value rate, step;  // of one type
};
groups read_groups(const node_context& c, std::size_t kinds) {
  if (c.size() < 2 + kinds || (c.size() - 2) % kinds != 0)
    c.malformed("inputs are a rate, a step and " + std::to_string(kinds) + " for each tensor");
  return {(c.size() - 2) / kinds, c.in(0).reshape({}), c.in(1).reshape({}).convert(c.in(0).type())};
}
value as(value scalar, value x) { return scalar.convert(x.type()); }
value positive(node_context& c, value step) { return step > c.build.scalar(step.type(), 0.0f); }

variables import_adagrad(node_context& c) {
  const groups g = read_groups(c, 3);
  const float epsilon = c.real("epsilon", 1e-6f), norm = c.real("norm_coefficient", 0);
  const value rate = g.rate / (g.step * c.real("decay_factor", 0) + 1.0f);
  variables values, squares;
  for (std::size_t k = 0; k < g.tensors; ++k) {
    const value x = c.in(2 + k), slope = x * norm + c.in(2 + g.tensors + k);
    const value sum = c.in(2 + 2 * g.tensors + k) + slope * slope;
    values.push_back(x - slope * as(rate, x) / (sum.sqrt() + epsilon));
    squares.push_back(sum);
  }
  for (const variable& v : squares) values.push_back(v);
  return values;
}

variables import_adam(node_context& c) {
  const groups g = read_groups(c, 4);
  const float alpha = c.real("alpha", .9f), beta = c.real("beta", .999f), epsilon = c.real("epsilon", 1e-6f),
              norm = c.real("norm_coefficient", 0), after = c.real("norm_coefficient_post", 0);
  const auto rest = [&](float base) { return -c.build.scalar(g.step.type(), base).pow(g.step) + 1.0f; };
  const value rate = positive(c, g.step).where(g.rate * rest(beta).sqrt() / rest(alpha), g.rate);
  variables values, means, squares;
  for (std::size_t k = 0; k < g.tensors; ++k) {
    const value x = c.in(2 + k), slope = x * norm + c.in(2 + g.tensors + k);
    const value mean = c.in(2 + 2 * g.tensors + k) * alpha + slope * (1 - alpha),
                square = c.in(2 + 3 * g.tensors + k) * beta + slope * slope * (1 - beta);
    const value moved = x - mean * as(rate, x) / (square.sqrt() + epsilon);
    values.push_back(after == 0 ? moved : moved * (1 - after));
    means.push_back(mean);
    squares.push_back(square);
  }
  for (const variables* list : {&means, &squares})
    for (const variable& v : *list) values.push_back(v);
  return values;
}

variables import_momentum(node_context& c) {
  const groups g = read_groups(c, 3);
  const float alpha = c.real("alpha", 0), norm = c.real("norm_coefficient", 0);
  const auto mode = c.choice("mode", {"standard", "nesterov"});
  const auto number = [&](float v) { return c.build.scalar(g.step.type(), v); };
  const value beta = positive(c, g.step).where(number(c.real("beta", 0)), number(1));
  variables values, means;
  for (std::size_t k = 0; k < g.tensors; ++k) {
    const value x = c.in(2 + k), slope = x * norm + c.in(2 + g.tensors + k);
    const value mean = c.in(2 + 2 * g.tensors + k) * alpha + slope * as(beta, x);
    values.push_back(x - (mode == "nesterov" ? slope + mean * alpha : mean) * as(g.rate, x));
    means.push_back(mean);
  }
  for (const variable& v : means) values.push_back(v);
  return values;
}

}  // namespace

std::span<const op_importer> training_importers() {
  static constexpr std::string_view domain = "ai.onnx.preview.training";
  static constexpr op_importer table[] = {
      {domain, "Adagrad", 1, import_adagrad},
      {domain, "Adam", 1, import_adam},
      {domain, "Momentum", 1, import_momentum},
  };
  return table;
}

}  // namespace kiln::onnx
