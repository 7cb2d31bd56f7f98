#pragma once

#include <cstring>

#include "kiln/kernel/conv/image_layout.hpp"
#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// Convolution with vectors over output channels: a tile multiplies a few pixels, broadcast from the input in place, by
/// a panel of packed weights; the sums are transposed into the output's layout. A task is a strip of output rows, or a
/// stretch of one row where these are few or long, whose padded input stays in L2 while all its channels are computed.
template <class T> class direct_channels_convolution {
 public:
  direct_channels_convolution(const conv_problem& problem, unsigned workers)
      : p_(problem),
        out_{problem.output(0), problem.output(1), problem.output(2)},
        out_pixels_(problem.output_pixels()),
        group_inputs_(problem.group_inputs()),
        group_outputs_(problem.group_outputs()),
        depth_(problem.depth()) {
    constexpr std::int64_t strip_bytes = 192 * 1024;
    const std::int64_t wanted = 4 * static_cast<std::int64_t>(workers);
    const std::int64_t height = std::max<std::int64_t>(1, out_[1]);
    const std::int64_t width = std::max<std::int64_t>(1, out_[2]);
    // Channels of a page or more are copied too: a tile reads one line of each, too far apart to be prefetched.
    copied_ = p_.padded() || p_.input_pixels() * static_cast<std::int64_t>(sizeof(T)) > 4096;
    row_ = copied_ ? (width - 1) * p_.stride[2] + p_.span(2) : p_.input[2];
    const std::int64_t images = std::max<std::int64_t>(1, p_.batch * p_.groups * out_[0]);
    std::int64_t strips =
        std::clamp<std::int64_t>(ceil_div(wanted, images), 1, std::max<std::int64_t>(1, height * width / 48));
    if (workers == 1) strips = 1;
    strips = std::min(strips, height);
    strip_rows_ = ceil_div(height, strips);
    while (copied_ && strip_rows_ > 1 && local_size(strip_rows_) * static_cast<std::int64_t>(sizeof(T)) > strip_bytes)
      strip_rows_ = (strip_rows_ + 1) / 2;
    strips_ = ceil_div(height, strip_rows_);
    stretch_ = width;
    if (strip_rows_ == 1) {
      constexpr std::int64_t least = 48;
      const std::int64_t wide =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(sizeof(T)) * group_inputs_ * p_.span(0) * p_.span(1));
      const std::int64_t most = copied_ ? (strip_bytes / wide - p_.span(2)) / p_.stride[2] + 1 : width;
      const std::int64_t shared = workers == 1 ? width : ceil_div(width, ceil_div(wanted, images * strips_));
      stretch_ = std::min(width, std::max(least, std::min(most, shared)));
      stretch_ = ceil_div(width, ceil_div(width, stretch_));
    }
    stretches_ = ceil_div(width, stretch_);
    if (copied_) row_ = (stretch_ - 1) * p_.stride[2] + p_.span(2);
    strips_ *= stretches_;
    const std::int64_t panels = ceil_div(group_outputs_, register_tile<T>::width);
    const std::int64_t cuts = workers == 1 ? 1
                                           : std::clamp<std::int64_t>(ceil_div(wanted, images * strips_), 1,
                                                                      std::max<std::int64_t>(1, panels));
    panels_per_task_ = std::max<std::int64_t>(1, ceil_div(panels, cuts));
    channel_cuts_ = ceil_div(panels, panels_per_task_);
    plane_ = copied_ ? p_.span(0) * rows_in(strip_rows_) * row_ : p_.input_pixels();
    slice_ = copied_ ? rows_in(strip_rows_) * row_ : p_.input[1] * p_.input[2];
    depth_block_ = depth_block<T>(depth_);
    const bool cut = depth_block_ < depth_;
    const std::int64_t pixels = strip_rows_ * stretch_;
    chunk_ = std::min<std::int64_t>(pixels, cut ? pixels : 8 * register_tile<T>::rows);
    offsets_.reserve(static_cast<std::size_t>(depth_));
    for (std::int64_t c = 0; c < group_inputs_; ++c)
      for (std::int64_t z = 0; z < p_.kernel[0]; ++z)
        for (std::int64_t y = 0; y < p_.kernel[1]; ++y)
          for (std::int64_t x = 0; x < p_.kernel[2]; ++x)
            offsets_.push_back(static_cast<std::int32_t>(c * plane_ + z * p_.dilation[0] * slice_ +
                                                         y * p_.dilation[1] * row_ + x * p_.dilation[2]));
  }

  /// Elements that the packed weights take.
  static std::int64_t weights_size(const conv_problem& p) {
    return p.groups * packed_b_size<T>(p.depth(), p.group_outputs());
  }
  static void pack_weights(thread_pool& pool, const conv_problem& p, T* to, const std::byte* weights) {
    const std::int64_t of_group = p.group_outputs() * p.depth() * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t g = 0; g < p.groups; ++g)
      pack_b(pool, to + g * packed_b_size<T>(p.depth(), p.group_outputs()), weights + g * of_group, 1, p.depth(),
             p.depth(), p.group_outputs());
  }

  /// Elements of scratch for each worker.
  std::int64_t scratch_size() const { return header + sums_size() + (copied_ ? local_size(strip_rows_) : 0); }

  template <class Epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, const image_layout& to, T* scratch,
           Epilogue&& epilogue) const {
    const std::int64_t scratch_each = round_up(scratch_size(), native_lanes<T>);
    for (unsigned w = 0; w < pool.size(); ++w) mark_strip(scratch + w * scratch_each, -1);
    const std::int64_t tasks = p_.batch * p_.groups * out_[0] * strips_ * channel_cuts_;
    pool.parallel_for(tasks, [&](std::int64_t task, unsigned worker) {
      T* const own = scratch + worker * scratch_each;
      const std::int64_t cut = task % channel_cuts_;
      const std::int64_t strip = task / channel_cuts_;
      const std::int64_t x0 = strip % stretches_ * stretch_, y0 = strip % strips_ / stretches_ * strip_rows_;
      const std::int64_t z0 = strip / strips_ % out_[0];
      const std::int64_t image = strip / strips_ / out_[0];  // batch * groups + group
      const std::int64_t rows = std::min(strip_rows_, out_[1] - y0);
      const T* from = input + image * group_inputs_ * p_.input_pixels();
      if (copied_) {
        T* const local = own + header + sums_size();
        if (!holds_strip(own, strip)) copy_strip(local, from, z0, y0, x0, rows);
        mark_strip(own, strip);
        from = local;
      } else {
        from += z0 * p_.stride[0] * slice_ + y0 * p_.stride[1] * row_ + x0 * p_.stride[2];
      }
      const std::int64_t begin = cut * panels_per_task_ * register_tile<T>::width;
      const std::int64_t end = std::min(group_outputs_, begin + panels_per_task_ * register_tile<T>::width);
      const T* const group_weights = weights + image % p_.groups * packed_b_size<T>(depth_, group_outputs_);
      for (std::int64_t channel = begin; channel < end; channel += register_tile<T>::width)
        run_panel(from, group_weights, output, to, own + header, image, channel, (z0 * out_[1] + y0) * out_[2] + x0,
                  rows * std::min(stretch_, out_[2] - x0), epilogue);
    });
  }

 private:
  static constexpr std::int64_t header = 64 / sizeof(T);

  // Which strip a worker's copy holds: tasks that differ only in channels share it.
  static bool holds_strip(const T* own, std::int64_t strip) { return std::memcmp(own, &strip, sizeof strip) == 0; }
  static void mark_strip(T* own, std::int64_t strip) { std::memcpy(own, &strip, sizeof strip); }

  std::int64_t rows_in(std::int64_t rows) const { return (rows - 1) * p_.stride[1] + p_.span(1); }
  std::int64_t local_size(std::int64_t rows) const { return group_inputs_ * p_.span(0) * rows_in(rows) * row_; }
  std::int64_t sums_size() const { return chunk_ * register_tile<T>::width; }

  void copy_strip(T* to, const T* image, std::int64_t z0, std::int64_t y0, std::int64_t x0, std::int64_t rows) const {
    const read_range columns(x0 * p_.stride[2] - p_.pad_begin[2], 1, p_.input[2], row_);
    const std::int64_t first_x = columns.first + columns.begin, columns_read = columns.end - columns.begin;
    const std::int64_t first_z = z0 * p_.stride[0] - p_.pad_begin[0];
    const std::int64_t first_y = y0 * p_.stride[1] - p_.pad_begin[1];
    const std::int64_t count = rows_in(rows);
    const std::int64_t input_pixels = p_.input_pixels();
    const std::int64_t rows_read = std::clamp<std::int64_t>(p_.input[1] - first_y, 0, count);
    for (std::int64_t c = 0; c < group_inputs_; ++c) {
      if (c + 2 < group_inputs_) {
        // The rows of a channel are too short for the hardware prefetcher.
        const char* at = reinterpret_cast<const char*>(image + (c + 2) * input_pixels +
                                                       std::max<std::int64_t>(0, first_y) * p_.input[2] + first_x);
        const std::int64_t read = (rows_read - 1) * p_.input[2] + columns_read;
        for (std::int64_t i = 0; i < read * static_cast<std::int64_t>(sizeof(T)); i += 64) __builtin_prefetch(at + i);
      }
      for (std::int64_t z = 0; z < p_.span(0); ++z)
        for (std::int64_t y = 0; y < count; ++y) {
          T* const out = to + c * plane_ + z * slice_ + y * row_;
          const std::int64_t iz = first_z + z;
          const std::int64_t iy = first_y + y;
          if (iz >= 0 && iz < p_.input[0] && iy >= 0 && iy < p_.input[1])
            copy_read_range(out, image + c * input_pixels + (iz * p_.input[1] + iy) * p_.input[2], columns, 1, 0, row_);
          else
            fill_zero(out, row_);
        }
    }
  }

  // All pixels of a strip for one panel of channels.
  template <class Epilogue>
  void run_panel(const T* from, const T* weights, T* output, const image_layout& to, T* sums, std::int64_t image,
                 std::int64_t channel, std::int64_t pixel0, std::int64_t pixels, Epilogue&& epilogue) const {
    constexpr std::int64_t full = register_tile<T>::width;
    const std::int64_t width = panel_width<T>(channel, group_outputs_);
    const std::int64_t channels = std::min(full, group_outputs_ - channel);
    const int vectors = static_cast<int>(width / native_lanes<T>);
    const std::int64_t out_width = out_[2];
    const T* const panel = weights + channel * depth_;
    const std::int64_t group_weights = packed_b_size<T>(depth_, group_outputs_);
    const std::int64_t out_channel = image % p_.groups * group_outputs_ + channel;
    const std::int64_t out_row = out_pixels_;
    const bool last = to.nhwc;
    const std::int64_t row0 = image / p_.groups * out_row + pixel0;  // of the NHWC output as a matrix
    T* const out = last ? output + row0 * to.step + out_channel
                        : output + (image / p_.groups * p_.out_channels + out_channel) * out_row + pixel0;
    for (std::int64_t chunk = 0; chunk < pixels; chunk += chunk_) {
      const std::int64_t count = std::min(chunk_, pixels - chunk);
      std::int64_t k = 0;
      do {
        const std::int64_t depth = std::min(depth_block_, depth_ - k);
        // Prefetches the weights of the next block, or of the group's first one, with which the next strip begins.
        const std::int64_t next = channel * depth_ + (k + depth) * width;
        const char* const ahead = reinterpret_cast<const char*>(weights + (next < group_weights ? next : 0));
        const std::ptrdiff_t ahead_step =
            ceil_div(width * static_cast<std::int64_t>(sizeof(T)) * register_tile<T>::rows_of(vectors), pixels);
        std::int64_t fetched = 0;
        std::int64_t y = chunk / out_width;
        std::int64_t x = chunk % out_width;
        even_blocks(count, register_tile<T>::rows_of(vectors)).each([&](std::int64_t first, int tile_rows) {
          const T* row[2 * register_tile<T>::rows];
          for (int r = 0; r < tile_rows; ++r) {
            row[r] = from + y * p_.stride[1] * row_ + x * p_.stride[2];
            if (++x == out_width) x = 0, ++y;
          }
          // Prefetches this chunk's lines of the output, a few channels at a time.
          if (k + depth >= depth_ && !last) {
            const std::int64_t due = std::min(channels, ceil_div(channels * (first + tile_rows), count));
            for (; fetched < due; ++fetched) fetch_for_write(out + fetched * out_row + chunk, count);
          }
          const fetch_ahead fetch{ahead + (chunk + first) / tile_rows * depth * ahead_step, ahead_step};
          T* const tile = last ? out + (chunk + first) * to.step : sums + first * full;
          const bool ends = last && k + depth >= depth_;
          tile_epilogue<T> inside{.activates = true};
          const bool applied = ends && applies_in_registers(epilogue, std::int64_t{0}, out_channel, channels,
                                                            row0 + chunk + first, std::int64_t{tile_rows}, inside);
          find_tile<T, table_step>(tile_rows, vectors)(
              depth, row, table_step{offsets_.data() + k}, panel + k * width, width, tile, last ? to.step : full,
              static_cast<int>(last ? channels : width), k != 0, fetch, applied ? &inside : nullptr);
          if (ends && !applied)
            epilogue(std::int64_t{0}, out_channel, channels, row0 + chunk + first, std::int64_t{tile_rows}, tile,
                     to.step);
        });
        k += depth;
      } while (k < depth_);
      for (std::int64_t first = 0; first < count && !last; first += 4 * native_lanes<T>) {
        const std::int64_t cols = std::min<std::int64_t>(4 * native_lanes<T>, count - first);
        T* const tile = out + chunk + first;
        transpose_block(sums + first * full, full, tile, out_row, cols, channels);
        epilogue(image / p_.groups, out_channel, channels, pixel0 + chunk + first, cols, tile, out_row);
      }
    }
  }

  conv_problem p_;
  conv_problem::extents out_;
  std::int64_t out_pixels_, group_inputs_, group_outputs_, depth_;
  bool copied_ = false;   // the padded strip is copied; otherwise the input is read in place
  std::int64_t row_ = 0;  // row stride of what the tiles read; likewise slice and plane
  std::int64_t slice_ = 0;
  std::int64_t plane_ = 0;
  std::int64_t strip_rows_ = 1, strips_ = 1;  // rows of a strip; strips of a slice, or stretches of their rows
  std::int64_t stretch_ = 1, stretches_ = 1;  // columns of a row that a task takes, and how many such
  std::int64_t panels_per_task_ = 1, channel_cuts_ = 1;
  std::int64_t depth_block_ = 1;
  std::int64_t chunk_ = 1;  // pixels whose sums are kept before they are transposed
  std::vector<std::int32_t> offsets_;
};

}  // namespace kiln::kernels
