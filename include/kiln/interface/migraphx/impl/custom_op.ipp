#include "kiln/interface/migraphx/custom_op.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "kiln/graph/custom_op.hpp"
#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

namespace kiln::migraphx {

namespace {

struct registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const custom_op>, std::less<>> ops;
};
registry& shared_registry() {
  static registry all;
  return all;
}

std::vector<shape> shapes_of(std::span<const kiln::shape> in) {
  std::vector<shape> out;
  for (const kiln::shape& s : in) out.push_back(from_kiln(s));
  return out;
}

// The operands' extent that a range in a custom op's result means: an equal range on the same axis, of the first
// operand that has one there, or else the first equal range; the range itself where there is none.
dimension extent_like(dimension range, std::size_t axis, std::span<const kiln::shape> in) {
  const auto equal = [&](dimension e) { return !e.is_constant() && e.min() == range.min() && e.max() == range.max(); };
  for (const kiln::shape& operand : in)
    if (axis < operand.rank() && equal(operand.lens[axis])) return operand.lens[axis];
  for (const kiln::shape& operand : in)
    for (const dimension e : operand.lens)
      if (equal(e)) return e;
  return range;
}

kiln::shape result_shape(const shape& s, std::span<const kiln::shape> in, const std::string& name) {
  kiln::shape out = to_kiln(s, name);
  for (std::size_t d = 0; d < out.rank(); ++d)
    if (!out.lens[d].is_constant()) out.lens[d] = extent_like(out.lens[d], d, in);
  out.strides = {};
  return out;
}

void compute(const custom_op& op, std::span<const kiln::argument> in, std::span<kiln::argument> out) {
  std::vector<argument> inputs;
  std::vector<shape> types;
  for (const kiln::argument& a : in) types.push_back(from_kiln(a.get_shape()));
  const std::vector<std::size_t> written = op.output_alias ? op.output_alias(types) : std::vector<std::size_t>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool own = std::find(written.begin(), written.end(), i) != written.end();
    inputs.emplace_back(types[i], own ? in[i].copy() : in[i]);
  }
  const shape wanted = from_kiln(out[0].get_shape());
  const argument made = op.compute(wanted, inputs);
  if (made.get_shape().type() != wanted.type() || made.get_shape().dynamic() ||
      made.get_shape().elements() != wanted.elements())
    raise(errc::shape_mismatch,
          "custom op '" + op.name + "' gives " + to_string(wanted) + ": found " + to_string(made.get_shape()));
  if (!made.data() && wanted.elements() != 0) raise(errc::invalid_argument, "custom op '" + op.name + "' gives memory");
  const kiln::argument dense = made.value().contiguous();
  if (wanted.elements() != 0) std::memcpy(out[0].data(), dense.data(), wanted.bytes());
}

}  // namespace

void register_custom_op(custom_op op) {
  if (find_operator(op.name))
    raise(errc::invalid_argument, "a custom op has a name of its own: '" + op.name + "' is an operator");
  if (!op.compute_shape) raise(errc::invalid_argument, "custom op '" + op.name + "' has a compute_shape function");
  const auto own = std::make_shared<const custom_op>(std::move(op));
  kiln::custom_op made;
  made.type = own->name;
  made.pure = false;
  made.shape_rule = [own](const custom_attributes&, std::span<const kiln::shape> in) {
    return shapes{result_shape(own->compute_shape(shapes_of(in)), in, own->name)};
  };
  made.compute = [own](const custom_attributes&, std::span<const kiln::argument> in, std::span<kiln::argument> out) {
    if (!own->compute) raise(errc::unsupported, "custom op '" + own->name + "' has a compute function");
    compute(*own, in, out);
  };
  define_custom_op(std::move(made));
  const std::lock_guard lock(shared_registry().mutex);
  shared_registry().ops[own->name] = own;
}

std::vector<std::string> offloaded_custom_ops(const kiln::program& graph) {
  std::vector<std::string> out;
  const std::lock_guard lock(shared_registry().mutex);
  for (std::uint32_t k = 0; k < graph.modules(); ++k) {
    const module_graph& m = graph.module({k});
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      if (m[i].kind != instruction_kind::op) continue;
      const auto known = shared_registry().ops.find(m[i].op.name());
      if (known != shared_registry().ops.end() && known->second->runs_on_offload_target) out.push_back(known->first);
    }
  }
  return out;
}

}  // namespace kiln::migraphx
