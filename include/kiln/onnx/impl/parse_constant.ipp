#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/onnx/impl/parse.hpp"

// Constants, and the shape arithmetic that starts from a shape.
namespace kiln::onnx {

namespace {

template <class T, class List>
value list_constant(call& c, dtype t, const List& values) {
  return c.build.constant<T>(t, {static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
}
variables parse_constant(call& c) {
  if (const literal* l = c.tensor_attribute("value")) return {c.build.constant(*l)};
  if (c.find("value_float")) return {c.build.scalar(dtype::f32, c.real("value_float", 0))};
  if (c.find("value_int")) return {c.build.scalar(dtype::i64, c.integer("value_int", 0))};
  if (c.find("value_floats")) return {list_constant<float>(c, dtype::f32, c.reals("value_floats"))};
  if (c.find("value_ints")) return {list_constant<std::int64_t>(c, dtype::i64, c.integers("value_ints"))};
  if (c.find("value_string") || c.find("value_strings")) c.unsupported("strings");
  if (c.find("sparse_value")) c.unsupported("a sparse tensor as an attribute");
  c.malformed("a constant has a value");
}

variables parse_identity(call& c) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  return {c.inputs[0]};
}

// Extents [start, end) of the input, resolved now: symbols stay symbols.
variables parse_shape(call& c) {
  const dims lens = c.in(0).get_shape().lens;
  const auto rank = static_cast<std::int64_t>(lens.size());
  const auto clamped = [&](std::int64_t a) { return std::clamp<std::int64_t>(a < 0 ? a + rank : a, 0, rank); };
  const std::int64_t start = clamped(c.integer("start", 0)), end = clamped(c.integer("end", rank));
  small_vector<dimension> kept;
  for (std::int64_t d = start; d < end; ++d) kept.push_back(lens[static_cast<std::size_t>(d)]);
  const dims count{static_cast<std::int64_t>(kept.size())};
  return {dimensions_value(c.build, count, std::move(kept))};
}
variables parse_size(call& c) {
  return {dimensions_value(c.build, {}, small_vector<dimension>{c.in(0).get_shape().elements()})};
}

// A tensor of one value: an op that makes it, or the value broadcast where a double cannot hold it.
value filled(builder& b, const dims& lens, const literal& one) {
  const dtype t = one.get_shape().type;
  if (t != dtype::i64 && t != dtype::u64) return b.add(op::fill{lens, one.at<double>(0), t});
  const value v = b.constant(one.reshaped({}));
  return lens.empty() ? v : v.broadcast_to(lens);
}
variables parse_constant_of_shape(call& c) {
  const auto lens = c.dimensions(0, "the shape");
  for (const dimension d : lens)
    if (d.max() < 0) c.malformed("an extent is " + kiln::to_string(d));
  const literal* given = c.tensor_attribute("value");
  if (given && given->elements() != 1) c.malformed("value has one element");
  return {filled(c.build, dims(std::span<const dimension>(lens)), given ? *given : literal::scalar(dtype::f32, 0.0f))};
}

// start, start + delta, … before limit.
variables parse_range(call& c) {
  const value start = c.in(0), delta = c.in(2);
  const dtype t = start.type();
  dimension count;
  if (is_integer(t)) {
    const auto from = c.dimensions(0, "the start"), to = c.dimensions(1, "the limit");
    const auto step = c.numbers(2, "the step");
    if (from.size() != 1 || to.size() != 1 || step.size() != 1)
      c.malformed("start, limit and delta are one number each");
    if (step[0] == 0) c.malformed("delta is not zero");
    if (step[0] < -std::numeric_limits<std::int64_t>::max()) c.malformed("delta can be negated");
    const dimension gap = step[0] > 0 ? to[0] - from[0] : from[0] - to[0];
    const std::int64_t stride = step[0] > 0 ? step[0] : -step[0];
    count = larger(0, (gap + (stride - 1)) / stride);
  } else {
    double numbers[3];
    for (std::size_t i = 0; i < 3; ++i) {
      const literal* l = c.constant(i);
      if (!l || l->has_symbols()) c.unsupported("the range is only known in a run");
      numbers[i] = l->at<double>(0);
    }
    const double n = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(n < 4e15)) c.malformed("the range has no end");
    count = n > 0 ? static_cast<std::int64_t>(n) : 0;
  }
  const value steps = c.build.add(op::iota{{count}, 0, t});
  return {start.reshape({}) + steps * delta.reshape({})};
}

variables parse_eye_like(call& c) {
  const value x = c.in(0);
  if (x.rank() != 2) c.malformed("the input is a matrix");
  const auto t = c.find("dtype") ? to_dtype(static_cast<element>(c.integer("dtype", 0))) : x.type();
  if (!t) c.unsupported("this dtype");
  const value rows = c.build.add(op::iota{{x.dim(0), 1}, 0, dtype::i64}) + c.integer("k", 0);
  return {rows.equal(c.build.add(op::iota{{1, x.dim(1)}, 1, dtype::i64})).convert(*t)};
}

// a - b cos(2 pi k / n) + c cos(4 pi k / n) over n elements, n being one less where the window is symmetric.
value cosine_window(call& c, double a, double b, double second) {
  const auto size = c.numbers(0, "the size");
  if (size.size() != 1 || size[0] < 0) c.malformed("the size is one number, not negative");
  const auto t = to_dtype(static_cast<element>(c.integer("output_datatype", 1)));
  if (!t) c.unsupported("this output_datatype");
  const double n = static_cast<double>(c.flag("periodic", true) ? size[0] : size[0] - 1), step = 2 * std::acos(-1.) / n;
  const value k = c.build.add(op::iota{{size[0]}, 0, dtype::f64});
  value out = c.build.scalar(dtype::f64, a) - (k * step).cos() * b;
  if (second != 0) out = out + (k * (2 * step)).cos() * second;
  return out.convert(*t);
}
variables parse_hann(call& c) { return {cosine_window(c, .5, .5, 0)}; }
variables parse_hamming(call& c) { return {cosine_window(c, 25. / 46, 21. / 46, 0)}; }
variables parse_blackman(call& c) { return {cosine_window(c, .42, .5, .08)}; }

}  // namespace

std::span<const row> constant_rows() {
  static constexpr row rows[] = {
      {"", "BlackmanWindow", 17, parse_blackman},
      {"", "HammingWindow", 17, parse_hamming},
      {"", "HannWindow", 17, parse_hann},
      {"", "Constant", 1, parse_constant},
      {"", "ConstantOfShape", 9, parse_constant_of_shape},
      {"", "EyeLike", 9, parse_eye_like},
      {"", "Identity", 1, parse_identity},
      {"", "Range", 11, parse_range},
      {"", "Shape", 1, parse_shape},
      {"", "Size", 1, parse_size},
  };
  return rows;
}

}  // namespace kiln::onnx
