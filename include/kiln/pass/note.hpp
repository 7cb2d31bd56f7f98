#pragma once
#include "kiln/core/dtype.hpp"
#include "kiln/core/text.hpp"
#include "kiln/graph/rewrite_counts.hpp"

namespace kiln {

/// What a pass did, and why it did not do more.
struct pass_note {
  std::string_view pass;
  rewrite_counts counts;         ///< how often each of its rewrites was applied
  small_vector<text> remarks{};  ///< sentences for the compile report

  constexpr explicit pass_note(std::string_view name) : pass(name) {}
  pass_note() = default;
  /// Whether the program is another one than before.
  constexpr bool changed() const { return counts.total() != 0; }
  constexpr void count(std::string_view what, std::uint32_t times = 1) {
    for (; times > 0; --times) counts.add(what);
  }
  constexpr void count(const rewrite_counts& more) {
    for (const auto& e : more.entries) count(e.name, e.count);
  }
  constexpr void remark(text sentence) {
    for (const text& said : remarks)
      if (said.view() == sentence.view()) return;
    remarks.push_back(std::move(sentence));
  }
  /// The same where floats are concerned: what a rewrite changes for NaN, infinities, signed zeros or rounding.
  constexpr void remark_on(dtype t, std::string_view sentence) {
    if (is_float(t)) remark(text(sentence));
  }
};

/// Calls `f(module)` for the main module and every body.
template <class Program, class F> constexpr void for_each_module(Program& p, F&& f) {
  for (std::uint32_t k = 0; k < p.modules(); ++k) f(p.module({k}));
}

/// A pass that runs a `Worker<Module>(module, note, more...)` on the main module and every body.
template <template <class> class Worker, class Program, class... More>
constexpr pass_note run_on_modules(std::string_view name, Program& p, const More&... more) {
  pass_note note(name);
  for_each_module(p, [&](auto& m) { Worker<std::remove_cvref_t<decltype(m)>>(m, note, more...).run(); });
  return note;
}

}  // namespace kiln
