#include "kiln/quantize/smooth.hpp"

#include <algorithm>

#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/share_matrices.hpp"
#include "kiln/pass/smooth_products.hpp"

namespace kiln::quantize {

std::vector<watched_value> values_to_smooth(const program& p) {
  program copy = p;  // as `values_to_quantize` has it
  const small_vector<value_id> products = products_to_smooth(copy.main());
  std::vector<watched_value> all = float_values(p), out;
  for (watched_value& w : all)
    if (std::any_of(products.begin(), products.end(),
                    [&](value_id v) { return copy.main().producer(v).inputs[0] == w.value; }))
      out.push_back(std::move(w));
  return out;
}

calibration_options channel_calibration() {
  calibration_options out;
  out.symmetric = true;
  out.per_channel = true;
  out.axis = -1;
  return out;
}

quantized_program smoothed(program p, const ranges& channels, const smooth_options& options) {
  if (!(options.alpha >= 0 && options.alpha <= 1))
    raise(fault::of(errc::invalid_argument, "alpha of smoothing", "0 to 1", std::to_string(options.alpha)));
  smoothing_plan plan{.alpha = options.alpha, .fold = options.fold};
  for (const watched_value& w : values_to_smooth(p)) {
    const auto at = channels.find(w.name);
    if (at == channels.end() || at->second.channels.empty()) continue;
    smoothed_value v{w.value, {}};
    for (const range& r : at->second.channels) v.magnitude.push_back(static_cast<float>(r.magnitude()));
    plan.values.push_back(std::move(v));
  }
  if (plan.values.empty())
    raise(errc::invalid_argument, "smoothing needs ranges of the channels of values that dots read: found none");
  quantized_program out;
  out.note = smooth_products(p, plan);
  constant_folding(p);
  share_matrices(p.main());
  p.main().compact();
  out.graph = std::move(p);
  return out;
}

}  // namespace kiln::quantize
