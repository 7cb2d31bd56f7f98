#pragma once
#include "kiln/graph/literal_values.hpp"
#include "kiln/graph/module.hpp"

namespace kiln {

/// Bodies that a pass adds to a program: instructions of equal form (the layers of a model) share one.
template <class Program> class shared_bodies {
 public:
  using module_type = typename Program::module_type;

  constexpr explicit shared_bodies(Program& p) : program_(p) {}

  /// Adds a body, or finds the equal one that was added before.
  constexpr module_ref add(module_type body) {
    const std::uint64_t h = hash(body);
    for (const known& k : known_)
      if (k.hash == h && equal(program_.module(k.at), body)) return k.at;
    known_.push_back({h, program_.add_module(std::move(body))});
    return known_.back().at;
  }

 private:
  struct known {
    std::uint64_t hash = 0;
    module_ref at;
  };

  static constexpr std::uint64_t hash(const module_type& m) {
    std::uint64_t h = m.size();
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind == instruction_kind::op) detail::mix(h, m[i].op.hash());
      for (value_id v : m[i].inputs) detail::mix(h, v.instruction);
      detail::mix_value(h, m[i].results[0].lens);
    }
    return h;
  }
  static constexpr bool equal(const module_type& a, const module_type& b) {
    if (a.size() != b.size() || !(a.outputs == b.outputs)) return false;
    for (std::uint32_t i = 0; i < a.size(); ++i) {
      if (a[i].kind != b[i].kind || !(a[i].inputs == b[i].inputs) || !(a[i].results == b[i].results)) return false;
      if (a[i].kind == instruction_kind::op && !(a[i].op == b[i].op)) return false;
      if (a[i].kind == instruction_kind::literal && !identical(a[i].constant, b[i].constant)) return false;
    }
    return true;
  }

  Program& program_;
  small_vector<known> known_;
};

}  // namespace kiln
