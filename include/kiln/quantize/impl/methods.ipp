#include "kiln/quantize/methods.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

// The Kullback-Leibler divergence of a histogram and its quantized form, for parts [begin, end) of its bins. P counts
// what the part leaves out in its outermost bins. Q shows the part as `levels` codes: each code's count, in whole
// numbers, in each of its bins that P fills. Where either is 0 it becomes `epsilon`, which its other bins give up.
class divergence {
 public:
  divergence(std::span<const std::uint64_t> bins, std::size_t levels)
      : bins_(bins), levels_(levels), before_(bins.size() + 1), filled_before_(bins.size() + 1) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      before_[i + 1] = before_[i] + static_cast<double>(bins[i]);
      filled_before_[i + 1] = filled_before_[i] + (bins[i] != 0);
      if (bins[i] != 0) filled_.push_back(i);
    }
  }

  /// Infinite where P or Q has nothing to give up.
  double of(std::size_t begin, std::size_t end) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    begin_ = begin, end_ = end;
    const std::size_t size = end - begin, each = size / levels_;
    const auto p = smoothing(size, filled(begin, end));
    if (!p) return infinity;
    codes_.assign(levels_, 0);
    std::size_t q_filled = 0;
    double q_total = 0;
    for (std::size_t level = 0; level < levels_; ++level) {
      const std::size_t from = begin + level * each, to = from + each, in_p = filled(from, to);
      const double sum = before_[level + 1 == levels_ ? end : to] - before_[from];
      if (in_p == 0) continue;
      codes_[level] = std::floor(sum / static_cast<double>(in_p));
      if (codes_[level] != 0) q_filled += each;
      q_total += codes_[level] * static_cast<double>(each);
    }
    const auto q = smoothing(size, q_filled);
    if (!q) return infinity;
    double sum = own_entropy(*p);
    for (std::size_t level = 0; level <= levels_; ++level) {
      const std::size_t from = begin + level * each, to = level == levels_ ? end : from + each;
      const double code = level == levels_ ? 0 : codes_[level];
      sum -= mass(from, to, *p) * std::log(code == 0 ? epsilon : code - *q);
    }
    return sum / before_.back() + std::log(q_total / before_.back());
  }

 private:
  static constexpr double epsilon = 1e-4;

  // What each filled bin gives up.
  static std::optional<double> smoothing(std::size_t bins, std::size_t filled) {
    if (filled == 0) return std::nullopt;
    const double given_up = epsilon * static_cast<double>(bins - filled) / static_cast<double>(filled);
    if (given_up >= 1) return std::nullopt;
    return given_up;
  }
  double left_out_before() const { return before_[begin_]; }
  double left_out_after() const { return before_.back() - before_[end_]; }
  // Bins that P fills.
  std::size_t filled(std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    return filled_before_[to] - filled_before_[from] + (from == begin_ && bins_[from] == 0 && left_out_before() > 0) +
           (to == end_ && bins_[to - 1] == 0 && left_out_after() > 0);
  }
  // P's sum over bins.
  double mass(std::size_t from, std::size_t to, double given_up) const {
    if (from == to) return 0;
    const auto in_p = static_cast<double>(filled(from, to));
    double counts = before_[to] - before_[from];
    if (from == begin_) counts += left_out_before();
    if (to == end_) counts += left_out_after();
    return counts - given_up * in_p + epsilon * (static_cast<double>(to - from) - in_p);
  }
  // The sum of p log p.
  double own_entropy(double given_up) const {
    const auto term = [&](double count) { return (count - given_up) * std::log(count - given_up); };
    const auto count_at = [&](std::size_t i) {
      return static_cast<double>(bins_[i]) + (i == begin_ ? left_out_before() : 0) +
             (i + 1 == end_ ? left_out_after() : 0);
    };
    double sum = static_cast<double>(end_ - begin_ - filled(begin_, end_)) * epsilon * std::log(epsilon);
    const double first = count_at(begin_), last = count_at(end_ - 1);
    if (first != 0) sum += term(first);
    if (last != 0) sum += term(last);
    const std::size_t inner_begin = filled_before_[begin_ + 1], inner_end = filled_before_[end_ - 1];
    for (std::size_t k = inner_begin; k < inner_end; ++k) sum += term(static_cast<double>(bins_[filled_[k]]));
    return sum;
  }

  std::span<const std::uint64_t> bins_;
  std::size_t levels_, begin_ = 0, end_ = 0;
  std::vector<double> before_, codes_;  // counts before each bin
  std::vector<std::size_t> filled_before_, filled_;
};

// Candidates grow from the middle, a bin on each side at a time.
range least_entropy(const histogram& h, std::size_t levels) {
  const std::size_t bins = h.counts().size(), zero = bins / 2;
  divergence from(h.counts(), levels);
  double least = std::numeric_limits<double>::infinity();
  range best;
  const std::size_t narrowest = std::min(levels / 2, zero);
  for (std::size_t half = narrowest; half <= zero; ++half) {
    const std::size_t begin = zero - half, end = std::min(zero + half + 1, bins);
    const double d = from.of(begin, end);
    if (half != narrowest && !(d < least)) continue;
    least = d, best = {h.edge(begin), h.edge(end)};
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

calibration_method method_named(std::string_view name) {
  return detail::named(name, calibration_methods, "calibration method");
}

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
