#pragma once
#include <type_traits>

#include "kiln/kernel/simd/vector.hpp"
#include "kiln/op/pointwise/gelu.hpp"
#include "kiln/op/pointwise/hard_sigmoid.hpp"
#include "kiln/op/pointwise/hard_swish.hpp"

namespace kiln::kernels {

/// What follows the sum and the clamp of an epilogue, of the functions that are compiled into it.
struct activation {
  enum class function : std::uint8_t { none, hard_sigmoid, hard_swish, sigmoid, swish, tanh, gelu, gelu_by_tanh };
  function is = function::none;
  op::hard_sigmoid gate{};  ///< of `hard_sigmoid`

  explicit constexpr operator bool() const { return is != function::none; }
};

/// Applies an activation to `rows` rows of `cols` elements, in place; rows are `c_row` elements apart. Products of
/// integers have none.
template <class T>
[[gnu::noinline]] void activate(const activation& f, T* c, std::ptrdiff_t c_row, std::int64_t rows, std::int64_t cols) {
  using V = native_vec<T>;
  constexpr std::int64_t n = native_lanes<T>;
  const auto each = [&](auto&& call) __attribute__((always_inline)) {
    for (std::int64_t r = 0; r < rows; ++r, c += c_row) {
      std::int64_t j = 0;
      for (; j + n <= cols; j += n) store(c + j, call(load<V>(c + j)));
      const int rest = static_cast<int>(cols - j);
      if (rest > 0) store_n(c + j, call(load_n<V>(c + j, rest)), rest);
    }
  };
  using function = activation::function;
  if constexpr (std::is_floating_point_v<T>) {
    switch (f.is) {
      case function::none: return;
      case function::hard_sigmoid: return each([&](V x) { return f.gate(x); });
      case function::hard_swish: return each([](V x) { return op::hard_swish{}(x); });
      case function::sigmoid: return each([](V x) { return kiln::sigmoid(x); });
      case function::swish: return each([](V x) { return x * kiln::sigmoid(x); });
      case function::tanh: return each([](V x) { return kiln::tanh(x); });
      case function::gelu: return each([](V x) { return op::gelu{}(x); });
      case function::gelu_by_tanh: return each([](V x) { return op::gelu{true}(x); });
    }
  }
}

}  // namespace kiln::kernels
