#pragma once
#include <cmath>
#include <vector>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "pass/count_of.hpp"

namespace kiln::test {

/// The first output of one run, as floats.
inline std::vector<float> first_result(const program& p, const argument& x, const target& t) {
  const argument in[] = {x};
  const auto out = compile(p, t).run(in)[0].to_literal().to<float>();
  return {out.begin(), out.end()};
}

/// Signal to quantization noise, in dB.
inline double sqnr(const std::vector<float>& exact, const std::vector<float>& near) {
  double signal = 0, noise = 0;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    signal += exact[k] * exact[k];
    noise += (exact[k] - near[k]) * (exact[k] - near[k]);
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace kiln::test
