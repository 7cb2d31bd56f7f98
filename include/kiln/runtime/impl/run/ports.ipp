#include "kiln/runtime/impl/run/ports.hpp"

#include <new>

namespace kiln::detail {

void signature::take_inputs(const program& p) {
  std::vector<port> named;
  for (value_id v : p.main().parameters()) named.push_back({p.main()[v.instruction].name.str(), p.main().shape_of(v)});
  take_inputs(std::move(named));
}

void signature::take_inputs(std::vector<port> named) {
  inputs = std::move(named);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const dims& lens = inputs[i].type.lens;
    for (std::size_t d = 0; d < lens.size(); ++d)
      if (is_symbol(lens[d])) symbols.push_back({i, d, lens[d]});
  }
}

void signature::take_outputs(const program& p) {
  const module_graph& m = p.main();
  for (std::size_t k = 0; k < m.outputs.size(); ++k)
    outputs.push_back({m.output_names[k].str(), m.shape_of(m.outputs[k])});
}

std::size_t signature::input_index(std::string_view name) const {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == name) return i;
  std::string known;
  for (const port& p : inputs) known += (known.empty() ? "'" : ", '") + p.name + "'";
  raise(errc::not_found,
        "an input is named as in the program: expected one of " + known + ", found '" + std::string(name) + "'");
}

void signature::check_count(std::size_t given) const {
  if (given != inputs.size()) raise(fault::of(errc::invalid_argument, "number of inputs", inputs.size(), given));
}

void signature::check_type(std::size_t input, const shape& given) const {
  const port& p = inputs[input];
  bool fits = given.type == p.type.type && given.rank() == p.type.rank() && given.is_constant();
  for (std::size_t d = 0; fits && d < given.rank(); ++d)
    fits = !p.type.lens[d].is_constant() || p.type.lens[d] == given.lens[d];
  if (!fits)
    raise(errc::shape_mismatch,
          "input '" + p.name + "': expected " + to_string(p.type) + ", found " + to_string(given));
}

void signature::check(std::span<const shape> given) const {
  check_count(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) check_type(i, given[i]);
}

void signature::check_data(std::span<const argument> given) const {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i] && given[i].elements() != 0) raise(errc::invalid_argument, "input '" + inputs[i].name + "' has data");
}

argument signature::allocate_output(std::size_t k, const shape& s) const try { return argument(s); } catch (error& e) {
  throw e.at_instruction(outputs[k].name);
} catch (const std::bad_alloc&) {
  raise(errc::limit, "memory for output '" + outputs[k].name + "': " + to_string(s) + " is not to be had");
}

memory_extent::memory_extent(const argument& a) {
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

}  // namespace kiln::detail
