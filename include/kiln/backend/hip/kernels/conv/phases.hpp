#pragma once
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"

namespace kiln::gpu {

/// The result of a phase: rows count its columns, then its rows, planes and images.
template <class T> struct phase_place : phase_argument<T> {
  static constexpr bool apart = true;
  KILN_FN position at(int, int b1, int row, int col) const {
    const int line = row / this->pixels, plane = line / this->lines, image = plane / this->planes;
    return {image * this->image_lines + (plane - image * this->planes) * this->plane_lines +
                (line - plane * this->lines) * this->row_lines,
            b1, row - line * this->pixels, col};
  }
};

/// Makes the product of all phases that of one: `image` and `filters` are its factors, `to` is its result, and the
/// places of all images are its rows.
template <phase_shape Shape, class Image, class Filters, class Place>
KILN_FN void shift_to_phase(Image& image, Filters& filters, Place& to, gemm_sizes& s, int number) {
  constexpr phase_dim planes = Shape.planes, rows = Shape.rows, cols = Shape.cols;
  const phase_shape::numbers n = Shape.of(number);
  image.pad_planes = planes.pad_of(n.planes), image.pad_rows = rows.pad_of(n.rows),
  image.pad_cols = cols.pad_of(n.cols);
  // nothing is divided by 0 where a phase has no tap or no place
  const auto some = [](int count) { return count > 0 ? count : 1; };
  image.tap_planes = some(planes.taps_of(n.planes));
  image.tap_rows = some(rows.taps_of(n.rows)), image.tap_cols = some(cols.taps_of(n.cols));
  const phase_shape::extents places = Shape.places_of(n, {to.all_planes, to.all_rows, to.all_cols});
  const int pixels = places.planes * places.rows * places.cols;
  image.out_rows = some(places.rows), image.out_cols = some(places.cols), image.out_pixels = some(pixels);
  filters.base += i64(Shape.taps_before(n)) * to.channels;
  s.rows = static_cast<int>(image.images) * pixels, s.depth = Shape.taps_of(n) * to.channels;
  // steps go from a phase's place to its next one
  to.base += planes.first(n.planes) * to.plane_step + rows.first(n.rows) * to.row_step +
             cols.first(n.cols) * (to.step[2] / cols.stride);
  to.pixels = image.out_cols, to.lines = image.out_rows, to.planes = some(places.planes);
}

}  // namespace kiln::gpu
