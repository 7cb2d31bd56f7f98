#pragma once

#include "kiln/kernel/conv/window_left.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// Outputs [begin, end) along one dimension, whose windows read inside the image with taps [tap_begin, tap_end) alone.
struct live_run {
  std::int64_t begin, end, tap_begin, tap_end;
  constexpr std::int64_t outputs() const { return end - begin; }
  constexpr std::int64_t taps() const { return tap_end - tap_begin; }
};

/// Calls `each(live_run)` for the runs of outputs along dimension d that read inside with the same taps, in order.
/// Where a window lies wholly outside, one tap stands for none.
template <class Each> constexpr void each_live_run(const conv_problem& p, std::size_t d, Each&& each) {
  const auto taps_of = [&](std::int64_t output) {
    const std::int64_t before = p.pad_begin[d] - output * p.stride[d], inside = before + p.input[d];
    const std::int64_t begin = std::min(ceil_div(std::max<std::int64_t>(before, 0), p.dilation[d]), p.kernel[d] - 1);
    return live_run{output, output + 1, begin,
                    std::clamp(ceil_div(std::max<std::int64_t>(inside, 0), p.dilation[d]), begin + 1, p.kernel[d])};
  };
  const std::int64_t count = p.output(d);
  for (std::int64_t at = 0; at < count;) {
    live_run run = taps_of(at);
    for (++at; at < count; ++at, ++run.end) {
      const live_run next = taps_of(at);
      if (next.tap_begin != run.tap_begin || next.tap_end != run.tap_end) break;
    }
    each(static_cast<const live_run&>(run));
  }
}

/// Whether a convolution in one group whose windows reach outside is computed part by part, each with the taps that
/// read inside, and the share of the work that is left. Work is counted in rows of a product with one tap's weights.
class window_cut {
 public:
  constexpr explicit window_cut(const conv_problem& p) {
    if (p.groups != 1 || p.taps() == 1 || !p.padded() || p.input[0] != 1 || p.kernel[0] != 1 || p.empty()) return;
    const std::int64_t tap = std::max<std::int64_t>(1, p.in_channels * p.out_channels);
    double parts = 0;
    each_live_run(p, 1, [&](const live_run& y) {
      each_live_run(p, 2, [&](const live_run& x) {
        parts += work(p.batch * y.outputs() * x.outputs(), y.taps() * x.taps(), tap);
      });
    });
    const double share = parts / work(p.batch * p.output_pixels(), p.taps(), tap);
    if (share < 0.8) share_ = share;
  }
  constexpr bool gains() const { return share_ < 1; }
  constexpr double share() const { return share_; }

 private:
  // Tiles of a matrix unit have 16 rows; a block of rows reads, and there splits, the weights in the time of 32 rows;
  // and two jobs of the workers are as far apart as a quarter of a million products take.
  static constexpr double work(std::int64_t rows, std::int64_t taps, std::int64_t tap) {
    return static_cast<double>((round_up(rows, 16) + 32 * ceil_div(rows, 256)) * taps) +
           static_cast<double>(1 << 18) / static_cast<double>(tap);
  }

  double share_ = 1;
};

/// The rows of a packed right operand that meet some taps of a window: a range of each of some rows of taps. Blocks
/// that lie across two ranges are copied to the worker's scratch, others are read in place.
template <class T> class tap_rows {
 public:
  static constexpr bool packed = true;

  /// Of `weights` [`all` rows], ranges of `range` rows begin `pitch` rows apart at row `first`. A worker's scratch has
  /// `each` elements, a block.
  tap_rows(const T* weights, std::int64_t all, std::int64_t first, std::int64_t range, std::int64_t pitch, T* scratch,
           std::int64_t each)
      : whole_{weights, 0, all}, first_(first), range_(range), pitch_(pitch), scratch_(scratch), each_(each) {}

  panel_block<T> block(std::int64_t, std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t depth,
                       unsigned worker) const {
    if (adjacent(row) >= depth) return at(col, cols, row, depth);
    T* const local = scratch_ + worker * each_;
    const std::int64_t width = round_up(cols, native_lanes<T>);
    for (std::int64_t done = 0; done < depth;) {
      const std::int64_t count = std::min(adjacent(row + done), depth - done);
      std::copy_n(at(col, cols, row + done, count).at, count * width, local + done * width);
      done += count;
    }
    return {local, static_cast<std::ptrdiff_t>(width)};
  }
  coming_block<T> peek(std::int64_t, std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t depth) const {
    const panel_block<T> found = at(col, cols, row, depth);
    return {found.at, found.step, std::min(adjacent(row), depth), found.step};
  }

 private:
  // Rows from `row` on that lie one after the other.
  std::int64_t adjacent(std::int64_t row) const {
    return range_ == pitch_ ? std::numeric_limits<std::int64_t>::max() : range_ - row % range_;
  }
  panel_block<T> at(std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t depth) const {
    return whole_.block(0, col, cols, first_ + quotient(row, range_) * pitch_ + row % range_, depth, 0);
  }

  packed_right<T> whole_;
  std::int64_t first_, range_, pitch_;
  T* scratch_;
  std::int64_t each_;
};

/// A convolution whose windows reach outside so far that many taps read nothing: the output is cut where the taps that
/// read inside change, and each part is a GEMM of the rows of the weights that it meets. Dilated windows of small
/// images are so (a 3x3 kernel dilated by 24 over 33 x 33 pixels takes 29 % of the products). Sums of a part are made
/// in scratch, dense, and a finished tile is copied to its pixels.
template <class T> class windows_in_parts {
 public:
  /// No parts where the whole takes no longer.
  windows_in_parts(const conv_problem& p, unsigned workers)
      : height_(p.output(1)),
        width_(p.output(2)),
        outputs_(p.out_channels),
        depth_(p.depth()),
        pitch_(p.kernel[2] * p.in_channels),
        workers_(workers) {
    if (!window_cut(p).gains()) return;
    each_live_run(p, 1, [&](const live_run& y) { each_live_run(p, 2, [&](const live_run& x) { add(p, y, x); }); });
  }
  bool empty() const { return parts_.empty(); }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const {
    return empty() ? 0
                   : ceil_div(sums_size(), std::int64_t{workers_}) + line + split_size() + left_size() + right_size();
  }

  /// As `nhwc_gemm_convolution::run`.
  template <class Epilogue>
  void run(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
           std::ptrdiff_t out_step, T* scratch, Epilogue&& epilogue) const {
    T* const sums = scratch;
    T* const split = sums + sums_size();
    T* const lefts = split + split_size() * pool.size();
    T* const rights = lefts + left_size() * pool.size();
    for (const part& each : parts_) {
      gemm_problem<T> g{.m = each.rows(), .n = outputs_, .k = each.problem.depth()};
      g.c = sums;
      g.c_row = sums_row();
      g.fetch = window_left<T>::fetch;
      const window_left<T> left(each.problem, input, in_step, most_rows, most_depth, lefts);
      const tap_rows<T> right(weights, depth_, each.first_tap, each.problem.kernel[2] * each.problem.in_channels,
                              pitch_, rights, right_size());
      const auto finish = [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, const T* c,
                              std::ptrdiff_t c_row) {
        for (std::int64_t row = row0; row < row0 + rows;) {
          const std::int64_t line_of = row / each.width, x = row - line_of * each.width;
          const std::int64_t count = std::min(each.width - x, row0 + rows - row);
          const std::int64_t pixel =
              (line_of / each.height * height_ + each.y + line_of % each.height) * width_ + each.x + x;
          T* const to = output + pixel * out_step + col0;
          for (std::int64_t i = 0; i < count; ++i, c += c_row) copy_strided(to + i * out_step, c, 1, cols);
          epilogue(pixel, count, col0, cols, to, out_step);
          row += count;
        }
      };
      if (multiplied_on_matrix_unit(pool, g, left, right, split, most_rows, finish)) continue;
      const gemm_split<T> cut(g, true, pool.size(), 48, most_rows_of_vectors);
      multiply(pool, g, std::min(most_depth, depth_block<T>(g.k)), cut, left, right, finish);
    }
  }

 private:
  static constexpr std::int64_t line = 64 / sizeof(T);
  static constexpr std::int64_t most_rows = split_schedule::most_rows, most_rows_of_vectors = 96;
  static constexpr std::int64_t most_depth = 256;
  static_assert(most_depth >= split_scratch::depth && most_rows >= most_rows_of_vectors);

  struct part {
    conv_problem problem;              // with the taps and outputs of the part alone
    std::int64_t y, x, height, width;  // of the outputs
    std::int64_t first_tap;            // the row of the weights with which it begins
    std::int64_t rows() const { return problem.batch * height * width; }
  };

  void add(const conv_problem& whole, const live_run& y, const live_run& x) {
    part made{whole,       y.begin,     x.begin,
              y.outputs(), x.outputs(), y.tap_begin * pitch_ + x.tap_begin * whole.in_channels};
    conv_problem& p = made.problem;
    const live_run* const runs[] = {&y, &x};
    for (std::size_t d = 1; d < 3; ++d) {
      const live_run& run = *runs[d - 1];
      p.kernel[d] = run.taps();
      p.pad_begin[d] -= run.begin * p.stride[d] + run.tap_begin * p.dilation[d];
      p.pad_end[d] = (run.outputs() - 1) * p.stride[d] + p.span(d) - p.input[d] - p.pad_begin[d];
    }
    most_ = std::max(most_, made.rows());
    parts_.push_back(made);
  }

  std::ptrdiff_t sums_row() const { return round_up(outputs_, line); }
  std::int64_t sums_size() const { return most_ * sums_row(); }
  std::int64_t split_size() const { return matrix_unit_scratch_size<T>(most_, outputs_, depth_); }
  static std::int64_t left_size() { return round_up(window_left<T>::scratch_size(most_rows, most_depth), line); }
  static std::int64_t right_size() {
    return round_up(most_depth * std::max<std::int64_t>(register_tile<T>::width, split_schedule::panel), line);
  }

  std::int64_t height_, width_, outputs_, depth_, pitch_;
  std::int64_t workers_;
  std::int64_t most_ = 0;  // rows of a part
  std::vector<part> parts_;
};

}  // namespace kiln::kernels
