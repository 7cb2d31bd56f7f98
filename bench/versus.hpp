#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kiln/core/argument.hpp"

/// What programs share that time kiln and ONNX Runtime by turns.
namespace kiln::bench {

using clock_type = std::chrono::steady_clock;

inline double ms_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

inline double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct timing {
  double median, best;  ///< ms
};

/// Runs for `budget` ms, at least three times, after a pause in which the workers of what ran before go to sleep: ONNX
/// Runtime's spin for tens of milliseconds, and take a processor from whoever runs meanwhile.
template <class Run> timing time_ms(double budget, Run&& run) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  run();
  std::vector<double> times;
  const auto start = clock_type::now();
  do {
    const auto from = clock_type::now();
    run();
    times.push_back(ms_since(from));
  } while (ms_since(start) < budget || times.size() < 3);
  const double best = *std::min_element(times.begin(), times.end());
  return {median(std::move(times)), best};
}

/// Medians over rounds of both, ms, and of the rounds' ratios (the second over the first); `best` is of the shortest
/// runs.
struct comparison {
  double own, peer, ratio, best_ratio;
};
template <class Own, class Peer> comparison compare_times(int rounds, double budget, Own&& own, Peer&& peer) {
  std::vector<double> own_times, peer_times, ratios;
  double own_best = INFINITY, peer_best = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    const timing theirs = time_ms(budget, peer), ours = time_ms(budget, own);
    peer_times.push_back(theirs.median);
    own_times.push_back(ours.median);
    peer_best = std::min(peer_best, theirs.best);
    own_best = std::min(own_best, ours.best);
    ratios.push_back(theirs.median / ours.median);
  }
  return {median(std::move(own_times)), median(std::move(peer_times)), median(std::move(ratios)), peer_best / own_best};
}

/// Values drawn from [low, high), whole ones for integers; from 65521 elements on they repeat.
inline argument random_values(const shape& s, double low, double high, unsigned seed = 1) {
  argument a(s);
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> value(low, high);
  const auto step = static_cast<std::int64_t>(size_of(s.type));
  const std::int64_t drawn = std::min<std::int64_t>(a.elements(), 65521);
  for (std::int64_t i = 0; i < drawn; ++i) {
    const double x = value(engine);
    const auto whole = static_cast<std::int64_t>(std::floor(x));
    is_float(s.type) ? encode(s.type, &x, a.data() + i * step, 1) : encode(s.type, &whole, a.data() + i * step, 1);
  }
  for (std::int64_t i = drawn; i < a.elements(); i += drawn)
    std::memcpy(a.data() + i * step, a.data(), static_cast<std::size_t>(std::min(drawn, a.elements() - i) * step));
  return a;
}

/// The greatest difference, relative to the greatest finite magnitude or as it is; infinite where extents, infinities
/// or what is no number disagree.
inline double difference(const std::vector<argument>& found, const std::vector<argument>& expected,
                         bool relative = true) {
  double worst = found.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t k = 0; k < std::min(found.size(), expected.size()); ++k) {
    const auto x = found[k].to<double>(), y = expected[k].to<double>();
    if (found[k].get_shape().lens != expected[k].get_shape().lens) return INFINITY;
    double apart = 0, greatest = 1e-30;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
        if (std::isfinite(y[i])) greatest = std::max(greatest, std::fabs(y[i]));
      } else if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
        return INFINITY;
      } else {
        apart = std::max(apart, std::fabs(x[i] - y[i]));
        greatest = std::max(greatest, std::fabs(y[i]));
      }
    }
    worst = std::max(worst, relative ? apart / greatest : apart);
  }
  return worst;
}

}  // namespace kiln::bench
