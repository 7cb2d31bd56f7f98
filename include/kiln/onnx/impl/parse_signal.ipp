#include <cmath>
#include <numbers>
#include <vector>

#include "kiln/onnx/impl/run_axes.hpp"

// Fourier transforms as products with a matrix of cosines and one of sines.
namespace kiln::onnx {

namespace {

value symbol(call& c, dimension n) { return dimensions_value(c.build, {}, {n}); }

struct turns {
  value cosines, sines;  // [n, k]
};
// Angles 2 pi j k / n of rows j and columns k < kept; the product is reduced before it becomes a float.
turns turn_tables(call& c, dimension n, dimension rows, dimension kept, dtype t) {
  const value j = c.build.add(op::iota{{rows, 1}, 0, dtype::i64}), k = c.build.add(op::iota{{1, kept}, 1, dtype::i64});
  const value step = c.build.add(op::mod{}, j * k, symbol(c, n).broadcast_to({rows, kept})).convert(dtype::f64);
  const value angle = step * (2 * std::numbers::pi) / symbol(c, n).convert(dtype::f64);
  return {angle.cos().convert(t), (angle | op::sin{}).convert(t)};
}

struct complex_value {
  value real, imaginary;  // [..., n]; no imaginary part: a real signal
};

// Transforms along the last dim, whose length is n already.
complex_value transform(call& c, const complex_value& x, dimension n, dimension kept, bool inverse) {
  const turns t = turn_tables(c, n, x.real.dim(-1), kept, x.real.type());
  const auto product = [](value a, value m) {
    dims lens = a.get_shape().lens;
    dimension rows = 1;
    for (std::size_t d = 0; d + 1 < lens.size(); ++d) rows = rows * lens[d];
    const dimension columns = m.dim(1);
    const value flat = a.reshape({rows, lens.back()}).dot(m);
    lens.back() = columns;
    return flat.reshape(lens);
  };
  value re = product(x.real, t.cosines), im = product(x.real, t.sines);
  if (!inverse) im = -im;
  if (x.imaginary) {
    const value other_re = product(x.imaginary, t.sines), other_im = product(x.imaginary, t.cosines);
    re = inverse ? re - other_re : re + other_re;
    im = im + other_im;
  }
  if (!inverse) return {re, im};
  const value scale = symbol(c, n).convert(re.type());
  return {re / scale, im / scale};
}

value resized(call& c, value x, dimension n) {
  const dimension own = x.dim(-1);
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  if (own == n) return x;
  const auto shorter = at_most(n, own);
  if (!shorter) {  // the run cuts or pads it
    op::pad behind;
    behind.pads.resize(2 * x.rank(), dimension(0));
    behind.pads[2 * x.rank() - 1] = n - own;
    return x | behind;
  }
  if (*shorter) return x.slice({{last}, {0}, {n}, {}});
  dims rest = x.get_shape().lens;
  rest.back() = n - own;
  return x.concat(c.build.add(op::fill{rest, 0, x.type()}), last);
}

// x[..., n] of an n that only the run knows as real numbers, where complex ones are out of place, or as complex ones.
value with_known_parts(value x, bool must_be_real) {
  const dimension n = x.dim(-1);
  if (n.is_constant()) return x;
  dims lens = x.get_shape().lens;
  lens.back() = must_be_real ? dimension(1) : larger(1, smaller(n, 2));
  op::pad behind;
  behind.pads.resize(2 * x.rank(), dimension(0));
  behind.pads[2 * x.rank() - 1] = dimension(2) - lens.back();
  const value known = x.expect_dims(lens);
  if (must_be_real) return known;
  lens.back() = 2;
  return (known | behind).expect_dims(lens);
}

// The parts of x[..., 1 or 2] as signals along the last dim, `axis` moved there.
complex_value split_parts(call& c, value x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.rank());
  const bool is_complex = x.dim(-1) == dimension(2);
  if (!is_complex && !(x.dim(-1) == dimension(1))) c.malformed("the last extent is 1 (real) or 2 (complex)");
  ints order;
  for (std::int64_t d = 0; d + 1 < rank; ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  const auto part = [&](std::int64_t k) { return x.slice({{-1}, {k}, {k + 1}, {}}).squeeze({-1}).transpose(order); };
  return {part(0), is_complex ? part(1) : value()};
}
value moved_back(value x, std::int64_t axis) {
  ints order;
  const auto rank = static_cast<std::int64_t>(x.rank());
  for (std::int64_t d = 0, from = 0; d < rank; ++d) order.push_back(d == axis ? rank - 1 : from++);
  return x.transpose(order);
}

struct dft_rules {
  bool inverse = false, one_sided = false;
  std::optional<dimension> length{};
};

// x[..., 1 or 2] transformed along an axis: [..., 2], or [..., 1] from the half of a spectrum.
value transformed(call& c, value x, std::int64_t axis, const dft_rules& r) {
  const auto last = static_cast<std::int64_t>(x.rank()) - 1;
  complex_value parts = split_parts(c, x, axis);
  const bool to_real = r.inverse && r.one_sided;  // from the half of a spectrum that decides the other
  const dimension n = r.length.value_or(to_real ? (x.dim(axis) - 1) * 2 : x.dim(axis));
  const dimension taken = to_real ? n / 2 + 1 : n;
  parts.real = resized(c, parts.real, taken);
  if (parts.imaginary) parts.imaginary = resized(c, parts.imaginary, taken);
  if (to_real) {
    // the other half is the conjugate: count every inner bin twice
    const value k = c.build.add(op::iota{{taken}, 0, dtype::i64});
    const value edge =
        c.build.add(op::logical_or{}, k.equal(c.build.scalar(dtype::i64, 0)), (k * 2).equal(symbol(c, n)));
    const value twice = edge.where(c.build.scalar(x.type(), 1.0f), c.build.scalar(x.type(), 2.0f));
    parts.real = parts.real * twice;
    if (parts.imaginary) parts.imaginary = parts.imaginary * twice;
    return moved_back(transform(c, parts, n, n, true).real, axis).unsqueeze({-1});
  }
  const complex_value y = transform(c, parts, n, r.one_sided ? n / 2 + 1 : n, r.inverse);
  return moved_back(y.real, axis).unsqueeze({-1}).concat(moved_back(y.imaginary, axis).unsqueeze({-1}), last);
}

// The axis is the run's: x passes every axis as complex numbers and is transformed where the axis is that one.
value transformed_in_run(call& c, value x, const dft_rules& r) {
  const std::size_t axes = x.rank() - 1;
  if (axis_count(c, c.in(2)) != 1) c.malformed("axis is one number");
  // an axis is not the last dim: picking a place checks that
  const value places = c.build.add(op::iota{{static_cast<std::int64_t>(axes)}, 0, dtype::i64});
  const value flags = axis_flags(c, places.gather(counted_axes(c, 2, x.rank())), axes);
  const auto as_complex = [](value v) {
    if (v.dim(-1) == dimension(2)) return v;
    const value none = v.owner().add(op::fill{v.get_shape().lens, 0, v.type()});
    return v.concat(none, static_cast<std::int64_t>(v.rank()) - 1);
  };
  x = as_complex(x);
  for (std::size_t d = 0; d < axes; ++d) {
    const auto a = static_cast<std::int64_t>(d);
    const value flag = flags.slice({{0}, {a}, {a + 1}, {}}).reshape({});
    x = where_flag(c, flag, x, [&](value v) {
      call inside{v.owner(), c.source, c.version, {}, c.bodies};
      return as_complex(transformed(inside, v, a, r));
    });
  }
  return r.inverse && r.one_sided ? x.slice({{-1}, {0}, {1}, {}}) : x;
}

variables parse_dft(call& c) {
  const std::size_t rank = c.in(0).rank();
  if (rank < 2) c.malformed("the input has a signal and its parts");
  dft_rules r{c.flag("inverse"), c.flag("onesided")};
  const value x = with_known_parts(widened(c.in(0)), r.one_sided && !r.inverse);
  if (r.one_sided && !r.inverse && x.dim(-1) == dimension(2)) c.malformed("a complex signal has no one-sided spectrum");
  if (c.has(1)) {
    const auto given = c.extents(1, "the transform's length");
    if (given.size() != 1) c.malformed("dft_length is one number");
    r.length = given[0];
  }
  if (c.version >= 20 && is_open(c, 2)) return {transformed_in_run(c, x, r).convert(c.in(0).type())};
  std::int64_t axis = c.version < 20 ? c.integer("axis", 1) : -2;
  if (c.version >= 20 && c.has(2)) {
    const auto given = c.numbers(2, "the axis");
    if (given.size() != 1) c.malformed("axis is one number");
    axis = given[0];
  }
  axis = axis_within(c, axis, rank);
  if (static_cast<std::size_t>(axis) + 1 == rank) c.malformed("the last dim holds the parts of a number");
  return {transformed(c, x, axis, r).convert(c.in(0).type())};
}

// Inputs: signal[batch, length, 1 or 2], step, window, frame length.
variables parse_stft(call& c) {
  const value given = c.in(0).rank() == 2 ? c.in(0).unsqueeze({-1}) : c.in(0);
  if (given.rank() != 3) c.malformed("the signal is [batch, length, parts]");
  const value signal = with_known_parts(given, c.flag("onesided", true));
  const auto one = [&](std::size_t i, std::string_view what) {
    const auto given = c.bound(c.in(i), what, 1);
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
  const value at = c.build.add(op::iota{{frames, 1}, 0, dtype::i64}) * symbol(c, step) +
                   c.build.add(op::iota{{1, n}, 1, dtype::i64});
  const auto framed = [&](value part) {
    const value read = widened(part).gather(at, 1);  // [batch, frames, n]
    return c.has(2) ? read * widened(c.in(2)) : read;
  };
  complex_value parts = split_parts(c, signal, 1);
  parts.real = framed(parts.real);
  if (parts.imaginary) parts.imaginary = framed(parts.imaginary);
  const bool one_sided = c.flag("onesided", true) && !parts.imaginary;
  const complex_value y = transform(c, parts, n, one_sided ? n / 2 + 1 : n, false);
  return {y.real.unsqueeze({-1}).concat(y.imaginary.unsqueeze({-1}), 3).convert(signal.type())};
}

// Triangles over the bins of a spectrum, spaced evenly on the mel scale.
variables parse_mel_weights(call& c) {
  const auto count = [&](std::size_t i, std::string_view what) {
    const auto given = c.numbers(i, what);
    if (given.size() != 1 || given[0] < 1 || given[0] > (1 << 24))
      c.malformed(std::string(what) + " is a positive number");
    return given[0];
  };
  const auto edge = [&](std::size_t i) {
    const literal* l = c.constant(i);
    if (!l || l->has_symbols()) c.unsupported("an edge of the spectrum is only known in a run");
    return l->at<double>(0);
  };
  const std::int64_t mels = count(0, "the number of bins"), length = count(1, "the transform's length"),
                     rate = count(2, "the sample rate"), bins = length / 2 + 1;
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double low = mel(edge(3)), high = mel(edge(4)), step = (high - low) / static_cast<double>(mels + 2);
  std::vector<std::int64_t> corner;
  for (std::int64_t k = 0; k < mels + 2; ++k) {
    const double f = 700 * (std::pow(10, (static_cast<double>(k) * step + low) / 2595) - 1);
    const double at = std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate));
    if (!(at >= 0 && at <= static_cast<double>(bins))) c.malformed("the edges lie within the spectrum");
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
  const auto t = to_dtype(static_cast<element>(c.integer("output_datatype", 1)));
  if (!t) c.unsupported("this output_datatype");
  return {c.build.constant<float>(dtype::f32, {bins, mels}, weights).convert(*t)};
}

}  // namespace

std::span<const row> signal_rows() {
  static constexpr row rows[] = {
      {"", "DFT", 17, parse_dft},
      {"", "MelWeightMatrix", 17, parse_mel_weights, "the edges of the spectrum are constants"},
      {"", "STFT", 17, parse_stft},
  };
  return rows;
}

}  // namespace kiln::onnx
