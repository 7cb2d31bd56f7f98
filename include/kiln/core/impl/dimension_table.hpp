#pragma once
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

#include "kiln/core/dimension.hpp"

namespace kiln::detail::expressions {

// A polynomial: terms sorted by their factors; a factor is an atom (symbol or quotient, remainder, min, max of two
// polynomials). Canonical, so equality of expressions is equality of text, which is the interning key.
using atom_id = std::uint32_t;
struct term {
  std::int64_t coefficient;
  std::vector<atom_id> factors;
  friend bool operator==(const term&, const term&) = default;
};
using polynomial = std::vector<term>;

struct atom {
  char op = 's';  // s: symbol; / % m M: of lhs and rhs
  std::string name;
  std::int64_t min = 0, max = 0;  // a symbol's own; of others, the bounds found when they are interned
  dimension lhs, rhs;
  dimension self{};         // a symbol as an expression, so that bindings find it without interning
  std::uint32_t nodes = 1;  // of the expression written out as a tree: what every walk over it costs
};

// Shared subexpressions make trees that grow by powers of two in the length of a model: past these sizes an
// expression is a `limit` error.
inline constexpr std::size_t most_nodes = 4096, most_terms = 256, most_factors = 32;

/// The expressions of the process, interned for its life.
struct table {
  std::shared_mutex mutex;
  std::vector<atom> atoms;
  std::map<std::string, atom_id> atom_ids;
  std::vector<polynomial> polynomials;
  std::map<std::string, std::int64_t> polynomial_ids;
};

table& shared_table();
polynomial get(dimension d);
atom get_atom(atom_id id);
/// The expression that is the atom alone.
dimension of_atom(const atom& a);

// The expression with `leaf(atom, symbol)` in place of each symbol.
template <class Leaf> dimension rebuild(dimension d, const Leaf& leaf) {
  if (d.is_constant()) return d;
  dimension sum = 0;
  for (const term& t : get(d)) {
    dimension product = t.coefficient;
    for (atom_id f : t.factors) {
      const atom a = get_atom(f);
      if (a.op == 's')
        product *= leaf(a, of_atom(a));
      else
        product *= combine_dimensions(a.op, rebuild(a.lhs, leaf), rebuild(a.rhs, leaf));
    }
    sum += product;
  }
  return sum;
}

}  // namespace kiln::detail::expressions
