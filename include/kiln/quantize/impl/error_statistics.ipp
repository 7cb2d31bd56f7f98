#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/quantize/accuracy.hpp"
#include "kiln/quantize/impl/blocks.hpp"

namespace kiln::quantize {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void check_pair(const tensor& expected, const tensor& found) {
  const shape a{expected.type, to_dims(expected.lens)}, b{found.type, to_dims(found.lens)};
  if (!is_float(a.type) || !is_float(b.type) || a.lens != b.lens)
    raise(fault::of(errc::shape_mismatch, "floats of the same extents are compared", a, b));
}

// Calls `f(x, y)` with blocks of both as doubles.
template <class F> void for_each_pair(const tensor& x, const tensor& y, F&& f) {
  constexpr std::int64_t most = 1024;
  double a[most], b[most];
  const std::int64_t elements = x.elements();
  for (std::int64_t at = 0; at < elements; at += most) {
    const std::int64_t count = std::min(most, elements - at);
    decode(x.type, x.data + at * static_cast<std::int64_t>(size_of(x.type)), a, count);
    decode(y.type, y.data + at * static_cast<std::int64_t>(size_of(y.type)), b, count);
    f(std::span<const double>(a, static_cast<std::size_t>(count)),
      std::span<const double>(b, static_cast<std::size_t>(count)));
  }
}

}  // namespace

void error_statistics::add(const tensor& expected, const tensor& found) {
  check_pair(expected, found);
  buffer x_room, y_room;
  const tensor x = detail::dense_tensor(expected, x_room), y = detail::dense_tensor(found, y_room);
  counts_.add(count_values(x));
  for_each_pair(x, y, [&](std::span<const double> a, std::span<const double> b) {
    double signal = 0, other = 0, product = 0, difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i] && std::isinf(a[i])) continue;  // as masks have them
      signal += a[i] * a[i], other += b[i] * b[i], product += a[i] * b[i];
      difference += (a[i] - b[i]) * (a[i] - b[i]);
    }
    signal_ += signal, other_ += other, product_ += product, difference_ += difference;
  });
}

void error_statistics::add_saturation(const tensor& expected, const tensor_quantization& q) {
  buffer room;
  const tensor x = detail::dense_tensor(expected, room);
  const range within = covered(q.with, q.as).value();
  // half a step beyond the last code still rounds to it; codes of floats have no one step
  const double slack = is_float8(q.as.type) ? 0 : 0.5 * q.with.scale;
  detail::for_each_block(x, 0, x.elements(), [&](auto block) {
    for (const auto v : block) saturating_ += v < within.low - slack || v > within.high + slack;
  });
  covered_ += x.elements();
}

void error_statistics::add_top1(const tensor& expected, const tensor& found) {
  check_pair(expected, found);
  buffer x_room, y_room;
  const tensor x = detail::dense_tensor(expected, x_room), y = detail::dense_tensor(found, y_room);
  const std::int64_t classes = x.rank() == 0 ? 1 : x.lens[x.rank() - 1];
  if (classes == 0) return;
  std::vector<double> a(static_cast<std::size_t>(classes)), b(a.size());
  for (std::int64_t row = 0; row < x.elements() / classes; ++row) {
    decode(x.type, x.data + row * classes * static_cast<std::int64_t>(size_of(x.type)), a.data(), classes);
    decode(y.type, y.data + row * classes * static_cast<std::int64_t>(size_of(y.type)), b.data(), classes);
    same_rows_ += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
    ++rows_;
  }
}

double error_statistics::noise() const {
  return difference_ == 0 ? 0 : signal_ == 0 ? infinity : difference_ / signal_;
}

double error_statistics::sqnr() const {
  const double n = noise();
  return n == 0 ? infinity : -10 * std::log10(n);
}

double error_statistics::cosine() const {
  if (signal_ == 0 || other_ == 0) return signal_ == other_ ? 1 : 0;
  return product_ / (std::sqrt(signal_) * std::sqrt(other_));
}

double error_statistics::saturation() const {
  return covered_ == 0 ? 0 : static_cast<double>(saturating_) / static_cast<double>(covered_);
}

std::optional<double> error_statistics::top1() const {
  if (rows_ == 0) return std::nullopt;
  return static_cast<double>(same_rows_) / static_cast<double>(rows_);
}

}  // namespace kiln::quantize
