#pragma once
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "kiln/core/dtype.hpp"
#include "kiln/core/expr.hpp"

namespace kiln {

/// One computed value: an argument, a constant, an operator or a call of one of kiln's functions.
struct expr::node {
  enum class what : std::uint8_t { argument, constant, call };
  what is;
  scalar_kind kind;
  bool integer_constant = false;  ///< which of `integer` and `real` a constant holds
  int index = 0;                  ///< of an argument
  double real = 0;                ///< value of a constant
  std::int64_t integer = 0;       ///< value of a constant; u64 as its two's complement
  std::string name;               ///< operator or function
  std::vector<expr> operands;
  mutable std::atomic<int> owners{0};

  node(what is, scalar_kind kind) : is(is), kind(kind) {}
  node(const node& other)
      : is(other.is),
        kind(other.kind),
        integer_constant(other.integer_constant),
        index(other.index),
        real(other.real),
        integer(other.integer),
        name(other.name),
        operands(other.operands) {}
};

/// What a dialect calls one of kiln's functions.
struct spelling {
  std::string_view function, text;
};

/// How traced source is written; by default as C++ or HIP over scalars, with kiln's freestanding headers for functions.
struct dialect {
  std::string_view prefix = "kiln::";  ///< before kiln's functions and `scalar::i64`
  /// Text for any T, vectors included: select(…) calls, `splat<T>(…)` constants, auto temporaries.
  bool generic = false;
  std::string_view temporary = "t";     ///< names of temporaries: t0, t1, …
  bool deduced = false;                 ///< temporaries are `auto`, as in generic text
  std::span<const spelling> spelled{};  ///< functions that have another name, which no prefix precedes
  bool outer_parentheses = true;        ///< around a result that is an operator's
};

/// C++ over a type `T`, scalar or vector.
inline constexpr dialect generic_source{.generic = true};

/// Statements that define temporaries, and one expression for each result.
struct source_text {
  std::vector<std::string> statements;
  std::vector<std::string> values;
  std::vector<std::string>
      calls;  ///< each once: the operators and functions of kiln that the text contains, by their own names

  /// The statements and `return value;`, or the bare value when there are no statements.
  std::string str() const;
};

/// `results` as source over arguments named `names`; nothing is computed twice, neither within a result nor among them.
source_text print_source(std::span<const expr> results, std::span<const std::string> names, const dialect& how = {});

/// One result as source over arguments named `names`.
source_text print_source(const expr& result, const std::vector<std::string>& names, const dialect& how = {});

/// The kind of the values that a dtype is computed in (see visit_compute).
scalar_kind kind_of_values(dtype t);

/// The C++ type of a kind: float, double, int, unsigned, <prefix>scalar::i64, <prefix>scalar::u64, bool.
std::string type_name(scalar_kind kind, const dialect& how = {});

/// The expression that `op` computes from arguments of the given kinds.
template <class Op, std::convertible_to<scalar_kind>... Kinds>
requires(sizeof...(Kinds) > 0 && traceable<Op, sizeof...(Kinds)>) expr trace(const Op& op, Kinds... kinds) {
  int index = 0;
  const expr arguments[] = {expr::argument(index++, kinds)...};
  const expr result = [&]<std::size_t... I>(std::index_sequence<I...>) { return expr(op(arguments[I]...)); }
  (std::make_index_sequence<sizeof...(Kinds)>());
  return as_kind(result, arguments[sizeof...(Kinds) - 1].kind());
}

}  // namespace kiln
