#include "kiln/op/dynamic/progression.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "kiln/core/literal.hpp"
#include "kiln/core/visit_size.hpp"
#include "kiln/op/impl/produced.hpp"

namespace kiln::op {
namespace {

template <class T> T number(const argument& a) { return a.to<T>()[0]; }

template <class T> std::int64_t size_of_range(std::span<const argument> in) {
  const T start = number<T>(in[0]), limit = number<T>(in[1]), delta = number<T>(in[2]);
  if (delta == T(0)) raise(fault::of(errc::invalid_argument, "the delta of a range", "not 0", 0));
  std::int64_t n = 0;
  if constexpr (std::is_integral_v<T>) {
    if (delta > T(0) ? start >= limit : start <= limit) return 0;
    // differences of 64 bits may need all of them
    const auto gap = delta > T(0) ? static_cast<std::uint64_t>(limit) - static_cast<std::uint64_t>(start)
                                  : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(limit);
    const auto step = delta > T(0) ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
    n = static_cast<std::int64_t>(std::min<std::uint64_t>((gap - 1) / step + 1, std::uint64_t{1} << 62));
  } else {
    const double steps =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(steps < 4e15))
      raise(errc::invalid_argument, "a range has an end: found " + std::to_string(steps) + " elements");
    n = steps > 0 ? static_cast<std::int64_t>(steps) : 0;
  }
  if (n > std::int64_t{1} << 46) raise(fault::of(errc::limit, "elements of a range", std::int64_t{1} << 46, n));
  return n;
}

constexpr int lanes = 16;

// Sums of integers wrap, of whatever sign; 64 bits, for products of 16 are computed as signed ones of 32.
template <class U> void write_integers(U start, U delta, std::int64_t first, std::int64_t last, U* to) {
  using V [[gnu::vector_size(lanes * sizeof(U))]] = U;
  const auto at = [&](std::int64_t k) {
    return static_cast<U>(std::uint64_t{start} + static_cast<std::uint64_t>(k) * std::uint64_t{delta});
  };
  V v;
  for (int i = 0; i < lanes; ++i) v[i] = at(first + i);
  const V step = V{} + static_cast<U>(delta * static_cast<U>(lanes));
  std::int64_t k = first;
  for (; k + lanes <= last; k += lanes, v += step) std::memcpy(to + k, &v, sizeof v);
  for (; k < last; ++k) to[k] = at(k);
}

// Each float is computed from its own index.
template <class T> void write_floats(T start, T delta, std::int64_t first, std::int64_t last, T* to) {
  using I [[gnu::vector_size(lanes * sizeof(std::int32_t))]] = std::int32_t;
  using V [[gnu::vector_size(lanes * sizeof(T))]] = T;
  std::int64_t k = first;
  if (last <= std::numeric_limits<std::int32_t>::max() - lanes) {
    I index;
    for (int i = 0; i < lanes; ++i) index[i] = static_cast<std::int32_t>(first) + i;
    for (; k + lanes <= last; k += lanes, index += lanes) {
      const V v = __builtin_convertvector(index, V) * delta + start;
      std::memcpy(to + (k - first), &v, sizeof v);
    }
  }
  for (; k < last; ++k) to[k - first] = start + static_cast<T>(k) * delta;
}

}  // namespace

std::int64_t progression::size(std::span<const argument> in) {
  std::int64_t n = 0;
  visit_compute(in[0].get_shape().type, [&]<class T>(type_tag<T>) { n = size_of_range<T>(in); });
  return n;
}

void progression::write(std::span<const argument> in, std::int64_t first, std::int64_t last, std::byte* to) {
  const dtype t = in[0].get_shape().type;
  const std::size_t bytes = size_of(t);
  if (is_integer(t))
    return visit_size(bytes, [&]<class U>(U) {
      U ends[2];
      for (std::size_t i = 0; i < 2; ++i) std::memcpy(&ends[i], in[2 * i].data(), bytes);
      write_integers(ends[0], ends[1], first, last, reinterpret_cast<U*>(to));
    });
  std::byte* const begin = to + static_cast<std::size_t>(first) * bytes;
  if (t == dtype::f64)
    return write_floats(number<double>(in[0]), number<double>(in[2]), first, last, reinterpret_cast<double*>(begin));
  const auto start = number<float>(in[0]), delta = number<float>(in[2]);
  if (t == dtype::f32) return write_floats(start, delta, first, last, reinterpret_cast<float*>(begin));
  for (std::int64_t k = first; k < last; ++k) {
    const float value = start + static_cast<float>(k) * delta;
    encode(t, &value, to + static_cast<std::size_t>(k) * bytes, 1);
  }
}

small_vector<argument> progression::produce(std::span<const argument> in) const {
  const std::int64_t n = size(in);
  argument out(shape{in[0].get_shape().type, {n}});
  write(in, 0, n, out.data());
  return detail::one(std::move(out));
}

}  // namespace kiln::op
