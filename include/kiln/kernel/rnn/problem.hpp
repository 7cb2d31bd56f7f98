#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/op/sequence/recurrent.hpp"

namespace kiln::kernels {

/// One direction of a recurrent layer over floats, as `op::recurrent` says. Strides count elements; the last dims are
/// contiguous.
struct recurrent_problem {
  const op::recurrent* cell = nullptr;
  std::int64_t steps = 0, batch = 0, hidden = 0;
  const float* x = nullptr;  // [steps, batch, gates * hidden]
  std::ptrdiff_t x_step = 0, x_row = 0;
  const float* recurrence = nullptr;  // packed by `pack_recurrence`
  const float* bias = nullptr;        // [gates * hidden]
  const float *first = nullptr, *first_cell = nullptr;
  std::ptrdiff_t first_row = 0, first_cell_row = 0;
  const void* lengths = nullptr;  // [batch] of i64, or of i32 where not `wide`
  bool wide = true;
  const float* peepholes = nullptr;  // of lstm: [3 * hidden]
  float* y = nullptr;                // [steps, batch, hidden]
  std::ptrdiff_t y_step = 0, y_row = 0;
  float *last = nullptr, *last_cell = nullptr;
  std::ptrdiff_t last_row = 0, last_cell_row = 0;

  std::int64_t length(std::int64_t row) const {
    const std::int64_t n =
        wide ? static_cast<const std::int64_t*>(lengths)[row] : static_cast<const std::int32_t*>(lengths)[row];
    return n < 0 ? 0 : n < steps ? n : steps;
  }
};

}  // namespace kiln::kernels
