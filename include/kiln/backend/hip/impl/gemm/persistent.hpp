#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

// Products whose blocks work tile after tile and have the copy unit of sm_90 read their factors
// (kernels/gemm/gemm_persistent.hpp): which there are, and how long they take.

namespace kiln::hip {

/// What their kernels are passed beside what all products are.
constexpr std::string_view mapped_parameters = ", const __grid_constant__ persistent_maps maps";

/// How the copy unit reads a factor for tiles of `lines` rows or windows; empty where it can't.
inline std::optional<tensor_boxes> boxes_of(const gemm_problem& p, const gemm_factor& f, std::int64_t rows, int lines) {
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const auto width = static_cast<int>(size_of(p.type)), depth = gpu::persistent_tile::depth_of(width);
  if (width > 2 || f.vector * width != 16 || p.batch0 * p.batch1 != 1) return std::nullopt;
  tensor_boxes to;
  to.bfloat16 = p.type == dtype::bf16, to.bytes = width == 1;
  to.along = static_cast<unsigned>(depth), to.across = static_cast<unsigned>(lines);
  if (const auto* m = std::get_if<matrix_argument>(&f.value)) {
    const std::int64_t step = f.depth_contiguous ? m->row_step : m->depth_step;
    // the matrix unit reads floats of eight bits along the depth alone
    if (step <= 0 || (width == 1 && !f.depth_contiguous)) return std::nullopt;
    to.extents[0] = count(p.depth), to.extents[1] = count(rows), to.step_bytes[0] = count(step * width);
    if (f.depth_contiguous) {
      to.across = static_cast<unsigned>(gpu::persistent_tile::lines_of_box(static_cast<int>(rows), lines));
    } else {
      std::swap(to.extents[0], to.extents[1]);
      to.along = gpu::persistent_tile::part, to.across = static_cast<unsigned>(depth);
    }
    return to;
  }
  if (!f.depth_contiguous) return std::nullopt;
  const auto& m = std::get<image_argument>(f.value);
  const bool backwards = f.backwards_rows != 0;
  if (f.image_arguments.find("image_places") != std::string::npos && !backwards) return std::nullopt;
  // the first window's corner, which is its last tap where it runs backwards, and from the image's to the last one's
  const int lower[2] = {backwards ? m.pad_cols - (f.backwards_cols - 1) * m.dilation_cols : -m.pad_cols,
                        backwards ? m.pad_rows - (f.backwards_rows - 1) * m.dilation_rows : -m.pad_rows};
  const int stride[2] = {backwards ? 1 : m.stride_cols, backwards ? 1 : m.stride_rows};
  const int upper[2] = {lower[0] + (m.out_cols - 1) * stride[0] - (m.width - 1),
                        lower[1] + (m.out_rows - 1) * stride[1] - (m.height - 1)};
  constexpr int most_corner = 127, most_stride = 8, most_offset = 255;  // in the copy unit's words
  const std::int64_t taps = p.depth / std::max<std::int64_t>(p.channels, 1);
  if (p.channels % depth != 0 || taps * std::max(m.dilation_cols, m.dilation_rows) > most_offset || m.col_step <= 0 ||
      m.row_step <= 0 || m.image_step < 0 || (p.images > 1 && m.image_step == 0))
    return std::nullopt;
  for (std::size_t d = 0; d < 2; ++d) {
    if (std::abs(lower[d]) > most_corner || std::abs(upper[d]) > most_corner || stride[d] > most_stride)
      return std::nullopt;
    to.lower[d] = lower[d], to.upper[d] = upper[d], to.stride[d + 1] = static_cast<unsigned>(stride[d]);
  }
  to.mode = copy_mode::im2col, to.rank = 4;
  const std::int64_t extents[] = {p.channels, m.width, m.height, p.images},
                     steps[] = {m.col_step, m.row_step, m.image_step};
  for (std::size_t d = 0; d < 4; ++d) to.extents[d] = count(extents[d]);
  for (std::size_t d = 0; d < 3; ++d) to.step_bytes[d] = count(std::max<std::int64_t>(steps[d], 16 / width) * width);
  return to;
}

/// How the copy unit moves a tensor over the positions of a product in boxes: the result, or the epilogue's operand
/// `k`; empty where it can't. Rows that are pixels of lines or images are those, since these may lie apart.
inline std::optional<tensor_boxes> boxes_of_positions(const gemm_problem& p, std::size_t k) {
  constexpr std::int64_t width = 2, aligned = 16;
  const std::int64_t line = p.steps[k][0], row = p.steps[k][2], lines = p.pixels != 0 ? p.rows / p.pixels : 1;
  const auto moves = [&](std::int64_t step) { return step > 0 && step * width % aligned == 0; };
  if (size_of(p.types[k]) != width || p.phases || p.steps[k][3] != 1 || !moves(row) || (lines > 1 && !moves(line)) ||
      p.aligned[k] < aligned)
    return std::nullopt;
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  tensor_boxes to;
  to.bfloat16 = p.types[k] == dtype::bf16;
  to.along = to.across = static_cast<unsigned>(gpu::persistent_tile::part);
  to.extents[0] = count(p.cols), to.step_bytes[0] = count(row * width);
  if (!lies_apart(p)) {
    to.extents[1] = count(p.rows);
    return to;
  }
  to.mode = copy_mode::im2col, to.rank = 3;
  to.extents[1] = count(p.pixels), to.extents[2] = count(lines);
  to.step_bytes[1] = count(lines > 1 ? line * width : aligned);
  return to;
}
/// Which operand of the epilogue blocks that work tile after tile have the copy unit bring; 0: none.
inline std::size_t boxed_operand(const gemm_problem& p) {
  for (std::size_t k = 1; k < p.steps.size(); ++k)
    if (boxes_of_positions(p, k)) return k;
  return 0;
}
/// Boxes of each group of warps through which results leave; 0 where they can't. Operands are brought boxes ahead.
inline int boxes_of_results(const gemm_problem& p, int cols) {
  if (!boxes_of_positions(p, 0)) return 0;
  return boxed_operand(p) != 0 ? 4 : cols == 256 ? 2 : 3;
}

/// Their tiles: wide ones are summed by both groups of warps together, the others also by one after the other.
inline void add_persistent_tiles(std::vector<gemm_tile>& to, const gemm_problem& p) {
  using t = gpu::persistent_tile;
  if (p.depth <= 0 || !boxes_of(p, p.a, p.rows, t::rows)) return;
  for (const int cols : {256, 128, 64}) {
    if (!boxes_of(p, p.b, p.cols, cols)) continue;
    const int boxes = boxes_of_results(p, cols);
    gemm_tile tile{"wgmma",
                   t::rows,
                   cols,
                   t::depth_of(static_cast<int>(size_of(p.type))),
                   t::warps_m,
                   t::warps_n,
                   t{cols, false, boxes}.stages()};
    tile.boxes = boxes;
    to.push_back(tile);
    tile.alternate = true;
    if (cols < 256) to.push_back(tile);
  }
}

/// The tile of large results for each of whose elements lanes read another: two blocks share a multiprocessor. Where
/// results leave through sums, no other took less than 0.95 of its time of ResNet-50's convolutions with a shortcut.
inline bool stores_much(const gemm_tile& t) {
  return t.atom == "wgmma" && !t.persistent() && t.cols == 128 && t.splits == 1;
}

/// Cycles of a product whose blocks work tile after tile, each a multiprocessor's only one. `lane_bytes` are of what
/// lanes read for each element, `boxed_bytes` of what the copy unit brings; `work` are the instructions of functions.
inline double persistent_time(const gemm_tile& t, double steps, double tiles, double processors, double lane_bytes,
                              double boxed_bytes, double work) {
  // fitted to times of ResNet-50's convolutions on an H200. A group alone multiplies more slowly than two, and stores
  // more slowly
  struct cycles {
    double rate, least_step;        // products a cycle; cycles of a step
    double stored, by_lane, boxed;  // cycles of an element, and of a byte that is read for it
  };
  // of an instruction for each element: a scheduler has two warps that issue, or one
  constexpr double lanes = 128, issued = 0.8, issued_alone = 0.5;
  constexpr double begin = 4000;
  constexpr cycles sums{1850, 440, 0.28, 0.13, 0}, sums_alternate{1430, 520, 0.59, 0.3, 0};
  constexpr cycles boxes{2060, 530, 0.135, 0.13, 0.03}, boxes_alternate{1710, 550, 0.27, 0.3, 0.064};
  const cycles& c = t.boxes != 0 ? (t.alternate ? boxes_alternate : boxes) : t.alternate ? sums_alternate : sums;
  const double area = static_cast<double>(t.rows) * t.cols, each = std::ceil(tiles / processors);
  // the unit takes as long for twice as many products of factors half as wide
  constexpr double depth = gpu::persistent_tile::depth_of(2);
  const double products = steps * std::max(area * depth / c.rate, c.least_step);
  const double computed = work / (lanes * (t.alternate ? issued_alone : issued));
  const double stored = area * (c.stored + c.by_lane * lane_bytes + c.boxed * boxed_bytes + computed);
  if (!t.alternate) return begin + each * (products + stored);
  return begin + each * std::max(products, (products + stored) / 2) + stored / 2;
}

}  // namespace kiln::hip
