#include "kiln/runtime/impl/executable_state.hpp"

// The caller's buffers: what is checked of them before a run.
namespace kiln {
namespace {

// Row-major: strides of extents 1 do not matter.
bool is_row_major(const shape& s) { return s.strides.size() != s.lens.size() || layout{s.lens, s.strides, 0}.dense(); }

// The bytes from the first element to the last, gaps included.
struct extent {
  const std::byte *first = nullptr, *end = nullptr;
  explicit extent(const argument& a) {
    if (!a || a.elements() == 0) return;
    const dims strides = a.get_shape().element_strides();
    std::int64_t low = 0, high = 1;
    for (std::size_t d = 0; d < strides.size(); ++d) {
      const std::int64_t reach = strides[d].raw() * (a.get_shape().lens[d].raw() - 1);
      (reach < 0 ? low : high) += reach;
    }
    const auto width = static_cast<std::int64_t>(size_of(a.get_shape().type));
    first = a.data() + low * width, end = a.data() + high * width;
  }
  bool meets(const extent& other) const { return first < other.end && other.first < end; }
};

}  // namespace

std::size_t executable::state::staged_bytes(std::size_t input, const argument& a) const {
  if (is_row_major(a.get_shape()) || grown_in(input)) return 0;
  return detail::aligned(static_cast<std::size_t>(a.get_shape().bytes().value()));
}

const detail::growing_output* executable::state::grows(std::size_t output) const {
  for (const detail::growing_output& g : plan.growing)
    if (g.output == output) return &g;
  return nullptr;
}

const detail::growing_output* executable::state::grown_in(std::size_t input) const {
  for (const detail::growing_output& g : plan.growing)
    if (g.input == input) return &g;
  return nullptr;
}

// The strides of the dim before the growing one say how much room that one has.
std::int64_t executable::state::capacity(const detail::growing_output& g, const shape& given) const {
  const dims strides = given.element_strides();
  dims whole = given.lens;
  const dimension inner = strides.empty() ? dimension(1) : strides[g.axis];
  if (g.axis > 0 && inner.raw() > 0) whole[g.axis] = strides[g.axis - 1].raw() / inner.raw();
  if (!(row_major(whole) == strides) || whole[g.axis].raw() < given.lens[g.axis].raw()) {
    shape shown(given.type, strides);
    raise(errc::shape_mismatch, "input '" + inputs[g.input].name + "' lies as the beginning of a row-major tensor " +
                                    "with room along axis " + std::to_string(g.axis) + ": found " + to_string(given) +
                                    " with strides " + to_string(shown).substr(to_string(shown).find('[')));
  }
  return whole[g.axis].raw();
}

argument executable::state::allocate_output(std::size_t k, const shape& s) const try {
  return argument(s);
} catch (error& e) {
  throw e.at_instruction(outputs[k].name);
} catch (const std::bad_alloc&) {
  raise(errc::limit, "memory for output '" + outputs[k].name + "': " + to_string(s) + " is not to be had");
}

argument executable::state::make_output(const workspace::state& w, std::uint32_t k,
                                        std::span<const argument> inputs) const {
  shape s = output_shape(w, k);
  const detail::growing_output* g = grows(k);
  if (!g) return allocate_output(k, s);
  dims whole = s.lens;
  whole[g->axis] = w.values.evaluate(g->capacity);
  s.strides = row_major(whole);
  return {s, const_cast<std::byte*>(inputs[g->input].data())};
}

void executable::state::check_outputs(const workspace::state& w, std::span<const argument> given_inputs,
                                      std::span<const argument> given) const {
  if (given.size() != outputs.size())
    raise(fault::of(errc::invalid_argument, "number of outputs", outputs.size(), given.size()));
  for (std::uint32_t k = 0; k < given.size(); ++k) {
    const detail::operand& o = plan.outputs[k];
    const shape& s = given[k].get_shape();
    const detail::growing_output* g = grows(k);
    bool fits = s.type == o.type && s.rank() == o.lens.size() && s.is_constant() && (g || is_row_major(s));
    for (std::size_t d = 0; fits && d < o.lens.size(); ++d) fits = s.lens[d] == dimension(w.sizes[o.lens[d]]);
    if (!fits)
      raise(errc::shape_mismatch, "output '" + outputs[k].name + "': expected row-major " +
                                      to_string(output_shape(w, k)) + ", found " + to_string(s));
    if (!given[k] && given[k].elements() != 0)
      raise(errc::invalid_argument, "output '" + outputs[k].name + "' has memory to write to");
    if (!g) continue;
    const auto both = [&] {
      return "output '" + outputs[k].name + "' grows in input '" + inputs[g->input].name + "': ";
    };
    const std::int64_t room = w.values.evaluate(g->capacity);
    if (s.lens[g->axis].raw() > room)
      raise(errc::limit, both() + "the memory has room for " + std::to_string(room) + " along axis " +
                             std::to_string(g->axis) + ", found " + to_string(s));
    dims whole = s.lens;
    whole[g->axis] = room;
    if (given[k].data() != given_inputs[g->input].data() || !(s.element_strides() == row_major(whole)))
      raise(errc::invalid_argument, both() + "both show the same memory with the same strides");
  }
  check_overlap(given_inputs, given);
}

// Strided inputs are copied before anything is written.
void executable::state::check_overlap(std::span<const argument> given_inputs, std::span<const argument> given) const {
  for (std::size_t k = 0; k < given.size(); ++k) {
    const extent written(given[k]);
    if (!written.first) continue;
    const detail::growing_output* g = grows(k);
    for (std::size_t i = 0; i < given_inputs.size(); ++i)
      if (!(g && g->input == i) && is_row_major(given_inputs[i].get_shape()) && written.meets(extent(given_inputs[i])))
        raise(errc::invalid_argument,
              "output '" + outputs[k].name + "' has memory of its own: it overlaps input '" + inputs[i].name + "'");
    for (std::size_t j = 0; j < k; ++j)
      if (written.meets(extent(given[j])))
        raise(errc::invalid_argument,
              "output '" + outputs[k].name + "' has memory of its own: it overlaps output '" + outputs[j].name + "'");
  }
}

}  // namespace kiln
