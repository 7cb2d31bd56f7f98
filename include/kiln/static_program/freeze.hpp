#pragma once
#include "kiln/graph/builder.hpp"
#include "kiln/pass/passes.hpp"
#include "kiln/static_program/net_rules.hpp"
#include "kiln/static_program/plan/planner.hpp"

namespace kiln::aot {

/// A program as an array that outlives constant evaluation. `count` words are meant; more than N did not fit.
template <std::size_t N> struct frozen {
  std::int64_t words[N]{};
  std::size_t count = 0;
};

// Appends words of text as lines of at most 34 characters: clang cuts longer text in its messages.
constexpr void put_lines(text& out, std::string_view s) {
  constexpr std::size_t most = 34;
  while (s.size() > most) {
    const std::size_t space = s.substr(0, most + 1).rfind(' ');
    const std::size_t n = space == std::string_view::npos ? most : space;
    out.append(s.substr(0, n)).append('\n');
    s.remove_prefix(space == std::string_view::npos ? n : n + 1);
  }
  out.append(s).append('\n');
}

/// The words of a broken rule: only the reason, in the user's words: op, rule, what was expected and what was found.
constexpr words freeze_fault(const broken_rule& broken) {
  text t;
  put_lines(t, broken.where.view());
  put_lines(t, broken.why.rule.view());
  for (const bool first : {true, false}) {
    const std::string_view value = first ? broken.why.expected.view() : broken.why.found.view();
    if (value.empty()) continue;
    text line(first ? "expected " : "found ");
    put_lines(t, line.append(value).view());
  }
  header h;
  h.fault = {static_cast<std::int64_t>(word_count<header>), static_cast<std::int64_t>(t.size())};
  words out;
  put_words(out, h);
  for (char c : t.view()) out.push_back(c);
  return out;
}

/// Builds the net, runs the passes that run-time compilation runs, and plans memory: the words of the program, or of
/// the rule that the net breaks.
template <auto Net, class Registry> constexpr words freeze_words() {
  static_builder<Registry> b;
  Net(b);
  auto program = b.finish();
  if (const broken_rule r = check_built(program)) return freeze_fault(r);
  optimize_graph(program);
  if (const broken_rule r = check_steps(program)) return freeze_fault(r);
  return planner(program).build();
}

/// The words as an array: one constant evaluation.
template <auto Net, class Registry, std::size_t N> constexpr frozen<N> freeze() {
  const words w = freeze_words<Net, Registry>();
  frozen<N> out;
  out.count = w.size();
  for (std::size_t k = 0; k < w.size() && k < N; ++k) out.words[k] = w[k];
  return out;
}

template <std::size_t N, std::size_t M> constexpr frozen<N> trimmed(const frozen<M>& from) {
  frozen<N> out;
  out.count = N;
  for (std::size_t k = 0; k < N; ++k) out.words[k] = from.words[k];
  return out;
}

/// What of a unit's instruction set static programs depend on. It is part of their type, so that the linker does not
/// take one unit's functions for another's.
template <int NativeBytes, bool Fma> struct instructions {};
using instruction_set = instructions<native_bytes, has_fma>;

/// The words of a net. Some thousand kernels fit the first guess and are evaluated once; a larger net, once more at its
/// size. Zeros that nobody writes cost the compiler nothing.
template <auto Net, class Registry, class Set = instruction_set> struct frozen_net {
 private:
  static constexpr std::size_t guess = 65536;
  static constexpr frozen<guess> first = freeze<Net, Registry, guess>();
  static constexpr auto whole() {
    if constexpr (first.count <= guess)
      return trimmed<first.count>(first);
    else
      return freeze<Net, Registry, first.count>();
  }
  static constexpr auto kept = whole();

 public:
  using registry_type = Registry;
  static constexpr const std::int64_t* words = kept.words;
  static constexpr header front = from_words<header>(words);
};

}  // namespace kiln::aot
