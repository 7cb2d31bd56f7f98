#pragma once
#include "kiln/graph/matcher.hpp"

namespace kiln {

namespace match {

/// Any op of a kind.
template <op_kind Kind> struct of_kind {
  template <class Operation> static constexpr bool begins(const op_info* op) { return op->kind == Kind; }
  template <class R> constexpr bool match(const R& r, value_id v, captures&) const {
    return v.result == 0 && r.is_kind(v, Kind);
  }
};

}  // namespace match

/// Replacements that rewrites share.
namespace by {

/// The value that a pattern captured as number I.
template <std::size_t I> struct capture {
  template <class R> constexpr value_id operator()(R&, const captures& c, value_id) const { return c[I]; }
};

}  // namespace by

/// Matches and is replaced by what a function of (rewriter, value) says: empty to decline.
template <class Op, class F> constexpr auto rewrite_each(std::string_view name, F replace) {
  const auto call = [replace](auto& r, const captures&, value_id v) { return replace(r, v); };
  return rewrite<match::op_pattern<Op>, decltype(call)>{name, match::op<Op>(), call};
}

/// The same for every op of a kind.
template <op_kind Kind, class F> constexpr auto rewrite_kind(std::string_view name, F replace) {
  const auto call = [replace](auto& r, const captures&, value_id v) { return replace(r, v); };
  return rewrite<match::of_kind<Kind>, decltype(call)>{name, {}, call};
}

}  // namespace kiln
