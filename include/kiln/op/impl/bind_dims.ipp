#include "kiln/op/dynamic/bind_dims.hpp"

namespace kiln::op {

small_vector<argument> bind_dims::produce(std::span<const argument> in) const {
  small_vector<argument> out;
  out.push_back(in[0].owned());
  return out;
}

void bind_dims::bind(std::span<const argument> results, bindings& symbols) const {
  const auto values = results[0].as<std::int64_t>();
  for (std::size_t k = 0; k < names.size(); ++k)
    if (!names[k].is_constant()) symbols.bind(names[k], values[k]);
}

}  // namespace kiln::op
