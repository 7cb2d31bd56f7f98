// Families of kernels beside the ops' own computations, where there is a device.
#include "hip_kernels/family_programs.hpp"

namespace kiln::testing {
namespace {

class families_on_device : public tile_kernels_on_device {
 protected:
  void check_all(const programs& all) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      SCOPED_TRACE("program " + std::to_string(k));
      check(all[k]);
    }
  }
};

TEST_P(families_on_device, few_channels_a_group) { check_all(few_channels_a_group(GetParam())); }
TEST_P(families_on_device, short_products) { check_all(short_products(GetParam())); }
TEST_P(families_on_device, resampling) { check_all(resampling(GetParam())); }
TEST_P(families_on_device, samples_and_regions) { check_all(samples_and_regions(GetParam())); }
TEST_P(families_on_device, long_windows) { check_all(long_windows(GetParam())); }
TEST_P(families_on_device, ranges) { check_all(ranges(GetParam())); }
TEST_P(families_on_device, mel_weights) { check_all(mel_weights(GetParam())); }

INSTANTIATE_TEST_SUITE_P(dtypes, families_on_device, ::testing::Values(dtype::f16, dtype::bf16, dtype::f32),
                         [](const auto& at) { return std::string(to_string(at.param)); });

}  // namespace
}  // namespace kiln::testing
