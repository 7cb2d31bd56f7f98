#pragma once
#include <string_view>

#include "kiln/core/math.hpp"

namespace kiln::op {

/// What a recurrent cell applies to its gates (ONNX's list).
enum class cell_function : std::uint8_t {
  affine,
  elu,
  hard_sigmoid,
  leaky_relu,
  relu,
  scaled_tanh,
  sigmoid,
  softplus,
  softsign,
  tanh,
  thresholded_relu,
};

// Spelled out: device code reads this header, which brings nothing but names.
constexpr std::string_view to_string(cell_function f) {
  constexpr std::string_view names[] = {"affine",   "elu",         "hard_sigmoid",    "leaky_relu",
                                        "relu",     "scaled_tanh", "sigmoid",         "softplus",
                                        "softsign", "tanh",        "thresholded_relu"};
  return static_cast<unsigned>(f) < 11 ? names[static_cast<unsigned>(f)] : std::string_view("");
}

}  // namespace kiln::op

namespace kiln::detail {

/// The function of a gate at x.
template <class T> constexpr T applied(op::cell_function f, float alpha, float beta, T x) {
  using op::cell_function;
  const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
  switch (f) {
    case cell_function::affine: return a * x + b;
    case cell_function::elu: return x >= T(0) ? x : a * kiln::expm1(x);
    case cell_function::hard_sigmoid: {
      const T y = a * x + b;
      return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
    }
    case cell_function::leaky_relu: return x >= T(0) ? x : a * x;
    case cell_function::relu: return x > T(0) ? x : T(0);
    case cell_function::scaled_tanh: return a * kiln::tanh(b * x);
    case cell_function::sigmoid: return T(1) / (T(1) + kiln::exp(-x));
    case cell_function::softplus: return (x > T(0) ? x : T(0)) + kiln::log1p(kiln::exp(x > T(0) ? -x : x));
    case cell_function::softsign: return x / (T(1) + (x < T(0) ? -x : x));
    case cell_function::thresholded_relu: return x >= a ? x : T(0);
    case cell_function::tanh: break;
  }
  return kiln::tanh(x);
}

}  // namespace kiln::detail
