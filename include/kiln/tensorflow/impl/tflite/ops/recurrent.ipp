#include <array>

#include "kiln/tensorflow/impl/tflite/ops/common.hpp"

// Recurrent layers. Their states are variable tensors, which begin as zeros.
namespace kiln::tensorflow {

namespace {

constexpr std::string_view activation_names[] = {"", "Relu", "", "", "Tanh"};

std::string activation_of(const node_context& c) {
  const std::int64_t a = c.integer("fused_activation_function", 0);
  if (a < 0 || a >= std::ssize(activation_names) || activation_names[a].empty())
    c.unsupported("a recurrence under activation number " + std::to_string(a));
  return std::string(activation_names[a]);
}
onnx::attribute texts_attribute(std::string name, std::vector<std::string> v) {
  onnx::attribute a;
  a.name = std::move(name);
  a.kind = onnx::attribute_kind::texts;
  a.texts = std::move(v);
  return a;
}
value joined(const node_context& c, const small_vector<value>& parts, std::int64_t axis) {
  return c.build.add(op::concat{axis}, parts);
}

// x as [steps, batch, features].
value steps_first(const node_context& c, value x, bool time_major) {
  if (x.rank() != 3) c.malformed("a sequence has rank 3, found " + kiln::to_string(x.get_shape()));
  return time_major ? x : x.transpose({1, 0, 2});
}
value steps_as_given(value y, bool time_major) { return time_major ? y : y.transpose({1, 0, 2}); }
// The sequence of ONNX's layer, [steps, 1, batch, units].
value sequence_of(const variables& y) { return y[0].tensor.squeeze({1}); }

struct plain_inputs {
  std::size_t weights, recurrent, bias;
};
value run_plain(node_context& c, value x, const plain_inputs& in, bool reverse) {
  const value bias = c.in(in.bias), none = scalar_like(c, bias, 0).broadcast_to(lens_of(bias));
  return sequence_of(
      as_onnx(c, "RNN",
              {x, c.in(in.weights).unsqueeze({0}), c.in(in.recurrent).unsqueeze({0}),
               joined(c, small_vector<value>{bias, none}, 0).unsqueeze({0})},
              {number_attribute("hidden_size", bias.dim(0).value()), texts_attribute("activations", {activation_of(c)}),
               text_attribute("direction", reverse ? "reverse" : "forward")}));
}

// Inputs of an LSTM relative to its first weights: four matrices of the input, four of the state (gates input, forget,
// cell, output), three peepholes, four biases, the projection and its bias. `normals` are four scales.
struct lstm_inputs {
  std::size_t first, states, normals;
};
struct lstm_cell {
  std::array<value, 4> weights, recurrent, bias;
  value peepholes;
  bool is_coupled = false;
};

// Without an input gate's own weights the gate is what the forget gate leaves: 1 - s(z) is s(-z).
lstm_cell cell_of(node_context& c, const lstm_inputs& in) {
  lstm_cell out;
  const std::size_t f = in.first;
  if (c.has(f + 15) || c.has(f + 16)) c.unsupported("an LSTM with a projection");
  for (std::size_t i = 0; in.normals && i < 4; ++i)
    if (c.has(in.normals + i)) c.unsupported("an LSTM with normalized gates");
  if (c.real("cell_clip", 0) > 0 || c.real("proj_clip", 0) > 0) c.unsupported("an LSTM with clipped cells");
  if (c.flag("diagonal_recurrent_tensors")) c.unsupported("an LSTM of diagonal recurrent weights");
  for (std::size_t s : {in.states, in.states + 1})
    if (c.has(s)) c.unsupported("an LSTM that is given its state");
  out.is_coupled = !c.has(f);
  for (std::size_t g = 0; g < 4; ++g) {
    const bool is_opposite = g == 0 && out.is_coupled;
    const std::size_t from = is_opposite ? 1 : g;
    const auto gate = [&](std::size_t list) {
      return is_opposite ? c.in(f + list + from).neg() : c.in(f + list + from);
    };
    out.weights[g] = gate(0);
    out.recurrent[g] = gate(4);
    out.bias[g] = gate(11);
  }
  if (c.has(f + 9)) {
    const value forget = c.in(f + 9), input = out.is_coupled ? forget.neg() : c.in(f + 8);
    out.peepholes = joined(c, {input, c.in(f + 10), forget}, 0).unsqueeze({0});
  }
  return out;
}

// [steps, batch, units]
value run_lstm(node_context& c, value x, const lstm_inputs& in, bool reverse) {
  const lstm_cell cell = cell_of(c, in);
  const auto in_order = [&](const std::array<value, 4>& g) { return joined(c, {g[0], g[3], g[1], g[2]}, 0); };
  const value bias = in_order(cell.bias), none = scalar_like(c, bias, 0).broadcast_to(lens_of(bias));
  const std::string activation = activation_of(c);
  variables given{x, in_order(cell.weights).unsqueeze({0}), in_order(cell.recurrent).unsqueeze({0}),
                  joined(c, small_vector<value>{bias, none}, 0).unsqueeze({0})};
  if (cell.peepholes) {
    for (int i = 0; i < 3; ++i) given.push_back(variable());
    given.push_back(cell.peepholes);
  }
  return sequence_of(as_onnx(c, "LSTM", std::move(given),
                             {number_attribute("hidden_size", bias.dim(0).value() / 4),
                              texts_attribute("activations", {"Sigmoid", activation, activation}),
                              text_attribute("direction", reverse ? "reverse" : "forward")}));
}

constexpr lstm_inputs one_lstm{1, 18, 20};

// One step: [batch, features].
variables import_rnn(node_context& c) { return {run_plain(c, c.in(0).unsqueeze({0}), {1, 2, 3}, false).squeeze({0})}; }
variables import_sequence_rnn(node_context& c) {
  const bool time_major = c.flag("time_major");
  return {steps_as_given(run_plain(c, steps_first(c, c.in(0), time_major), {1, 2, 3}, false), time_major)};
}
variables import_sequence_lstm(node_context& c) {
  const bool time_major = c.flag("time_major");
  return {steps_as_given(run_lstm(c, steps_first(c, c.in(0), time_major), one_lstm, false), time_major)};
}
variables import_lstm(node_context& c) {
  if (c.integer("kernel_type", 0) != 0) c.unsupported("the basic LSTM, of one matrix for all gates");
  return {run_lstm(c, c.in(0).unsqueeze({0}), one_lstm, false).squeeze({0})};
}

// Both directions, as two outputs or one.
template <class Run> variables both_directions(node_context& c, bool time_major, Run&& run) {
  const value x = steps_first(c, c.in(0), time_major);
  const value there = steps_as_given(run(x, false), time_major), back = steps_as_given(run(x, true), time_major);
  if (c.flag("merge_outputs")) return {joined(c, {there, back}, 2)};
  return {there, back};
}
void refuse_auxiliary(const node_context& c, std::size_t from) {
  for (std::size_t i = from; i < c.size(); ++i)
    if (c.has(i)) c.unsupported("a layer of both directions with an auxiliary input");
}
variables import_bidirectional_rnn(node_context& c) {
  refuse_auxiliary(c, 9);
  return both_directions(c, c.flag("time_major"), [&](value x, bool back) {
    return run_plain(c, x, back ? plain_inputs{5, 6, 7} : plain_inputs{1, 2, 3}, back);
  });
}
variables import_bidirectional_lstm(node_context& c) {
  refuse_auxiliary(c, 39);
  return both_directions(c, c.flag("time_major", true), [&](value x, bool back) {
    return run_lstm(c, x, back ? lstm_inputs{18, 37, 0} : lstm_inputs{1, 35, 0}, back);
  });
}

// Filters over features, then over the frames that are kept; all but the newest one are zeros. Units are of `rank`
// filters each.
variables import_svdf(node_context& c) {
  const std::int64_t rank = c.integer("rank", 0);
  const value features = c.in(1), times = c.in(2);
  if (rank < 1 || features.rank() != 2 || times.rank() != 2 || !times.dim(1).is_constant() ||
      !features.dim(0).is_constant() || features.dim(0).value() % rank)
    c.malformed("filters are matrices of a multiple of rank rows");
  const std::int64_t filters = features.dim(0).value();
  const value newest = onnx::element_at(times, 1, times.dim(1).value() - 1);
  const value made = c.in(0).dot(features.transpose({1, 0})) * newest;
  const value sum = made.reshape({c.in(0).dim(0), filters / rank, rank}).reduce_sum({2}).squeeze({2});
  return {c.has(3) ? sum + c.in(3) : sum};
}

}  // namespace

tflite_table tflite_recurrent_operators() {
  constexpr std::string_view zeros = "the state is of zeros when a run begins";
  static constexpr tflite_operator table[] = {
      {"BIDIRECTIONAL_SEQUENCE_LSTM", import_bidirectional_lstm, {}, zeros, true},
      {"BIDIRECTIONAL_SEQUENCE_RNN", import_bidirectional_rnn, {}, zeros, true},
      {"LSTM", import_lstm, {}, zeros, true},
      {"RNN", import_rnn, {}, zeros, true},
      {"SVDF", import_svdf, {}, zeros},
      {"UNIDIRECTIONAL_SEQUENCE_LSTM", import_sequence_lstm, {}, zeros, true},
      {"UNIDIRECTIONAL_SEQUENCE_RNN", import_sequence_rnn, {}, zeros, true},
  };
  return table;
}

}  // namespace kiln::tensorflow
