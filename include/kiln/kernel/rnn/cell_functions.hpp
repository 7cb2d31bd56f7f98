#pragma once
#include <limits>

#include "kiln/core/math.hpp"
#include "kiln/kernel/simd/vector.hpp"
#include "kiln/op/sequence/recurrent.hpp"

// What recurrent cells apply to their gates, over vectors; see op/sequence/activation.hpp.
namespace kiln::kernels {

/// Sigmoid for gates and tanh for the other functions; a plain cell has tanh alone. No clip.
template <op::cell_kind Kind> struct usual_functions {
  explicit usual_functions(const op::recurrent&) {}

  /// Function `F` of the cell's list at each lane of x.
  template <int F, is_vec V> KILN_FN V call(V x) const {
    if constexpr (F == 0 && Kind != op::cell_kind::plain)
      return sigmoid(x);
    else
      return tanh(x);
  }
  static bool serve(const op::recurrent& cell) {
    using op::cell_function;
    if (cell.clip < std::numeric_limits<float>::infinity()) return false;
    for (std::size_t f = 0; f < cell.functions.size(); ++f)
      if (cell.functions[f] != (f == 0 && Kind != op::cell_kind::plain ? cell_function::sigmoid : cell_function::tanh))
        return false;
    return true;
  }
};

/// Any functions, after any clip.
struct named_functions {
  const op::recurrent& cell;

  explicit named_functions(const op::recurrent& c) : cell(c) {}

  template <int F, is_vec V> KILN_FN V call(V x) const { return applied(F, x); }

 private:
  template <is_vec V> [[gnu::noinline]] V applied(std::size_t f, V x) const {
    using op::cell_function;
    const V zero{}, one = broadcast<V>(1.0F), bound = broadcast<V>(cell.clip);
    const V a = broadcast<V>(cell.alpha[f]), b = broadcast<V>(cell.beta[f]);
    x = select(x > bound, bound, select(x < -bound, -bound, x));
    switch (cell.functions[f]) {
      case cell_function::affine: return a * x + b;
      case cell_function::elu: return select(x >= zero, x, a * expm1(x));
      case cell_function::hard_sigmoid: {
        const V y = a * x + b;
        return select(y < zero, zero, select(y > one, one, y));
      }
      case cell_function::leaky_relu: return select(x >= zero, x, a * x);
      case cell_function::relu: return select(x > zero, x, zero);
      case cell_function::scaled_tanh: return a * tanh(b * x);
      case cell_function::sigmoid: return sigmoid(x);
      case cell_function::softplus: return select(x > zero, x, zero) + log1p(exp(select(x > zero, -x, x)));
      case cell_function::softsign: return x / (one + abs(x));
      case cell_function::thresholded_relu: return select(x >= a, x, zero);
      case cell_function::tanh: break;
    }
    return tanh(x);
  }
};

}  // namespace kiln::kernels
