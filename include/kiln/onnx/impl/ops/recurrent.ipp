#include <algorithm>
#include <array>
#include <functional>

#include "kiln/onnx/impl/ops/quantize.hpp"
#include "kiln/op/sequence/recurrent.hpp"

// Recurrent layers: one matrix product with the inputs for all steps, then the recurrence.
namespace kiln::onnx {

namespace {

using op::cell_function;
using op::cell_kind;

struct known_function {
  std::string_view name;
  cell_function function;
  bool alpha, beta;
  float default_alpha, default_beta;
};
constexpr known_function known_functions[] = {
    {"affine", cell_function::affine, true, true, 1, 0},
    {"elu", cell_function::elu, true, false, 1, 0},
    {"hardsigmoid", cell_function::hard_sigmoid, true, true, .2f, .5f},
    {"leakyrelu", cell_function::leaky_relu, true, false, .01f, 0},
    {"relu", cell_function::relu, false, false, 0, 0},
    {"scaledtanh", cell_function::scaled_tanh, true, true, 1, 1},
    {"sigmoid", cell_function::sigmoid, false, false, 0, 0},
    {"softplus", cell_function::softplus, false, false, 0, 0},
    {"softsign", cell_function::softsign, false, false, 0, 0},
    {"tanh", cell_function::tanh, false, false, 0, 0},
    {"thresholdedrelu", cell_function::thresholded_relu, true, false, 1, 0},
};

const known_function& function_named(const node_context& c, std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char x) { return x >= 'A' && x <= 'Z' ? x + 32 : x; });
  for (const known_function& f : known_functions)
    if (f.name == name) return f;
  c.unsupported("the activation '" + name + "'");
}

// The cells of each direction. Functions with parameters take them in order from activation_alpha and _beta.
std::vector<op::recurrent> read_cells(const node_context& c, cell_kind kind, std::size_t directions) {
  std::vector<std::string> names(c.texts("activations").begin(), c.texts("activations").end());
  const std::size_t each = static_cast<std::size_t>(kind) + 1;
  // the schema's default of RNN is for two directions, and runtimes that state it do so for one as well
  if (kind == cell_kind::plain && directions == 1 && names == std::vector<std::string>{"Tanh", "Tanh"})
    names.pop_back();
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d)
      for (std::size_t k = 0; k < each; ++k) names.push_back(kind != cell_kind::plain && k == 0 ? "sigmoid" : "tanh");
  if (names.size() != each * directions)
    c.malformed("activations names " + std::to_string(each) + " functions for each direction, found " +
                std::to_string(names.size()));
  auto alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  const auto take = [](std::span<const float>& from, bool wanted, float otherwise) {
    if (!wanted || from.empty()) return otherwise;
    const float v = from[0];
    from = from.subspan(1);
    return v;
  };
  std::vector<op::recurrent> cells(directions);
  for (std::size_t d = 0; d < directions; ++d) {
    op::recurrent& r = cells[d];
    r.cell = kind;
    r.functions = {};
    r.alpha = {};
    r.beta = {};
    for (std::size_t k = 0; k < each; ++k) {
      const known_function& f = function_named(c, names[d * each + k]);
      r.functions.push_back(f.function);
      r.alpha.push_back(take(alphas, f.alpha, f.default_alpha));
      r.beta.push_back(take(betas, f.beta, f.default_beta));
    }
    if (const float clip = c.real("clip", 0); clip > 0) r.clip = clip;
    r.linear_before_reset = c.flag("linear_before_reset");
    r.coupled = c.flag("input_forget");
  }
  return cells;
}

value zeros(node_context& c, const dims& lens, dtype t) { return c.build.add(op::fill{lens, 0, t}); }

// The product of all steps' inputs x[steps * batch, features] with the weights of a direction, input 1 transposed.
using input_product = std::function<value(value x, std::size_t direction)>;

variables recurrent_layer(node_context& c, cell_kind kind, const input_product& quantized = {}) {
  const auto direction = c.choice("direction", {"forward", "reverse", "bidirectional"});
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = c.flag("layout");
  if (c.in(0).rank() != 3 || c.in(1).rank() != 3 || c.in(2).rank() != 3) c.malformed("X, W and R have rank 3");
  const dtype t = c.in(0).type();
  const value x = widened(batch_first ? c.in(0).transpose({1, 0, 2}) : c.in(0));
  const dimension steps = x.dim(0), batch = x.dim(1), hidden = c.in(2).dim(2), all = c.in(1).dim(1);
  if (const std::int64_t stated = c.integer("hidden_size", 0); stated && !(hidden == dimension(stated)))
    c.malformed("hidden_size differs from the recurrence's extent");
  const value flat = x.reshape({steps * batch, x.dim(2)});
  const value lengths =
      c.has(4) ? c.in(4).convert(dtype::i64) : dimensions_value(c.build, {1}, {steps}).broadcast_to({batch});
  const auto part = [&](value v, std::size_t d) { return element_at(widened(v), 0, static_cast<std::int64_t>(d)); };
  const auto state = [&](std::size_t i, std::size_t d) {
    if (!c.has(i)) return zeros(c, {batch, hidden}, x.type());
    return part(batch_first ? c.in(i).transpose({1, 0, 2}) : c.in(i), d);
  };
  small_vector<value> y, last, last_cell;
  std::vector<op::recurrent> cells = read_cells(c, kind, directions);
  for (std::size_t d = 0; d < directions; ++d) {
    cells[d].reverse = d == 1 || direction == "reverse";
    value gates = quantized ? quantized(flat, d) : flat.dot(part(c.in(1), d).transpose({1, 0}));
    value bias = zeros(c, {all}, x.type());
    if (c.has(3)) {
      const value both = part(c.in(3), d);
      gates = gates + both.slice({{0}, {0}, {all}, {}});
      bias = both.slice({{0}, {all}, {all * 2}, {}});
    }
    small_vector<value> operands{gates.reshape({steps, batch, all}), part(c.in(2), d).transpose({1, 0}), bias,
                                 state(5, d), lengths};
    if (kind == cell_kind::lstm) {
      operands.push_back(state(6, d));
      operands.push_back(c.has(7) ? part(c.in(7), d) : zeros(c, {hidden * 3}, x.type()));
    }
    const value made = c.build.add(cells[d], operands);
    y.push_back(made.unsqueeze({1}));
    last.push_back(made.result(1).unsqueeze({0}));
    if (kind == cell_kind::lstm) last_cell.push_back(made.result(2).unsqueeze({0}));
  }
  const auto joined = [&](const small_vector<value>& parts, std::int64_t axis) {
    return (parts.size() == 1 ? parts[0] : c.build.add(op::concat{axis}, parts)).convert(t);
  };
  const auto laid_out = [&](value v) { return batch_first ? v.transpose({1, 0, 2}) : v; };
  const value sequence = joined(y, 1);
  variables out{batch_first ? sequence.transpose({2, 0, 1, 3}) : sequence, laid_out(joined(last, 0))};
  if (kind == cell_kind::lstm) out.push_back(laid_out(joined(last_cell, 0)));
  return out;
}

template <cell_kind Kind> variables import_recurrent(node_context& c) { return recurrent_layer(c, Kind); }

// An LSTM of 8-bit weights [directions, features, gates], with scales and zero points as inputs 8 to 11: one for each
// direction, or for each of its gates. The steps' inputs are quantized by their range, the recurrence is of floats.
variables import_dynamic_quantize_lstm(node_context& c) {
  if (c.in(1).rank() != 3 || c.in(2).rank() != 3) c.malformed("W and R have rank 3");
  const auto of = [&](std::size_t i, std::size_t d) { return element_at(c.in(i), 0, static_cast<std::int64_t>(d)); };
  const auto real = [&](std::size_t i, std::size_t scale) {  // [directions, gates, features]
    const auto spread = [&](value v) { return v.rank() == 1 ? v.unsqueeze({1, 2}) : v.unsqueeze({1}); };
    const value centered = c.in(i).convert(dtype::i32) - spread(c.in(scale + 1)).convert(dtype::i32);
    return (centered.convert(dtype::f32) * spread(c.in(scale))).transpose({0, 2, 1});
  };
  variables inputs = c.inputs;
  inputs.resize(8);
  inputs[1] = variable(real(1, 8));
  inputs[2] = variable(real(2, 10));
  node_context plain = c.with_inputs(std::move(inputs));
  return recurrent_layer(plain, cell_kind::lstm, [&](value x, std::size_t d) {
    const quantized_tensor q = quantized_by_range(c, x);
    const value sum = integer_product(c, q.y, q.zero, of(1, d), of(9, d));
    return sum.convert(dtype::f32) * (q.scale * of(8, d));
  });
}

}  // namespace

std::span<const op_importer> recurrent_importers() {
  static constexpr op_importer table[] = {
      {"", "GRU", 1, import_recurrent<cell_kind::gru>},
      {"", "LSTM", 1, import_recurrent<cell_kind::lstm>},
      {"", "RNN", 1, import_recurrent<cell_kind::plain>},
      {microsoft, "DynamicQuantizeLSTM", 1, import_dynamic_quantize_lstm},
  };
  return table;
}

}  // namespace kiln::onnx
