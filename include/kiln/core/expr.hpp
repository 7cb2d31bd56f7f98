#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kiln/core/math.hpp"

namespace kiln {

/// The scalar types that traced source computes in; `undecided` marks a constant that takes the type of what it meets.
enum class scalar_kind : std::uint8_t { undecided, f32, f64, i32, u32, i64, u64, boolean };

/// A `T` for op bodies that records what is computed instead of computing it: a node of a shared expression tree.
/// Arithmetic, comparisons and kiln's functions build nodes; mixing two decided kinds throws `kiln::error`.
class expr {
 public:
  using records_calls = void;  ///< makes it a `recorder`: kiln's functions note a call by name
  struct node;

  expr() : expr(0) {}
  expr(const expr& other);
  expr(expr&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  expr& operator=(expr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~expr();
  /// A constant; it takes the kind of the first decided operand that it meets.
  template <class S>
  requires std::is_arithmetic_v<S> expr(S value) : expr(constant(value)) {}

  /// The op's argument number `index`, counted from 0.
  static expr argument(int index, scalar_kind kind);
  /// A constant of a stated kind.
  static expr constant(double value, scalar_kind kind);
  static expr constant(std::int64_t value, scalar_kind kind);
  /// The call of kiln's function `name`.
  template <class... E> static expr call(std::string_view name, const E&... operands) {
    const expr list[] = {operands...};
    return apply(name, list);
  }

  scalar_kind kind() const;
  const node& top() const { return *node_; }

  friend expr operator+(const expr& a, const expr& b) { return call("+", a, b); }
  friend expr operator-(const expr& a, const expr& b) { return call("-", a, b); }
  friend expr operator*(const expr& a, const expr& b) { return call("*", a, b); }
  friend expr operator/(const expr& a, const expr& b) { return call("/", a, b); }
  friend expr operator%(const expr& a, const expr& b) { return call("%", a, b); }
  friend expr operator&(const expr& a, const expr& b) { return call("&", a, b); }
  friend expr operator|(const expr& a, const expr& b) { return call("|", a, b); }
  friend expr operator^(const expr& a, const expr& b) { return call("^", a, b); }
  friend expr operator<<(const expr& a, const expr& b) { return call("<<", a, b); }
  friend expr operator>>(const expr& a, const expr& b) { return call(">>", a, b); }
  friend expr operator<(const expr& a, const expr& b) { return call("<", a, b); }
  friend expr operator<=(const expr& a, const expr& b) { return call("<=", a, b); }
  friend expr operator>(const expr& a, const expr& b) { return call(">", a, b); }
  friend expr operator>=(const expr& a, const expr& b) { return call(">=", a, b); }
  friend expr operator==(const expr& a, const expr& b) { return call("==", a, b); }
  friend expr operator!=(const expr& a, const expr& b) { return call("!=", a, b); }
  friend expr operator-(const expr& a) { return call("-", a); }
  friend expr operator+(const expr& a) { return a; }
  friend expr operator~(const expr& a) { return call("~", a); }
  friend expr operator!(const expr& a) { return call("logical_not", a); }
  expr& operator+=(const expr& b) { return *this = *this + b; }
  expr& operator-=(const expr& b) { return *this = *this - b; }
  expr& operator*=(const expr& b) { return *this = *this * b; }
  expr& operator/=(const expr& b) { return *this = *this / b; }

 private:
  explicit expr(node n);
  template <class S> static expr constant(S value) {
    if constexpr (std::is_same_v<S, bool>)
      return constant(std::int64_t{value}, scalar_kind::boolean);
    else if constexpr (std::is_floating_point_v<S>)
      return constant(static_cast<double>(value), scalar_kind::undecided);
    else
      return constant(static_cast<std::int64_t>(value), scalar_kind::undecided);
  }
  static expr apply(std::string_view name, std::span<const expr> operands);
  friend expr as_kind(const expr& e, scalar_kind kind);

  const node* node_;  // shared: counts its owners
};

/// `e` with its undecided constants decided as `kind`; a decided expression comes back as it is.
expr as_kind(const expr& e, scalar_kind kind);

namespace detail {

template <class Op, std::size_t... I> constexpr bool takes_exprs(std::index_sequence<I...>) {
  return requires(const Op& op, const expr& x) {
    { op((static_cast<void>(I), x)...) } -> std::convertible_to<expr>;
  };
}

}  // namespace detail

/// An op whose `operator()` takes N values of any type T, so that instantiating it with `expr` yields its source.
template <class Op, std::size_t N>
concept traceable = detail::takes_exprs<Op>(std::make_index_sequence<N>());

}  // namespace kiln
