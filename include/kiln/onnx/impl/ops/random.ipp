#include <numbers>
#include <random>

#include "kiln/core/math/philox.hpp"
#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/random/random_uniform.hpp"

// Random numbers. A node without a seed gets one from its name, so that all runs give the same numbers.
namespace kiln::onnx {

namespace {

std::uint32_t seed_of(const node_context& c) {
  if (const attribute* a = c.find("seed"))
    return a->kind == attribute_kind::integer ? static_cast<std::uint32_t>(a->integer)
                                              : convert_value<std::uint32_t>(c.real("seed", 0));
  std::uint32_t h = 2166136261u;
  for (const char x : c.source.outputs.empty() ? c.source.name : c.source.outputs[0])
    h = (h ^ static_cast<unsigned char>(x)) * 16777619u;
  return h;
}

dims shape_attribute(const node_context& c) {
  dims lens;
  for (const std::int64_t n : c.integers("shape")) {
    if (n < 0) c.malformed("an extent is not negative");
    lens.push_back(n);
  }
  return lens;
}

value uniform(node_context& c, const dims& lens, dtype t, double low, double high) {
  return c.build.add(op::random_uniform{lens, low, high, seed_of(c), t});
}
value uniform_of(node_context& c, const dims& lens, dtype t) {
  const double low = c.real("low", 0), high = c.real("high", 1);
  return uniform(c, lens, is_float(t) ? t : dtype::f32, low, high).convert(t);
}
// Two uniform numbers make two normal ones (Box and Muller 1958), or, where extents are not known, one.
value normal_of(node_context& c, const dims& lens, dtype t) {
  std::int64_t count = 1;
  bool known = true;
  for (const dimension n : lens) {
    known = known && n.is_constant() && !__builtin_mul_overflow(count, n.value(), &count);
  }
  dims pairs{2};
  if (known)
    pairs.push_back((count + 1) / 2);
  else
    for (const dimension n : lens) pairs.push_back(n);
  // numbers that end as f64 keep its precision
  const dtype computed = t == dtype::f64 ? t : dtype::f32;
  const value u = uniform(c, pairs, dtype::f64, 0, 1);
  const value radius = ((-element_at(u, 0, 0) + 1.0).convert(computed).log() * -2.0).sqrt(),
              angle = element_at(u, 0, 1).convert(computed) * (2 * std::numbers::pi);
  const double scale = static_cast<double>(c.real("scale", 1)), mean = static_cast<double>(c.real("mean", 0));
  const auto placed = [&](const value& normal) { return (radius * normal * scale + mean).convert(t); };
  if (!known) return placed(angle.cos());
  const value all = c.build.add(op::concat{0}, placed(angle.cos()), placed(angle.sin()));
  return all.slice({{0}, {0}, {count}, {}}).reshape(lens);
}

variables import_uniform(node_context& c) {
  return {uniform_of(c, shape_attribute(c), c.type_attribute("dtype", dtype::f32))};
}
variables import_uniform_like(node_context& c) {
  return {uniform_of(c, c.in(0).get_shape().lens, c.type_attribute("dtype", c.in(0).type()))};
}
variables import_normal(node_context& c) {
  return {normal_of(c, shape_attribute(c), c.type_attribute("dtype", dtype::f32))};
}
variables import_normal_like(node_context& c) {
  return {normal_of(c, c.in(0).get_shape().lens, c.type_attribute("dtype", c.in(0).type()))};
}

variables import_bernoulli(node_context& c) {
  const value p = c.in(0);
  return {(uniform(c, p.get_shape().lens, p.type(), 0, 1) < p).convert(c.type_attribute("dtype", p.type()))};
}

// Samples of classes by unnormalized log-probabilities [batch, classes]: the number of classes whose cumulative
// probability a uniform number exceeds.
variables import_multinomial(node_context& c) {
  const value x = widened(c.in(0));
  if (x.rank() != 2) c.malformed("the input is [batch, classes]");
  const std::int64_t samples = c.integer("sample_size", 1);
  if (samples < 1) c.malformed("sample_size is positive");
  const value below = x.softmax(1) | op::cumsum{1, false, false};
  const value u = uniform(c, {x.dim(0), samples}, x.type(), 0, 1);
  const value beyond = not_less(u.unsqueeze({2}), below.unsqueeze({1})).convert(dtype::i64);
  const value last = dimensions_value(c.build, {}, {x.dim(1) - 1});
  return {beyond.reduce_sum({2}).squeeze({2}).min(last).convert(c.type_attribute("dtype", dtype::i32))};
}

// Numbers in [0, 1) that say what a dropout keeps. Where their count is known and of a test's size, they are those of
// ONNX's reference, which takes numpy's Mersenne Twister.
value dropout_numbers(node_context& c, const dims& lens) {
  constexpr std::int64_t most = 1 << 16;
  const dimension count = product(lens);
  if (!count.is_constant() || count.value() > most) return uniform(c, lens, dtype::f64, 0, 1);
  std::mt19937 source(seed_of(c));
  std::vector<double> numbers(static_cast<std::size_t>(count.value()));
  for (double& x : numbers) {
    const auto high = static_cast<std::uint32_t>(source()), low = static_cast<std::uint32_t>(source());
    x = unit_number(high, low);
  }
  return c.build.constant(literal::of<double>({dtype::f64, lens}, std::span<const double>(numbers)));
}

// Training keeps each element with probability 1 - ratio and scales it up. An input says whether to train.
variables import_dropout(node_context& c) {
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
  const value keep = not_less(dropout_numbers(c, lens), ratio);
  const value mask = either(keep, trains.logical_not());
  const value scale = trains.where((-ratio + 1.0).recip(), c.build.scalar(dtype::f64, 1.0)).convert(x.type());
  out.push_back(mask.where(x * scale, c.build.scalar(x.type(), 0.0f)));
  if (c.wants(1)) out.push_back(mask.convert(mask_type));
  return out;
}
// Before version 12 an attribute says whether to train.
variables import_dropout_1(node_context& c) {
  if (c.version < 7 && !c.flag("is_test") && c.wants(1)) c.unsupported("training");
  const value x = c.in(0);
  variables out{x};
  if (c.wants(1))
    out.push_back(c.build.add(op::fill{x.get_shape().lens, 1, c.version >= 10 ? dtype::boolean : x.type()}));
  return out;
}

}  // namespace

std::span<const op_importer> random_importers() {
  static constexpr std::string_view own = "numbers of kiln's own generator";
  static constexpr op_importer table[] = {
      {"", "Bernoulli", 15, import_bernoulli, own},
      {"", "Dropout", 1, import_dropout_1, "before version 7 always as in a test"},
      {"", "Dropout", 12, import_dropout},
      {"", "Multinomial", 7, import_multinomial, own},
      {"", "RandomNormal", 1, import_normal, own},
      {"", "RandomNormalLike", 1, import_normal_like, own},
      {"", "RandomUniform", 1, import_uniform, own},
      {"", "RandomUniformLike", 1, import_uniform_like, own},
  };
  return table;
}

}  // namespace kiln::onnx
