#include "kiln/backend/eigen/sampling.hpp"
#include "kiln/kernel/sample/grid_taps.hpp"
#include "kiln/kernel/sample/resample.hpp"
#include "kiln/kernel/sample/tap_sums.hpp"
#include "kiln/op/nn/resample.hpp"

namespace kiln::eigen {
namespace {

using kernels::resample_problem;
using kernels::resampler;

// Calls `with` of the resampler for elements of a type.
template <class With> void with_resampler(const resample_problem& p, dtype type, With&& with) {
  if (p.axes[p.count - 1].weights) {
    switch (type) {
      case dtype::f64: return with(resampler<double, double>(p), double());
      case dtype::u8: return with(resampler<std::uint8_t, float>(p, op::resample::byte_slack), float());
      case dtype::i8: return with(resampler<std::int8_t, float>(p, op::resample::byte_slack), float());
      default: return with(resampler<float, float>(p), float());
    }
  }
  struct two {
    std::uint64_t parts[2];
  };
  switch (size_of(type)) {
    case 1: return with(resampler<std::uint8_t, float>(p), float());
    case 2: return with(resampler<std::uint16_t, float>(p), float());
    case 4: return with(resampler<std::uint32_t, float>(p), float());
    case 8: return with(resampler<std::uint64_t, float>(p), float());
    default: return with(resampler<two, float>(p), float());
  }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const sampling_table* kiln_eigen_sampling() {
  static const sampling_table table{
      .resample_scratch_bytes =
          [](const resample_problem& p, dtype type, unsigned workers) {
            std::int64_t bytes = 0;
            with_resampler(p, type, [&](const auto& r, auto sum) {
              bytes = r.scratch() * static_cast<std::int64_t>(sizeof(sum)) * workers;
            });
            return bytes;
          },
      .resample =
          [](thread_pool& pool, const resample_problem& p, dtype type, std::byte* scratch) {
            with_resampler(p, type,
                           [&](const auto& r, auto sum) { r.run(pool, reinterpret_cast<decltype(sum)*>(scratch)); });
          },
      .find_taps =
          [](const kernels::grid_problem& p, dtype type) {
            type == dtype::f64 ? kernels::grid_taps<double>::find(p) : kernels::grid_taps<float>::find(p);
          },
      .sum_taps = kernels::tap_sums<float>::run,
      .sum_taps_f64 = kernels::tap_sums<double>::run,
  };
  return &table;
}

}  // namespace kiln::eigen
