#include <algorithm>

#include "kiln/graph/symbols.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/runtime/impl/segment/segments.hpp"

namespace kiln::detail {
namespace {

// Whether a body's condition is true, or the one that it was given.
bool never_ends(const module_graph& m) {
  const auto& from = m.producer(m.outputs[0]);
  if (from.kind == instruction_kind::parameter) return m.outputs[0].instruction == m.parameters()[1].instruction;
  return from.kind == instruction_kind::literal && from.constant.get_shape().type == dtype::boolean &&
         from.constant.get_shape().elements() == 1 && from.constant.to<bool>()[0];
}

// Whether an instruction picks a value's slice along its first dim by a number alone.
bool picks_slice(const module_graph& m, std::uint32_t i, value_id of, value_id number) {
  if (m[i].kind != instruction_kind::op) return false;
  const auto* g = m[i].op.get_if<op::gather>();
  const std::size_t rank = m.shape_of(of).rank();
  return g && m[i].inputs[0] == of && m[i].inputs[1] == number && m.shape_of(number).rank() == 0 &&
         normal_axis(g->axis, rank) == 0;
}

bool reads(const module_graph& m, std::uint32_t i, value_id v) {
  return std::find(m[i].inputs.begin(), m[i].inputs.end(), v) != m[i].inputs.end();
}

// Whether a body reads an operand only at its iteration's number.
bool reads_slices_alone(const module_graph& m, value_id of, value_id number) {
  const shape& s = m.shape_of(of);
  if (s.rank() == 0 || is_object(s.type) || bits_of(s.type) < 8) return false;
  bool any = false;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (!reads(m, i, of)) continue;
    if (!picks_slice(m, i, of, number)) return false;
    any = true;
  }
  return any && std::find(m.outputs.begin(), m.outputs.end(), of) == m.outputs.end();
}

// Symbols that a module mentions, and those that it calls, but for the first dims of `whole`.
void mentioned_symbols(const program& p, const module_graph& m, std::span<const value_id> whole,
                       small_vector<dimension>& out) {
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    if (m[i].kind == instruction_kind::parameter &&
        std::find(whole.begin(), whole.end(), value_id{i, 0}) != whole.end()) {
      const dims& lens = m[i].results[0].lens;
      for (std::size_t d = 1; d < lens.size(); ++d) collect_symbols(lens[d], out);
      continue;
    }
    collect_symbols(m, i, out);
    small_vector<module_ref> called;
    if (m[i].kind == instruction_kind::op) m[i].op.bodies(called);
    for (const module_ref r : called) mentioned_symbols(p, p.module(r), {}, out);
  }
}

// Of values that a body reads by slices, those that need not be there as a whole: their first extent tells no symbol
// that something else mentions.
void drop_needed(const program& p, std::vector<value_id>& whole) {
  const module_graph& m = p.main();
  for (bool stable = false; !stable;) {
    small_vector<dimension> mentioned;
    mentioned_symbols(p, m, whole, mentioned);
    stable = std::erase_if(whole, [&](value_id v) {
               small_vector<dimension> told;
               collect_symbols(m.shape_of(v).lens[0], told);
               return std::any_of(told.begin(), told.end(), [&](dimension d) {
                 return std::find(mentioned.begin(), mentioned.end(), d) != mentioned.end();
               });
             }) == 0;
  }
}

void take_slices(module_graph& m, value_id of, value_id number) {
  const auto moved = [&](value_id& v) {
    if (picks_slice(m, v.instruction, of, number)) v = of;
  };
  for (std::uint32_t i = 0; i < m.size(); ++i)
    for (value_id& v : m[i].inputs) moved(v);
  for (value_id& v : m.outputs) moved(v);
  const shape whole = m.shape_of(of);
  shape slice{whole.type, {}};
  for (std::size_t d = 1; d < whole.rank(); ++d) slice.lens.push_back(whole.lens[d]);
  m[of.instruction].results[0] = slice;
}

}  // namespace

loop_body simplify_loop_body(program& p, std::size_t carried) {
  module_graph& m = p.main();
  m.compact();
  loop_body out;
  if (m.outputs.size() > 1 && never_ends(m)) {
    m.outputs.erase(0);
    if (!m.output_names.empty()) m.output_names.erase(0);
    out.asks = false;
  }
  const auto parameters = m.parameters();
  std::vector<value_id> whole;
  for (std::size_t k = 2 + carried; k < parameters.size(); ++k)
    if (reads_slices_alone(m, parameters[k], parameters[0])) whole.push_back(parameters[k]);
  drop_needed(p, whole);
  for (std::size_t k = 2 + carried; k < parameters.size(); ++k)
    if (std::find(whole.begin(), whole.end(), parameters[k]) != whole.end()) {
      take_slices(m, parameters[k], parameters[0]);
      out.sliced.push_back(static_cast<std::uint32_t>(k));
    }
  m.compact();
  return out;
}

}  // namespace kiln::detail
