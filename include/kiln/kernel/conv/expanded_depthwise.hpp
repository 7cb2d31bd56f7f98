#pragma once

#include "kiln/kernel/conv/depthwise_nhwc.hpp"
#include "kiln/kernel/conv/nhwc_gemm.hpp"

namespace kiln::kernels {

/// A pointwise NHWC convolution and the depthwise one that reads it, as one step: a worker takes a band of the result's
/// rows and goes down it in strips. For a strip it makes the rows between the two that are still missing in its own
/// memory, which stays in L2, and the strip's results of them. Rows that two strips of a band read are kept, those that
/// two bands read are made twice.
template <class T> class expanded_depthwise_convolution {
 public:
  /// Whether the result of `expand` is what `depthwise` reads, and both are of the kinds that are served.
  static constexpr bool serves(const conv_problem& expand, const conv_problem& depthwise) {
    return expand.pointwise() && expand.groups == 1 && nhwc_gemm_convolution<T>::serves(expand) &&
           depthwise_nhwc_convolution<T>::serves(depthwise) && expand.batch == depthwise.batch &&
           expand.out_channels == depthwise.in_channels && expand.input == depthwise.input;
  }

  expanded_depthwise_convolution(const conv_problem& expand, const conv_problem& depthwise, unsigned workers)
      : first_(expand),
        second_(depthwise),
        below_(depthwise),
        workers_(workers),
        height_(std::max<std::int64_t>(1, depthwise.output(1))),
        width_(depthwise.input[2]) {
    constexpr std::int64_t strip_bytes = 192 * 1024;
    const std::int64_t stride = second_.stride[1], span = second_.span(1);
    const std::int64_t images = std::max<std::int64_t>(1, second_.batch), many = workers;
    // As few bands as keep the workers busy, since what two of them read is made twice: channels are cut first.
    const std::int64_t panels = std::max<std::int64_t>(1, ceil_div(channels(), register_tile<T>::width));
    cuts_ = many > 4 * images ? panels : 1;
    const std::int64_t parts = images * cuts_, tasks = many == 1 || parts % many == 0 ? many
                                                       : parts < many                 ? many
                                                                                      : 2 * many;
    band_rows_ = ceil_div(height_, std::clamp<std::int64_t>(ceil_div(tasks, parts), 1, height_));
    bands_ = ceil_div(height_, band_rows_);
    const std::int64_t row_bytes = std::max<std::int64_t>(1, row_size()) * static_cast<std::int64_t>(sizeof(T));
    // Strips have even numbers of rows, since the depthwise loops make two at a time, and so many that more rows are
    // made than kept.
    const std::int64_t fit = (strip_bytes / row_bytes - span) / stride + 1;
    const std::int64_t least = ceil_div(2 * std::max<std::int64_t>(0, span - stride), stride);
    strip_rows_ = std::min(band_rows_, std::max<std::int64_t>({2, fit / 2 * 2, round_up(least, 2)}));
    held_rows_ = (strip_rows_ - 1) * stride + span;
  }

  /// Elements of scratch, aligned to 64 bytes, that a run needs.
  std::int64_t scratch_size() const { return workers_ * each(); }

  /// Reads images [batch, H, W, in_channels], writes [batch, H', W', channels]; pixels are `in_step` and `out_step`
  /// elements apart. Weights are as `nhwc_gemm_convolution` and `depthwise_nhwc_convolution` pack them. `between` and
  /// `epilogue` are epilogues of the two results as those of `nhwc_gemm_convolution::run`; rows between that two bands
  /// read go through `between` twice.
  template <class Between, class Epilogue>
  void run(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* expand_weights,
           const T* depthwise_weights, T* output, std::ptrdiff_t out_step, T* scratch, Between&& between,
           Epilogue&& epilogue) const {
    if (second_.empty()) return;
    pool.parallel_for(second_.batch * bands_ * cuts_, [&](std::int64_t task, unsigned worker) {
      const std::int64_t cut = task % cuts_, band = task / cuts_ % bands_, image = task / cuts_ / bands_;
      const std::int64_t begin = band * band_rows_, end = std::min(height_, begin + band_rows_);
      T* const own = scratch + worker * each();
      T* const out = output + image * height_ * std::max<std::int64_t>(1, second_.output(2)) * out_step;
      held_range held;
      for (std::int64_t y = begin; y < end; y += strip_rows_) {
        const std::int64_t rows = std::min(strip_rows_, end - y), top = y * second_.stride[1] - second_.pad_begin[1];
        const std::int64_t bottom = top + (rows - 1) * second_.stride[1] + second_.span(1);
        const held_range read{std::clamp<std::int64_t>(top, 0, second_.input[1]),
                              std::clamp<std::int64_t>(bottom, 0, second_.input[1])};
        // what the previous strip made and this one reads, too
        const std::int64_t kept = std::max<std::int64_t>(0, held.end - std::max(read.begin, held.begin));
        for_panels(cut, [&](std::int64_t col, std::int64_t width, std::int64_t cols) {
          T* const panel = own + col * held_rows_ * width_;
          const std::int64_t row = width_ * width;
          if (kept > 0)
            std::memmove(panel, panel + (read.begin - held.begin) * row,
                         static_cast<std::size_t>(kept * row) * sizeof(T));
          const std::int64_t from = read.begin + kept, pixel = (image * second_.input[1] + from) * width_;
          multiply(input + pixel * in_step, in_step, (read.end - from) * width_, expand_weights, col, width, cols,
                   panel + kept * row, pixel, between);
          below_.run_part({panel - read.begin * row, static_cast<std::ptrdiff_t>(width), depthwise_weights, out,
                           out_step, image, y, y + rows, col / lanes, (col + width) / lanes},
                          epilogue);
        });
        held = read;
      }
    });
  }

 private:
  static constexpr int lanes = native_lanes<T>;
  struct held_range {
    std::int64_t begin = 0, end = 0;  // rows of the image between
  };

  std::int64_t channels() const { return second_.in_channels; }
  // Elements of a row between: each panel of channels has its own memory.
  std::int64_t row_size() const { return width_ * round_up(channels(), lanes); }

  std::int64_t each() const { return round_up(held_rows_ * row_size(), 64 / static_cast<std::int64_t>(sizeof(T))); }

  // Each of the `cuts_` parts of the channels is all panels or one.
  template <class F> void for_panels(std::int64_t cut, F&& f) const {
    const std::int64_t end = cuts_ == 1 ? channels() : std::min(channels(), (cut + 1) * register_tile<T>::width);
    for (std::int64_t col = cut * register_tile<T>::width; col < end; col += register_tile<T>::width)
      f(col, panel_width<T>(col, channels()), std::min<std::int64_t>(register_tile<T>::width, channels() - col));
  }

  // Some pixels of a panel of channels, of which `pixel` is the first.
  template <class Between>
  void multiply(const T* a, std::ptrdiff_t a_row, std::int64_t pixels, const T* weights, std::int64_t col,
                std::int64_t width, std::int64_t cols, T* c, std::int64_t pixel, Between&& between) const {
    if (pixels <= 0) return;
    const std::int64_t all = first_.in_channels, block = depth_block<T>(all);
    std::int64_t k = 0;
    do {
      const std::int64_t depth = std::min(block, all - k);
      const panel_epilogue<T, std::remove_reference_t<Between>> of_panel{
          between, k + depth >= all, pixel, col, cols, c, static_cast<std::ptrdiff_t>(width)};
      multiply_panel(depth, a + k, a_row, pixels, linear_step{1}, weights + col * all + k * width,
                     static_cast<std::ptrdiff_t>(width), c, static_cast<std::ptrdiff_t>(width), static_cast<int>(cols),
                     k != 0, coming_block<T>{}, of_panel);
      k += depth;
    } while (k < all);
  }

  conv_problem first_, second_;
  depthwise_nhwc_convolution<T> below_;
  std::int64_t workers_;
  std::int64_t height_, width_;  // rows of the result, pixels of a row between
  std::int64_t cuts_ = 1, bands_ = 1, band_rows_ = 1, strip_rows_ = 1, held_rows_ = 1;
};

}  // namespace kiln::kernels
