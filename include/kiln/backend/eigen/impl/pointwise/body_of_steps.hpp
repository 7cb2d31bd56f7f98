#pragma once
#include <initializer_list>

#include "kiln/graph/module.hpp"

namespace kiln::eigen {

/// A body of some instructions of one result each, in their order, of which the last one's result is the body's:
/// `op_of(i)` is what stands there for instruction i. What they read of each other they read there; `inputs` become
/// what the parameters are.
template <class OpOf>
module_graph body_of_steps(const module_graph& m, std::string_view name, std::initializer_list<std::uint32_t> steps,
                           small_vector<value_id>& inputs, OpOf&& op_of) {
  module_graph body;
  body.name = text(name);
  small_vector<value_id> known, there;  // values of m, and what they are in the body
  const auto in_body = [&](value_id v) {
    for (std::size_t k = 0; k < known.size(); ++k)
      if (known[k] == v) return there[k];
    text parameter("p");
    parameter.append(static_cast<std::int64_t>(inputs.size()));
    inputs.push_back(v);
    known.push_back(v);
    there.push_back(body.add_parameter(parameter.view(), m.shape_of(v)));
    return there.back();
  };
  for (const std::uint32_t i : steps) {
    small_vector<value_id> in;
    for (const value_id v : m[i].inputs) in.push_back(in_body(v));
    const value_id made = body.add_with_shapes(op_of(i), std::move(in), m[i].results, m[i].name.view());
    known.push_back({i, 0});
    there.push_back(made);
  }
  body.outputs.push_back(there.back());
  body.output_names.push_back(text("r0"));
  return body;
}

}  // namespace kiln::eigen
