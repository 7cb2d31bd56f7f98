#include <algorithm>

#include "kiln/graph/add_body.hpp"
#include "kiln/graph/symbols.hpp"
#include "kiln/interface/migraphx/impl/operators/lowering.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"

// Operators that run modules. What a module reads around itself becomes an operand.
namespace kiln::migraphx {

namespace {

struct body {
  module_ref at;
  value_list captured;
  shapes results;
};

// A parameter or result of one element, which has rank 0 in kiln's loops and rank 1 in MIGraphX's.
value_id widened(module_graph& m, value_id v, const kiln::shape& to) {
  value_id out = v;
  if (m.shape_of(v).type != to.type) out = m.add(op::convert{to.type}, {out});
  return m.shape_of(out).lens == to.lens ? out : m.add(op::reshape{to.lens}, {out});
}
void make_scalar_parameter(module_graph& m, value_id parameter, dtype type) {
  const std::uint32_t own = m.size();
  const kiln::shape wanted = m.shape_of(parameter);
  m[parameter.instruction].results[0] = {type, {}};
  const value_id by = widened(m, parameter, wanted);
  if (by == parameter) return;
  for (std::uint32_t i = 0; i < own; ++i)
    for (value_id& v : m[i].inputs)
      if (v == parameter) v = by;
  for (value_id& v : m.outputs)
    if (v == parameter) v = by;
}

// A module as a body of this operator's graph; its own parameters come first, of which the first two of a loop's are
// the iteration and the condition.
body body_of(lowering& c, std::size_t i, bool is_loop = false) {
  if (i >= c.modules.size())
    raise(fault::of(errc::invalid_argument, "number of module arguments", i + 1, c.modules.size()));
  const module& m = *c.modules[i];
  if (&m == &c.within) raise(errc::invalid_argument, "a module does not run itself: '" + m.name() + "'");
  kiln::program graph = m.graph();
  module_graph& main = graph.main();
  small_vector<value_id> parameters;
  body out;
  const auto& captures = m.captures();
  for (const value_id p : main.parameters())
    if (std::none_of(captures.begin(), captures.end(), [&](const auto& own) { return own.parameter == p; }))
      parameters.push_back(p);
  const std::size_t expected = is_loop ? c.size() : 0;
  if (parameters.size() != expected)
    raise(errc::shape_mismatch, "module '" + m.name() + "' has a parameter for each value it is given: expected " +
                                    std::to_string(expected) + ", found " + std::to_string(parameters.size()));
  for (const module::capture& own : captures) {
    parameters.push_back(own.parameter);
    out.captured.push_back(c.within.operand(own.from, own.result));
  }
  if (is_loop) {
    make_scalar_parameter(main, parameters[0], dtype::i64);
    make_scalar_parameter(main, parameters[1], dtype::boolean);
    if (!main.outputs.empty()) main.outputs[0] = widened(main, main.outputs[0], {dtype::boolean, {}});
  }
  for (const value_id v : main.outputs) out.results.push_back(main.shape_of(v));
  out.at = add_body(c.build.get_program(), graph, {parameters.data(), parameters.size()});
  return out;
}

// Extents that mention symbols of nothing around become symbols of their own.
void settle(lowering& c, kiln::shape& s, const value_list& given) {
  small_vector<dimension> known;
  for (const value& v : given)
    for (const dimension d : v.get_shape().lens) collect_symbols(d, known);
  for (dimension& d : s.lens) {
    small_vector<dimension> mentioned;
    collect_symbols(d, mentioned);
    for (const dimension m : mentioned)
      if (std::find(known.begin(), known.end(), m) == known.end()) {
        d = c.symbol("extent", std::max<std::int64_t>(d.min(), 0), d.max());
        break;
      }
  }
}

value_list results_of(lowering& c, const kiln::operation& op, const value_list& operands, const shapes& results) {
  small_vector<value_id> ids;
  for (const value& v : operands) ids.push_back(v.id());
  const std::size_t n = results.size();
  const value_id first = c.build.module().add_with_shapes(op, std::move(ids), results, c.label);
  value_list out;
  for (std::uint32_t k = 0; k < n; ++k) out.push_back(c.build.wrap({first.instruction, k}));
  return out;
}

value one_bool(value v) { return v.convert(dtype::boolean).reshape({}); }

value_list add_if(lowering& c) {
  c.expect(1);
  const body then_body = body_of(c, 0), else_body = body_of(c, 1);
  if (then_body.results.size() != else_body.results.size())
    raise(fault::of(errc::shape_mismatch, "both modules of an if give as many results", then_body.results.size(),
                    else_body.results.size()));
  value_list operands{one_bool(c.in(0))};
  for (const body* b : {&then_body, &else_body})
    for (const value& v : b->captured) operands.push_back(v);
  shapes results;
  for (std::size_t k = 0; k < then_body.results.size(); ++k) {
    kiln::shape s = then_body.results[k], other = else_body.results[k];
    if (s.type != other.type || s.rank() != other.rank())
      raise(fault::of(errc::shape_mismatch, "both modules of an if give results of one type and rank", s, other));
    settle(c, s, operands);
    settle(c, other, operands);
    for (std::size_t d = 0; d < s.rank(); ++d)
      if (!(s.lens[d] == other.lens[d]))
        s.lens[d] = c.symbol("extent", std::min(s.lens[d].min(), other.lens[d].min()),
                             std::max(s.lens[d].max(), other.lens[d].max()));
    results.push_back(s);
  }
  op::branch op;
  op.then_inputs = static_cast<std::int64_t>(then_body.captured.size());
  op.then_body = then_body.at;
  op.else_body = else_body.at;
  return results_of(c, op, operands, results);
}

// MIGraphX stacks what a loop collects in `max_iterations` rows, the last of them zeros.
value padded_to(lowering& c, value collected, std::int64_t rows) {
  op::pad pad;
  const std::size_t rank = collected.rank();
  for (std::size_t d = 0; d < 2 * rank; ++d) pad.pads.push_back(0);
  pad.pads[rank] = dimension(rows) - collected.dim(0);
  return collected.type() == dtype::boolean ? c.build.add(pad, collected.convert(dtype::u8)).convert(dtype::boolean)
                                            : c.build.add(pad, collected);
}

value_list add_loop(lowering& c) {
  c.expect(2, static_cast<std::size_t>(-1));
  const body inner = body_of(c, 0, true);
  const std::size_t carried = c.size() - 2;
  if (inner.results.size() < carried + 1)
    raise(fault::of(errc::shape_mismatch, "a loop's module gives a condition and the carried values", carried + 1,
                    inner.results.size()));
  const std::int64_t most = c.integer("max_iterations");
  const value limit = c.build.scalar(dtype::i64, most);
  value_list operands{c.in(0).convert(dtype::i64).reshape({}).min(limit), one_bool(c.in(1))};
  for (std::size_t i = 2; i < c.size(); ++i) operands.push_back(c.in(i));
  for (const value& v : inner.captured) operands.push_back(v);
  shapes results;
  for (std::size_t k = 0; k < carried; ++k) results.push_back(c.in(k + 2).get_shape());
  const dimension rows = c.symbol("rows", 0, most);
  for (std::size_t k = carried + 1; k < inner.results.size(); ++k) {
    kiln::shape s = inner.results[k];
    settle(c, s, operands);
    s.lens.insert(std::size_t{0}, rows);
    results.push_back(s);
  }
  op::loop op;
  op.iteration = inner.at;
  op.carried = static_cast<std::int64_t>(carried);
  value_list out = results_of(c, op, operands, results);
  for (std::size_t k = carried; k < out.size(); ++k) out[k] = padded_to(c, out[k], most);
  return out;
}

value_list add_get_tuple_elem(lowering& c) {
  c.expect(1);
  const std::int64_t index = c.integer("index");
  if (index < 0 || static_cast<std::size_t>(index) >= c.operands[0].size())
    raise(fault::of(errc::invalid_argument, "index of a tuple's element", c.operands[0].size(), index));
  return {c.operands[0][static_cast<std::size_t>(index)]};
}

value_list add_tuple(lowering& c) {
  value_list out;
  for (std::size_t i = 0; i < c.size(); ++i)
    for (const value& v : c.operands[i]) out.push_back(v);
  return out;
}

}  // namespace

operator_table control_operators() {
  static constexpr operator_row table[] = {
      {"get_tuple_elem", "index: 0", add_get_tuple_elem},
      {"if", "", add_if, true},
      {"loop", "max_iterations: 10, scan_output_directions: []", add_loop, true},
      {"make_tuple", "", add_tuple, true},
  };
  return table;
}

}  // namespace kiln::migraphx
