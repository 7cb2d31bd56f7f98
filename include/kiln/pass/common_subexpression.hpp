#pragma once
#include "kiln/graph/literal_values.hpp"
#include "kiln/graph/matcher.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// Elements of a literal that are hashed; larger literals are the same value only when they share their data, unless
/// they are small enough to compare.
inline constexpr std::int64_t hashed_elements = 16, compared_elements = 4096;

template <class Module> class value_numbering {
 public:
  using instruction = typename Module::instruction;

  constexpr explicit value_numbering(Module& m) : module_(m) {}

  /// Redirects every use of a repeated computation to its first; the repeated ones are left unused. Returns how many.
  constexpr std::uint32_t run() {
    module_.compact();
    std::size_t slots = 16;
    while (slots < 2 * module_.size()) slots *= 2;
    table_.resize(slots, none);
    same_.resize(module_.size());
    hashes_.resize(module_.size());
    std::uint32_t merged = 0;
    for (std::uint32_t i = 0; i < module_.size(); ++i) {
      for (value_id& v : module_[i].inputs) v.instruction = same_[v.instruction];
      same_[i] = number(i);
      merged += same_[i] != i;
    }
    for (value_id& v : module_.outputs) v.instruction = same_[v.instruction];
    return merged;
  }

 private:
  static constexpr std::uint32_t none = 0xffff'ffff;

  constexpr std::uint32_t number(std::uint32_t i) {
    const instruction& a = module_[i];
    if (a.kind == instruction_kind::parameter) return i;
    if (a.kind == instruction_kind::op && (!a.op.info().pure || a.op.kind() >= op_kind::control)) return i;
    hashes_[i] = hash(a);
    for (std::size_t at = hashes_[i];; ++at) {
      std::uint32_t& slot = table_[at & (table_.size() - 1)];
      if (slot == none) return slot = i;
      if (hashes_[slot] == hashes_[i] && equal(module_[slot], a)) return slot;
    }
  }
  // Inputs are the parts that differ most often, and the cheapest to tell apart.
  static constexpr bool equal(const instruction& a, const instruction& b) {
    if (a.kind != b.kind || a.inputs.size() != b.inputs.size()) return false;
    if (!(a.inputs == b.inputs) && !(symmetric(a) && a.inputs[0] == b.inputs[1] && a.inputs[1] == b.inputs[0]))
      return false;
    if (a.kind == instruction_kind::op) return a.op == b.op;
    if (!(a.constant.get_shape() == b.constant.get_shape())) return false;
    if (a.constant.elements() > compared_elements) return a.constant.data().shares_with(b.constant.data());
    return identical(a.constant, b.constant);
  }
  static constexpr std::uint64_t hash(const instruction& a) {
    if (a.kind == instruction_kind::literal) return hash_literal(a.constant, hashed_elements);
    std::uint64_t h = a.op.hash();
    std::uint64_t sum = 0;
    for (value_id v : a.inputs) {
      const std::uint64_t word = (std::uint64_t{v.result} << 32) + v.instruction;
      if (symmetric(a))
        sum += word;
      else
        mix(h, word);
    }
    mix(h, sum);
    return h;
  }
  static constexpr bool symmetric(const instruction& a) {
    return a.inputs.size() == 2 && a.kind == instruction_kind::op && a.op.info().commutative;
  }

  Module& module_;
  small_vector<std::uint32_t> table_, same_;
  small_vector<std::uint64_t> hashes_;
};

}  // namespace detail

/// Computes equal pure ops over equal inputs, and equal constants, once. One pass in execution order over a hash table.
template <class Program> constexpr pass_note common_subexpression(Program& p) {
  pass_note note("common_subexpression");
  for_each_module(p, [&](auto& m) {
    detail::value_numbering<std::remove_cvref_t<decltype(m)>> numbering(m);
    note.count("merge", numbering.run());
    m.compact();
  });
  return note;
}

}  // namespace kiln
