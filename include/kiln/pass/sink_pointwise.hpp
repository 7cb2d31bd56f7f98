#pragma once
#include "kiln/pass/fusion_group.hpp"

namespace kiln {

namespace detail {

/// Whether an instruction costs next to nothing an element: it reads no floating-point operand.
template <class Rewriter> constexpr bool cheap(const Rewriter& r, value_id v) {
  if (!r.is_kind(v, op_kind::pointwise)) return false;
  for (value_id in : r.producer(v).inputs)
    if (is_float(r.shape_of(in).type)) return false;
  return true;
}

// Where `v` is a chain of views of a cheap instruction, and both are read in one place only: the instruction over views
// of its operands. The new views go on the list.
template <class Rewriter> constexpr bool sink(Rewriter& r, value_id v, small_vector<std::uint32_t>& work) {
  if (!r.is_kind(v, op_kind::view) || r.users(v.instruction).empty()) return false;
  for (std::uint32_t u : r.users(v.instruction))
    if (u == Rewriter::output_user || r[u].op.kind() != op_kind::pointwise) return false;
  using operation = typename Rewriter::operation;
  small_vector<operation> views;
  value_id from = v;
  do {
    views.push_back(r.producer(from).op);
    from = r.input(from, 0);
    if (!r.single_use(from)) return false;
  } while (r.is_kind(from, op_kind::view));
  if (!cheap(r, from)) return false;
  const operation op = r.producer(from).op;
  const text name = r.producer(from).name;
  small_vector<value_id> operands = r.producer(from).inputs;
  for (value_id& o : operands) {
    for (std::size_t k = views.size(); k-- > 0;) o = r.add(views[k], {o});
    work.push_back(o.instruction);
  }
  r.replace(v, r.add(op, std::move(operands), name.view()));
  return true;
}

}  // namespace detail

/// Sinks cheap pointwise instructions (integers and conditions: masks, positions) below the views that repeat or
/// rearrange their results, where pointwise instructions read those: both then run in one kernel, and repeating the
/// cheap part costs less than a kernel of its own.
template <class Program> constexpr pass_note sink_pointwise(Program& p) {
  pass_note note("sink_pointwise");
  for_each_unfused(p, [&](auto& m) {
    rewriter<typename Program::module_type> r(m);
    small_vector<std::uint32_t> work;
    for (std::uint32_t i = 0; i < r.size(); ++i) work.push_back(i);
    while (!work.empty()) {
      const std::uint32_t i = work.back();
      work.pop_back();
      if (detail::sink(r, {i, 0}, work)) note.count("sink");
    }
  });
  return note;
}

}  // namespace kiln
