#pragma once
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/backend/hip/runtime.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {

// Seeded values as the memory of a literal.
inline buffer constant_bytes(const shape& s) {
  const argument values = random_argument(s, 9);
  buffer copy = buffer::allocate(static_cast<std::size_t>(s.bytes().value()));
  std::copy_n(values.data(), copy.size(), copy.data());
  return copy;
}

class tile_kernels_on_device : public ::testing::TestWithParam<dtype> {
 protected:
  void SetUp() override {
    if (hip::device_count(hip::platform::amd) + hip::device_count(hip::platform::nvidia) == 0)
      GTEST_SKIP() << "NOT RUN: no GPU here";
  }
  void check(const std::function<void(builder&)>& make) {
    check(make, GetParam() == dtype::f32 ? 2e-5 : GetParam() == dtype::f16 ? 4e-3 : 3e-2);
  }
  void check(const std::function<void(builder&)>& make, double bound) {
    const std::vector<argument> inputs = random_inputs(make);
    const auto expected = reference_run(make, inputs);
    builder b;
    make(b);
    const executable e = compile(b.finish(), hip_target(), plain_options());
    for (const step_info& s : e.report().steps) EXPECT_FALSE(s.fallback) << s.kernel;
    const auto found = e.run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      SCOPED_TRACE("output " + std::to_string(k));
      expect_close(found[k], expected[k], {bound, bound * 4});
    }
  }
};

}  // namespace kiln::testing
