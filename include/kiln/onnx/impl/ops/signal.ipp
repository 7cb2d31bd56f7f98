#include <cmath>
#include <vector>

#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/op/linear/dft.hpp"

// Fourier transforms, of signals and of frames of a signal, and mel weights.
namespace kiln::onnx {

namespace {

value symbol(node_context& c, dimension n) { return dimensions_value(c.build, {}, {n}); }

value padded_at_end(value x, dimension by) {
  op::pad p;
  p.pads.resize(2 * x.rank(), dimension(0));
  p.pads[2 * x.rank() - 1] = by;
  return x | p;
}

// x[..., n], whose symbolic n is 1 or 2, as real numbers if they must be, else as complex ones.
value with_known_parts(value x, bool must_be_real) {
  const dimension n = x.dim(-1);
  if (n.is_constant()) return x;
  dims lens = x.get_shape().lens;
  lens.back() = must_be_real ? dimension(1) : larger(1, smaller(n, 2));
  const value known = x.expect_dims(lens);
  if (must_be_real) return known;
  const dimension missing = dimension(2) - lens.back();
  lens.back() = 2;
  return padded_at_end(known, missing).expect_dims(lens);
}

op::dft along(std::int64_t axis, op::dft transform) {
  transform.axis = axis;
  return transform;
}

// A run computes the axis: x is transformed along each axis by a flag, as complex numbers.
value dynamic_transform(node_context& c, value x, const op::dft& transform) {
  const std::size_t axes = x.rank() - 1;
  if (axis_count(c, c.in(2)) != 1) c.malformed("axis is one number");
  // gather checks that the axis is not the last dim
  const value all = indices_along(c, 1, 0, static_cast<std::int64_t>(axes));
  const value flags = axis_flags(c, all.gather(normalized_axes(c, 2, x.rank())), axes);
  const auto as_complex = [](value v) {
    if (v.dim(-1) == dimension(2)) return v;
    const value none = v.owner().add(op::fill{v.get_shape().lens, 0, v.type()});
    return v.concat(none, static_cast<std::int64_t>(v.rank()) - 1);
  };
  x = as_complex(x);
  for (std::size_t d = 0; d < axes; ++d) {
    const auto a = static_cast<std::int64_t>(d);
    x = where_flag(c, element_at(flags, 0, a), x, [&](value v) {
      // a one-sided transform is of a real signal
      const value signal = transform.one_sided && !transform.inverse ? v.slice({{-1}, {0}, {1}, {}}) : v;
      return as_complex(signal | along(a, transform));
    });
  }
  return transform.inverse && transform.one_sided ? x.slice({{-1}, {0}, {1}, {}}) : x;
}

variables import_dft(node_context& c) {
  const std::size_t rank = c.in(0).rank();
  if (rank < 2) c.malformed("the input has a signal and its parts");
  op::dft transform{.inverse = c.flag("inverse"), .one_sided = c.flag("onesided")};
  const bool halves = transform.one_sided && !transform.inverse;
  const value x = with_known_parts(widened(c.in(0)), halves);
  if (halves && x.dim(-1) == dimension(2)) c.malformed("a complex signal has no one-sided spectrum");
  if (c.has(1)) transform.length = c.extent(1, "the transform's length");
  if (transform.length.max() < 1 && c.has(1)) c.malformed("dft_length is positive");
  if (c.version >= 20 && c.is_dynamic(2)) return {dynamic_transform(c, x, transform).convert(c.in(0).type())};
  std::int64_t axis = c.version < 20 ? c.integer("axis", 1) : -2;
  if (c.version >= 20 && c.has(2)) axis = c.number(2, "the axis");
  axis = axis_within(c, axis, rank);
  if (static_cast<std::size_t>(axis) + 1 == rank) c.malformed("the last dim is the parts of a number");
  return {(x | along(axis, transform)).convert(c.in(0).type())};
}

// Inputs: signal[batch, length, 1 or 2], step, window, frame length.
variables import_stft(node_context& c) {
  const value given = c.in(0).rank() == 2 ? c.in(0).unsqueeze({-1}) : c.in(0);
  if (given.rank() != 3) c.malformed("the signal is [batch, length, parts]");
  const value signal = with_known_parts(given, c.flag("onesided", true));
  const auto one = [&](std::size_t i, std::string_view what) {
    const auto given = c.dimensions_of(c.in(i), what, 1);
    if (given.size() != 1 || given[0].max() < 1) c.malformed(std::string(what) + " is one positive number");
    return given[0];
  };
  const dimension step = one(1, "the step between frames");
  dimension n;
  if (c.has(3))
    n = one(3, "the length of a frame");
  else if (c.has(2))
    n = c.in(2).dim(0);
  else
    c.malformed("a window or a frame length is given");
  const dimension length = signal.dim(1);
  if (length.max() < n.min())
    c.malformed("a frame of " + kiln::to_string(n) + " is longer than the signal of " + kiln::to_string(length));
  if (c.has(2) && (c.in(2).rank() != 1 || !same(c.in(2).dim(0), n).value_or(true)))
    c.malformed("the window " + kiln::to_string(c.in(2).get_shape()) + " does not have the frame's length of " +
                kiln::to_string(n));
  const dimension frames = (length - n) / step + 1;
  const value at = indices_along(c, 2, 0, frames) * symbol(c, step) + indices_along(c, 2, 1, n);
  value read = widened(signal).gather(at, 1);  // [batch, frames, n, parts]
  if (c.has(2)) read = read * widened(c.in(2)).unsqueeze({-1});
  const bool one_sided = c.flag("onesided", true) && signal.dim(2) == dimension(1);
  return {(read | op::dft{.one_sided = one_sided}).convert(signal.type())};
}

// Mel weights of numbers that a run computes.
value dynamic_mel_weights(node_context& c) {
  const auto count = [&](std::size_t i, std::string_view what) {
    const auto given = c.dimensions_of(c.in(i), what, 1);
    if (given.size() != 1) c.malformed(std::string(what) + " is one number");
    return given[0];
  };
  const dimension mels = count(0, "the number of bins"), length = count(1, "the transform's length");
  const auto real = [&](std::size_t i) { return c.in(i).reshape({}).convert(dtype::f64); };
  const auto number = [&](dimension n) { return symbol(c, n).convert(dtype::f64); };
  const auto mel = [&](value hertz) { return (hertz / 700 + 1).log(); };  // the scale's factor cancels out
  const value low = mel(real(3)), step = (mel(real(4)) - low) / number(mels + 2);
  const value hertz = ((indices_along(c, 1, 0, mels + 2, dtype::f64) * step + low).exp() - 1) * 700;
  // integers then, whose ratios f32 rounds as f64 does
  const value corners = (hertz * number(length + 1) / real(2)).floor().convert(dtype::f32);
  const auto corner = [&](std::int64_t k) { return corners.slice({{0}, {k}, {mels + k}, {}}); };
  // a side without bins is as steep as can be, and a filter of one bin is 1 there
  const value top = corner(1), from = (corner(0)).min(top - 1.0f), to = corner(2).max(top + 1.0f);
  const value bin = indices_along(c, 2, 0, length / 2 + 1, dtype::f32), one = c.build.scalar(dtype::f32, 1);
  const value rising = (bin - from) * (one / (top - from)), falling = (to - bin) * (one / (to - top));
  return rising.min(falling).max(c.build.scalar(dtype::f32, 0));
}

// Triangular filters over the bins of a spectrum, spaced evenly on the mel scale.
variables import_mel_weights(node_context& c) {
  const dtype t = c.type_attribute("output_datatype", dtype::f32);
  for (std::size_t i = 0; i < 5; ++i)
    if (const literal* l = c.constant(i); !l || l->has_symbols()) return {dynamic_mel_weights(c).convert(t)};
  const auto count = [&](std::size_t i, std::string_view what) {
    const std::int64_t n = c.number(i, what);
    if (n < 1 || n > (1 << 24)) c.malformed(std::string(what) + " is a positive number");
    return n;
  };
  const auto edge = [&](std::size_t i) { return c.constant(i)->at<double>(0); };
  const std::int64_t mels = count(0, "the number of bins"), length = count(1, "the transform's length"),
                     rate = count(2, "the sample rate"), bins = length / 2 + 1;
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double low = mel(edge(3)), high = mel(edge(4)), step = (high - low) / static_cast<double>(mels + 2);
  std::vector<std::int64_t> corner;
  for (std::int64_t k = 0; k < mels + 2; ++k) {
    const double f = 700 * (std::pow(10, (static_cast<double>(k) * step + low) / 2595) - 1);
    const double at = std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate));
    if (!(at >= 0 && at <= static_cast<double>(bins))) c.malformed("the edges are within the spectrum");
    corner.push_back(static_cast<std::int64_t>(at));
  }
  if (mels * bins > (std::int64_t{1} << 26)) raise(errc::limit, "a matrix of mel weights has at most 2^26 elements");
  std::vector<float> weights(static_cast<std::size_t>(bins * mels), 0);
  const auto put = [&](std::int64_t bin, std::int64_t m, double v) {
    if (bin < bins) weights[static_cast<std::size_t>(bin * mels + m)] = static_cast<float>(v);
  };
  for (std::int64_t m = 0; m < mels; ++m) {
    const std::int64_t from = corner[static_cast<std::size_t>(m)], top = corner[static_cast<std::size_t>(m) + 1],
                       to = corner[static_cast<std::size_t>(m) + 2];
    if (top == from) put(top, m, 1);
    for (std::int64_t k = from; top != from && k <= top; ++k)
      put(k, m, static_cast<double>(k - from) / static_cast<double>(top - from));
    for (std::int64_t k = top; k < to; ++k) put(k, m, static_cast<double>(to - k) / static_cast<double>(to - top));
  }
  return {c.build.constant<float>(dtype::f32, {bins, mels}, weights).convert(t)};
}

}  // namespace

std::span<const op_importer> signal_importers() {
  static constexpr op_importer table[] = {
      {"", "DFT", 17, import_dft},
      {"", "MelWeightMatrix", 17, import_mel_weights},
      {"", "STFT", 17, import_stft},
  };
  return table;
}

}  // namespace kiln::onnx
