#include "compare.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kiln/core/object.hpp"

namespace kiln::driver {

namespace {

std::string position(std::int64_t flat, const dims& lens) {
  std::string out = "]";
  for (std::size_t i = lens.size(); i-- > 0;) {
    const std::int64_t n = lens[i].value();
    out.insert(0, fmt::format("{}{}", i ? ", " : "", flat % n));
    flat /= n;
  }
  return "[" + out;
}

bool close(double x, double y, double limit) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return std::fabs(x - y) <= limit;
}

template <class T, class Equal> difference scan(const argument& computed, const argument& expected, Equal equal) {
  const small_vector<T> x = computed.to<T>(), y = expected.to<T>();
  difference d;
  d.elements = static_cast<std::int64_t>(y.size());
  std::size_t first = y.size(), worst_at = y.size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double gap = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    const bool finite_gap = std::isfinite(gap);
    if (finite_gap && gap > d.worst) d.worst = gap;
    if (equal(x[i], y[i])) continue;
    if (d.mismatches++ == 0) first = worst_at = i;
    if (finite_gap && gap >= d.worst) worst_at = i;
  }
  if (d.mismatches == 0) return d;
  const dims& lens = expected.get_shape().lens;
  const auto at = [&](std::size_t i) {
    return fmt::format("{} is {}, expected {}", position(static_cast<std::int64_t>(i), lens), x[i], y[i]);
  };
  d.reason = fmt::format("{} of {} elements differ; first {}", d.mismatches, d.elements, at(first));
  if (worst_at != first) d.reason += fmt::format("; worst {}", at(worst_at));
  return d;
}

difference compare_floor(const argument& computed, const argument& expected, const tolerance& allowed, bool by_value);

// Strings by their bytes, sequences and optionals by what they hold.
difference compare_objects(const argument& computed, const argument& expected, const tolerance& allowed,
                           bool by_value) {
  difference d;
  const dtype t = expected.get_shape().type;
  if (t == dtype::string) {
    const std::vector<std::string> x = strings_of(computed), y = strings_of(expected);
    d.elements = static_cast<std::int64_t>(y.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      if (x[i] != y[i] && d.mismatches++ == 0)
        d.reason = fmt::format("{} is '{}', expected '{}'",
                               position(static_cast<std::int64_t>(i), expected.get_shape().lens), x[i], y[i]);
    return d;
  }
  if (t == dtype::sequence) {
    const auto &x = items_of(computed), &y = items_of(expected);
    if (x.size() != y.size()) d.reason = fmt::format("the sequence has {} items, expected {}", x.size(), y.size());
    for (std::size_t i = 0; !d && i < y.size(); ++i) {
      d = compare_floor(x[i], y[i], allowed, by_value);
      if (d) d.reason = fmt::format("item {}: {}", i, d.reason);
    }
    return d;
  }
  if (is_complex(t)) {
    const auto parts = [&](const argument& a) {
      const auto all = complexes_of(a);
      const std::span<const double> pairs(reinterpret_cast<const double*>(all.data()), 2 * all.size());
      const shape s{t == dtype::c64 ? dtype::f32 : dtype::f64, {static_cast<std::int64_t>(all.size()), 2}};
      return argument(literal::of<double>(s, pairs));
    };
    return compare_floor(parts(computed), parts(expected), allowed, by_value);
  }
  if (t == dtype::map) {
    const map_object &x = entries_of(computed), &y = entries_of(expected);
    if (!(x.is_empty() && y.is_empty()) && !equal_values(x.keys, y.keys)) d.reason = "the maps have other keys";
    for (std::size_t i = 0; !d && i < y.values.size(); ++i) {
      d = compare_floor(x.values[i], y.values[i], allowed, by_value);
      if (d) d.reason = fmt::format("value {}: {}", i, d.reason);
    }
    return d;
  }
  const argument *x = value_of_optional(computed), *y = value_of_optional(expected);
  if (x && y) return compare_floor(*x, *y, allowed, by_value);
  if (x || y) d.reason = x ? "the optional holds a value, expected none" : "the optional is empty, expected a value";
  return d;
}

difference compare_floor(const argument& computed, const argument& expected, const tolerance& allowed, bool by_value) {
  const shape &got = computed.get_shape(), &want = expected.get_shape();
  difference d;
  if (got.type != want.type)
    d.reason = fmt::format("element type is {}, expected {}", to_string(got.type), to_string(want.type));
  else if (!(got.lens == want.lens))
    d.reason = fmt::format("shape is {}, expected {}", to_string(shape(got.type, got.lens)),
                           to_string(shape(want.type, want.lens)));
  if (d) return d;
  if (is_object(want.type)) return compare_objects(computed, expected, allowed, by_value);

  if (is_float(want.type)) {
    double scale = 0, rtol = allowed.rtol, atol = allowed.atol;
    if (!by_value) {
      // Sums round by a few units in the last place of the greatest terms, so elements that cancel to almost nothing
      // differ between any two orders of summation; a gap of four such units says nothing.
      const double unit = want.type == dtype::f64 ? 0x1p-52 : 0x1p-23;
      // two neighbors in bf16: where a sum is rounded decides which one it is
      if (want.type == dtype::bf16) rtol = std::fmax(rtol, 0x1p-6);
      double greatest = 0;
      for (double y : expected.to<double>())
        if (std::isfinite(y)) greatest = std::fmax(greatest, std::fabs(y));
      atol += std::fmin(4 * unit, rtol / 100) * greatest;
    }
    if (by_value) {
      rtol = std::fmax(rtol, want.type == dtype::bf16 ? 0x1p-5 : want.type == dtype::f16 ? 0x1p-8 : 0);
      double squares = 0;
      std::int64_t count = 0;
      for (double y : expected.to<double>())
        if (std::isfinite(y)) squares += y * y, ++count;
      if (count) scale = std::sqrt(squares / static_cast<double>(count));
    }
    return scan<double>(computed, expected,
                        [&](double x, double y) { return close(x, y, atol + rtol * std::fmax(std::fabs(y), scale)); });
  }
  const auto same = [](auto x, auto y) { return x == y; };
  if (is_signed_integer(want.type)) return scan<std::int64_t>(computed, expected, same);
  return scan<std::uint64_t>(computed, expected, same);
}

}  // namespace

difference compare(const argument& computed, const argument& expected, const tolerance& allowed) {
  return compare_floor(computed, expected, allowed, false);
}

difference compare_by_value(const argument& computed, const argument& expected, const tolerance& allowed) {
  return compare_floor(computed, expected, allowed, true);
}

}  // namespace kiln::driver
