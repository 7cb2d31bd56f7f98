#include "kiln/quantize/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::quantize {
namespace {

// The whole steps in `distance`, exact where a quotient would be rounded up.
double whole_steps(double distance, double step) {
  return std::floor((distance - std::fmod(distance, step)) / step + 0.5);
}

}  // namespace

histogram::histogram(std::size_t bins, domain of)
    : of_(of), counts_(bins), most_bins_(std::max<std::size_t>(2 * bins, 16384)) {
  begin(-0.5, 0.5);
}

void histogram::begin(double first, double last) {
  first_ = first, last_ = last, width_ = (last - first) / static_cast<double>(counts_.size());
}

std::uint64_t histogram::total() const { return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}); }

void histogram::widen(range sample, double least_magnitude) {
  const double reach = sample.magnitude();
  constexpr double least = 1e-290, most = 1e290;  // widths and counts per unit are finite numbers between these
  if (reach < least || (begun_ && reach <= last_)) return;
  if (reach > most)
    raise(fault::of(errc::limit, "magnitudes of which a histogram is made", "at most 1e290", "a greater one"));
  if (begun_) return of_ == domain::values ? widen_values(reach) : widen_magnitudes(reach);
  begun_ = true;
  if (of_ == domain::values) return begin(-reach, reach);
  const std::uint64_t zeros = total();  // all that came before
  begin(zeros != 0 || least_magnitude == reach ? 0 : least_magnitude, reach);
  std::fill(counts_.begin(), counts_.end(), 0);
  counts_[0] = zeros;
}

void histogram::widen_values(double reach) {
  double more = 0;
  for (;; merge_around_zero()) {
    more = whole_steps(reach - last_, width_) + 1;
    if (static_cast<double>(counts_.size()) + 2 * more <= static_cast<double>(most_bins_)) break;
  }
  const auto side = static_cast<std::size_t>(more);
  std::vector<std::uint64_t> wider(counts_.size() + 2 * side);
  std::copy(counts_.begin(), counts_.end(), wider.begin() + static_cast<std::ptrdiff_t>(side));
  counts_.swap(wider);
  const double end = more * width_ + last_;
  begin(-end, end);
}

void histogram::widen_magnitudes(double greatest) {
  double more = 0;
  for (;; merge_pairs()) {
    more = std::ceil((greatest - last_) / width_);
    if (static_cast<double>(counts_.size()) + more <= static_cast<double>(most_bins_)) break;
  }
  counts_.resize(counts_.size() + static_cast<std::size_t>(more));
  last_ += more * width_;
}

// Two bins become one where 0 is an edge, three where it lies within a bin: the middle of the result is still 0.
void histogram::merge_around_zero() {
  const std::size_t each = counts_.size() % 2 == 0 ? 2 : 3;
  std::size_t side = counts_.size() / 2, added = 0;
  while (each == 2 ? (side + added) % 2 != 0 : (side + added) % 3 != 1) ++added;
  std::vector<std::uint64_t> merged((counts_.size() + 2 * added) / each);
  for (std::size_t i = 0; i < counts_.size(); ++i) merged[(i + added) / each] += counts_[i];
  const double end = last_ + static_cast<double>(added) * width_;
  counts_.swap(merged);
  begin(-end, end);
}

void histogram::merge_pairs() {
  if (counts_.size() % 2 != 0) counts_.push_back(0), last_ += width_;
  for (std::size_t i = 0; i < counts_.size() / 2; ++i) counts_[i] = counts_[2 * i] + counts_[2 * i + 1];
  counts_.resize(counts_.size() / 2);
  width_ *= 2;
}

template <class T> void histogram::count(std::span<const T> values) {
  const double per_unit = static_cast<double>(counts_.size()) / (last_ - first_);
  const auto end = static_cast<std::int64_t>(counts_.size());
  const bool magnitudes = of_ == domain::magnitudes;
  for (const T given : values) {
    if (!(given - given == 0)) continue;
    const double v = magnitudes ? std::fabs(static_cast<double>(given)) : static_cast<double>(given);
    auto bin = std::clamp<std::int64_t>(static_cast<std::int64_t>((v - first_) * per_unit), 0, end - 1);
    // rounding may have led to the bin beside the one whose edges hold the value
    const double begins = static_cast<double>(bin) * width_ + first_;
    if (v < begins && bin > 0)
      --bin;
    else if (bin + 1 < end && v >= edge(static_cast<std::size_t>(bin + 1)))
      ++bin;
    ++counts_[static_cast<std::size_t>(bin)];
  }
}
template void histogram::count(std::span<const float>);
template void histogram::count(std::span<const double>);

}  // namespace kiln::quantize
