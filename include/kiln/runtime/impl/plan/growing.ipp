#include <algorithm>

#include "kiln/runtime/impl/plan/plan.hpp"

namespace kiln {

argument leading_part(const argument& memory, const dims& lens) {
  const shape& whole = memory.get_shape();
  bool fits = lens.size() == whole.rank() && is_constant(lens);
  for (std::size_t d = 0; fits && d < lens.size(); ++d) fits = lens[d].value() <= whole.lens[d].value();
  if (!fits)
    raise(errc::shape_mismatch, "a part's extents are within the memory: expected at most " + to_string(whole) +
                                    ", found " + to_string(shape(whole.type, lens)));
  return {shape(whole.type, lens, whole.element_strides()), const_cast<std::byte*>(memory.data())};
}

namespace detail {
namespace {

template <class Names>
std::uint32_t index_of(std::size_t count, const Names& name_at, const std::string& name, std::string_view what) {
  std::string known;
  for (std::uint32_t k = 0; k < count; ++k) {
    if (name_at(k) == name) return k;
    known += (k ? ", '" : "'") + std::string(name_at(k)) + "'";
  }
  raise(errc::not_found, "an alias names an " + std::string(what) + " of the program: expected one of " + known +
                             ", found '" + name + "'");
}

}  // namespace

std::vector<growing_output> growing_outputs(const module_graph& graph, const std::vector<output_alias>& aliases) {
  const auto parameters = graph.parameters();
  std::vector<growing_output> out;
  for (const output_alias& a : aliases) {
    growing_output g;
    g.output = index_of(
        graph.outputs.size(), [&](std::uint32_t k) { return graph.output_names[k].view(); }, a.output, "output");
    g.input = index_of(
        parameters.size(), [&](std::uint32_t k) { return graph.producer(parameters[k]).name.view(); }, a.input,
        "input");
    for (const growing_output& before : out)
      if (before.output == g.output || before.input == g.input)
        raise(errc::invalid_argument,
              "an alias has an output and an input of its own: found '" + a.output + "' in '" + a.input + "'");
    const value_id v = graph.outputs[g.output];
    const auto& made = graph.producer(v);
    const auto* joins = made.kind == instruction_kind::op ? made.op.get_if<op::concat>() : nullptr;
    if (!joins || made.inputs.empty() || !(made.inputs[0] == parameters[g.input]) ||
        std::count(made.inputs.begin(), made.inputs.end(), made.inputs[0]) != 1)
      raise(errc::unsupported, "output '" + a.output + "' can't grow in input '" + a.input +
                                   "': it is not that input with something else after it along one axis");
    g.axis = static_cast<std::size_t>(normal_axis(joins->axis, made.results[0].rank()));
    g.capacity = dimension::symbol("capacity of '" + a.output + "'");
    out.push_back(g);
  }
  return out;
}

}  // namespace detail
}  // namespace kiln
