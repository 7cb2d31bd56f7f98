#include "reference.hpp"

#include "runtime/compare.hpp"

namespace kiln::testing {

reference_values reference_of(const std::function<void(builder&)>& make,
                              const std::function<void(std::vector<std::vector<float>>&)>& change) {
  std::vector<argument> given = random_inputs(make);
  reference_values r;
  for (const argument& a : given) {
    const auto values = a.to<double>();
    r.in.emplace_back(values.begin(), values.end());
  }
  if (change) change(r.in);
  for (std::size_t k = 0; k < given.size(); ++k)
    std::copy(r.in[k].begin(), r.in[k].end(), reinterpret_cast<float*>(given[k].data()));
  for (const argument& a : reference_run(make, given)) {
    const auto values = a.to<double>();
    r.out.emplace_back(values.begin(), values.end());
  }
  return r;
}

}  // namespace kiln::testing
