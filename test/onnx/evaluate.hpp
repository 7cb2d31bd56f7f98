#pragma once
#include <stdexcept>

#include "kiln/core/argument.hpp"
#include "kiln/graph/module.hpp"

namespace kiln::test {

/// Runs a program op by op through the ops' own reference computations: an oracle without passes or targets.
inline small_vector<argument> evaluate(const program& p, const small_vector<argument>& inputs) {
  const module_graph& m = p.main();
  bindings sizes;
  const auto parameters = m.parameters();
  if (parameters.size() != inputs.size()) raise(errc::invalid_argument, "as many inputs as parameters");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const dims &declared = m.shape_of(parameters[i]).lens, &given = inputs[i].get_shape().lens;
    if (declared.size() != given.size()) raise(errc::shape_mismatch, "rank of an input");
    for (std::size_t d = 0; d < given.size(); ++d) {
      if (is_symbol(declared[d]))
        sizes.bind(declared[d], given[d].value());
      else if (sizes.evaluate(declared[d]) != given[d].value())
        raise(errc::shape_mismatch, "extent of an input");
    }
  }
  const auto bound = [&](shape s) {
    for (dimension& d : s.lens) d = sizes.evaluate(d);
    return s;
  };
  small_vector<small_vector<argument>> values(m.size());
  std::size_t next_input = 0;
  for (const std::uint32_t k : m.order()) {
    const auto& i = m[k];
    if (i.kind == instruction_kind::parameter) {
      values[k].push_back(inputs[next_input++]);
    } else if (i.kind == instruction_kind::literal && i.constant.has_symbols()) {
      small_vector<dimension> numbers = i.constant.to<dimension>();
      for (dimension& d : numbers) d = sizes.evaluate(d);
      values[k].push_back(argument(literal::of_dimensions(i.constant.get_shape().lens, numbers, i.results[0].type)));
    } else if (i.kind == instruction_kind::literal) {
      values[k].push_back(argument(i.constant));
    } else {
      operation op = i.op;
      op.substitute(sizes);
      small_vector<evaluation::operand> in, out;
      for (const value_id v : i.inputs) {
        argument& a = values[v.instruction][v.result];
        in.push_back({a.get_shape(), nullptr, a.data()});
      }
      for (const shape& s : i.results) {
        values[k].push_back(argument(bound(s)));
        out.push_back({bound(s), nullptr, values[k].back().data()});
      }
      evaluation e(in, out);
      try {
        op.evaluate(e);
      } catch (error& fault) {
        throw fault.at_op(op.name()).at_instruction(i.name);
      }
      e.finish();
    }
  }
  small_vector<argument> results;
  for (const value_id v : m.outputs) results.push_back(values[v.instruction][v.result]);
  return results;
}

}  // namespace kiln::test
