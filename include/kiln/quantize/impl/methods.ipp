#include "kiln/quantize/methods.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::quantize {
namespace {

using counts = std::vector<double>;

// Counts without zeros: those get `epsilon`, which the others give up. None where nothing is left to compare.
bool smooth(counts& of) {
  constexpr double epsilon = 1e-4;
  const auto zeros = static_cast<double>(std::count(of.begin(), of.end(), 0.0));
  const double others = static_cast<double>(of.size()) - zeros;
  if (others == 0) return false;
  const double given_up = epsilon * zeros / others;
  if (given_up >= 1) return false;
  for (double& c : of) c = c == 0 ? epsilon : c - given_up;
  return true;
}

double divergence(const counts& p, const counts& q) {
  double p_sum = 0, q_sum = 0, sum = 0;
  for (const double v : p) p_sum += v;
  for (const double v : q) q_sum += v;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] / p_sum * std::log(p[i] / p_sum / (q[i] / q_sum));
  return sum;
}

// The bins [begin, end) as `levels` codes would show them: each code's count, in whole numbers, in each of its bins.
void quantize_bins(std::span<const std::uint64_t> bins, const counts& p, std::size_t levels, counts& q) {
  q.assign(bins.size(), 0);
  const std::size_t each = bins.size() / levels;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t begin = level * each, end = begin + each;
    std::uint64_t sum = 0, filled = 0;
    for (std::size_t i = begin; i < end; ++i) sum += bins[i], filled += p[i] != 0;
    if (level + 1 == levels)
      for (std::size_t i = end; i < bins.size(); ++i) sum += bins[i];
    if (filled == 0) continue;
    std::fill_n(q.begin() + static_cast<std::ptrdiff_t>(begin), each,
                std::floor(static_cast<double>(sum) / static_cast<double>(filled)));
  }
}

// Candidates grow from the middle, a bin on each side at a time; what they leave out counts in their outermost bins.
range least_entropy(const histogram& h, std::size_t levels) {
  const std::span<const std::uint64_t> bins = h.counts();
  const std::size_t zero = bins.size() / 2;
  std::vector<double> before(bins.size() + 1);
  for (std::size_t i = 0; i < bins.size(); ++i) before[i + 1] = before[i] + static_cast<double>(bins[i]);
  double least = std::numeric_limits<double>::infinity();
  range best;
  counts p, q;
  for (std::size_t half = levels / 2; half <= zero; ++half) {
    const std::size_t begin = zero - half, end = std::min(zero + half + 1, bins.size());
    const range candidate{h.edge(begin), h.edge(end)};
    if (half == levels / 2) best = candidate;
    p.assign(bins.begin() + static_cast<std::ptrdiff_t>(begin), bins.begin() + static_cast<std::ptrdiff_t>(end));
    p.front() += before[begin];
    p.back() += before[bins.size()] - before[end];
    quantize_bins(bins.subspan(begin, end - begin), p, levels, q);
    if (!smooth(p) || !smooth(q)) continue;
    const double d = divergence(p, q);
    if (d < least) least = d, best = candidate;
  }
  return best;
}

// The first bin at whose end this share of all values has been counted; one beyond the last where rounding misses it.
std::size_t bin_of_share(const histogram& h, double share) {
  const auto total = static_cast<double>(h.total());
  double sum = 0;
  for (std::size_t i = 0; i < h.counts().size(); ++i) {
    sum += static_cast<double>(h.counts()[i]) / total;
    if (sum >= share) return i;
  }
  return h.counts().size();
}

range of_percentile(const histogram& h, const calibration_options& o) {
  if (o.mirrors()) {
    const double end = h.edge(bin_of_share(h, o.percentile / 100));
    return {-end, end};
  }
  const double cut = (100 - o.percentile) / 200;
  return {h.edge(bin_of_share(h, cut)), h.edge(bin_of_share(h, 1 - cut))};
}

// `p3` takes the third roots of the values for normally distributed.
moments moments_of(const histogram& h, float8_scenario scenario) {
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < h.counts().size(); ++i) {
    const double n = static_cast<double>(h.counts()[i]), middle = h.middle(i);
    const double v =
        scenario == float8_scenario::p3 ? std::copysign(std::pow(std::fabs(middle), 1.0 / 3), middle) : middle;
    count += n, sum += n * v, squares += n * v * v;
  }
  const double mean = sum / count, square = squares / count - mean * mean;
  return {mean, square > 0 ? std::sqrt(square) : 0};
}

void expect(bool holds, std::string_view rule, const std::string& expected, const std::string& found) {
  if (!holds) raise(fault::of(errc::invalid_argument, rule, expected, found));
}

}  // namespace

void check(const calibration_options& o) {
  using enum calibration_method;
  const auto number = [](double v) { return std::to_string(v); };
  expect(o.averaging_constant >= 0 && o.averaging_constant <= 1, "averaging constant of a calibration", "0 to 1",
         number(o.averaging_constant));
  expect(o.percentile >= 0 && o.percentile <= 100, "percentile of a calibration", "0 to 100", number(o.percentile));
  expect(!o.per_channel || o.method == min_max, "method that ranges channels", "min_max",
         std::string(to_string(o.method)));
  expect(!o.moving_average || o.method == min_max, "method with a moving average", "min_max",
         std::string(to_string(o.method)));
  const std::size_t bins = o.bins_at_first();
  const std::size_t least = o.method == distribution ? 512 : o.method == entropy ? o.quantized_bins : 2;
  expect(bins >= least, "bins of a calibration's histogram", std::to_string(least) + " at least", std::to_string(bins));
  expect(bins <= std::size_t{1} << 24, "bins of a calibration's histogram", "2^24 at most", std::to_string(bins));
  expect(o.method != entropy || o.quantized_bins >= 2, "quantized bins of a calibration", "2 at least",
         std::to_string(o.quantized_bins));
}

statistics_options statistics_for(const calibration_options& o) {
  using enum calibration_method;
  statistics_options out;
  if (o.method == min_max) {
    out.moving_average = o.moving_average, out.averaging_constant = o.averaging_constant;
    if (o.per_channel) out.axis = o.axis;
    out.symmetric = o.mirrors();
  } else {
    out.bins = o.bins_at_first();
    if (o.method == percentile && o.mirrors()) out.of = histogram::domain::magnitudes;
  }
  return out;
}

tensor_range choose_range(const tensor_statistics& s, const calibration_options& o) {
  using enum calibration_method;
  tensor_range out;
  out.axis = o.axis;
  out.whole = s.whole();
  if (o.method == min_max) {
    out.channels = s.channels();
    return out;
  }
  const range seen{s.counts().low, s.counts().high};
  if (seen.magnitude() == 0) {
    if (o.method == distribution) out.distribution = moments{};
    return out;
  }
  const histogram& h = s.values();
  if (o.method == distribution) {
    out.whole = {h.edge(0), h.edge(h.counts().size())};
    out.distribution = moments_of(h, o.scenario);
    return out;
  }
  out.whole = o.method == entropy ? least_entropy(h, o.quantized_bins) : of_percentile(h, o);
  // no more than was seen
  out.whole = {std::max(out.whole.low, seen.low), std::min(out.whole.high, seen.high)};
  if (out.whole.low > out.whole.high) out.whole = seen;  // values within one bin, or far from 0 all of them
  if (o.method == entropy && o.mirrors()) out.whole = out.whole.mirrored();
  return out;
}

}  // namespace kiln::quantize
