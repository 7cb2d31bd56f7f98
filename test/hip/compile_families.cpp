// Kernels of families compile for each architecture whose compiler is here.
#include "hip_kernels/family_programs.hpp"
#include "kiln/backend/hip/compile.hpp"

namespace kiln::testing {
namespace {

class families_compile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string why = hip::why_not_compiled(hip::architecture::named(GetParam()));
    if (!why.empty()) GTEST_SKIP() << "SKIPPED: kernels for " << GetParam() << " are not checked: " << why;
  }
  void compile_all(const std::function<programs(dtype)>& of) {
    hip_options options;
    options.architecture = GetParam();
    options.keep = false;
    const hip_target target(options);
    // hiprtc takes long: of several like programs the first ones stand for the others
    const bool all = options.architecture.starts_with("sm_");
    constexpr std::size_t some = 2;
    for (const dtype t : {dtype::f32, dtype::f16}) {
      const programs list = of(t);
      for (std::size_t k = 0; k < list.size() && (all || (t == dtype::f32 && k < some)); ++k) {
        builder b;
        list[k](b);
        const executable e = compile(b.finish(), target);
        for (const step_info& s : e.report().steps) EXPECT_FALSE(s.fallback) << s.kernel;
      }
    }
  }
};

TEST_P(families_compile, few_channels_a_group) { compile_all(few_channels_a_group); }
TEST_P(families_compile, short_products) { compile_all(short_products); }
TEST_P(families_compile, resampling) { compile_all(resampling); }
TEST_P(families_compile, samples_and_regions) { compile_all(samples_and_regions); }
TEST_P(families_compile, long_windows) { compile_all(long_windows); }
TEST_P(families_compile, ranges) { compile_all(ranges); }
TEST_P(families_compile, mel_weights) { compile_all(mel_weights); }

INSTANTIATE_TEST_SUITE_P(architectures, families_compile, ::testing::Values("sm_90", "gfx90a", "gfx1030"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kiln::testing
