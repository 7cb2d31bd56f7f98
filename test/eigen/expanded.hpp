#pragma once
#include "kiln/pass/expand_sampling.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {

/// Compares gathers and pointwise ops in the place of sampling with the op's own computation.
inline void expect_expanded(const std::function<void(builder&)>& make, std::span<const argument> in, tolerance t) {
  builder b;
  make(b);
  const auto plain = without_sampling(b.finish());
  ASSERT_TRUE(plain.has_value());
  EXPECT_FALSE(without_sampling(*plain).has_value());
  expect_close(compile(program(*plain), eigen_target(), plain_options()).run(in)[0], reference_run(make, in)[0], t);
}

}  // namespace kiln::testing
