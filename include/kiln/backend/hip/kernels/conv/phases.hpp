#pragma once
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"

namespace kiln::gpu {

/// Phase `number` of a transposed convolution of strides `Rows` and `Cols`: the image's padding, which is that of the
/// first phase before, and where the phase's results begin. Phases are numbered by the first tap that they have; the
/// places whose first tap is (`FirstRow`, `FirstCol`) are the result's rows and columns 0.
template <int Rows, int Cols, int FirstRow, int FirstCol, class Image, class Place>
KILN_FN void shift_to_phase(Image& image, Place& to, int number) {
  const int row = number / Cols, col = number % Cols;
  const bool wraps_rows = row < FirstRow, wraps_cols = col < FirstCol;
  image.pad_rows += wraps_rows, image.pad_cols += wraps_cols;
  // steps go from a phase's place to its next one
  to.base += (row - FirstRow + (wraps_rows ? Rows : 0)) * (to.step[0] / Rows) +
             (col - FirstCol + (wraps_cols ? Cols : 0)) * (to.step[2] / Cols);
}

}  // namespace kiln::gpu
