#pragma once
#include <limits>

#include "kiln/op/index/common.hpp"
#include "kiln/op/sequence/activation.hpp"

namespace kiln::op {

/// Which cell a recurrent op steps through: a plain one (Elman 1990), a gated recurrent unit (Cho et al. 2014), or long
/// short-term memory (Hochreiter and Schmidhuber 1997).
enum class cell_kind : std::uint8_t { plain, gru, lstm };

constexpr std::string_view to_string(cell_kind k) { return enumerator_name(k, {"plain", "gru", "lstm"}); }

/// One direction of a recurrent layer, whose input product is already made: gates[seq, batch, g * hidden] of the inputs
/// (with their bias), recurrence[hidden, g * hidden], its bias[g * hidden], the first hidden state[batch, hidden],
/// lengths[batch] (i64), and for lstm the first cell state[batch, hidden] and peepholes[3 * hidden]. g is 1, 3 (update,
/// reset, new) or 4 (input, output, forget, cell). Results: y[seq, batch, hidden], zero after a sequence's end; the
/// last hidden state; lstm's last cell state; and room for one step's gates.
struct recurrent {
  cell_kind cell = cell_kind::plain;
  inline_vector<cell_function, 3> functions{cell_function::tanh};  ///< of the gates, the new state, lstm's output
  inline_vector<float, 3> alpha{0.0f}, beta{0.0f};                 ///< the functions' numbers
  float clip = std::numeric_limits<float>::infinity();             ///< bound on what functions take
  bool reverse = false;
  bool linear_before_reset = false;
  bool coupled = false;  ///< the forget gate is one minus the input gate
  static constexpr auto types = dtypes::floats;

  constexpr std::int64_t gates() const { return cell == cell_kind::plain ? 1 : cell == cell_kind::gru ? 3 : 4; }

  void agree(extent_agreement& extents) const {
    constexpr std::size_t ranks[] = {3, 2, 1, 2, 1, 2, 1};
    if (extents.operands() < 5 || extents.operands() > 7) return;
    for (std::size_t i = 0; i < extents.operands(); ++i)
      if (extents.rank(i) != ranks[i]) return;
    const dimension hidden = extents.extent(1, 0), all = hidden * gates();
    extents.want(1, 1, all);
    extents.want(0, 2, all);
    extents.want(2, 0, all);
    for (std::size_t i = 3; i < extents.operands() && i < 6; ++i) {
      extents.agree(i, 0, 0, 1);
      if (i != 4) extents.want(i, 1, hidden);
    }
    if (extents.operands() == 7) extents.want(6, 0, hidden * 3);
  }
  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    const std::size_t wanted = cell == cell_kind::lstm ? 7 : 5, called = static_cast<std::size_t>(cell) + 1;
    if (in.size() != wanted) return detail::wrong_operand_count(static_cast<std::int64_t>(wanted), in.size());
    if (functions.size() != called || alpha.size() != called || beta.size() != called)
      return fault::of(errc::invalid_argument, "a cell has its number of functions", called, functions.size());
    const shape& x = in[0];
    if (!types.contains(x.type)) return detail::wrong_operand_type(x.type);
    if (x.rank() != 3 || in[1].rank() != 2)
      return fault::of(errc::shape_mismatch, "gates have rank 3 and the recurrence rank 2", x.lens, in[1].lens);
    const dimension hidden = in[1].lens[0], batch = x.lens[1], all = hidden * gates();
    const dims expected[] = {x.lens, {hidden, all}, {all}, {batch, hidden}, {batch}, {batch, hidden}, {hidden * 3}};
    for (std::size_t i = 0; i < wanted; ++i) {
      if (!(in[i].lens == expected[i]))
        return fault::of(errc::shape_mismatch, "an operand has the extents of its cell", expected[i], in[i].lens);
      if (i == 4 ? !is_integer(in[i].type) : in[i].type != x.type)
        return fault::of(errc::shape_mismatch, "operands have one dtype, lengths are integers", x.type, in[i].type);
    }
    if (!(x.lens[2] == all)) return fault::of(errc::shape_mismatch, "the last extent holds the gates", all, x.lens[2]);
    shapes out{shape{x.type, {x.lens[0], batch, hidden}}, shape{x.type, {batch, hidden}}};
    if (cell == cell_kind::lstm) out.push_back(shape{x.type, {batch, hidden}});
    out.push_back(shape{x.type, {all}});
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0), first = e.template in<T>(3);
    const auto lengths = e.template in<std::int64_t>(4);
    const auto y = e.template out<T>(0), h = e.template out<T>(1);
    const std::int64_t steps = x.lens[0], batch = x.lens[1], hidden = first.lens[1], all = hidden * gates();
    const bool remembers = cell == cell_kind::lstm;
    T* const c = remembers ? e.template out<T>(2).data : nullptr;
    const auto room = e.template out<T>(remembers ? 3 : 2);
    const auto first_cell = e.template in<T>(remembers ? 5 : 3);
    const auto peepholes = e.template in<T>(remembers ? 6 : 2);
    const step<T> s{e.template in<T>(1).data, e.template in<T>(2).data, peepholes.data, room.data, hidden, all};
    for (std::int64_t k = 0; k < batch * hidden; ++k) h[k] = first[k];
    if (remembers)
      for (std::int64_t k = 0; k < batch * hidden; ++k) c[k] = first_cell[k];
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t own = lengths[b] < 0 ? 0 : lengths[b] < steps ? lengths[b] : steps;
      for (std::int64_t k = own; k < steps; ++k)
        for (std::int64_t j = 0; j < hidden; ++j) y[(k * batch + b) * hidden + j] = T(0);
      for (std::int64_t k = 0; k < own; ++k) {
        const std::int64_t t = reverse ? own - 1 - k : k;
        advance(s, x.data + (t * batch + b) * all, h.data + b * hidden, remembers ? c + b * hidden : nullptr);
        for (std::int64_t j = 0; j < hidden; ++j) y[(t * batch + b) * hidden + j] = h[b * hidden + j];
      }
    }
  }

 private:
  template <class T> struct step {
    const T *recurrence, *bias, *peepholes;
    T* gate;
    std::int64_t hidden, all;

    /// Adds state times the columns [from, to) of the recurrence to the gates.
    constexpr void multiply(const T* state, std::int64_t from, std::int64_t to) const {
      for (std::int64_t k = 0; k < hidden; ++k) {
        const T* const column = recurrence + k * all;
        const T factor = state[k];
        for (std::int64_t j = from; j < to; ++j) gate[j] += factor * column[j];
      }
    }
  };
  template <class T> constexpr T call(std::size_t f, T x) const {
    const T bound = static_cast<T>(clip);
    return detail::applied(functions[f], alpha[f], beta[f], x > bound ? bound : x < -bound ? -bound : x);
  }

  template <class T> constexpr void advance(const step<T>& s, const T* x, T* h, T* c) const {
    const std::int64_t n = s.hidden;
    if (cell == cell_kind::gru) return advance_gru(s, x, h);
    for (std::int64_t j = 0; j < s.all; ++j) s.gate[j] = x[j] + s.bias[j];
    s.multiply(h, 0, s.all);
    for (std::int64_t j = 0; j < n; ++j) {
      if (cell == cell_kind::plain) {
        h[j] = call(0, s.gate[j]);
        continue;
      }
      const T in = call(0, s.gate[j] + s.peepholes[j] * c[j]);
      const T forget = coupled ? T(1) - in : call(0, s.gate[2 * n + j] + s.peepholes[2 * n + j] * c[j]);
      c[j] = forget * c[j] + in * call(1, s.gate[3 * n + j]);
      h[j] = call(0, s.gate[n + j] + s.peepholes[n + j] * c[j]) * call(2, c[j]);
    }
  }

  // update and reset gates first: the new state's product waits for the reset
  template <class T> constexpr void advance_gru(const step<T>& s, const T* x, T* h) const {
    const std::int64_t n = s.hidden;
    for (std::int64_t j = 0; j < 2 * n; ++j) s.gate[j] = x[j] + s.bias[j];
    s.multiply(h, 0, 2 * n);
    for (std::int64_t j = 0; j < 2 * n; ++j) s.gate[j] = call(0, s.gate[j]);
    for (std::int64_t j = 2 * n; j < 3 * n; ++j) s.gate[j] = s.bias[j];
    if (linear_before_reset) {
      s.multiply(h, 2 * n, 3 * n);
      for (std::int64_t j = 0; j < n; ++j) s.gate[2 * n + j] *= s.gate[n + j];
    } else {
      for (std::int64_t k = 0; k < n; ++k) s.gate[n + k] *= h[k];
      s.multiply(s.gate + n, 2 * n, 3 * n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const T fresh = call(1, s.gate[2 * n + j] + x[2 * n + j]), keep = s.gate[j];
      h[j] = (T(1) - keep) * fresh + keep * h[j];
    }
  }
};

}  // namespace kiln::op
