#pragma once
#include <string_view>
#include <type_traits>

#include "kiln/core/trace.hpp"
#include "kiln/op/concepts.hpp"

namespace kiln::kernels {

/// A recorder that counts instructions over floats or, if `Whole`, over integers: arithmetic is one, a function that
/// expands to a polynomial many, and so is a quotient of integers, which has no vector form.
template <bool Whole> struct instruction_count {
  using records_calls = void;
  int count = 0;
  // a quotient of integers is made lane by lane, in about the time of a polynomial
  static constexpr int by_lanes = 20;

  constexpr instruction_count() = default;
  template <class S>
  requires std::is_arithmetic_v<S>
  constexpr instruction_count(S) {}

  template <class... E> static constexpr instruction_count call(std::string_view name, const E&... operands) {
    instruction_count sum;
    ((sum.count += operands.count), ...);
    sum.count += weight(name);
    return sum;
  }
  constexpr scalar_kind kind() const { return Whole ? scalar_kind::i64 : scalar_kind::f32; }
  static constexpr int weight(std::string_view name) {
    for (std::string_view simple :
         {"abs",         "copysign", "min",   "max",   "select", "bits",        "from_bits",  "sqrt",
          "recip",       "rsqrt",    "isnan", "isinf", "sign",   "logical_and", "logical_or", "logical_xor",
          "logical_not", "+",        "-",     "*",     "/",      "fma"})
      if (name == simple) return Whole && name == "/" ? by_lanes : 1;
    if (name == "%") return Whole ? by_lanes : 1;
    return name.size() < 3 ? 1 : name == "exp" ? 12 : 20;
  }

#define KILN_COUNT_BINARY(op) \
  friend constexpr instruction_count operator op(instruction_count a, instruction_count b) { return call(#op, a, b); }
  KILN_COUNT_BINARY(+)
  KILN_COUNT_BINARY(-)
  KILN_COUNT_BINARY(*)
  KILN_COUNT_BINARY(/)
  KILN_COUNT_BINARY(%)
  KILN_COUNT_BINARY(&)
  KILN_COUNT_BINARY(|)
  KILN_COUNT_BINARY(^)
  KILN_COUNT_BINARY(<<)
  KILN_COUNT_BINARY(>>)
  KILN_COUNT_BINARY(<)
  KILN_COUNT_BINARY(<=)
  KILN_COUNT_BINARY(>)
  KILN_COUNT_BINARY(>=)
  KILN_COUNT_BINARY(==)
  KILN_COUNT_BINARY(!=)
#undef KILN_COUNT_BINARY
  friend constexpr instruction_count operator-(instruction_count a) { return call("-", a); }
  friend constexpr instruction_count operator+(instruction_count a) { return a; }
  friend constexpr instruction_count operator~(instruction_count a) { return call("~", a); }
  friend constexpr instruction_count operator!(instruction_count a) { return call("!", a); }
};

/// About how many vector instructions an op's computation takes over floats or, if `Whole`, over integers.
template <class Op, bool Whole = false, std::size_t... I> constexpr int op_cost(std::index_sequence<I...>) {
  return Op{}((static_cast<void>(I), instruction_count<Whole>{})...).count;
}

}  // namespace kiln::kernels
