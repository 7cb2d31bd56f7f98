#include "kiln/quantize/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/core/simd.hpp"
#include "kiln/quantize/impl/blocks.hpp"

namespace kiln::quantize {
namespace {

template <class T> value_counts count_one_by_one(std::span<const T> values) {
  value_counts out;
  for (const T given : values) {
    const auto v = static_cast<double>(given);
    if (v != v) {
      ++out.nans;
    } else if (!(given - given == 0)) {
      ++out.infinities;
    } else {
      const value_counts one{1, 0, 0, v, v, std::fabs(v), v, v * v};
      out.add(one);
    }
  }
  return out;
}

// The difference of a number and itself is 0, unless the number is not finite.
template <class T> value_counts count_vectors(std::span<const T> values) {
  using vector = native_vec<T>;
  using sums = vec<double, lanes<vector>>;
  constexpr std::size_t step = lanes<vector>;
  constexpr std::size_t block = 256 * step;
  value_counts out;
  for (std::size_t at = 0; at < values.size(); at += block) {
    const std::span<const T> part = values.subspan(at, std::min(block, values.size() - at));
    const std::size_t whole = part.size() / step * step;
    if (whole == 0) {
      out.add(count_one_by_one(part));
      break;
    }
    const vector first = load<vector>(part.data());
    vector low = first, high = first, bad = first - first, least = select(first < vector{}, -first, first);
    sums sum{}, squares{};
    for (std::size_t i = 0; i < whole; i += step) {
      const vector v = load<vector>(part.data() + i), magnitude = select(v < vector{}, -v, v);
      low = select(v < low, v, low), high = select(high < v, v, high);
      least = select(magnitude < least, magnitude, least);
      bad += v - v;
      const sums wide = KILN_CONVERT_VECTOR(v, sums);
      sum += wide, squares += wide * wide;
    }
    if (!(reduce_add(bad) == 0)) {
      out.add(count_one_by_one(part));
      continue;
    }
    const value_counts vectors{static_cast<std::int64_t>(whole),
                               0,
                               0,
                               static_cast<double>(reduce_min(low)),
                               static_cast<double>(reduce_max(high)),
                               static_cast<double>(reduce_min(least)),
                               reduce_add(sum),
                               reduce_add(squares)};
    out.add(vectors);
    out.add(count_one_by_one(part.subspan(whole)));
  }
  return out;
}

value_counts count_part(const tensor& dense, std::int64_t begin, std::int64_t end) {
  value_counts out;
  detail::for_each_block(dense, begin, end, [&](auto block) { out.add(count_vectors(block)); });
  return out;
}

void check_float(const tensor& t) {
  if (!is_float(t.type))
    raise(fault::of(errc::unsupported, "statistics are of floats", "a float type", to_string(t.type)));
}

}  // namespace

void value_counts::add(const value_counts& more) {
  if (more.finite != 0) {
    low = finite != 0 ? std::min(low, more.low) : more.low;
    high = finite != 0 ? std::max(high, more.high) : more.high;
    least_magnitude = finite != 0 ? std::min(least_magnitude, more.least_magnitude) : more.least_magnitude;
  }
  finite += more.finite, nans += more.nans, infinities += more.infinities;
  sum += more.sum, sum_of_squares += more.sum_of_squares;
}

value_counts count_values(const tensor& t) {
  check_float(t);
  buffer room;
  const tensor dense = detail::dense_tensor(t, room);
  return count_part(dense, 0, dense.elements());
}

void range_tracker::add(range sample) {
  extremes_ = samples_ == 0 ? sample : extremes_.joined(sample);
  sums_ = {sums_.low + sample.low, sums_.high + sample.high};
  ++samples_;
}

range range_tracker::value(const statistics_options& o) const {
  if (samples_ == 0) return total_;
  const auto count = static_cast<double>(samples_);
  range batch = o.moving_average ? range{sums_.low / count, sums_.high / count} : extremes_;
  if (o.symmetric) batch = batch.mirrored();
  if (batches_ == 0) return batch;
  if (!o.moving_average) return total_.joined(batch);
  return {total_.low + o.averaging_constant * (batch.low - total_.low),
          total_.high + o.averaging_constant * (batch.high - total_.high)};
}

void range_tracker::end_batch(const statistics_options& o) {
  if (samples_ == 0) return;
  total_ = value(o);
  ++batches_;
  samples_ = 0;
  sums_ = {};
}

tensor_statistics::tensor_statistics(const statistics_options& o) : options_(o) {
  if (o.bins != 0) histogram_ = histogram(o.bins, o.of);
}

void tensor_statistics::add(const tensor& t) {
  check_float(t);
  buffer room;
  const tensor dense = detail::dense_tensor(t, room);
  const std::int64_t elements = dense.elements();
  const value_counts sample = count_part(dense, 0, elements);
  if (options_.axis) add_channels(dense);
  if (sample.finite != 0) {
    const range seen{sample.low, sample.high};
    whole_.add(seen);
    if (options_.bins != 0) {
      histogram_.widen(seen, sample.least_magnitude);
      detail::for_each_block(dense, 0, elements, [&](auto block) { histogram_.add(block); });
    }
  }
  counts_.add(sample);
}

void tensor_statistics::add_channels(const tensor& dense) {
  const std::int64_t axis = normal_axis(*options_.axis, dense.rank());
  if (axis < 0)
    raise(fault::of(errc::shape_mismatch, "rank of a tensor with ranges of channels",
                    "more than " + std::to_string(*options_.axis), dense.rank()));
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t channels = dense.lens[at];
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < at; ++i) outer *= dense.lens[i];
  for (std::size_t i = at + 1; i < dense.rank(); ++i) inner *= dense.lens[i];
  if (channels_.empty()) channels_.resize(static_cast<std::size_t>(channels));
  if (channels_.size() != static_cast<std::size_t>(channels))
    raise(fault::of(errc::shape_mismatch, "channels of a tensor, in each sample", channels_.size(), channels));
  for (std::int64_t c = 0; c < channels; ++c) {
    value_counts own;
    for (std::int64_t o = 0; o < outer; ++o) {
      const std::int64_t begin = (o * channels + c) * inner;
      own.add(count_part(dense, begin, begin + inner));
    }
    if (own.finite != 0) channels_[static_cast<std::size_t>(c)].add({own.low, own.high});
  }
}

void tensor_statistics::end_batch() {
  whole_.end_batch(options_);
  for (range_tracker& c : channels_) c.end_batch(options_);
}

std::vector<range> tensor_statistics::channels() const {
  std::vector<range> out;
  for (const range_tracker& c : channels_) out.push_back(c.value(options_));
  return out;
}

double tensor_statistics::mean() const {
  return counts_.finite == 0 ? 0 : counts_.sum / static_cast<double>(counts_.finite);
}

double tensor_statistics::deviation() const {
  if (counts_.finite == 0) return 0;
  const double square = counts_.sum_of_squares / static_cast<double>(counts_.finite) - mean() * mean();
  return square > 0 ? std::sqrt(square) : 0;
}

}  // namespace kiln::quantize
