#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::hip::values {

// What tile kernels are passed, member by member as the headers of kernels/ have it: a name there stands behind each.

struct matrix {  // matrix_operand
  const void* base = nullptr;
  std::int64_t batch[2] = {}, row_step = 0, depth_step = 0;
};

struct image {  // image_operand
  const void* base = nullptr;
  std::int64_t image_step, group_step, channel_step, plane_step, row_step, col_step;
  int planes, height, width;
  int out_rows, out_cols, out_pixels;
  int stride_planes, stride_rows, stride_cols, dilation_planes, dilation_rows, dilation_cols;
  int pad_planes, pad_rows, pad_cols;
};

struct depthwise {  // depthwise_sizes
  std::int64_t image_step, channel_step, row_step, col_step;
  std::int64_t work;
  int channels, height, width, out_rows, out_cols;
  int stride_rows, dilation_rows, pad_rows, pad_cols;
};

struct place {  // result_place
  void* base = nullptr;
  std::int64_t step[4] = {};
  int pixels = 0;
};

struct operand {  // tail_operand
  const void* base = nullptr;
  std::int64_t step[4] = {};
};

struct sizes {  // product_sizes
  int rows, cols, depth, tiles_m, tiles_n, inner_batch, splits;
  void* partial = nullptr;
  int* arrivals = nullptr;
};

struct rows {  // attention_operand
  const void* base = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;
};

struct attention {  // attention_sizes
  int heads, group, queries, keys, depth, value_depth, tiles, splits;
  float scale;
  void* partial = nullptr;
  int* arrivals = nullptr;
};

/// A value as bytes.
template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  return {at, at + sizeof value};
}

}  // namespace kiln::hip::values
