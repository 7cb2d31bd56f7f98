#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/dynamic/progression.hpp"

// Constants, and what makes tensors from shapes.
namespace kiln::onnx {

namespace {

template <class T, class List> value list_constant(node_context& c, dtype t, const List& values) {
  return c.build.constant<T>(t, {static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
}
variables import_constant(node_context& c) {
  if (const literal* l = c.tensor_attribute("value")) return {c.build.constant(*l)};
  if (c.find("value_float")) return {c.build.scalar(dtype::f32, c.real("value_float", 0))};
  if (c.find("value_int")) return {c.build.scalar(dtype::i64, c.integer("value_int", 0))};
  if (c.find("value_floats")) return {list_constant<float>(c, dtype::f32, c.reals("value_floats"))};
  if (c.find("value_ints")) return {list_constant<std::int64_t>(c, dtype::i64, c.integers("value_ints"))};
  if (c.find("value_string")) return {text_value(c.build, c.text("value_string", ""))};
  if (c.find("value_strings")) return {strings_value(c.build, c.texts("value_strings"))};
  if (const literal* l = c.tensor_attribute("sparse_value")) return {c.build.constant(*l)};
  c.malformed("a constant has a value");
}

variables import_identity(node_context& c) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  return {c.inputs[0]};
}

// Extents [start, end) of the input as a constant, which may have symbols.
variables import_shape(node_context& c) {
  const dims lens = c.in(0).get_shape().lens;
  const auto rank = static_cast<std::int64_t>(lens.size());
  const auto clamped = [&](std::int64_t a) { return std::clamp<std::int64_t>(a < 0 ? a + rank : a, 0, rank); };
  const std::int64_t start = clamped(c.integer("start", 0)), end = clamped(c.integer("end", rank));
  small_vector<dimension> kept;
  for (std::int64_t d = start; d < end; ++d) kept.push_back(lens[static_cast<std::size_t>(d)]);
  const dims count{static_cast<std::int64_t>(kept.size())};
  return {dimensions_value(c.build, count, std::move(kept))};
}
variables import_size(node_context& c) {
  return {dimensions_value(c.build, {}, small_vector<dimension>{c.in(0).get_shape().elements()})};
}

// A tensor of one value: a fill, or the value broadcast where a fill's double cannot hold it.
value filled(builder& b, const dims& lens, const literal& one) {
  const dtype t = one.get_shape().type;
  if (t != dtype::i64 && t != dtype::u64 && !is_object(t)) return b.add(op::fill{lens, one.at<double>(0), t});
  const value v = b.constant(one.reshaped({}));
  return lens.empty() ? v : v.broadcast_to(lens);
}
variables import_constant_of_shape(node_context& c) {
  const auto lens = c.extents(0, "the shape");
  for (const dimension d : lens)
    if (d.max() < 0) c.malformed("an extent is " + kiln::to_string(d));
  const literal* given = c.tensor_attribute("value");
  if (given && given->elements() != 1) c.malformed("value has one element");
  return {filled(c.build, dims(std::span<const dimension>(lens)), given ? *given : literal::scalar(dtype::f32, 0.0f))};
}

// start, start + delta, … before limit.
variables import_range(node_context& c) {
  const value start = c.in(0), delta = c.in(2);
  const dtype t = start.type();
  dimension count;
  bool known = true, symbolic = false;
  for (std::size_t i = 0; i < 3; ++i) {
    const literal* l = c.constant(i);
    if (!same(c.in(i).get_shape().elements(), 1).value_or(true) || c.in(i).type() != t)
      c.malformed("start, limit and delta are one number each, of one type");
    known = known && l;
    symbolic = symbolic || (l && l->has_symbols());
  }
  if (!known || (symbolic && (!is_integer(t) || c.constant(2)->has_symbols()))) {
    return {c.build.add(op::progression{c.bodies->fresh_symbol("the range's length", 0)}, start, c.in(1), delta)};
  } else if (is_integer(t)) {
    const dimension from = c.dimensions(0, "the start")[0], to = c.dimensions(1, "the limit")[0];
    const std::int64_t step = c.numbers(2, "the step")[0];
    if (step == 0) c.malformed("delta is not zero");
    if (step < -std::numeric_limits<std::int64_t>::max()) c.malformed("delta can be negated");
    const dimension gap = step > 0 ? to - from : from - to;
    const std::int64_t stride = step > 0 ? step : -step;
    count = larger(0, (gap + (stride - 1)) / stride);
  } else {
    double numbers[3];
    for (std::size_t i = 0; i < 3; ++i) numbers[i] = c.constant(i)->at<double>(0);
    const double n = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(n < 4e15)) c.malformed("the range has no end");
    count = n > 0 ? static_cast<std::int64_t>(n) : 0;
  }
  const value steps = c.build.add(op::iota{{count}, 0, t});
  return {start.reshape({}) + steps * delta.reshape({})};
}

variables import_eye_like(node_context& c) {
  const value x = c.in(0);
  if (x.rank() != 2) c.malformed("the input is a matrix");
  const value column_of_row = indices_along(c, 2, 0, x.dim(0)) + c.integer("k", 0);
  return {column_of_row.equal(indices_along(c, 2, 1, x.dim(1))).convert(c.type_attribute("dtype", x.type()))};
}

// Extents: attribute `shape`, or those of the input, or (input_as_shape) its elements; then `extra_shape`.
dims filled_extents(node_context& c) {
  dims lens;
  const auto add = [&](std::span<const std::int64_t> more) {
    for (const std::int64_t n : more) {
      if (n < 0) c.malformed("an extent is " + std::to_string(n));
      lens.push_back(n);
    }
  };
  if (!c.has(0)) {
    add(c.integers("shape"));
  } else if (c.flag("input_as_shape")) {
    const auto given = c.extents(0, "the shape");
    lens = dims(std::span<const dimension>(given));
  } else {
    lens = c.in(0).get_shape().lens;
  }
  add(c.integers("extra_shape"));
  return lens;
}
variables import_constant_fill(node_context& c) {
  const dtype t = c.type_attribute("dtype", dtype::f32);
  if (is_object(t)) c.unsupported("fills with " + std::string(to_string(t)));
  return {c.build.add(op::fill{filled_extents(c), c.real("value", 0), t})};
}
variables import_given_tensor_fill(node_context& c) {
  const auto values = c.reals("values");
  const dims lens = filled_extents(c);
  if (!same(product(lens), static_cast<std::int64_t>(values.size())).value_or(false))
    c.malformed(std::to_string(values.size()) + " values do not fill the shape");
  return {c.build.constant<float>(dtype::f32, lens, values)};
}

// a - b cos(2 pi k / n) + c cos(4 pi k / n) over n elements, n being one less where the window is symmetric.
value cosine_window(node_context& c, double a, double b, double second) {
  const dimension size = c.extent(0, "the size");
  if (size.max() < 0) c.malformed("the size is not negative");
  const dimension n = c.flag("periodic", true) ? size : size - 1;
  const value turn = c.build.scalar(dtype::f64, 2 * std::acos(-1.)),
              step = turn / dimensions_value(c.build, {}, {n}).convert(dtype::f64);
  const value k = c.build.add(op::iota{{size}, 0, dtype::f64});
  value out = c.build.scalar(dtype::f64, a) - (k * step).cos() * b;
  if (second != 0) out = out + (k * step * 2).cos() * second;
  return out.convert(c.type_attribute("output_datatype", dtype::f32));
}
variables import_hann(node_context& c) { return {cosine_window(c, .5, .5, 0)}; }
variables import_hamming(node_context& c) { return {cosine_window(c, 25. / 46, 21. / 46, 0)}; }
variables import_blackman(node_context& c) { return {cosine_window(c, .42, .5, .08)}; }

}  // namespace

std::span<const op_importer> constant_importers() {
  static constexpr op_importer table[] = {
      {"", "BlackmanWindow", 17, import_blackman},
      {"", "HammingWindow", 17, import_hamming},
      {"", "HannWindow", 17, import_hann},
      {"", "Constant", 1, import_constant},
      {"", "ConstantFill", 1, import_constant_fill, experimental},
      {"", "ConstantOfShape", 9, import_constant_of_shape},
      {"", "EyeLike", 9, import_eye_like},
      {"", "GivenTensorFill", 1, import_given_tensor_fill, experimental},
      {"", "Identity", 1, import_identity},
      {"", "Range", 11, import_range},
      {"", "Shape", 1, import_shape},
      {"", "Size", 1, import_size},
  };
  return table;
}

}  // namespace kiln::onnx
