#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::testing {

/// Values drawn uniformly: floats in [low, high), integers in the same range, bools of either value.
inline argument random_argument(const shape& s, unsigned seed, double low = -1, double high = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> value(low, high);
  argument a(s);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double v = s.type == dtype::boolean ? static_cast<double>(engine() & 1) : value(engine);
    const auto whole = static_cast<std::int64_t>(std::floor(v));
    std::byte* at = a.data() + i * static_cast<std::int64_t>(size_of(s.type));
    if (is_float(s.type))
      encode(s.type, &v, at, 1);
    else
      encode(s.type, &whole, at, 1);
  }
  return a;
}

/// One pool for all tests of a program.
inline std::shared_ptr<thread_pool> shared_pool() {
  static const auto pool = std::make_shared<thread_pool>(2);
  return pool;
}

struct tolerance {
  double relative = 1e-5, absolute = 1e-6;
};

/// Equal types and extents; values within the tolerance, NaN beside NaN, infinities equal.
inline void expect_close(const argument& found, const argument& expected, tolerance t = {}) {
  ASSERT_EQ(found.get_shape().type, expected.get_shape().type);
  ASSERT_EQ(found.get_shape().lens, expected.get_shape().lens) << to_string(found.get_shape());
  const auto a = found.to<double>(), b = expected.to<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ASSERT_LE(std::fabs(a[i] - b[i]), t.absolute + t.relative * std::fabs(b[i]))
        << "element " << i << " of " << to_string(expected.get_shape()) << ": " << a[i] << " instead of " << b[i];
  }
}

inline compile_options plain_options() {
  compile_options o;
  o.pool = shared_pool();
  o.passes.verify = true;
  return o;
}

/// What the ops' own computations give, without any rewriting, one after another.
inline std::vector<argument> reference_run(const std::function<void(builder&)>& make,
                                           std::span<const argument> inputs) {
  builder b;
  make(b);
  static const auto one_thread = std::make_shared<thread_pool>(1);
  compile_options o = plain_options();
  o.pool = one_thread;
  o.passes.simplify = o.passes.fuse = false;
  return compile(b.finish(), reference_target(), o).run(inputs);
}

inline executable compile_eigen(const std::function<void(builder&)>& make, compile_options o = plain_options()) {
  builder b;
  make(b);
  return compile(b.finish(), eigen_target(), o);
}

/// Compares the Eigen target, with and without passes, to the ops' own computations.
inline void expect_same(const std::function<void(builder&)>& make, std::span<const argument> inputs, tolerance t = {}) {
  const auto expected = reference_run(make, inputs);
  for (const bool passes : {true, false}) {
    SCOPED_TRACE(passes ? "with passes" : "without passes");
    compile_options o = plain_options();
    o.passes.simplify = o.passes.fuse = passes;
    const auto found = compile_eigen(make, o).run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      SCOPED_TRACE("output " + std::to_string(k));
      expect_close(found[k], expected[k], t);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Random inputs for the parameters of a program without symbols.
inline std::vector<argument> random_inputs(const std::function<void(builder&)>& make, unsigned seed = 1,
                                           double low = -1, double high = 1) {
  builder b;
  make(b);
  std::vector<argument> out;
  for (value_id v : b.module().parameters()) out.push_back(random_argument(b.module().shape_of(v), seed++, low, high));
  return out;
}

inline void expect_same(const std::function<void(builder&)>& make, tolerance t = {}) {
  expect_same(make, random_inputs(make), t);
}

/// The message and code of the error that `f` throws.
inline std::pair<errc, std::string> error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return {e.code(), e.what()};
  }
  ADD_FAILURE() << "no error";
  return {errc::internal, ""};
}

}  // namespace kiln::testing
