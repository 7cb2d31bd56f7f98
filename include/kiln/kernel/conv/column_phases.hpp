#pragma once

#include "kiln/kernel/conv/problem.hpp"

namespace kiln::kernels {

/// Input rows stored so that every tap of a strided two-dimensional convolution reads contiguous elements: padded, and
/// by column phase (column modulo stride). Of long rows, what some columns of the output read is stored at a time.
template <class T> class column_phases {
 public:
  explicit column_phases(const conv_problem& problem)
      : column_phases(problem, std::max<std::int64_t>(1, problem.output(2))) {}
  column_phases(const conv_problem& problem, std::int64_t cols) : p_(problem), phase_(phase_of(problem, cols)) {
    const std::int64_t all = std::max<std::int64_t>(1, p_.output(2)) + phase_;
    for (std::int64_t phase = 0; phase < p_.stride[2]; ++phase)
      columns_.emplace_back(phase - p_.pad_begin[2], p_.stride[2], p_.input[2], all);
  }

  /// Elements of a row that `cols` columns of the output read.
  static constexpr std::int64_t row_of(const conv_problem& p, std::int64_t cols) {
    return phase_of(p, cols) * p.stride[2];
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

  /// Copies the rows of one channel that output rows [y0, y0 + rows) read, for the columns of the output from x0 on.
  void copy(T* to, const T* plane, std::int64_t y0, std::int64_t rows, std::int64_t x0 = 0) const {
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
                        p_.stride[2], x0, x0 + phase_);
    }
  }

 private:
  // Vector loads read up to the end of the last vector of outputs. The first tap of each row begins a vector.
  static constexpr std::int64_t phase_of(const conv_problem& p, std::int64_t cols) {
    return round_up(round_up(cols, native_lanes<T>) + (p.span(2) - 1) / p.stride[2], native_lanes<T>);
  }

  conv_problem p_;
  std::int64_t phase_;               // elements of one phase of a row
  std::vector<read_range> columns_;  // of each phase
};

}  // namespace kiln::kernels
