#pragma once

#include "kiln/kernel/conv/problem.hpp"

namespace kiln::kernels {

/// Input rows stored so that every tap of a strided two-dimensional convolution reads contiguous elements: padded, and
/// by column phase (column modulo stride).
template <class T> class column_phases {
 public:
  explicit column_phases(const conv_problem& problem) : p_(problem) {
    const std::int64_t width = std::max<std::int64_t>(1, p_.output(2));
    // Vector loads read up to the end of the last vector of outputs.
    phase_ = round_up(width, native_lanes<T>) + (p_.span(2) - 1) / p_.stride[2];
    for (std::int64_t phase = 0; phase < p_.stride[2]; ++phase)
      columns_.emplace_back(phase - p_.pad_begin[2], p_.stride[2], p_.input[2], phase_);
  }

  /// Elements of a row.
  std::int64_t row() const { return phase_ * p_.stride[2]; }
  /// Rows that `rows` output rows read.
  std::int64_t rows_in(std::int64_t rows) const { return (rows - 1) * p_.stride[1] + p_.span(1); }

  /// The offset at which each tap reads for the first output, with channels `plane` elements apart.
  std::vector<std::int32_t> offsets(std::int64_t channels, std::int64_t plane) const {
    std::vector<std::int32_t> result;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t y = 0; y < p_.kernel[1]; ++y)
        for (std::int64_t x = 0; x < p_.kernel[2]; ++x) {
          const std::int64_t column = x * p_.dilation[2];
          result.push_back(static_cast<std::int32_t>(c * plane + y * p_.dilation[1] * row() +
                                                     column % p_.stride[2] * phase_ + column / p_.stride[2]));
        }
    return result;
  }

  /// Copies the rows of one channel that output rows [y0, y0 + rows) read.
  void copy(T* to, const T* plane, std::int64_t y0, std::int64_t rows) const {
    const std::int64_t first = y0 * p_.stride[1] - p_.pad_begin[1];
    for (std::int64_t y = 0; y < rows_in(rows); ++y, to += row()) {
      const std::int64_t iy = first + y;
      if (iy < 0 || iy >= p_.input[1]) {
        fill_zero(to, row());
        continue;
      }
      // Column c of the padded row goes to phase c % stride, element c / stride.
      for (std::int64_t phase = 0; phase < p_.stride[2]; ++phase)
        copy_read_range(to + phase * phase_, plane + iy * p_.input[2], columns_[static_cast<std::size_t>(phase)],
                        p_.stride[2], 0, phase_);
    }
  }

 private:
  conv_problem p_;
  std::int64_t phase_ = 0;           // elements of one phase of a row
  std::vector<read_range> columns_;  // of each phase
};

}  // namespace kiln::kernels
