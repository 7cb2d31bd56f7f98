#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/kernel/attention/problem.hpp"
#include "kiln/kernel/conv/column_problem.hpp"
#include "kiln/kernel/conv/method.hpp"
#include "kiln/kernel/gemm/affine_epilogue.hpp"
#include "kiln/kernel/gemm/channel_prologue.hpp"
#include "kiln/kernel/gemm/gemm.hpp"
#include "kiln/kernel/pointwise/block.hpp"
#include "kiln/kernel/pool/problem.hpp"

namespace kiln::eigen {

/// Pointwise over n contiguous floats; conditions are bools, and a comparison writes bools.
using tile_function = void (*)(const void* op, const void* const* in, void* out, std::int64_t n);
/// acc = combine(acc, prepare(in[i])) over n contiguous floats.
using fold_function = void (*)(const void* op, const float* in, std::int64_t n, float* acc);

/// The epilogue of a product, called for each tile: rows [row0, row0 + rows) count through the batch. `affine`, where
/// it is set, comes first.
struct gemm_epilogue {
  void (*call)(void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
               std::ptrdiff_t c_row) = nullptr;
  void* self = nullptr;
  const kernels::affine_epilogue<float>* affine = nullptr;
};
/// The epilogue of a convolution, called for each tile: see `kernels::convolution::run`. Rows of `affine` are channels
/// of all images, or pixels of all images where the output's layout is NHWC.
struct conv_epilogue {
  void (*call)(void* self, std::int64_t image, std::int64_t channel0, std::int64_t channels, std::int64_t pixel0,
               std::int64_t pixels, float* c, std::ptrdiff_t c_row) = nullptr;
  void* self = nullptr;
  const kernels::affine_epilogue<float>* affine = nullptr;
};

/// A convolution planned for its sizes.
class conv_plan {
 public:
  virtual ~conv_plan() = default;
  virtual std::int64_t scratch_floats() const = 0;
  /// `prologue` is null unless one was planned for.
  virtual void run(thread_pool& pool, const float* x, const float* w, float* y, float* scratch,
                   const conv_epilogue& epilogue, const kernels::channel_prologue<float>* prologue) const = 0;
};

/// The version of the kernels in the tuning cache: raise it whenever a kernel's time or name changes.
inline constexpr int kernel_version = 25;

/// The kernels of one instruction-set level, as a library exports them. No type whose layout depends on the level
/// crosses this boundary.
struct isa_table {
  std::uint64_t layout = 0;  ///< `isa_layout()` of the headers that the library was built from; always first
  std::int32_t vector_bytes = 0;
  tile_function (*tile)(std::size_t op) = nullptr;  ///< by index in the default registry; null: none
  fold_function (*fold)(std::size_t op) = nullptr;
  const kernels::pointwise_steps* (*block_steps)(std::size_t op) = nullptr;
  const kernels::fold_steps* (*block_folds)(std::size_t op) = nullptr;
  const kernels::block_machine* (*blocks)() = nullptr;

  void (*halves_to_floats)(const std::uint16_t* in, float* out, std::int64_t n) = nullptr;
  void (*floats_to_halves)(const float* in, std::uint16_t* out, std::int64_t n) = nullptr;

  /// See `eigen_target::forbid_matrix_unit`.
  void (*forbid_matrix_unit)() = nullptr;
  bool (*matrix_unit_available)() = nullptr;
  bool (*gains_from_matrix_unit)(const kernels::gemm_problem<float>& p) = nullptr;

  std::int64_t (*packed_b_floats)(std::int64_t k, std::int64_t n) = nullptr;
  void (*pack_b)(thread_pool& pool, float* to, const void* from, std::ptrdiff_t row, std::ptrdiff_t col, std::int64_t k,
                 std::int64_t n) = nullptr;
  /// Of both products' scratch: `m` counts the rows of the whole batch.
  std::int64_t (*gemm_scratch_floats)(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) = nullptr;
  void (*gemm)(thread_pool& pool, const kernels::gemm_problem<float>& p, float* scratch,
               const gemm_epilogue& epilogue) = nullptr;
  std::int64_t (*gemm_unpacked_scratch_floats)(std::int64_t m, std::int64_t n, std::int64_t k,
                                               unsigned workers) = nullptr;
  void (*gemm_unpacked)(thread_pool& pool, const kernels::gemm_problem<float>& p, float* scratch,
                        const gemm_epilogue& epilogue) = nullptr;

  bool (*gains_from_nhwc)(const kernels::conv_problem& p) = nullptr;
  kernels::conv_method (*choose_conv_method)(const kernels::conv_problem& p, bool in_nhwc, bool out_nhwc) = nullptr;
  /// Estimated work; infinite where the method does not serve.
  double (*conv_cost)(const kernels::conv_problem& p, kernels::conv_method method, bool in_nhwc,
                      bool out_nhwc) = nullptr;
  std::int64_t (*conv_weight_floats)(const kernels::conv_problem& p, kernels::conv_method method) = nullptr;
  void (*pack_conv_weights)(thread_pool& pool, const kernels::conv_problem& p, kernels::conv_method method, float* to,
                            const std::byte* weights) = nullptr;
  /// With `has_prologue`, each run of the plan needs one.
  conv_plan* (*plan_conv)(const kernels::conv_problem& p, unsigned workers, kernels::conv_method method,
                          const kernels::image_layout& in, const kernels::image_layout& out,
                          bool has_prologue) = nullptr;

  void (*add_columns)(const kernels::column_problem& p) = nullptr;

  /// Copies images to the other layout. Each image in NCHW is dense.
  void (*convert_images)(thread_pool& pool, std::int64_t batch, std::int64_t channels, std::int64_t pixels,
                         const float* from, const kernels::image_layout& from_layout, float* to,
                         const kernels::image_layout& to_layout) = nullptr;

  std::int64_t (*attention_scratch_floats)(const kernels::attention_problem& p, unsigned workers) = nullptr;
  void (*attention)(thread_pool& pool, const kernels::attention_problem& p, float* scratch) = nullptr;
  void (*pool)(thread_pool& pool, const kernels::pooling_problem& p) = nullptr;
  void (*pool_nhwc)(thread_pool& pool, const kernels::pooling_problem& p,
                    const kernels::nhwc_pooling& images) = nullptr;
  /// Means of images [batch, pixels, channels]; `scratch` holds `image_mean_scratch_floats`.
  std::int64_t (*image_mean_scratch_floats)(std::int64_t batch, std::int64_t pixels, std::int64_t channels) = nullptr;
  void (*image_mean)(thread_pool& pool, std::int64_t batch, std::int64_t pixels, std::int64_t channels, const float* x,
                     std::ptrdiff_t step, float* y, float* scratch) = nullptr;
  void (*lrn)(thread_pool& pool, const kernels::lrn_problem& p) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const isa_table* kiln_eigen_isa();

}  // namespace kiln::eigen
