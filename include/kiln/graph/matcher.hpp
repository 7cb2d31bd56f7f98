#pragma once
#include <tuple>

#include "kiln/graph/rewrite_counts.hpp"
#include "kiln/graph/rewriter.hpp"

namespace kiln {

/// Values that a pattern named; index by the capture's number.
struct captures {
  value_id values[8]{};
  constexpr value_id operator[](std::size_t i) const { return values[i]; }
};

/// Patterns over values: small constexpr objects with `match(rewriter, value, captures)`. A capture that was already
/// bound matches only the same value. A pattern that can tell from the op alone that it does not match has a function
/// `begins<Operation>(info)`: constant evaluation pays for every call, and most patterns meet most instructions.
namespace match {

/// Any value, remembered as number I.
template <std::size_t I> struct capture {
  template <class R> constexpr bool match(const R&, value_id v, captures& c) const {
    if (c.values[I]) return c.values[I] == v;
    c.values[I] = v;
    return true;
  }
};

/// A constant, remembered as number I.
template <std::size_t I> struct constant {
  template <class R> constexpr bool match(const R& r, value_id v, captures& c) const {
    return r.constant(v) && capture<I>{}.match(r, v, c);
  }
};

/// A constant whose elements all equal `value`, seen through broadcasts.
struct all_equal {
  double value;
  template <class R> constexpr bool match(const R& r, value_id v, captures&) const {
    while (r.is_kind(v, op_kind::view)) v = r.input(v, 0);
    const literal* l = r.constant(v);
    if (!l || l->has_symbols() || !l->get_shape().is_constant() || l->elements() == 0 || l->elements() > 4096)
      return false;
    for (double x : l->template to<double>())
      if (!(x == value)) return false;
    return true;
  }
};

/// The result of an Op whose inputs match. With a commutative op of two inputs both orders are tried. No input
/// patterns: any inputs.
template <class Op, class... Inputs> struct op_pattern {
  std::tuple<Inputs...> inputs;
  template <class Operation> static constexpr bool begins(const op_info* op) { return Operation::template is<Op>(op); }
  template <class R> constexpr bool match(const R& r, value_id v, captures& c) const {
    if (v.result != 0 || !r.template get_if<Op>(v)) return false;
    if constexpr (sizeof...(Inputs) == 0) {
      return true;
    } else {
      if (r.producer(v).inputs.size() != sizeof...(Inputs)) return false;
      const captures before = c;
      if (in_order(r, v, c, std::index_sequence_for<Inputs...>{})) return true;
      c = before;
      if constexpr (sizeof...(Inputs) == 2 && requires { Op::commutative; }) {
        if (std::get<0>(inputs).match(r, r.input(v, 1), c) && std::get<1>(inputs).match(r, r.input(v, 0), c))
          return true;
        c = before;
      }
      return false;
    }
  }

 private:
  template <class R, std::size_t... I>
  constexpr bool in_order(const R& r, value_id v, captures& c, std::index_sequence<I...>) const {
    return (std::get<I>(inputs).match(r, r.input(v, I), c) && ...);
  }
};

template <class Op, class... Inputs> constexpr op_pattern<Op, Inputs...> op(Inputs... inputs) { return {{inputs...}}; }

/// The pattern, if nothing else reads the value.
template <class Pattern> struct single_use {
  Pattern pattern;
  template <class R> constexpr bool match(const R& r, value_id v, captures& c) const {
    return r.single_use(v) && pattern.match(r, v, c);
  }
};
template <class P> single_use(P) -> single_use<P>;

/// The pattern, and the value remembered as number I.
template <std::size_t I, class Pattern> struct named {
  Pattern pattern;
  template <class R> constexpr bool match(const R& r, value_id v, captures& c) const {
    return pattern.match(r, v, c) && capture<I>{}.match(r, v, c);
  }
};
template <std::size_t I, class P> constexpr named<I, P> as(P pattern) { return {pattern}; }

/// What the first pattern matches, or else what the second does.
template <class A, class B> struct either {
  A a;
  B b;
  template <class R> constexpr bool match(const R& r, value_id v, captures& c) const {
    const captures before = c;
    if (a.match(r, v, c)) return true;
    c = before;
    return b.match(r, v, c);
  }
};
template <class A, class B> either(A, B) -> either<A, B>;

}  // namespace match

/// A rewrite as a value: where `pattern` matches, `replace(rewriter, captures, value)` gives the new value, or an empty
/// one to decline (its guard failed).
template <class Pattern, class Replace> struct rewrite {
  std::string_view name;
  Pattern pattern;
  Replace replace;

  template <class R> constexpr bool apply(R& r, value_id v) const {
    captures c;
    if (!pattern.match(r, v, c)) return false;
    const value_id by = replace(r, c, v);
    if (!by || by == v) return false;
    r.replace(v, by);
    return true;
  }
};
template <class P, class F> rewrite(std::string_view, P, F) -> rewrite<P, F>;

namespace detail {
template <class Operation, class Rewrite> constexpr bool may_apply(const op_info* op) {
  using pattern = decltype(Rewrite::pattern);
  if constexpr (requires { pattern::template begins<Operation>(op); })
    return pattern::template begins<Operation>(op);
  else
    return true;
}
}  // namespace detail

/// Applies rewrites until none matches: a worklist over the instructions in execution order; a rewrite puts its new
/// instructions and their users back on the list. Stops after 64 applications an instruction (a cycle of rewrites).
template <class Module, class... Rewrites>
constexpr rewrite_counts apply_rewrites(Module& m, const Rewrites&... rewrites) {
  rewrite_counts counts;
  rewriter<Module> r(m);
  small_vector<std::uint32_t> work, users;
  for (std::uint32_t i = r.size(); i-- > 0;) work.push_back(i);
  std::uint64_t budget = 64 * static_cast<std::uint64_t>(r.size()) + 1024;
  while (!work.empty() && budget-- > 0) {
    const std::uint32_t i = work.back();
    work.pop_back();
    if (r[i].kind != instruction_kind::op || r.users(i).empty()) continue;
    const std::uint32_t before = r.size();
    users.clear();
    for (const std::uint32_t u : r.users(i))
      if (u != rewriter<Module>::output_user) users.push_back(u);
    bool changed = false;
    const op_info* const op = &r[i].op.info();
    ((changed = changed || (detail::may_apply<typename Module::operation_type, Rewrites>(op) &&
                            rewrites.apply(r, {i, 0}) && (counts.add(rewrites.name), true))),
     ...);
    if (!changed) continue;
    for (std::size_t k = users.size(); k-- > 0;) work.push_back(users[k]);
    for (std::uint32_t k = r.size(); k-- > before;) work.push_back(k);
  }
  return counts;
}

}  // namespace kiln
