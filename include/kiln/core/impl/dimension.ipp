#include <algorithm>
#include <mutex>
#include <string>

#include "kiln/core/impl/dimension_table.hpp"

namespace kiln {
namespace detail::expressions {

table& shared_table() {
  static table* t = new table;  // never destroyed: dimensions in static objects may outlive any order of destruction
  return *t;
}

polynomial get(dimension d) {
  if (d.is_constant()) return d.raw() == 0 ? polynomial{} : polynomial{{d.raw(), {}}};
  table& t = shared_table();
  std::shared_lock lock(t.mutex);
  return t.polynomials[static_cast<std::size_t>(d.raw() - dimension::first_expression)];
}

atom get_atom(atom_id id) {
  table& t = shared_table();
  std::shared_lock lock(t.mutex);
  return t.atoms[id];
}

}  // namespace detail::expressions

namespace {

using namespace detail::expressions;

constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max() >> 8;

std::int64_t clamp(__int128 v) {
  return v > infinite ? infinite : v < -infinite ? -infinite : static_cast<std::int64_t>(v);
}

struct range {
  std::int64_t min, max;
};

// Over the bounds that the atoms keep; the caller holds the table's lock.
range bounds(const table& t, dimension d) {
  if (d.is_constant()) return {d.raw(), d.raw()};
  __int128 low = 0, high = 0;
  for (const term& part : t.polynomials[static_cast<std::size_t>(d.raw() - dimension::first_expression)]) {
    __int128 a = part.coefficient, b = part.coefficient;
    for (atom_id f : part.factors) {
      const atom& r = t.atoms[f];
      const __int128 products[] = {a * r.min, a * r.max, b * r.min, b * r.max};
      a = clamp(*std::min_element(products, products + 4));
      b = clamp(*std::max_element(products, products + 4));
    }
    low += a, high += b;
  }
  return {clamp(low), clamp(high)};
}

// Of an operation on two expressions.
range bounds(const table& t, const atom& a) {
  const range x = bounds(t, a.lhs), y = bounds(t, a.rhs);
  switch (a.op) {
    case '/': {
      const std::int64_t low = std::max<std::int64_t>(y.min, 1), high = std::max<std::int64_t>(y.max, 1);
      return {x.min >= 0 ? x.min / high : clamp(-((-static_cast<__int128>(x.min) + low - 1) / low)),
              x.max >= 0 ? x.max / low : x.max / high};
    }
    case '%': return {0, std::max<std::int64_t>(0, y.max - 1)};
    case 'm': return {std::min(x.min, y.min), std::min(x.max, y.max)};
    default: return {std::max(x.min, y.min), std::max(x.max, y.max)};
  }
}

range bounds(dimension d) {
  if (d.is_constant()) return {d.raw(), d.raw()};
  table& t = shared_table();
  std::shared_lock lock(t.mutex);
  return bounds(t, d);
}

std::size_t nodes(const table& t, const polynomial& p) {
  std::size_t n = 0;
  for (const term& part : p) {
    ++n;
    for (atom_id f : part.factors) n += t.atoms[f].nodes;
  }
  return n;
}
std::size_t nodes(const table& t, dimension d) {
  return d.is_constant() ? 1 : nodes(t, t.polynomials[static_cast<std::size_t>(d.raw() - dimension::first_expression)]);
}

[[noreturn]] void too_large(const char* parts, std::size_t most) {
  raise(errc::limit, "a dimension's expression has at most " + std::to_string(most) + " " + parts);
}

std::int64_t checked(bool overflows, std::int64_t coefficient) {
  if (overflows || coefficient < dimension::least_constant)
    raise(errc::limit, "the coefficients of a dimension's expression fit into 64 bits");
  return coefficient;
}

bool before(const term& a, const term& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  return a.factors < b.factors;
}

polynomial canonical(polynomial p) {
  for (term& t : p) std::sort(t.factors.begin(), t.factors.end());
  std::sort(p.begin(), p.end(), before);
  polynomial out;
  for (term& t : p) {
    if (!out.empty() && out.back().factors == t.factors) {
      std::int64_t& sum = out.back().coefficient;
      const bool overflows = __builtin_add_overflow(sum, t.coefficient, &sum);
      checked(overflows, sum);
    } else {
      out.push_back(std::move(t));
    }
  }
  std::erase_if(out, [](const term& t) { return t.coefficient == 0; });
  return out;
}

dimension intern(const polynomial& p) {
  if (p.empty()) return 0;
  if (p.size() == 1 && p[0].factors.empty()) return p[0].coefficient;
  if (p.size() > most_terms) too_large("terms", most_terms);
  for (const term& t : p)
    if (t.factors.size() > most_factors) too_large("factors in a term", most_factors);
  std::string key;
  for (const term& t : p) {
    key += std::to_string(t.coefficient);
    for (atom_id f : t.factors) key += '*' + std::to_string(f);
    key += '+';
  }
  table& t = shared_table();
  std::unique_lock lock(t.mutex);
  if (nodes(t, p) > most_nodes) too_large("nodes", most_nodes);
  auto [it, fresh] = t.polynomial_ids.try_emplace(key, static_cast<std::int64_t>(t.polynomials.size()));
  if (fresh) t.polynomials.push_back(p);
  return dimension::from_raw(dimension::first_expression + it->second);
}

atom_id intern(const atom& a) {
  std::string key = std::string(1, a.op) + a.name + '#' + std::to_string(a.min) + ',' + std::to_string(a.max) + '#' +
                    std::to_string(a.lhs.raw()) + ',' + std::to_string(a.rhs.raw());
  table& t = shared_table();
  std::unique_lock lock(t.mutex);
  if (const auto known = t.atom_ids.find(key); known != t.atom_ids.end()) return known->second;
  atom kept = a;
  if (a.op != 's') {
    const std::size_t n = 1 + nodes(t, a.lhs) + nodes(t, a.rhs);
    if (n > most_nodes) too_large("nodes", most_nodes);
    const range r = bounds(t, a);
    kept.min = r.min, kept.max = r.max, kept.nodes = static_cast<std::uint32_t>(n);
  }
  const auto id = static_cast<atom_id>(t.atoms.size());
  t.atoms.push_back(std::move(kept));
  t.atom_ids.emplace(std::move(key), id);
  return id;
}

polynomial multiply(const polynomial& a, const polynomial& b) {
  polynomial out;
  for (const term& x : a)
    for (const term& y : b) {
      std::int64_t coefficient = 0;
      const bool overflows = __builtin_mul_overflow(x.coefficient, y.coefficient, &coefficient);
      term t{checked(overflows, coefficient), x.factors};
      t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
      out.push_back(std::move(t));
    }
  return canonical(std::move(out));
}

// The quotient of one term by a one-term divisor, when it is exact.
std::optional<term> divide(const term& t, const term& by) {
  if (t.coefficient % by.coefficient != 0) return std::nullopt;
  term out{t.coefficient / by.coefficient, {}};
  std::size_t j = 0;
  for (atom_id f : t.factors) {
    if (j < by.factors.size() && by.factors[j] == f)
      ++j;
    else
      out.factors.push_back(f);
  }
  if (j != by.factors.size()) return std::nullopt;
  return out;
}

// The exact quotient by a divisor of several terms, by long division in the terms' order, or nothing.
std::optional<polynomial> divide(polynomial p, const polynomial& by) {
  polynomial out;
  while (!p.empty()) {
    const auto q = divide(p[0], by[0]);
    if (!q || out.size() == most_terms) return std::nullopt;
    for (term& t : multiply({*q}, by)) {
      t.coefficient = -t.coefficient;
      p.push_back(std::move(t));
    }
    p = canonical(std::move(p));
    out.push_back(*q);
  }
  return canonical(std::move(out));
}

// Splits p into quotient * by + rest, term by term. Exact division of non-negative extents; the rest keeps its `/`.
dimension divided(dimension a, dimension b) {
  const polynomial p = get(a), by = get(b);
  if (p == by) return 1;
  if (by.size() == 1) {
    polynomial exact, rest;
    for (const term& t : p) {
      if (auto q = divide(t, by[0]))
        exact.push_back(*q);
      else
        rest.push_back(t);
    }
    const dimension whole = intern(canonical(exact));
    if (rest.empty()) return whole;
    const dimension left = intern(canonical(rest));
    if (left.is_constant() && b.is_constant()) return whole + left / b;
    return whole + of_atom({'/', "", 0, 0, left, b});
  }
  if (const auto exact = divide(p, by)) return intern(*exact);
  return of_atom({'/', "", 0, 0, a, b});
}

std::string text_of(const atom& a) {
  if (a.op == 's') return a.name;
  const std::string x = to_string(a.lhs), y = to_string(a.rhs);
  if (a.op == 'm' || a.op == 'M') return std::string(a.op == 'm' ? "min(" : "max(") + x + ", " + y + ")";
  return "((" + x + ") " + a.op + " (" + y + "))";
}

}  // namespace

namespace detail::expressions {

dimension of_atom(const atom& a) {
  const atom_id id = intern(a);
  const dimension self = intern(polynomial{{1, {id}}});
  if (a.op == 's') {
    table& t = shared_table();
    std::unique_lock lock(t.mutex);
    t.atoms[id].self = self;
  }
  return self;
}

}  // namespace detail::expressions

namespace detail {

namespace {

dimension combine_anew(char op, dimension a, dimension b) {
  if (a.is_constant() && b.is_constant()) {
    switch (op) {
      case '/': return a / b;
      case '%': return a % b;
      case 'm': return smaller(a, b);
      case 'M': return larger(a, b);
      case '*': return a * b;
      case '-': return a - b;
      default: return a + b;
    }
  }
  switch (op) {
    case '+':
    case '-': {
      polynomial p = get(a), q = get(b);
      for (term& t : q) {
        if (op == '-') t.coefficient = -t.coefficient;
        p.push_back(std::move(t));
      }
      return intern(canonical(std::move(p)));
    }
    case '*': return intern(multiply(get(a), get(b)));
    case '/':
      if (b == dimension(0)) raise(fault::of(errc::invalid_argument, "a dimension's divisor is not zero"));
      return divided(a, b);
    case '%': {
      const dimension rest = a - divided(a, b) * b;
      return rest.is_constant() ? rest : of_atom({'%', "", 0, 0, a, b});
    }
    default: break;
  }
  if (const auto ordered = at_most(a, b)) return *ordered == (op == 'm') ? a : b;
  if (const auto ordered = at_most(b, a); ordered && *ordered) return op == 'm' ? b : a;
  if (b.raw() < a.raw()) std::swap(a, b);
  return of_atom({op, "", 0, 0, a, b});
}

// Combinations of this thread: a plan asks for the same strides and extents again and again.
struct combination {
  std::int64_t a = 0, b = 0;
  char op = 0;
  dimension result;
};
combination& place_of(char op, dimension a, dimension b) {
  constexpr std::size_t places = 512;
  static thread_local combination known[places];
  const std::uint64_t mixed = (static_cast<std::uint64_t>(a.raw()) * 31 + static_cast<std::uint64_t>(b.raw())) * 31 +
                              static_cast<unsigned char>(op);
  return known[(mixed * 0x9e3779b97f4a7c15u) >> 55];
}

}  // namespace

dimension combine_dimensions(char op, dimension a, dimension b) {
  const dimension zero = 0, one = 1;
  if (b == zero && (op == '+' || op == '-')) return a;
  if (a == zero && op == '+') return b;
  if (b == one && (op == '*' || op == '/')) return a;
  if (a == one && op == '*') return b;
  combination& known = place_of(op, a, b);
  if (known.op != op || known.a != a.raw() || known.b != b.raw())
    known = {a.raw(), b.raw(), op, combine_anew(op, a, b)};
  return known.result;
}

std::int64_t least(dimension d) { return bounds(d).min; }
std::int64_t greatest(dimension d) { return bounds(d).max; }

}  // namespace detail

dimension dimension::symbol(std::string_view name, std::int64_t min, std::int64_t max) {
  if (min > max) raise(fault::of(errc::invalid_argument, "a symbol's least value is at most its greatest", max, min));
  return of_atom({'s', std::string(name), min, max, 0, 0});
}

std::string to_string(dimension d) {
  if (d.is_constant()) return std::to_string(d.raw());
  std::string out;
  for (const term& t : get(d)) {
    const std::int64_t c = t.coefficient;
    if (!out.empty())
      out += c < 0 ? " - " : " + ";
    else if (c < 0)
      out += "-";
    const std::int64_t magnitude = c < 0 ? -c : c;
    bool first = true;
    if (magnitude != 1 || t.factors.empty()) out += std::to_string(magnitude), first = false;
    for (atom_id f : t.factors) {
      if (!first) out += "*";
      out += text_of(get_atom(f));
      first = false;
    }
  }
  return out;
}

void append_text(inline_string<95>& out, dimension d) { out.append(to_string(d)); }

bool is_symbol(dimension d) {
  const polynomial p = get(d);
  return p.size() == 1 && p[0].coefficient == 1 && p[0].factors.size() == 1 && get_atom(p[0].factors[0]).op == 's';
}

std::string symbol_name(dimension d) { return is_symbol(d) ? get_atom(get(d)[0].factors[0]).name : std::string(); }

void collect_symbols(dimension d, small_vector<dimension>& out) {
  rebuild(d, [&](const atom&, dimension s) {
    for (dimension seen : out)
      if (seen == s) return s;
    out.push_back(s);
    return s;
  });
}

}  // namespace kiln
