#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/graph/verify.hpp"
#include "kiln/pass/note.hpp"

/// What tests of passes share: programs evaluated op by op, and the laws that every pass keeps.
namespace kiln::test {

/// A program's results, each op through its own reference computation; bodies of fused ops likewise.
template <class Program>
constexpr small_vector<literal> evaluate(const Program& p, const small_vector<literal>& inputs, module_ref at = {}) {
  const auto& m = p.module(at);
  small_vector<small_vector<literal>> values(m.size());
  std::size_t next = 0;
  for (const std::uint32_t k : m.order()) {
    const auto& i = m[k];
    if (i.kind == instruction_kind::parameter) {
      values[k].push_back(inputs[next++]);
    } else if (i.kind == instruction_kind::literal) {
      values[k].push_back(i.constant);
    } else if (i.op.kind() == op_kind::control) {
      small_vector<literal> in;
      for (value_id v : i.inputs) in.push_back(values[v.instruction][v.result]);
      values[k] = evaluate(p, in, i.op.body());
    } else {
      small_vector<const literal*> in;
      for (value_id v : i.inputs) in.push_back(&values[v.instruction][v.result]);
      values[k] = fold(i.op, std::span<const literal* const>(in.data(), in.size()), i.results);
    }
  }
  small_vector<literal> out;
  for (value_id v : m.outputs) out.push_back(values[v.instruction][v.result]);
  return out;
}

/// Numbers that a seed decides.
struct dice {
  std::uint64_t state = 1;
  constexpr std::uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  }
  constexpr std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n));
  }
  /// In [-1, 1).
  constexpr double real() { return static_cast<double>(next()) / static_cast<double>(1u << 30) - 1; }
};

inline literal random_literal(const shape& s, dice& d) {
  small_vector<double> values;
  for (std::int64_t i = s.elements().value(); i > 0; --i)
    values.push_back(is_float(s.type) ? 2 * d.real()
                                      : static_cast<double>(d.below(7)) - (is_signed_integer(s.type) * 3));
  return literal::of<double>(s, values);
}
template <class Program> small_vector<literal> random_inputs(const Program& p, std::uint64_t seed) {
  dice d{seed};
  small_vector<literal> out;
  for (value_id v : p.main().parameters()) out.push_back(random_literal(p.main().shape_of(v), d));
  return out;
}

/// Equal dtype and dims, and |x - y| <= tolerance * (1 + max|y|) for each element.
inline ::testing::AssertionResult close(const literal& x, const literal& y, double tolerance) {
  if (x.get_shape().type != y.get_shape().type || !(x.get_shape().lens == y.get_shape().lens))
    return ::testing::AssertionFailure() << to_string(x.get_shape()) << " against " << to_string(y.get_shape());
  const auto a = x.to<double>(), b = y.to<double>();
  double greatest = 1;
  for (double v : b) greatest = std::isfinite(v) ? std::max(greatest, 1 + std::abs(v)) : greatest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * greatest) continue;
    return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " against " << b[i];
  }
  return ::testing::AssertionSuccess();
}
template <class Program>
::testing::AssertionResult same_results(const Program& before, const Program& after, double tolerance,
                                        std::uint64_t seed = 7) {
  const auto inputs = random_inputs(before, seed);
  const auto x = evaluate(after, inputs), y = evaluate(before, inputs);
  if (x.size() != y.size()) return ::testing::AssertionFailure() << x.size() << " outputs against " << y.size();
  for (std::size_t k = 0; k < x.size(); ++k)
    if (const auto r = close(x[k], y[k], tolerance); !r)
      return ::testing::AssertionFailure() << "output " << k << ", " << r.message();
  return ::testing::AssertionSuccess();
}

/// The program that `build(builder)` builds.
template <class Builder, class Build> constexpr auto built(Build build) {
  Builder b;
  build(b);
  return b.finish();
}
/// The program after the passes, as text; only its instructions.
template <class Builder, class Build, class... Pass> constexpr text printed(Build build, Pass... passes) {
  auto p = built<Builder>(build);
  (static_cast<void>(passes(p)), ...);
  verify(p);
  return print(p);
}

/// The laws of a list of passes: the graph stays sound, the results stay the same, a second run changes nothing.
template <class Build, class... Pass> void expect_laws(Build build, Pass... passes) {
  const auto before = built<builder>(build);
  auto after = built<builder>(build);
  (static_cast<void>(passes(after)), ...);
  EXPECT_TRUE(find_faults(after).empty());
  EXPECT_TRUE(same_results(before, after, 2e-6)) << print(before).view() << print(after).view();
  const text once = print(after);
  EXPECT_FALSE((passes(after).changed() || ...));
  EXPECT_EQ(print(after).str(), once.str());
}

}  // namespace kiln::test

/// The passes turn what `build` builds into `expected`, alike in constant evaluation and at run time, and keep the
/// laws. (KILN_TEST_SHOW leaves the static half out: a failed static_assert cannot show the text.)
#ifdef KILN_TEST_SHOW
#define KILN_EXPECT_REWRITE(build, expected, ...)                                        \
  EXPECT_EQ((kiln::test::printed<kiln::builder>(build, __VA_ARGS__).str()), (expected)); \
  kiln::test::expect_laws(build, __VA_ARGS__)
#else
#define KILN_EXPECT_REWRITE(build, expected, ...)                                                         \
  static_assert(kiln::test::printed<kiln::static_builder<>>(build, __VA_ARGS__) == kiln::text(expected)); \
  EXPECT_EQ((kiln::test::printed<kiln::builder>(build, __VA_ARGS__).str()), (expected));                  \
  kiln::test::expect_laws(build, __VA_ARGS__)
#endif
