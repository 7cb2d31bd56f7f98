#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/gelu_spelling.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

/// Writes what exporters spell as a Gaussian error linear unit as that op. `simplify_algebra` does so, too: a list of
/// passes that folds factors into weights has this one first, for a product after the unit would take its half away.
template <class Program> constexpr pass_note recognize_gelu(Program& p) {
  pass_note note("recognize_gelu");
  for_each_module(p, [&](auto& m) {
    note.count(apply_rewrites(
        m, rewrite_each<op::mul>("gelu", [](auto& r, value_id v) { return detail::spelled_gelu(r, v); })));
  });
  return note;
}

}  // namespace kiln
