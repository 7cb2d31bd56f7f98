#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// Where the rows of a left operand begin: row r is pixel r of images that lie in one memory, counted through all of
/// them; steps in bytes. The rows of a matrix are the pixels of one line.
struct integer_rows {
  const std::byte* at = nullptr;
  std::int64_t extent[3] = {1, 1, 1};  ///< pixels of an image: planes, lines, columns
  std::ptrdiff_t step[3] = {};
  std::ptrdiff_t image = 0;
};

/// The runs of adjacent bytes that make a row: run i begins `at[i]` bytes from the row's place and is `words` words of
/// 4 bytes, whose last bytes may be any where the right operand is 0.
struct integer_runs {
  const std::ptrdiff_t* at = nullptr;
  std::int64_t count = 1, words = 0;
  /// Memory that a later tile reads: each word prefetches a line, `fetch_step` bytes after the previous one's; or null.
  const std::byte* fetch = nullptr;
  std::ptrdiff_t fetch_step = 0;
};

/// A product of 8-bit integers, operands in the form of a machine (int8/tile.hpp): a GEMM of m rows and n columns; one
/// for each of several groups of as many columns; or one for each channel, whose runs are its taps (int8/channels.hpp).
struct integer_problem {
  std::int64_t m = 0, n = 0;
  std::int64_t groups = 1;
  std::ptrdiff_t group = 0;  ///< bytes from a group's left operand to the next one's
  bool by_channel = false;
  integer_rows rows;
  integer_runs runs;
  const std::int32_t* b = nullptr;
  const std::int32_t* shift = nullptr;  ///< added to each column's sums, as many as whole vectors; or null
  const std::int32_t* less = nullptr;   ///< subtracted from the sums of row `row % less_rows`, or null
  std::ptrdiff_t less_row = 0;          ///< its row stride
  std::int64_t less_rows = 1;
  bool matrix_unit = true;  ///< the processor's may be used, where there is memory for it
  /// Of each worker, for its copies of rows (`multiplied_rows`), in bytes, aligned to 64; or null.
  std::byte* memory = nullptr;
  std::ptrdiff_t worker_memory = 0;
};

/// A batch of products (A[m, k] - a_zero) * (B[k, n] - b_zero) of bytes whose operands both differ from run to run.
/// Strides in bytes.
struct byte_matrices {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  const std::byte* const* a = nullptr;  ///< by matrix of the batch
  const std::byte* const* b = nullptr;
  std::ptrdiff_t a_row = 0, a_col = 1, b_row = 0, b_col = 1;
  bool a_signed = false, b_signed = false;
  std::int32_t a_zero = 0, b_zero = 0;
};

struct byte_quantization;

/// The layout of an 8-bit image, or of one of floats that become bytes by `floats`; strides in bytes.
struct byte_image {
  const std::byte* at = nullptr;
  std::ptrdiff_t batch = 0, channel = 0, axis[3] = {};
  bool is_signed = false;
  std::int32_t outside = 0;  ///< the value of padding
  const byte_quantization* floats = nullptr;
};

}  // namespace kiln::kernels
