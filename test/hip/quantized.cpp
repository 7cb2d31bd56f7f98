// Programs in every precision that kiln writes compile for each architecture whose compiler is here.
#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/quantize/precision.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using quantize::precision;

class hip_precisions : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string why = hip::why_not_compiled(hip::architecture::named(GetParam()));
    if (!why.empty()) GTEST_SKIP() << "SKIPPED: kernels for " << GetParam() << " are not checked: " << why;
  }
};

program network() {
  builder b;
  const auto weights = [&](const dims& lens, unsigned seed) {
    return b.constant(random_argument({dtype::f32, lens}, seed).to_literal());
  };
  const value x = b.input("x", dtype::f32, {2, 3, 6, 6});
  const value y = x.conv(weights({4, 3, 3, 3}, 1)).add_along(1, weights({4}, 2)).relu();
  b.output(y.reshape({2, 64}).dot(weights({64, 80}, 3)).relu().dot(weights({80, 64}, 4)), "y");
  return quantize::prepared(b.finish());
}

TEST_P(hip_precisions, every_precision_runs_on_the_device_alone) {
  const program p = network();
  const quantize::ranges known = quantize::calibrate(
      p, quantize::float_values(p), eigen_target(), [given = false]() mutable -> std::optional<quantize::sample> {
        if (std::exchange(given, true)) return std::nullopt;
        return quantize::sample{{"x", random_argument({dtype::f32, {2, 3, 6, 6}}, 7)}};
      });
  hip_options options;
  options.architecture = GetParam();
  options.keep = false;
  const auto check = [&](precision to) {
    SCOPED_TRACE(std::string(to_string(to)));
    quantize::precision_options how{.to = to, .is_prepared = true};
    if (quantize::takes_ranges(to)) how.known = known;
    const executable e = compile(quantize::with_precision(p, how).graph, hip_target(options));
    std::size_t of_float8 = 0;
    for (const step_info& s : e.report().steps) {
      EXPECT_FALSE(s.fallback) << s.kernel;
      of_float8 += s.kernel.starts_with("float8_dot");
    }
    return of_float8;
  };
  for (const precision to : quantize::narrow_precisions)
    EXPECT_EQ(check(to), to == precision::fp8 && std::string_view(GetParam()) == "sm_90" ? 2u : 0u);
  options.multiplies_float8 = false;
  EXPECT_EQ(check(precision::fp8), 0u);
}

INSTANTIATE_TEST_SUITE_P(architectures, hip_precisions, ::testing::Values("sm_90", "gfx90a", "gfx1030"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kiln::testing
