// Mel filters, thread by thread, beside the op's own computation; and what is planned for them, without a device.
#include "kiln/op/linear/mel_weights.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "emulated_device.hpp"
#include "hip_kernels/plan_cases.hpp"
#include "kiln/backend/hip/kernels/index/mel.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using namespace kiln::gpu;

template <class T> constexpr dtype stored_dtype() {
  if constexpr (elementary::same<T, f16>)
    return dtype::f16;
  else
    return dtype_of<T>;
}
template <class T> argument one_number(T x, const dims& lens = {}) {
  argument a(shape(stored_dtype<T>(), lens));
  std::memcpy(a.data(), &x, sizeof x);
  return a;
}

// What all threads write over `left`, and the number of faults.
template <class Index, class Rate, class Low, class High>
std::vector<float> weights_of(const mel_sizes& n, Rate rate, Low lowest, High highest, int& faults, float left = 77) {
  const i64 bins = n.length / 2 + 1, runs = (bins + mel_run - 1) / mel_run;
  std::vector<float> out(static_cast<std::size_t>(runs * mel_run * n.mels), left);
  for (Index at = 0; at < static_cast<Index>(runs * n.mels); ++at)
    mel_weights(out.data(), rate, lowest, highest, n, at, &faults);
  for (std::size_t k = static_cast<std::size_t>(bins * n.mels); k < out.size(); ++k)
    EXPECT_EQ(out[k], left) << "past the last bin";
  out.resize(static_cast<std::size_t>(bins * n.mels));
  return out;
}

template <class Index, class Rate, class Low, class High>
void check_weights(const mel_sizes& n, Rate rate, Low lowest, High highest) {
  SCOPED_TRACE(::testing::Message() << n.mels << " filters, " << n.length);
  const argument in[] = {one_number(rate), one_number(lowest, {1}), one_number(highest)};
  const argument expected = reference_run(
      [&](builder& b) {
        small_vector<value> numbers;
        for (const argument& a : in) {
          const std::string name = "x" + std::to_string(numbers.size());
          numbers.push_back(b.input(name, a.get_shape().type, a.get_shape().lens));
        }
        b.output(b.add(op::mel_weights{n.mels, n.length}, numbers));
      },
      in)[0];
  int faults = 0;
  const std::vector<float> found = weights_of<Index>(n, rate, lowest, highest, faults);
  EXPECT_EQ(faults, 0);
  ASSERT_EQ(static_cast<std::int64_t>(found.size()), expected.elements());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_EQ(found[k], expected.as<float>()[k]) << k;
}

TEST(device_mel_weights, are_those_of_the_op) {
  check_weights<int>({1024, 80}, i64{16000}, 0.0f, 8000.0f);
  check_weights<i64>({1024, 80}, 16000, 62.5, 7800.0f);
  check_weights<int>({401, 128}, 22050.0, 20.0f, i64{9999});
  check_weights<i64>({64, 40}, 8000.0f, static_cast<unsigned char>(100), 3999);  // several filters a bin
  check_weights<int>({33, 7}, i64{8000}, 250.0f, 250.0f);
  check_weights<int>({4096, 3}, i64{48000}, narrow<f16>(99.0f), narrow<f16>(1000.0f));
  // bins that fill their runs, and fewer than one
  check_weights<int>({2 * (2 * mel_run - 1), 5}, i64{16000}, 31.0f, 7900.0f);
  check_weights<int>({1, 1}, i64{8000}, 100.0f, 2000.0f);
}

TEST(device_mel_weights, outside_the_spectrum_are_a_fault) {
  for (const auto& [lowest, highest] :
       {std::pair(100.0, 9000.0), {-5.0, 3000.0}, {3000.0, 100.0}, {0.0, std::numeric_limits<double>::quiet_NaN()}}) {
    int faults = 0;
    const auto found = weights_of<int>({64, 4}, 8000, lowest, highest, faults);
    EXPECT_EQ(faults, 1) << lowest << ' ' << highest;
    EXPECT_THAT(found, ::testing::Each(0.0f));
  }
}

TEST(device_plans, mel_weights_say_what_is_wrong) {
  const auto where = std::make_shared<const hip::context>(hip::architecture::named("sm_90"), "");
  const dimension mels = dimension::symbol("mels", 1), length = dimension::symbol("length", 1);
  for (const dtype t : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::u8, dtype::i64}) {
    const std::vector<shape> shapes = {{dtype::i64, {}}, {t, {1}}, {t, {dimension::symbol("n")}}};
    const lowered_op lowered(hip::lower_sequence, op::mel_weights{mels, length}, shapes, where);
    ASSERT_NE(lowered.made, nullptr) << to_string(t);
    EXPECT_TRUE(lowered.made->reports_faults());
    EXPECT_THAT(lowered.made->fault_text(), ::testing::HasSubstr("mel filters lie within the spectrum"));
    const std::vector<tensor> given = {lowered_op::at(nullptr, shapes[0]), lowered_op::at(nullptr, shapes[1]),
                                       lowered_op::at(nullptr, {t, {2}})};
    const tensor out = lowered_op::at(nullptr, {dtype::f32, {33, 4}});
    EXPECT_EQ(error_of([&] { lowered.made->prepare(given, {&out, 1}); }).first, errc::shape_mismatch);
  }
}

}  // namespace
}  // namespace kiln::testing
