// Kernels of families compile for the architectures whose compiler is here: all programs for sm_90, some for gfx90a and
// gfx1030 (the test's output says how many are left out).
#include <algorithm>
#include <iostream>

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
  // `kernels`: those that some step of each type has, with an epilogue or without.
  void compile_all(const std::function<programs(dtype)>& of, const std::vector<std::string_view>& kernels) {
    hip_options options;
    options.architecture = GetParam();
    options.keep = false;
    const hip_target target(options);
    // hiprtc takes long: of the like programs of a list the first and the last one stand for the others, and in 16 bits
    // the first one
    const bool all = options.architecture.starts_with("sm_");
    for (const dtype t : {dtype::f32, dtype::f16}) {
      SCOPED_TRACE(std::string(to_string(t)));
      const programs list = of(t);
      ASSERT_FALSE(list.empty());
      std::size_t left_out = 0;
      std::vector<std::string> made;
      for (std::size_t k = 0; k < list.size(); ++k) {
        if (!all && k != 0 && (t != dtype::f32 || k + 1 != list.size())) {
          ++left_out;
          continue;
        }
        builder b;
        list[k](b);
        const executable e = compile(b.finish(), target);
        for (const step_info& s : e.report().steps) {
          EXPECT_FALSE(s.fallback) << s.kernel;
          made.push_back(s.kernel);
        }
      }
      if (left_out != 0)
        std::cout << "NOT COMPILED for " << GetParam() << ": " << left_out << " of " << list.size() << " programs in "
                  << to_string(t) << std::endl;
      if (!all && t != dtype::f32) continue;
      for (const std::string_view kernel : kernels)
        EXPECT_TRUE(std::any_of(made.begin(), made.end(),
                                [&](const std::string& m) { return m.substr(0, m.find('+')) == kernel; }))
            << "no step is of the kernel '" << kernel << "'";
    }
  }
};

TEST_P(families_compile, few_channels_a_group) {
  compile_all(few_channels_a_group, {"grouped convolution", "depthwise convolution", "transposed grouped convolution",
                                     "transposed depthwise convolution"});
}
TEST_P(families_compile, short_products) { compile_all(short_products, {"dot"}); }
TEST_P(families_compile, resampling) { compile_all(resampling, {"resample"}); }
TEST_P(families_compile, samples_and_regions) { compile_all(samples_and_regions, {"grid_sample", "roi_align"}); }
TEST_P(families_compile, long_windows) { compile_all(long_windows, {"pooling"}); }
TEST_P(families_compile, ranges) { compile_all(ranges, {"progression"}); }
TEST_P(families_compile, mel_weights) { compile_all(mel_weights, {"mel_weights"}); }

INSTANTIATE_TEST_SUITE_P(architectures, families_compile, ::testing::Values("sm_90", "gfx90a", "gfx1030"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kiln::testing
