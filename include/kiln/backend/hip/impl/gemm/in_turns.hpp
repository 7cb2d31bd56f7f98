#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

// Products whose blocks work tile after tile and have the copy unit of sm_90 read their factors
// (kernels/gemm/gemm_in_turns.hpp): which there are, and how long they take.

namespace kiln::hip {

/// What their kernels are passed beside what all products are.
constexpr std::string_view mapped_parameters =
    ", const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b";

/// How the copy unit reads a factor in boxes of `lines` rows or windows; empty where it can't.
inline std::optional<tensor_boxes> boxes_of(const gemm_problem& p, const gemm_factor& f, std::int64_t rows, int lines) {
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  constexpr std::int64_t width = 2;
  if (size_of(p.type) != width || f.vector != 8 || !f.depth_contiguous || p.batch0 * p.batch1 != 1) return std::nullopt;
  tensor_boxes to;
  to.bfloat16 = p.type == dtype::bf16, to.across = static_cast<unsigned>(lines);
  if (const auto* m = std::get_if<matrix_argument>(&f.value)) {
    if (m->row_step <= 0) return std::nullopt;
    to.extents[0] = count(p.depth), to.extents[1] = count(rows), to.step_bytes[0] = count(m->row_step * width);
    return to;
  }
  const auto& m = std::get<image_argument>(f.value);
  const int reach_cols = (m.out_cols - 1) * m.stride_cols - m.pad_cols - (m.width - 1),
            reach_rows = (m.out_rows - 1) * m.stride_rows - m.pad_rows - (m.height - 1);
  constexpr int most_corner = 127, most_stride = 8;  // from an image's corner; in the copy unit's words
  const std::int64_t taps = p.depth / std::max<std::int64_t>(p.channels, 1);
  if (f.image_arguments.find("image_places") != std::string::npos || p.channels % 64 != 0 ||
      std::abs(reach_cols) > most_corner || std::abs(reach_rows) > most_corner || m.pad_cols > most_corner ||
      m.pad_rows > most_corner || m.pad_cols < -most_corner || m.pad_rows < -most_corner ||
      m.stride_cols > most_stride || m.stride_rows > most_stride || taps * m.dilation_cols > 255 ||
      taps * m.dilation_rows > 255 || m.col_step <= 0 || m.row_step <= 0 || m.image_step < 0 ||
      (p.images > 1 && m.image_step == 0))
    return std::nullopt;
  to.rank = 4;
  const std::int64_t extents[] = {p.channels, m.width, m.height, p.images},
                     steps[] = {m.col_step, m.row_step, m.image_step};
  for (std::size_t d = 0; d < 4; ++d) to.extents[d] = count(extents[d]);
  for (std::size_t d = 0; d < 3; ++d) to.step_bytes[d] = count(std::max<std::int64_t>(steps[d], 8) * width);
  to.lower[0] = -m.pad_cols, to.lower[1] = -m.pad_rows, to.upper[0] = reach_cols, to.upper[1] = reach_rows;
  to.stride[1] = static_cast<unsigned>(m.stride_cols), to.stride[2] = static_cast<unsigned>(m.stride_rows);
  return to;
}

/// Cycles of a product whose blocks work tile after tile, each a multiprocessor's only one. `operand_bytes` are of what
/// the epilogue reads for each element.
inline double time_in_turns(const gemm_tile& t, double steps, double tiles, double processors, double operand_bytes) {
  // fitted to times of ResNet-50's convolutions on an H200
  constexpr double begin = 4000, rate = 1850, least_step = 440;
  const double area = static_cast<double>(t.rows) * t.cols;
  const double products = steps * std::max(area * t.depth / rate, least_step);
  const double stored = area * (0.28 + 0.13 * operand_bytes);
  return begin + std::ceil(tiles / processors) * (products + stored);
}

}  // namespace kiln::hip
