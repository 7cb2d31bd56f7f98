#pragma once

#include <optional>

#include "kiln/kernel/conv/column_phases.hpp"
#include "kiln/kernel/conv/depthwise_3x3.hpp"
#include "kiln/kernel/conv/depthwise_3x3_small.hpp"
#include "kiln/kernel/conv/image_layout.hpp"
#include "kiln/kernel/conv/shifted_rows.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// Convolution with one input channel per group (depthwise, or a first layer of one channel): a strip of padded input
/// rows, of each plane that the window meets, is stored by column phase (column modulo stride), so that every tap reads
/// contiguous elements.
template <class T> class depthwise_nchw_convolution {
 public:
  /// `to`: the strides of the output.
  depthwise_nchw_convolution(const conv_problem& problem, const nchw_strides& to)
      : p_(problem),
        to_(to),
        out_d_(problem.output(0)),
        out_h_(problem.output(1)),
        out_w_(problem.output(2)),
        taps_(problem.taps()),
        multiplier_(problem.group_outputs()),
        layout_(problem),
        offsets_(layout_.offsets(1, 0)) {
    constexpr std::int64_t strip_elements = 20 * 1024 / static_cast<std::int64_t>(sizeof(T));
    using extents = conv_problem::extents;
    const bool flat = p_.input[0] == 1 && out_d_ == 1;
    if (flat && small_plane_3x3<T>::serves(p_))
      small_.emplace(p_);
    else if (flat && has_masked_loads && p_.kernel == extents{1, 3, 3} && p_.dilation[1] == 1 && p_.dilation[2] == 1 &&
             p_.stride[1] == p_.stride[2] && p_.stride[2] <= 2)
      direct_.emplace(p_.stride[2], p_.input[1], p_.input[2], p_.pad_begin[1], p_.pad_begin[2], out_w_);
    const std::int64_t rows = strip_elements / (layout_.row() * p_.kernel[0]);
    const std::int64_t fitting = rows < p_.span(1) ? 1 : (rows - p_.span(1)) / p_.stride[1] + 1;
    strip_rows_ = std::clamp<std::int64_t>(fitting, 1, std::max<std::int64_t>(1, out_h_));
    if (direct_ && strip_rows_ > plane_3x3<T>::rows) strip_rows_ -= strip_rows_ % plane_3x3<T>::rows;
  }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const {
    return small_ ? 0 : (direct_ ? 1 : p_.kernel[0] * layout_.rows_in(strip_rows_)) * layout_.row();
  }

  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue) const {
    const std::int64_t scratch_each = round_up(scratch_size(), native_lanes<T>);
    const std::int64_t planes = p_.batch * p_.groups;
    const std::int64_t strips = small_ ? 1 : out_d_ * ceil_div(out_h_, strip_rows_);
    // Where there are enough channels, one worker takes all strips of a channel, since strips overlap.
    const bool whole = planes >= 8 * static_cast<std::int64_t>(pool.size());
    const std::int64_t per_task = whole ? ceil_div(planes, 16 * static_cast<std::int64_t>(pool.size())) : 1;
    const std::int64_t tasks = whole ? ceil_div(planes, per_task) : planes * strips;
    pool.parallel_for(tasks, [&](std::int64_t task, unsigned worker) {
      T* const local = scratch + worker * scratch_each;
      const std::int64_t first = whole ? task * per_task : task / strips;
      const std::int64_t last = whole ? std::min(planes, first + per_task) : first + 1;
      // counters, since a division takes as long as a small channel
      std::int64_t image = first / p_.groups, group = first - image * p_.groups;
      for (std::int64_t plane = first; plane < last; ++plane) {
        const std::int64_t begin = whole ? 0 : task % strips, end = whole ? strips : begin + 1;
        if (small_) run_small(image, group, input, weights, output, epilogue);
        for (std::int64_t strip = begin; strip < end && !small_; ++strip)
          run_strip(image, group, strip, input, weights, output, local, epilogue);
        if (++group == p_.groups) group = 0, ++image;
      }
    });
  }

 private:
  template <class Epilogue>
  void run_small(std::int64_t batch, std::int64_t group, const T* input, const T* weights, T* output,
                 Epilogue&& epilogue) const {
    if constexpr (has_masked_loads) {
      const T* const image = input + (batch * p_.groups + group) * p_.input_pixels();
      const std::int64_t pixels = out_h_ * out_w_;
      for (std::int64_t j = 0; j < multiplier_; ++j) {
        const std::int64_t channel = group * multiplier_ + j;
        T* const out = output + to_.at(batch, channel);
        tile_epilogue<T> inside;
        const bool applied =
            applies_in_registers(epilogue, batch, channel, std::int64_t{1}, std::int64_t{0}, pixels, inside) &&
            !inside.col_bias[0] && !inside.col_bias[1];
        small_->run(image, weights + channel * 9, out, applied ? &inside : nullptr);
        if (!applied) epilogue(batch, channel, std::int64_t{1}, std::int64_t{0}, pixels, out, pixels);
      }
    }
  }

  template <class Epilogue>
  void run_strip(std::int64_t batch, std::int64_t group, std::int64_t strip, const T* input, const T* weights,
                 T* output, T* local, Epilogue&& epilogue) const {
    const std::int64_t in_plane = ceil_div(out_h_, strip_rows_), z = quotient(strip, in_plane);
    const std::int64_t y0 = (strip - z * in_plane) * strip_rows_;
    const std::int64_t rows = std::min(strip_rows_, out_h_ - y0);
    const T* const image = input + (batch * p_.groups + group) * p_.input_pixels();
    window_rows<T> window;
    if (direct_)
      fill_zero(local, layout_.row());
    else
      window = copy_planes(local, image, z, y0, rows);
    for (std::int64_t j = 0; j < multiplier_; ++j) {
      const std::int64_t channel = group * multiplier_ + j, pixel0 = (z * out_h_ + y0) * out_w_, pixels = rows * out_w_;
      T* const out = output + to_.at(batch, channel) + pixel0;
      if constexpr (has_masked_loads) {
        if (direct_) {
          tile_epilogue<T> inside;
          const bool applied =
              applies_in_registers(epilogue, batch, channel, std::int64_t{1}, pixel0, pixels, inside) &&
              !inside.col_bias[0] && !inside.col_bias[1];
          direct_->run(image, weights + channel * 9, local, y0, y0 + rows, out, applied ? &inside : nullptr);
          if (applied) continue;
        }
      }
      if (!direct_) {
        window.weights = weights + channel * taps_;
        sum_windows(window, rows, out_w_, out, out_w_);
      }
      epilogue(batch, channel, std::int64_t{1}, pixel0, pixels, out, out_d_ * out_h_ * out_w_);
    }
  }

  // Copies what output rows [y0, y0 + rows) of plane `z` read of one channel.
  window_rows<T> copy_planes(T* local, const T* image, std::int64_t z, std::int64_t y0, std::int64_t rows) const {
    window_rows<T> w{.planes = local, .plane = layout_.rows_in(rows) * layout_.row(), .last = p_.kernel[0]};
    const std::int64_t first = z * p_.stride[0] - p_.pad_begin[0];
    const auto plane_of = [&](std::int64_t k) { return first + k * p_.dilation[0]; };
    while (w.first < w.last && plane_of(w.first) < 0) ++w.first;
    while (w.first < w.last && plane_of(w.last - 1) >= p_.input[0]) --w.last;
    for (std::int64_t k = w.first; k < w.last; ++k)
      layout_.copy(local + k * w.plane, image + plane_of(k) * p_.input[1] * p_.input[2], y0, rows);
    w.height = p_.kernel[1], w.width = p_.kernel[2];
    w.row = layout_.row();
    w.stride = p_.stride[1], w.dilation = p_.dilation[1];
    w.offset = offsets_.data();
    return w;
  }

  conv_problem p_;
  nchw_strides to_;
  std::int64_t out_d_, out_h_, out_w_, taps_, multiplier_;
  column_phases<T> layout_;
  std::optional<small_plane_3x3<T>> small_;
  std::optional<plane_3x3<T>> direct_;
  std::int64_t strip_rows_ = 1;
  std::vector<std::int32_t> offsets_;
};

}  // namespace kiln::kernels
