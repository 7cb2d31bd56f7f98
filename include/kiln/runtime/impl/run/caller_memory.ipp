#include "kiln/runtime/impl/run/planned_program.hpp"

// The caller's buffers: what is checked of them before a run.
namespace kiln::detail {
namespace {

// Row-major: strides of extents 1 do not matter.
bool is_row_major(const shape& s) { return s.strides.size() != s.lens.size() || layout{s.lens, s.strides, 0}.dense(); }

}  // namespace

std::size_t planned_program::copied_bytes(std::size_t input, const argument& a) const {
  if (is_row_major(a.get_shape()) || grown_in(input)) return 0;
  return aligned(static_cast<std::size_t>(a.get_shape().bytes().value()));
}

const growing_output* planned_program::grows(std::size_t output) const {
  for (const growing_output& g : plan_.growing)
    if (g.output == output) return &g;
  return nullptr;
}

const growing_output* planned_program::grown_in(std::size_t input) const {
  for (const growing_output& g : plan_.growing)
    if (g.input == input) return &g;
  return nullptr;
}

// The strides of the dim before the growing one say how much room that one has.
std::int64_t planned_program::capacity(const growing_output& g, const shape& given) const {
  const dims strides = given.element_strides();
  dims whole = given.lens;
  const dimension inner = strides.empty() ? dimension(1) : strides[g.axis];
  if (g.axis > 0 && inner.raw() > 0) whole[g.axis] = strides[g.axis - 1].raw() / inner.raw();
  if (!(row_major(whole) == strides) || whole[g.axis].raw() < given.lens[g.axis].raw()) {
    shape shown(given.type, strides);
    raise(errc::shape_mismatch, "input '" + ports_.inputs[g.input].name +
                                    "' is the beginning of a row-major tensor with room along axis " +
                                    std::to_string(g.axis) + ": found " + to_string(given) + " with strides " +
                                    to_string(shown).substr(to_string(shown).find('[')));
  }
  return whole[g.axis].raw();
}

argument planned_program::make_output(const run_memory& w, std::size_t k, std::span<const argument> inputs) const {
  shape s = output_shape(w, k);
  const growing_output* g = grows(k);
  if (!g) return ports_.allocate_output(k, s);
  dims whole = s.lens;
  whole[g->axis] = w.values.evaluate(g->capacity);
  s.strides = row_major(whole);
  return {s, const_cast<std::byte*>(inputs[g->input].data())};
}

void planned_program::check_outputs(const run_memory& w, std::span<const argument> inputs,
                                    std::span<const argument> outputs) const {
  if (outputs.size() != ports_.outputs.size())
    raise(fault::of(errc::invalid_argument, "number of outputs", ports_.outputs.size(), outputs.size()));
  for (std::uint32_t k = 0; k < outputs.size(); ++k) {
    const operand& o = plan_.outputs[k];
    const shape& s = outputs[k].get_shape();
    const growing_output* g = grows(k);
    bool fits = s.type == o.type && s.rank() == o.lens.size() && s.is_constant() && (g || is_row_major(s));
    for (std::size_t d = 0; fits && d < o.lens.size(); ++d) fits = s.lens[d] == dimension(w.sizes[o.lens[d]]);
    if (!fits)
      raise(errc::shape_mismatch, "output '" + ports_.outputs[k].name + "': expected row-major " +
                                      to_string(output_shape(w, k)) + ", found " + to_string(s));
    if (!outputs[k] && outputs[k].elements() != 0)
      raise(errc::invalid_argument, "output '" + ports_.outputs[k].name + "' has memory to write to");
    if (g) check_growing(w, *g, inputs[g->input], outputs[k]);
  }
  check_overlap(inputs, outputs);
}

void planned_program::check_growing(const run_memory& w, const growing_output& g, const argument& input,
                                    const argument& output) const {
  const auto both = [&] {
    return "output '" + ports_.outputs[g.output].name + "' grows in input '" + ports_.inputs[g.input].name + "': ";
  };
  const shape& s = output.get_shape();
  const std::int64_t room = w.values.evaluate(g.capacity);
  if (s.lens[g.axis].raw() > room)
    raise(errc::limit, both() + "the memory has room for " + std::to_string(room) + " along axis " +
                           std::to_string(g.axis) + ", found " + to_string(s));
  dims whole = s.lens;
  whole[g.axis] = room;
  if (output.data() != input.data() || !(s.element_strides() == row_major(whole)))
    raise(errc::invalid_argument, both() + "both show the same memory with the same strides");
}

// Strided inputs are copied before anything is written.
void planned_program::check_overlap(std::span<const argument> inputs, std::span<const argument> outputs) const {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const memory_extent written(outputs[k]);
    if (!written.first) continue;
    const growing_output* g = grows(k);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!(g && g->input == i) && is_row_major(inputs[i].get_shape()) && written.meets(memory_extent(inputs[i])))
        raise(errc::invalid_argument, "output '" + ports_.outputs[k].name +
                                          "' has memory of its own: it overlaps input '" + ports_.inputs[i].name + "'");
    for (std::size_t j = 0; j < k; ++j)
      if (written.meets(memory_extent(outputs[j])))
        raise(errc::invalid_argument, "output '" + ports_.outputs[k].name +
                                          "' has memory of its own: it overlaps output '" + ports_.outputs[j].name +
                                          "'");
  }
}

}  // namespace kiln::detail
