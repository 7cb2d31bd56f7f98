#pragma once
#include "kiln/pass/constants_stay_stored.hpp"
#include "kiln/pass/fusion_body.hpp"

namespace kiln {

namespace detail {

// What may join a group: not a conversion that whoever makes the kernels widens, see constants_stay_stored.hpp.
template <class Module> constexpr bool joins_pointwise(const Module& m, std::uint32_t i) {
  if (!is_kind(m, i, op_kind::pointwise)) return false;
  if constexpr (std::is_same_v<Module, module_graph>)
    if (!std::is_constant_evaluated()) return !(constants_stay() && is_left_to_widen(m, i));
  return true;
}

// Groups over equal dims that read one value run together, though none reads the other: rotary embeddings are two such.
template <class Module> constexpr std::uint32_t merge_siblings(const Module& m, fusion_groups<Module>& groups) {
  constexpr std::uint32_t tried = 4;  // groups each new one is compared with
  std::uint32_t merged = 0;
  for (std::uint32_t source = 0; source < groups.size(); ++source) {
    if (m[source].kind == instruction_kind::literal || repeated_constant(m, {source, 0})) continue;
    small_vector<std::uint32_t> readers;
    for (std::uint32_t u : groups.users(source)) {
      if (u == groups.output_user || !joins_pointwise(m, u) || groups.together(u, source)) continue;
      bool placed = false;
      std::uint32_t tries = 0;
      for (std::size_t k = readers.size(); k-- > 0 && !placed && tries < tried;) {
        if (groups.together(readers[k], u)) {
          placed = true;
        } else if (m[readers[k]].results[0].lens == m[u].results[0].lens &&
                   groups.members(readers[k]) + groups.members(u) <= max_group_members) {
          ++tries;
          placed = groups.merge(readers[k], u);
          merged += placed;
        }
      }
      if (!placed) readers.push_back(u);
    }
  }
  return merged;
}

}  // namespace detail

/// Collects pointwise instructions over equal dims into groups, each one kernel: along the values they pass on, then
/// across groups that read a common value. A lone pointwise instruction is a group too, so that targets meet one form.
/// Views stay outside; a constant that is repeated over the dims moves into the body as one element.
template <class Program> constexpr pass_note fuse_pointwise(Program& p) {
  pass_note note("fuse_pointwise");
  for_each_unfused(p, [&](auto& m) {
    fusion_groups<typename Program::module_type> groups(m);
    for (std::uint32_t i = 0; i < groups.size(); ++i) {
      if (!detail::joins_pointwise(m, i)) continue;
      for (value_id v : m[i].inputs)
        if (detail::joins_pointwise(m, v.instruction) && m.shape_of(v).lens == m[i].results[0].lens &&
            groups.members(i) + groups.members(v.instruction) <= max_group_members)
          groups.merge(v.instruction, i);
    }
    note.count("merge siblings", detail::merge_siblings(m, groups));
    group_fuser<Program> fuser(p, m, groups);
    for (const auto& members : groups.lists())
      if (!members.empty() && detail::joins_pointwise(m, members[0])) {
        fuser.fuse(members, fusion::pointwise);
        note.count("group");
      }
    fuser.finish();
  });
  return note;
}

}  // namespace kiln
