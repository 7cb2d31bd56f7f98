#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "kiln/core/error.hpp"
#include "kiln/core/inline_vector.hpp"
#include "kiln/core/small_vector.hpp"

namespace kiln {

class dimension;
constexpr void put_text(inline_string<95>& out, dimension d);

namespace detail {
// The interned expressions live in the compiled layer (core/impl/dimension.ipp): constants never reach them.
dimension combine_dimensions(char op, dimension a, dimension b);
std::int64_t least(dimension d);
std::int64_t greatest(dimension d);
}  // namespace detail

/// One extent of a tensor: a constant, or an expression over named symbols with bounds. Eight bytes; equal expressions
/// are the same value, because expressions are kept in canonical form (a polynomial over symbols and quotients) and
/// interned for the life of the process. Also the element type of symbolic shape arithmetic: an integer op's own
/// computation runs over dimensions. `/` rounds down; symbolic operands of `/` and `%` are taken to be non-negative.
class dimension {
 public:
  constexpr dimension() = default;
  template <class I>
  requires std::is_integral_v<I>
  constexpr dimension(I value) : value_(static_cast<std::int64_t>(value)) {
    // slices write "the least integer" for "to the very start"; as it stands that word would be an expression
    if (value_ < least_constant) value_ = least_constant;
  }

  /// A named symbol with a value in [min, max]. The same name and bounds give the same symbol.
  static dimension symbol(std::string_view name, std::int64_t min = 0,
                          std::int64_t max = std::numeric_limits<std::int64_t>::max() >> 16);

  constexpr bool is_constant() const { return value_ >= least_constant; }
  /// The constant; a symbolic dimension is an `unsupported` fault.
  constexpr std::int64_t value() const {
    if (!is_constant()) raise(fault::of(errc::unsupported, "the dimension is known here", "a constant", *this));
    return value_;
  }
  /// Bounds over every assignment of the symbols.
  constexpr std::int64_t min() const { return is_constant() ? value_ : detail::least(*this); }
  constexpr std::int64_t max() const { return is_constant() ? value_ : detail::greatest(*this); }

  constexpr explicit operator std::int64_t() const { return value(); }
  constexpr explicit operator bool() const { return value() != 0; }

  friend constexpr dimension operator+(dimension a, dimension b) { return apply('+', a, b); }
  friend constexpr dimension operator-(dimension a, dimension b) { return apply('-', a, b); }
  friend constexpr dimension operator*(dimension a, dimension b) { return apply('*', a, b); }
  friend constexpr dimension operator/(dimension a, dimension b) { return apply('/', a, b); }
  friend constexpr dimension operator%(dimension a, dimension b) { return apply('%', a, b); }
  friend constexpr dimension operator-(dimension a) { return dimension(0) - a; }
  friend constexpr dimension smaller(dimension a, dimension b) { return apply('m', a, b); }
  friend constexpr dimension larger(dimension a, dimension b) { return apply('M', a, b); }
  constexpr dimension& operator+=(dimension b) { return *this = *this + b; }
  constexpr dimension& operator-=(dimension b) { return *this = *this - b; }
  constexpr dimension& operator*=(dimension b) { return *this = *this * b; }

  /// Identity of the expressions: unequal symbolic dimensions may still turn out equal when bound.
  friend constexpr bool operator==(dimension a, dimension b) { return a.value_ == b.value_; }

  /// Whether a <= b for every assignment (true), for none (false), or for some only (nullopt).
  friend constexpr std::optional<bool> at_most(dimension a, dimension b) {
    if (a.is_constant() && b.is_constant()) return a.value_ <= b.value_;
    const dimension gap = b - a;
    if (gap.min() >= 0) return true;
    if (gap.max() < 0) return false;
    return std::nullopt;
  }
  /// Whether a == b for every assignment, for none, or undecided.
  friend constexpr std::optional<bool> same(dimension a, dimension b) {
    if (a == b) return true;
    if (a.is_constant() && b.is_constant()) return false;
    const dimension gap = b - a;
    if (gap.min() > 0 || gap.max() < 0) return false;
    return std::nullopt;
  }

  /// The raw word: what hashing and saving read.
  constexpr std::int64_t raw() const { return value_; }

  static constexpr std::int64_t first_expression = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t least_constant = first_expression + (std::int64_t{1} << 40);
  static constexpr dimension from_raw(std::int64_t raw) {
    dimension d;
    d.value_ = raw;
    return d;
  }

 private:
  static constexpr dimension fitting(bool overflows, std::int64_t value) {
    if (overflows || value < least_constant) raise(fault::of(errc::limit, "a dimension fits into 64 bits"));
    return value;
  }
  static constexpr dimension apply(char op, dimension a, dimension b) {
    if (!a.is_constant() || !b.is_constant()) return detail::combine_dimensions(op, a, b);
    const std::int64_t x = a.value_, y = b.value_;
    std::int64_t out = 0;
    bool overflows = false;  // in statements of its own: arguments are evaluated in any order
    switch (op) {
      case '+': overflows = __builtin_add_overflow(x, y, &out); return fitting(overflows, out);
      case '-': overflows = __builtin_sub_overflow(x, y, &out); return fitting(overflows, out);
      case '*': overflows = __builtin_mul_overflow(x, y, &out); return fitting(overflows, out);
      case 'm': return x < y ? x : y;
      case 'M': return x < y ? y : x;
      default: break;
    }
    if (y == 0) raise(fault::of(errc::invalid_argument, "a dimension's divisor is not zero"));
    const std::int64_t quotient = x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
    return op == '/' ? quotient : x - quotient * y;
  }
  std::int64_t value_ = 0;
};

/// Most dims a tensor may have.
inline constexpr std::size_t max_rank = 8;
using dims = inline_vector<dimension, max_rank>;
/// Concrete extents, strides or indices.
using ints = inline_vector<std::int64_t, max_rank>;

/// The expression as text: "12", "past + sequence", "(n + 1) / 2".
std::string to_string(dimension d);
void append_text(inline_string<95>& out, dimension d);

constexpr void put_text(inline_string<95>& out, dimension d) {
  if (d.is_constant())
    out.append(d.raw());
  else
    append_text(out, d);
}
constexpr void put_text(inline_string<95>& out, const dims& d) {
  out.append("[");
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (i) out.append(", ");
    put_text(out, d[i]);
  }
  out.append("]");
}

constexpr dimension product(const dims& d) {
  dimension n = 1;
  for (dimension x : d) n *= x;
  return n;
}
constexpr std::int64_t product(const ints& d) {
  std::int64_t n = 1;
  for (std::int64_t x : d)
    if (__builtin_mul_overflow(n, x, &n)) raise(fault::of(errc::limit, "a product of extents fits into 64 bits"));
  return n;
}
constexpr bool is_constant(const dims& d) {
  for (dimension x : d)
    if (!x.is_constant()) return false;
  return true;
}
/// The dims as integers; a symbolic one is an `unsupported` fault.
constexpr ints to_ints(const dims& d) {
  ints out;
  for (dimension x : d) out.push_back(x.value());
  return out;
}
constexpr dims to_dims(std::span<const std::int64_t> d) {
  dims out;
  for (std::int64_t x : d) out.push_back(x);
  return out;
}

/// Values for symbols. Small: a model has a handful.
class bindings {
 public:
  /// Sets a symbol's value; a second, different value or one outside the bounds is a `shape_mismatch` error.
  void bind(dimension symbol, std::int64_t value);
  /// The value, if bound.
  std::optional<std::int64_t> find(dimension symbol) const;
  /// The expression under these values; an unbound symbol is a `not_found` error.
  std::int64_t evaluate(dimension d) const;
  /// Like `evaluate`, but leaves unbound symbols standing.
  dimension substitute(dimension d) const;
  void clear() { values_.clear(); }

 private:
  struct entry {
    dimension symbol;
    std::int64_t value = 0;
  };
  small_vector<entry> values_;
};

/// Whether the dimension is one bare symbol, and its name.
bool is_symbol(dimension d);
std::string symbol_name(dimension d);
/// Every symbol in the expression, appended once each.
void collect_symbols(dimension d, small_vector<dimension>& out);

/// Expressions evaluated together, as straight-line code over 64-bit numbers: each distinct expression of a plan gets a
/// slot, and evaluating touches no interned expression, takes no lock and allocates nothing.
class dimension_program {
 public:
  /// The slot that will hold the expression's value.
  std::uint32_t slot(dimension d);
  /// Slots there are, those of intermediate results included.
  std::size_t size() const { return code_.size(); }
  /// Fills `size()` slots. An unbound symbol is a `not_found` error, a division by zero an `invalid_argument` one, and
  /// a value that does not fit into 64 bits a `limit` one.
  void evaluate(const bindings& values, std::int64_t* slots) const;

 private:
  struct step {
    char op = 'c';  // c: constant, s: symbol; + * / % m M of two earlier slots
    std::uint32_t a = 0, b = 0;
    dimension operand;
  };
  struct entry {
    dimension expression;
    std::uint32_t at = 0;
  };
  std::uint32_t emit(const step& s);
  small_vector<step> code_;
  small_vector<entry> known_;
};

}  // namespace kiln
