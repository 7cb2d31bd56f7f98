#pragma once
#include "kiln/core/dtype.hpp"
#include "kiln/kernel/sample/grid_problem.hpp"
#include "kiln/kernel/sample/resample_problem.hpp"
#include "kiln/kernel/sample/taps.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Kernels that sample between elements, in one instruction-set level.
struct sampling_table {
  /// Of sums of f32, f64, u8 or i8 (by f64 where they are f64, else by f32), or of picked elements by their size.
  std::int64_t (*resample_scratch_bytes)(const kernels::resample_problem& p, dtype type, unsigned workers) = nullptr;
  void (*resample)(thread_pool& pool, const kernels::resample_problem& p, dtype type, std::byte* scratch) = nullptr;
  // On the calling thread:
  /// Writes places and weights of the taps of positions in f32 or f64, in whole vectors: up to 15 elements past the
  /// last position of each tap.
  void (*find_taps)(const kernels::grid_problem& p, dtype type) = nullptr;
  /// Writes y, or adds to it.
  void (*sum_taps)(const kernels::tap_problem<float>& p) = nullptr;
  void (*sum_taps_f64)(const kernels::tap_problem<double>& p) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const sampling_table* kiln_eigen_sampling();

/// Resampling along axes: picked elements of any size, sums of f32, f64 and bytes.
std::unique_ptr<kernel> lower_resample(const kernel_request& r);
/// Samples of f32 and f64 images at positions of a grid.
std::unique_ptr<kernel> lower_grid_sample(const kernel_request& r);
/// Regions of f32 images pooled to a fixed size.
std::unique_ptr<kernel> lower_roi_align(const kernel_request& r);

}  // namespace kiln::eigen
