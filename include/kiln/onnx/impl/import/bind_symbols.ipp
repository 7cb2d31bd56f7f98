#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"

// Numbers that a run computes and attributes need: each becomes a symbol that the run binds.
namespace kiln::onnx {

namespace {

// Calls f(part, constant) for each part of a list; `constant` is null where a run computes the part. Exporters often
// concatenate known extents and one computed number.
template <class F> void for_parts(builder& b, value list, F&& f) {
  const auto& producer = b.module().producer(list.id());
  if (producer.kind != instruction_kind::op || !producer.op.is<op::concat>())
    return f(list, producer.kind == instruction_kind::literal ? &producer.constant : nullptr);
  const small_vector<value_id> parts = producer.inputs;  // f may add instructions
  for (const value_id part : parts) for_parts(b, b.wrap(part), f);
}

std::int64_t count_of(const node_context& c, value list, std::string_view what, std::int64_t most) {
  const dimension count = list.get_shape().elements();
  if (!count.is_constant() || count.value() > most)
    c.unsupported(std::string(what) + " has " + kiln::to_string(count) + " elements, and a run computes them");
  return count.value();
}

}  // namespace

std::vector<std::optional<dimension>> known_elements(const node_context& c, value list, std::string_view what) {
  std::vector<std::optional<dimension>> out;
  for_parts(c.build, list, [&](value part, const literal* constant) {
    if (!constant) return out.resize(out.size() + static_cast<std::size_t>(count_of(c, part, what, 2 * max_rank)));
    for (const dimension d : constant->to<dimension>()) out.push_back(d);
  });
  return out;
}

small_vector<dimension> node_context::dimensions_of(value v, std::string_view what, std::int64_t least) const {
  if (!is_integer(v.type())) malformed(std::string(what) + " is an integer tensor, not " + to_string(v.get_shape()));
  small_vector<dimension> out;
  for_parts(build, v, [&](value part, const literal* constant) {
    if (constant) {
      for (const dimension d : constant->to<dimension>()) out.push_back(d);
      return;
    }
    op::bind_dims o;
    constexpr std::int64_t most = op::bind_dims().names.capacity();
    const std::int64_t count = count_of(*this, part, what, most);
    for (std::int64_t k = 0; k < count; ++k) {
      o.names.push_back(bodies->fresh_symbol(what, least));
      out.push_back(o.names[static_cast<std::size_t>(k)]);
    }
    const auto number = [&](std::int64_t n) { return build.scalar(dtype::i64, n); };
    const value numbers = part.convert(dtype::i64).reshape({count});
    build.add(o, least < 0 ? numbers.max(number(least)).min(number(-least)) : numbers);
  });
  return out;
}

}  // namespace kiln::onnx
