#pragma once
#include "kiln/pass/fusion_body.hpp"

namespace kiln {

namespace detail {

/// Whether an instruction widens a float of fewer bits for a reduction over any axis, and for what is pointwise: these
/// read it as it was and widen it themselves.
template <class Module>
constexpr bool widens_for_reductions(const Module& m, const fusion_groups<Module>& groups, std::uint32_t i) {
  const auto& in = m[i].inputs;
  const dtype to = m[i].results[0].type;
  if (in.size() != 1 || !is_float(to)) return false;
  const dtype from = m.shape_of(in[0]).type;
  if (!is_float(from) || size_of(from) >= size_of(to)) return false;
  bool reduces = false;
  for (std::uint32_t u : groups.users(i)) {
    if (u == groups.output_user || groups.members(u) != 1) return false;
    reduces = reduces || is_kind(m, u, op_kind::reduction);
    if (!is_kind(m, u, op_kind::reduction) && !is_kind(m, u, op_kind::pointwise)) return false;
  }
  return reduces;
}

/// The pointwise instructions after a contraction that may run as its epilogue, in execution order: those over the
/// result's dims whose other operands do not depend on it, up to the last one after which a single value is read by
/// others, so that the fused kernel writes one result. What at last widens that for reductions stays with these, which
/// then read fewer bytes.
template <class Module>
constexpr small_vector<std::uint32_t> find_epilogue(const Module& m, const fusion_groups<Module>& groups,
                                                    std::uint32_t root) {
  const dims& lens = m[root].results[0].lens;
  small_vector<std::uint32_t> chain, open;  // open: uses of each chain value (root first) that are not in the chain
  const auto uses = [&](std::uint32_t i) { return static_cast<std::uint32_t>(groups.users(i).size()); };
  open.push_back(uses(root));
  std::uint32_t waiting = 0;           // users that were not reached yet
  small_vector<std::uint8_t> depends;  // on the contraction, from the instruction after it on
  const auto count_waiting = [&](std::uint32_t i) {
    for (std::uint32_t u : groups.users(i)) waiting += u != groups.output_user;
  };
  const auto chained = [&](std::uint32_t i) {
    for (std::uint32_t k : chain)
      if (k == i) return true;
    return i == root;
  };
  count_waiting(root);
  std::size_t kept = 0;
  for (std::uint32_t i = root + 1; i < groups.size() && waiting > 0; ++i) {
    bool reads = false, outside = false;
    for (value_id v : m[i].inputs) {
      const std::uint32_t from = v.instruction;
      if (chained(from)) {
        reads = true;
        --waiting;
      } else if (from > root && depends[from - root - 1]) {
        outside = true;
      }
    }
    const bool joins = reads && !outside && is_kind(m, i, op_kind::pointwise) && m[i].results[0].lens == lens &&
                       groups.members(i) == 1;
    depends.push_back(!joins && (reads || outside));
    if (!joins) continue;
    for (value_id v : m[i].inputs) {
      if (v.instruction == root) --open[0];
      for (std::size_t k = 0; k < chain.size(); ++k)
        if (chain[k] == v.instruction) --open[k + 1];
    }
    chain.push_back(i);
    open.push_back(uses(i));
    count_waiting(i);
    std::size_t results = 0;
    for (std::uint32_t n : open) results += n != 0;
    if (results == 1) kept = chain.size();
  }
  // at most one: were what it widens widened so as well, a reduction would read that, and there were two results
  if (kept > 0 && widens_for_reductions(m, groups, chain[kept - 1])) --kept;
  chain.resize(kept);
  return chain;
}

/// The pointwise instructions by which `v`, read by nothing else, is made of bytes alone: what widens them, shifts and
/// scales them by one number each. Empty where it is not so made.
template <class Module>
constexpr small_vector<std::uint32_t> find_widening(const Module& m, const fusion_groups<Module>& groups, value_id v) {
  constexpr std::size_t most = 4;
  const dims& lens = m.shape_of(v).lens;
  small_vector<std::uint32_t> found;
  const auto is_byte = [&](value_id x) {
    const dtype t = m.shape_of(x).type;
    return t == dtype::u8 || t == dtype::i8;
  };
  while (!is_byte(v)) {
    const std::uint32_t i = v.instruction;
    const auto& in = m[i].inputs;
    const bool pointwise = is_kind(m, i, op_kind::pointwise) && m[i].results[0].lens == lens;
    if (!pointwise || groups.users(i).size() != 1 || groups.members(i) != 1 || found.size() == most) return {};
    if (in.size() > 2 || (in.size() == 2 && !repeated_constant(m, in[1]))) return {};
    found.push_back(i);
    v = in[0];
  }
  return found;
}

}  // namespace detail

/// Gives every contraction the pointwise instructions after it as an epilogue: bias, activation, residual sum, product
/// with another value. Where two contractions meet in one instruction, the later one takes it. A contraction without
/// such users stays as it is. Where the contraction multiplies bytes, its epilogue also reads the others' bytes rather
/// than floats that were made of them.
template <class Program> constexpr pass_note fuse_contraction(Program& p) {
  pass_note note("fuse_contraction");
  for_each_unfused(p, [&](auto& m) {
    fusion_groups<typename Program::module_type> groups(m);
    for (std::uint32_t i = groups.size(); i-- > 0;) {
      if (!is_kind(m, i, op_kind::contraction)) continue;
      const dtype left = m.shape_of(m[i].inputs[0]).type;
      const bool of_bytes = left == dtype::u8 || left == dtype::i8;
      for (std::uint32_t k : detail::find_epilogue(m, groups, i)) {
        if (!groups.merge(i, k)) break;
        for (value_id v : m[k].inputs)
          if (of_bytes && !groups.together(v.instruction, i))
            for (std::uint32_t w : detail::find_widening(m, groups, v)) groups.merge(w, i);
      }
    }
    group_fuser<Program> fuser(p, m, groups);
    for (const auto& members : groups.lists())
      if (members.size() > 1) {
        fuser.fuse(members, fusion::contraction);
        note.count("epilogue");
      }
    fuser.finish();
  });
  return note;
}

}  // namespace kiln
