#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Recurrent layers. A layer's own value is every step's state; the last states are read from it by operators of their
// own.
namespace kiln::migraphx {

namespace {

attributes onnx_layer(const lowering& c) {
  constexpr std::string_view directions[] = {"forward", "reverse", "bidirectional"};
  attributes out{{"hidden_size", c.integer("hidden_size")},
                 {"direction", directions[c.word("direction", {"forward", "reverse", "bidirectional"})]}};
  if (c.real("clip") > 0) out["clip"] = c.real("clip");
  std::vector<std::string> functions;
  for (const attributes& f : c.op.values().at("actv_func"))
    functions.push_back(f.is_object() ? f.value("name", "") : f.get<std::string>());
  for (std::string& f : functions) std::erase(f, '_');
  if (!functions.empty()) out["activations"] = functions;
  return out;
}

// Functions that are named once serve both directions.
void complete(attributes& layer, std::size_t each) {
  if (!layer.contains("activations")) return;
  auto& names = layer["activations"];
  const std::size_t all = each * (layer["direction"] == "bidirectional" ? 2 : 1), given = names.size();
  for (std::size_t k = 0; names.size() < all && given != 0; ++k) names.push_back(names[k % given]);
  while (names.size() > all) names.erase(names.size() - 1);
}

value_list layer(lowering& c, std::string_view type, attributes with, std::size_t functions) {
  c.expect(3, 8);
  complete(with, functions);
  value_list operands;
  for (std::size_t i = 0; i < c.size(); ++i) operands.push_back(c.optional_in(i));
  while (!operands.empty() && !operands.back()) operands.pop_back();
  if (operands.size() > 4 && operands[4]) operands[4] = operands[4].convert(dtype::i32);
  return c.onnx(type, 14, operands, with);
}

value_list add_rnn(lowering& c) { return layer(c, "RNN", onnx_layer(c), 1); }
value_list add_gru(lowering& c) {
  attributes with = onnx_layer(c);
  with["linear_before_reset"] = c.integer("linear_before_reset");
  return layer(c, "GRU", std::move(with), 2);
}
value_list add_lstm(lowering& c) {
  attributes with = onnx_layer(c);
  with["input_forget"] = c.integer("input_forget");
  return layer(c, "LSTM", std::move(with), 3);
}

template <std::size_t Result> value_list add_last(lowering& c) {
  c.expect(1, 2);
  if (c.operands[0].size() <= Result)
    raise(errc::unsupported, "the last states are read from a recurrent layer: found '" +
                                 (c.makers[0] ? c.makers[0]->name() : std::string()) + "'");
  return {c.operands[0][Result]};
}

// Steps 0, 1, … of x[steps, batch, …] beside the number of steps of each sequence.
struct steps_and_lengths {
  value steps, lengths, longest;
};
steps_and_lengths steps_of(lowering& c) {
  c.expect(2);
  const value x = c.in(0);
  const dims lens{x.dim(0), c.in(1).dim(0)};
  return {c.build.add(op::iota{lens, 0, dtype::i64}), c.in(1).convert(dtype::i64).unsqueeze({0}).broadcast_to(lens),
          c.build.constant(literal::of_dimensions({1, 1}, {x.dim(0)})).broadcast_to(lens)};
}
// Row steps[t, b] of each sequence where it is inside, zeros elsewhere. Batches are axis `batch` of x.
value rows_at(lowering& c, value at, value inside, std::int64_t batch) {
  const value x = c.in(0);
  const auto spread = [&](value v) {
    for (std::size_t d = 2; d < x.rank(); ++d)
      v = v.unsqueeze({batch == 2 && d == 2 ? 1 : static_cast<std::int64_t>(d)});
    return v.broadcast_to(x.get_shape().lens);
  };
  const value none = c.build.scalar(dtype::i64, 0);
  const value rows = c.build.add(op::gather_elements{0}, x, spread(inside.where(at, none)));
  return spread(inside).where(rows, c.build.scalar(x.type(), 0));
}

// Sequences that end before the longest, moved to the end, or back to the beginning.
value_list add_shift_sequence(lowering& c) {
  const auto [steps, lengths, longest] = steps_of(c);
  const value at = steps - (longest - lengths);
  return {rows_at(c, at, c.build.add(op::greater_or_equal{}, at, c.build.scalar(dtype::i64, 0)), 1)};
}
value_list add_shift_output(lowering& c) {
  const auto [steps, lengths, longest] = steps_of(c);
  const std::size_t direction = c.word("direction", {"forward", "reverse", "bidirectional"});
  if (direction == 2) raise(errc::unsupported, "outputs of one direction are moved: found bidirectional");
  const value inside = steps < lengths;
  return {rows_at(c, direction == 1 ? steps + (longest - lengths) : steps, inside, 2)};
}

}  // namespace

operator_table sequence_operators() {
  static constexpr operator_row table[] = {
      {"gru", "hidden_size: 1, actv_func: [], direction: forward, clip: 0.0, linear_before_reset: 0", add_gru},
      {"lstm", "hidden_size: 1, actv_func: [], direction: forward, clip: 0.0, input_forget: 0", add_lstm},
      {"rnn", "hidden_size: 1, actv_func: [], direction: forward, clip: 0.0", add_rnn},
      {"rnn_last_cell_output", "", add_last<2>},
      {"rnn_last_hs_output", "", add_last<1>},
      {"rnn_var_sl_last_output", "direction: forward", add_last<1>},
      {"rnn_var_sl_shift_output", "output_name: hidden_states, direction: forward", add_shift_output},
      {"rnn_var_sl_shift_sequence", "", add_shift_sequence},
  };
  return table;
}

}  // namespace kiln::migraphx
