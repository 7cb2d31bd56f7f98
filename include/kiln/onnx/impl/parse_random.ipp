#include <numbers>

#include "kiln/onnx/impl/parse.hpp"
#include "kiln/op/random/random_uniform.hpp"

// Random numbers: a node without a seed has one of its own, made from its name, so that every run gives the same.
namespace kiln::onnx {

namespace {

std::uint32_t seed_of(const call& c) {
  if (const attribute* a = c.find("seed"))
    return a->kind == attribute_kind::integer ? static_cast<std::uint32_t>(a->integer)
                                              : convert_value<std::uint32_t>(c.real("seed", 0));
  std::uint32_t h = 2166136261u;
  for (const char x : c.source.outputs.empty() ? c.source.name : c.source.outputs[0])
    h = (h ^ static_cast<unsigned char>(x)) * 16777619u;
  return h;
}

dtype type_of(const call& c, dtype otherwise) {
  const std::int64_t wanted = c.integer("dtype", 0);
  if (wanted == 0) return otherwise;
  const auto t = to_dtype(static_cast<element>(wanted));
  if (!t) c.unsupported("this dtype");
  return *t;
}
dims shape_attribute(const call& c) {
  dims lens;
  for (const std::int64_t n : c.integers("shape")) {
    if (n < 0) c.malformed("an extent is not negative");
    lens.push_back(n);
  }
  return lens;
}

value uniform(call& c, const dims& lens, dtype t, double low, double high) {
  return c.build.add(op::random_uniform{lens, low, high, seed_of(c), t});
}
value uniform_of(call& c, const dims& lens, dtype t) {
  const double low = c.real("low", 0), high = c.real("high", 1);
  return uniform(c, lens, is_float(t) ? t : dtype::f32, low, high).convert(t);
}
// Two uniform numbers make a normal one (Box and Muller 1958).
value normal_of(call& c, const dims& lens, dtype t) {
  dims pairs{2};
  for (const dimension n : lens) pairs.push_back(n);
  const value u = uniform(c, pairs, dtype::f64, 0, 1);
  const auto part = [&](std::int64_t k) { return u.slice({{0}, {k}, {k + 1}, {}}).squeeze({0}); };
  const value radius = ((-part(0) + 1.0).log() * -2.0).sqrt(), angle = part(1) * (2 * std::numbers::pi);
  return (radius * angle.cos() * static_cast<double>(c.real("scale", 1)) + static_cast<double>(c.real("mean", 0)))
      .convert(t);
}

variables parse_uniform(call& c) { return {uniform_of(c, shape_attribute(c), type_of(c, dtype::f32))}; }
variables parse_uniform_like(call& c) { return {uniform_of(c, c.in(0).get_shape().lens, type_of(c, c.in(0).type()))}; }
variables parse_normal(call& c) { return {normal_of(c, shape_attribute(c), type_of(c, dtype::f32))}; }
variables parse_normal_like(call& c) { return {normal_of(c, c.in(0).get_shape().lens, type_of(c, c.in(0).type()))}; }

variables parse_bernoulli(call& c) {
  const value p = c.in(0);
  return {(uniform(c, p.get_shape().lens, p.type(), 0, 1) < p).convert(type_of(c, p.type()))};
}

// Samples of each row's classes, whose unnormalised log-probabilities the row holds: the number of classes whose
// cumulative probability a uniform number exceeds.
variables parse_multinomial(call& c) {
  const value x = widened(c.in(0));
  if (x.rank() != 2) c.malformed("the input is [batch, classes]");
  const std::int64_t samples = c.integer("sample_size", 1);
  if (samples < 1) c.malformed("sample_size is positive");
  const value below = x.softmax(1) | op::cumsum{1, false, false};
  const value u = uniform(c, {x.dim(0), samples}, x.type(), 0, 1);
  const value beyond = c.build.add(op::greater_or_equal{}, u.unsqueeze({2}), below.unsqueeze({1})).convert(dtype::i64);
  const value last = dimensions_value(c.build, {}, {x.dim(1) - 1});
  return {beyond.reduce_sum({2}).squeeze({2}).min(last).convert(type_of(c, dtype::i32))};
}

// Training keeps each element with probability 1 - ratio and scales it up; whether it trains may be an input.
variables parse_dropout(call& c) {
  const value x = c.in(0);
  const dims lens = x.get_shape().lens;
  const literal* training = c.has(2) ? c.constant(2) : nullptr;
  const bool never = !c.has(2) || (training && !training->has_symbols() && !training->at<bool>(0));
  const dtype mask_type = c.version >= 10 ? dtype::boolean : x.type();
  variables out;
  if (never) {
    out.push_back(x);
    if (c.wants(1)) out.push_back(c.build.add(op::fill{lens, 1, mask_type}));
    return out;
  }
  const value ratio = c.has(1) ? c.in(1).reshape({}).convert(dtype::f64) : c.build.scalar(dtype::f64, .5);
  const value trains = c.in(2).reshape({});
  const value keep = c.build.add(op::greater_or_equal{}, uniform(c, lens, dtype::f64, 0, 1), ratio);
  const value mask = c.build.add(op::logical_or{}, keep, trains.logical_not());
  const value scale = trains.where((-ratio + 1.0).recip(), c.build.scalar(dtype::f64, 1.0)).convert(x.type());
  out.push_back(mask.where(x * scale, c.build.scalar(x.type(), 0.0f)));
  if (c.wants(1)) out.push_back(mask.convert(mask_type));
  return out;
}
// Before version 12 an attribute decides; ratio is one too.
variables parse_dropout_1(call& c) {
  if (c.version < 7 && !c.flag("is_test") && c.wants(1)) c.unsupported("training");
  const value x = c.in(0);
  variables out{x};
  if (c.wants(1))
    out.push_back(c.build.add(op::fill{x.get_shape().lens, 1, c.version >= 10 ? dtype::boolean : x.type()}));
  return out;
}

}  // namespace

std::span<const row> random_rows() {
  static constexpr row rows[] = {
      {"", "Bernoulli", 15, parse_bernoulli, "numbers of kiln's own generator"},
      {"", "Dropout", 1, parse_dropout_1, "before version 7 always as in a test"},
      {"", "Dropout", 12, parse_dropout},
      {"", "Multinomial", 7, parse_multinomial, "numbers of kiln's own generator"},
      {"", "RandomNormal", 1, parse_normal, "numbers of kiln's own generator"},
      {"", "RandomNormalLike", 1, parse_normal_like, "numbers of kiln's own generator"},
      {"", "RandomUniform", 1, parse_uniform, "numbers of kiln's own generator"},
      {"", "RandomUniformLike", 1, parse_uniform_like, "numbers of kiln's own generator"},
  };
  return rows;
}

}  // namespace kiln::onnx
