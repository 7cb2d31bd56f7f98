#include "kiln/onnx/impl/ops/dynamic_axes.hpp"
#include "kiln/op/linear/dft.hpp"
#include "kiln/op/linear/mel_weights.hpp"

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

// Triangular filters over the bins of a spectrum, spaced evenly on the mel scale.
variables import_mel_weights(node_context& c) {
  constexpr std::int64_t most = 1 << 24;
  const auto count = [&](std::size_t i, std::string_view what) {
    const auto given = c.dimensions_of(c.in(i), what, 1);
    if (given.size() != 1 || given[0].max() < 1 || (given[0].is_constant() && given[0].value() > most))
      c.malformed(std::string(what) + " is a positive number");
    return given[0];
  };
  const op::mel_weights filters{count(0, "the number of bins"), count(1, "the transform's length")};
  const dimension all = (filters.length / 2 + 1) * filters.mels;
  if (all.is_constant() && all.value() > (std::int64_t{1} << 26))
    raise(errc::limit, "a matrix of mel weights has at most 2^26 elements");
  const auto known = [&](std::size_t i) -> const literal* {
    const literal* const l = c.constant(i);
    return l && !l->has_symbols() && l->get_shape().elements() == dimension(1) ? l : nullptr;
  };
  const literal *const rate = known(2), *const lowest = known(3), *const highest = known(4);
  if (rate && lowest && highest && filters.mels.is_constant() && filters.length.is_constant() &&
      !mel_filters(rate->at<double>(0), lowest->at<double>(0), highest->at<double>(0), filters.length.value(),
                   filters.mels.value())
           .fit())
    c.malformed("the edges are within the spectrum, the lower first");
  const auto number = [&](std::size_t i) { return c.in(i).reshape({}); };
  return {
      c.build.add(filters, number(2), number(3), number(4)).convert(c.type_attribute("output_datatype", dtype::f32))};
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
