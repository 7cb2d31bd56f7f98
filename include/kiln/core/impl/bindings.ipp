#include <algorithm>
#include <mutex>

#include "kiln/core/impl/dimension_table.hpp"

namespace kiln {
namespace {

using namespace detail::expressions;

std::int64_t apply(char op, std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  bool fits = true;
  switch (op) {
    case '+': fits = !__builtin_add_overflow(x, y, &out); break;
    case '*': fits = !__builtin_mul_overflow(x, y, &out); break;
    case 'm': return std::min(x, y);
    case 'M': return std::max(x, y);
    default: {
      if (y == 0) raise(errc::invalid_argument, "a dimension's divisor is not zero");
      if (y == -1) {
        fits = op == '%' || !__builtin_sub_overflow(std::int64_t{0}, x, &out);
        break;
      }
      const std::int64_t quotient = x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
      return op == '/' ? quotient : x - quotient * y;
    }
  }
  if (!fits)
    raise(errc::limit,
          "sizes fit into 64 bits: " + std::to_string(x) + " " + op + " " + std::to_string(y) + " does not");
  return out;
}

// The value under these bindings, nothing where a symbol is open; the caller holds the table's lock.
std::optional<std::int64_t> value_of(const table& t, dimension d, const bindings& values) {
  if (d.is_constant()) return d.raw();
  std::int64_t sum = 0;
  for (const term& part : t.polynomials[static_cast<std::size_t>(d.raw() - dimension::first_expression)]) {
    std::int64_t product = part.coefficient;
    for (atom_id f : part.factors) {
      const atom& a = t.atoms[f];
      std::optional<std::int64_t> factor;
      if (a.op == 's') {
        factor = values.find(a.self);
      } else {
        const auto x = value_of(t, a.lhs, values), y = value_of(t, a.rhs, values);
        if (x && y) factor = apply(a.op, *x, *y);
      }
      if (!factor) return std::nullopt;
      product = apply('*', product, *factor);
    }
    sum = apply('+', sum, product);
  }
  return sum;
}

std::optional<std::int64_t> value_of(dimension d, const bindings& values) {
  if (d.is_constant()) return d.raw();
  table& t = shared_table();
  std::shared_lock lock(t.mutex);
  return value_of(t, d, values);
}

}  // namespace

void bindings::bind(dimension symbol, std::int64_t value) {
  if (value < symbol.min() || value > symbol.max())
    raise(errc::shape_mismatch, "dimension '" + to_string(symbol) + "' is within its bounds: expected " +
                                    std::to_string(symbol.min()) + ".." + std::to_string(symbol.max()) + ", found " +
                                    std::to_string(value));
  if (const auto old = find(symbol)) {
    if (*old != value)
      raise(errc::shape_mismatch, "dimension '" + to_string(symbol) + "' has one value in all inputs: expected " +
                                      std::to_string(*old) + ", found " + std::to_string(value));
    return;
  }
  values_.push_back({symbol, value});
}

std::optional<std::int64_t> bindings::find(dimension symbol) const {
  for (const entry& e : values_)
    if (e.symbol == symbol) return e.value;
  return std::nullopt;
}

dimension bindings::substitute(dimension d) const {
  if (const auto v = value_of(d, *this)) return *v;
  return rebuild(d, [&](const atom&, dimension s) {
    const auto v = find(s);
    return v ? dimension(*v) : s;
  });
}

std::int64_t bindings::evaluate(dimension d) const {
  if (const auto v = value_of(d, *this)) return *v;
  raise(errc::not_found,
        "every symbol of dimension '" + to_string(d) + "' has a value; still open: '" + to_string(substitute(d)) + "'");
}

std::uint32_t dimension_program::emit(const step& s) {
  code_.push_back(s);
  return static_cast<std::uint32_t>(code_.size() - 1);
}

std::uint32_t dimension_program::slot(dimension d) {
  for (const entry& e : known_)
    if (e.expression == d) return e.at;
  std::optional<std::uint32_t> sum;
  const auto combine = [&](char op, std::optional<std::uint32_t>& into, std::uint32_t with) {
    into = into ? emit({op, *into, with, 0}) : with;
  };
  if (d.is_constant()) {
    sum = emit({'c', 0, 0, d});
  } else {
    for (const term& t : get(d)) {
      std::optional<std::uint32_t> product;
      if (t.coefficient != 1 || t.factors.empty()) product = slot(t.coefficient);
      for (atom_id f : t.factors) {
        const atom a = get_atom(f);
        if (a.op != 's') {
          const std::uint32_t x = slot(a.lhs), y = slot(a.rhs);
          combine('*', product, emit({a.op, x, y, 0}));
        } else if (a.self == d) {
          product = emit({'s', 0, 0, d});
        } else {
          combine('*', product, slot(a.self));
        }
      }
      combine('+', sum, *product);
    }
  }
  known_.push_back({d, *sum});
  return *sum;
}

void dimension_program::evaluate(const bindings& values, std::int64_t* slots) const {
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const step& s = code_[i];
    if (s.op == 'c') {
      slots[i] = s.operand.raw();
    } else if (s.op == 's') {
      const auto v = values.find(s.operand);
      if (!v) raise(errc::not_found, "every symbol has a value: none for '" + to_string(s.operand) + "'");
      slots[i] = *v;
    } else {
      slots[i] = apply(s.op, slots[s.a], slots[s.b]);
    }
  }
}

}  // namespace kiln
