#include "kiln/runtime/named_inputs.hpp"

namespace kiln {

std::vector<argument> ordered_inputs(const executable& exe, std::span<const named_input> inputs) {
  const std::span<const port> ports = exe.inputs();
  std::vector<argument> ordered(ports.size());
  std::vector<bool> given(ports.size(), false);
  for (const named_input& i : inputs) {
    const std::size_t at = exe.input_index(i.name);
    if (given[at]) raise(errc::invalid_argument, "an input is given once: found '" + std::string(i.name) + "' again");
    given[at] = true;
    ordered[at] = i.value;
  }
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (!given[i])
      raise(errc::invalid_argument,
            "every input is given: none for '" + ports[i].name + "' " + to_string(ports[i].type));
  return ordered;
}

std::size_t output_index(const executable& exe, std::string_view name) {
  const std::span<const port> ports = exe.outputs();
  std::string known;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return i;
    known += (known.empty() ? "'" : ", '") + ports[i].name + "'";
  }
  raise(errc::not_found,
        "an output is named as in the program: expected one of " + known + ", found '" + std::string(name) + "'");
}

}  // namespace kiln
