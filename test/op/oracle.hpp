#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "run_op.hpp"

/// Plain tensors for oracles that a test writes in the most literal way.
namespace kiln::test {

using index = std::vector<std::int64_t>;

/// Row-major doubles with indices as vectors.
struct tensor {
  index lens;
  std::vector<double> values;

  explicit tensor(index extents) : lens(std::move(extents)) {
    std::int64_t n = 1;
    for (std::int64_t d : lens) n *= d;
    values.assign(static_cast<std::size_t>(n), 0.0);
  }
  explicit tensor(const literal& l) : tensor(extents_of(l)) {
    const auto v = l.to<double>();
    values.assign(v.begin(), v.end());
  }
  bool inside(const index& at) const {
    for (std::size_t d = 0; d < lens.size(); ++d)
      if (at[d] < 0 || at[d] >= lens[d]) return false;
    return true;
  }
  double& operator()(const index& at) {
    std::int64_t o = 0;
    for (std::size_t d = 0; d < lens.size(); ++d) o = o * lens[d] + at[d];
    return values.at(static_cast<std::size_t>(o));
  }
  literal as(dtype t) const {
    dims d;
    for (std::int64_t n : lens) d.push_back(n);
    return literal::of<double>(shape{t, d}, std::span<const double>(values.data(), values.size()));
  }

 private:
  static index extents_of(const literal& l) {
    index out;
    for (dimension d : l.get_shape().lens) out.push_back(d.value());
    return out;
  }
};

/// Calls f with every index below the extents, row-major.
inline void each_index(const index& lens, const std::function<void(const index&)>& f) {
  for (std::int64_t d : lens)
    if (d == 0) return;
  index at(lens.size(), 0);
  for (;;) {
    f(at);
    std::size_t d = lens.size();
    while (d > 0 && ++at[d - 1] == lens[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// Whole numbers in [low, high], the same on every machine: exact in every dtype, so that oracles compare exactly.
inline literal whole_numbers(dtype t, const dims& lens, std::int64_t low, std::int64_t high, std::uint64_t seed = 1) {
  small_vector<std::int64_t> values;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::int64_t i = 0, n = product(lens).value(); i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(low + static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(high - low + 1)));
  }
  return literal::of<std::int64_t>(shape{t, lens}, values);
}

/// The same values as another dtype.
inline literal converted(const literal& l, dtype t) {
  return literal::of<double>(shape{t, l.get_shape().lens}, l.to<double>());
}

/// Every result from bytes to bytes.
template <class Op, class... L> std::vector<literal> run_bytes_all(const Op& op, const L&... in) {
  std::vector<argument> operands{argument(in)...}, filled;
  std::vector<shape> types;
  std::vector<evaluation::operand> inputs, outputs;
  for (argument& a : operands) {
    types.push_back(a.get_shape());
    inputs.push_back({a.get_shape(), nullptr, a.data()});
  }
  const auto results = shape_of(op, std::span<const shape>(types));
  for (const shape& s : results.value()) filled.emplace_back(s);
  for (argument& a : filled) outputs.push_back({a.get_shape(), nullptr, a.data()});
  evaluation e(inputs, outputs);
  evaluate(op, e);
  e.finish();
  std::vector<literal> out;
  for (const argument& a : filled) out.push_back(a.to_literal());
  return out;
}

/// Runs the op from bytes in every dtype of the set; the values must be those of the f64 run. Only the first
/// `converted` operands take the dtype.
template <class Op, class... L> void expect_same_in(dtype_set types, std::size_t typed, const Op& op, const L&... in) {
  const auto expected = run_bytes_all(op, in...)[0].template to<double>();
  for (std::size_t k = 0; k < dtype_count; ++k) {
    const auto t = static_cast<dtype>(k);
    if (!types.contains(t)) continue;
    std::size_t i = 0;
    const auto typed_operand = [&](const literal& l) { return i++ < typed ? converted(l, t) : l; };
    const std::tuple<std::conditional_t<true, literal, L>...> operands{typed_operand(in)...};
    const literal found = std::apply([&](const auto&... l) { return run_bytes_all(op, l...)[0]; }, operands);
    EXPECT_EQ(found.get_shape().type, t);
    EXPECT_EQ(found.template to<double>(), expected) << to_string(t);
  }
}

/// The code of the error that a run raises.
template <class F> errc raised_by(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was raised";
  return errc::internal;
}

}  // namespace kiln::test

/// The op's first result equals `expected` in constant evaluation, at run time from literals, and from bytes.
#define KILN_EXPECT_RUN(expected, ...)                                    \
  do {                                                                    \
    static_assert(kiln::test::run(__VA_ARGS__) == (expected));            \
    EXPECT_TRUE(kiln::test::run(__VA_ARGS__) == (expected));              \
    EXPECT_TRUE(kiln::test::run_bytes_all(__VA_ARGS__)[0] == (expected)); \
  } while (false)
