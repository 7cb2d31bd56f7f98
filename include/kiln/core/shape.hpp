#pragma once
#include "kiln/core/dimension.hpp"
#include "kiln/core/dtype.hpp"

namespace kiln {

/// Row-major strides (in elements) of the extents.
template <class Dims> constexpr Dims row_major(const Dims& lens) {
  Dims strides = lens;
  auto step = typename Dims::value_type(1);
  for (std::size_t i = lens.size(); i-- > 0;) {
    strides[i] = step;
    step = step * lens[i];
  }
  return strides;
}

/// What a tensor is: element type, extents and strides (in elements). Empty strides mean row-major, which is what every
/// value of a graph has; strides appear on arguments a caller passes and in layouts.
struct shape {
  dtype type = dtype::f32;
  dims lens;
  dims strides;

  constexpr shape() = default;
  constexpr shape(dtype t, dims extents) : type(t), lens(extents) {}
  constexpr shape(dtype t, dims extents, dims steps) : type(t), lens(extents), strides(steps) {}

  constexpr std::size_t rank() const { return lens.size(); }
  /// Number of elements: 1 at rank 0.
  constexpr dimension elements() const { return product(lens); }
  constexpr dimension bytes() const { return elements() * static_cast<std::int64_t>(size_of(type)); }
  constexpr dims element_strides() const { return strides.size() == lens.size() ? strides : row_major(lens); }
  constexpr bool is_constant() const { return kiln::is_constant(lens); }
  /// Row-major, without gaps or repeats.
  constexpr bool standard() const { return strides.size() != lens.size() || strides == row_major(lens); }
  constexpr shape with(dtype t) const { return {t, lens, strides}; }
  constexpr shape with(const dims& extents) const { return {type, extents}; }

  friend constexpr bool operator==(const shape&, const shape&) = default;
};

constexpr void put_text(inline_string<95>& out, const shape& s) {
  out.append(to_string(s.type));
  put_text(out, s.lens);
}
/// The shape as text: "f32[1, 3, 224, 224]".
std::string to_string(const shape& s);

/// Normalizes an axis: negative counts from the end; outside [-rank, rank) is a fault value of -1.
constexpr std::int64_t normal_axis(std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  return axis < -n || axis >= n ? -1 : axis < 0 ? axis + n : axis;
}

/// numpy's broadcast of two extents; nullopt when they never agree. Two different symbolic extents are taken as equal
/// (the run checks it); a symbolic one against a constant other than 1 takes the constant.
constexpr std::optional<dimension> broadcast(dimension a, dimension b) {
  if (a == b) return a;
  if (a == dimension(1)) return b;
  if (b == dimension(1)) return a;
  const auto equal = same(a, b);
  if (equal && !*equal) return std::nullopt;
  return b.is_constant() ? b : a;
}
/// numpy's broadcast of extents aligned at the right.
constexpr result<dims> broadcast(const dims& a, const dims& b) {
  dims out = a.size() < b.size() ? b : a;
  const dims& s = a.size() < b.size() ? a : b;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const std::size_t at = out.size() - s.size() + i;
    const auto d = broadcast(out[at], s[i]);
    if (!d) return fault::of(errc::shape_mismatch, "dims broadcast together", a, b);
    out[at] = *d;
  }
  return out;
}

}  // namespace kiln
