#pragma once
#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/int8/attention_problem.hpp"
#include "kiln/kernel/int8/combination.hpp"
#include "kiln/kernel/pool/byte_problem.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// The epilogue of an integer product, called with the sums of a part of it: rows [row0, row0 + rows), `row` elements
/// apart. They come as floats that `call` takes, or go to `sums` as they are.
struct integer_epilogue {
  void (*call)(void* self, std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
               std::ptrdiff_t row) = nullptr;
  void* self = nullptr;
  std::int32_t* sums = nullptr;
  std::ptrdiff_t sums_row = 0;
};

/// How a row of the left operand is read: so many runs of `each` elements, `words` words of 4 bytes each; or, for each
/// channel alone, as many taps.
struct integer_windows {
  std::int64_t each = 0, count = 1, words = 0;
  bool by_channel = false;
};

/// Where floats go whose channels are planes: NCHW, `pixels` adjacent floats to a channel; null where they don't.
struct float_planes {
  float* at = nullptr;
  std::ptrdiff_t image = 0, channel = 0;
  std::int64_t pixels = 1;
};

/// Products of 8-bit integers in one instruction-set level, by the machine (kernel/int8/tile.hpp) that this processor
/// has.
struct integer_table {
  std::int32_t signed_offset = 0;  ///< what the left operand's signed numbers have added
  bool reads_bytes = false;        ///< whether unsigned bytes are a left operand as they lie
  std::int32_t depth = 1;          ///< depth steps of a word

  std::int64_t (*packed_size)(std::int64_t k, std::int64_t n) = nullptr;  ///< in 32-bit elements; column sums first
  void (*pack)(thread_pool& pool, std::int32_t* to, const std::int8_t* from, std::ptrdiff_t row, std::ptrdiff_t col,
               std::int64_t k, std::int64_t n) = nullptr;
  std::int64_t channel_block =
      1;  ///< channels of an image that lies in place where each is convolved alone: a multiple
  std::int64_t (*packed_channels_size)(std::int64_t taps, std::int64_t channels) = nullptr;  ///< sums of taps first
  void (*pack_channels)(std::int32_t* to, const std::int8_t* from, std::int64_t taps, std::int64_t channels) = nullptr;
  std::int64_t (*joined_groups)(const kernels::conv_problem& p) = nullptr;  ///< that are computed as one
  /// Of products whose rows have so many words, in 32-bit elements.
  std::int64_t (*scratch_size)(unsigned workers, std::int64_t words) = nullptr;

  integer_windows (*windows)(const kernels::conv_problem& p) = nullptr;
  std::int64_t (*image_size)(const kernels::conv_problem& p) = nullptr;  ///< of a padded copy, in bytes
  /// Writes the places of the windows of an image to `to` and its runs to `runs`: in the padded copy that it writes to
  /// `copy`, or in the image itself where that is null.
  void (*place)(thread_pool& pool, const kernels::conv_problem& p, const kernels::byte_image& x, std::byte* copy,
                std::ptrdiff_t* runs, kernels::integer_problem& to) = nullptr;

  void (*multiply)(thread_pool& pool, const kernels::integer_problem& p, std::int32_t* scratch,
                   const integer_epilogue& epilogue) = nullptr;
  /// Only with sums to which numbers for the columns are all that is added.
  void (*requantize)(thread_pool& pool, const kernels::integer_problem& p, std::int32_t* scratch,
                     const kernels::requantization& how, const float_planes& planes) = nullptr;
  void (*max_pool)(thread_pool& pool, const kernels::pooling_problem& p, const kernels::byte_pooling& images,
                   bool is_signed) = nullptr;

  /// to[i] = table[from[i]], of 256 entries.
  void (*map_bytes)(const std::uint8_t* table, const std::uint8_t* from, std::uint8_t* to,
                    std::int64_t count) = nullptr;
  /// Of adjacent bytes; `beside` are the addends.
  void (*combine_bytes)(const kernels::byte_combination& how, const std::byte* from, const std::byte* beside,
                        std::byte* to, std::int64_t count) = nullptr;
  std::int64_t (*sum_bytes)(const std::byte* from, bool is_signed, std::int64_t count) = nullptr;

  /// As `kernels::quantize_by_range`; scratch in bytes.
  std::int64_t (*range_scratch)(std::int64_t count, unsigned workers) = nullptr;
  void (*quantize_by_range)(thread_pool& pool, const float* from, std::int64_t count, std::uint8_t* to, float* scale,
                            std::uint8_t* zero, std::byte* scratch) = nullptr;

  /// Of products whose operands both vary, in 32-bit elements. Rows of their epilogue are counted through the batch.
  std::int64_t (*matrices_scratch)(const kernels::byte_matrices& p, unsigned workers) = nullptr;
  void (*multiply_matrices)(thread_pool& pool, const kernels::byte_matrices& p, std::int32_t* scratch,
                            const integer_epilogue& epilogue) = nullptr;
  /// The results and, where they are not null, the addends of each matrix of the batch take the places of those of
  /// `how`.
  void (*requantize_matrices)(thread_pool& pool, const kernels::byte_matrices& p, std::int32_t* scratch,
                              const kernels::requantization& how, std::byte* const* results,
                              const std::byte* const* addends) = nullptr;

  std::int64_t (*attention_scratch)(const kernels::byte_attention& p, unsigned workers) = nullptr;
  void (*attend)(thread_pool& pool, const kernels::byte_attention& p, std::int32_t* scratch) = nullptr;
};

/// The table of the level that the dynamic loader picked, for this processor.
extern "C" const integer_table* kiln_eigen_integers();

/// The extents and windows of a pooling of `x`; where its elements are, and in which layout, is the caller's.
kernels::pooling_problem pooling_problem_of(const op::pooling& attributes, const tensor& x, const tensor& y);

/// Products of bytes with constant weights and their epilogue; null for others.
std::unique_ptr<kernel> lower_integers(const kernel_request& r);
/// Products of bytes whose operands both vary, and their epilogue.
std::unique_ptr<kernel> lower_byte_matrices(const kernel_request& r);

/// Floats as bytes by their own range, and what a zero point adds to a product's sums; null for other ops.
std::unique_ptr<kernel> lower_dynamic_quantize(const kernel_request& r);

/// Makes one instruction of two products of bytes that both vary and the softmax between them: `fused`, whose body is
/// those three, where kernels compute them together (extents are constants, scales one number each).
pass_note fuse_byte_attention(program& p);
/// What that pass made; null for others.
std::unique_ptr<kernel> lower_byte_attention(const kernel_request& r);

/// Pointwise functions of one byte or two, to bytes; null for others.
std::unique_ptr<kernel> lower_byte_pointwise(const kernel_request& r);
/// Means of bytes over their last dims, to bytes: of integers, which a sum of floats may differ from in the last bits,
/// so that a mean next to the middle between two bytes may be one from the reference's. Null for others.
std::unique_ptr<kernel> lower_byte_mean(const kernel_request& r);
/// The greatest bytes of windows; null for others.
std::unique_ptr<kernel> lower_byte_pooling(const kernel_request& r);

}  // namespace kiln::eigen
