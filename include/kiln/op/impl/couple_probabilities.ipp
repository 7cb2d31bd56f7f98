#include "kiln/op/dynamic/couple_probabilities.hpp"

#include <algorithm>
#include <cmath>

#include "kiln/op/impl/produced.hpp"

namespace kiln::op {

namespace {

// r[i * k + j]: how probable class i is against j. Minimizes the sum of (r_ji p_i - r_ij p_j)^2 over p that add up
// to 1.
std::vector<double> coupled(const std::vector<double>& r, std::size_t k) {
  std::vector<double> q(k * k, 0), p(k, 1.0 / static_cast<double>(k)), qp(k);
  for (std::size_t t = 0; t < k; ++t)
    for (std::size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  const std::size_t most = std::max<std::size_t>(100, k);
  for (std::size_t step = 0; step < most; ++step) {
    double error = 0;
    double pqp = 0;
    for (std::size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (std::size_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (const double v : qp) error = std::max(error, std::fabs(v - pqp));
    if (error < 0.005 / static_cast<double>(k)) break;
    for (std::size_t t = 0; t < k; ++t) {
      const double change = (pqp - qp[t]) / q[t * k + t], whole = 1 + change;
      p[t] += change;
      pqp = (pqp + change * (change * q[t * k + t] + 2 * qp[t])) / whole / whole;
      for (std::size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + change * q[t * k + j]) / whole;
        p[j] /= whole;
      }
    }
  }
  return p;
}

}  // namespace

small_vector<argument> couple_probabilities::produce(std::span<const argument> in) const {
  const argument given = in[0].contiguous();
  const auto n = static_cast<std::size_t>(given.get_shape().lens[0].value()), k = static_cast<std::size_t>(classes);
  argument out(shape{dtype::f32, {static_cast<std::int64_t>(n), classes}});
  const auto from = given.as<float>();
  const auto to = out.as<float>();
  std::vector<double> r(k * k);
  for (std::size_t row = 0, at = 0; row < n; ++row) {
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = i + 1; j < k; ++j, ++at) {
        // neither is certain, which keeps the diagonal positive
        r[i * k + j] = std::clamp(static_cast<double>(from[at]), 1e-7, 1 - 1e-7);
        r[j * k + i] = 1 - r[i * k + j];
      }
    const std::vector<double> p = coupled(r, k);
    for (std::size_t i = 0; i < k; ++i) to[row * k + i] = static_cast<float>(p[i]);
  }
  return detail::one(out);
}

}  // namespace kiln::op
