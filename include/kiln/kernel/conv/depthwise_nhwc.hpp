#pragma once

#include <limits>

#include "kiln/kernel/conv/depthwise_block.hpp"
#include "kiln/kernel/conv/image_layout.hpp"
#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/gemm/panel.hpp"

namespace kiln::kernels {

/// Two-dimensional depthwise NHWC convolution with one output channel per group: vectors run over channels, and a few
/// adjacent pixels share each load of the weights.
template <class T> class depthwise_nhwc_convolution {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  static constexpr int most_pixels = native_bytes == 64 ? 8 : 4;

 public:
  static constexpr bool serves(const conv_problem& p) {
    return p.group_inputs() == 1 && p.group_outputs() == 1 && p.input[0] == 1 && p.kernel[0] == 1 &&
           p.pad_begin[0] == 0 && p.pad_end[0] == 0;
  }

  explicit depthwise_nhwc_convolution(const conv_problem& problem)
      : p_(problem),
        height_(std::max<std::int64_t>(1, problem.output(1))),
        width_(std::max<std::int64_t>(1, problem.output(2))),
        channels_(round_up(p_.out_channels, lanes)) {
    // Columns [inner_, inner_end_) read inside the input at every tap.
    inner_ = std::clamp<std::int64_t>(ceil_div(p_.pad_begin[2], p_.stride[2]), 0, width_);
    const std::int64_t room = p_.input[2] + p_.pad_begin[2] - p_.span(2);
    inner_end_ = room < 0 ? inner_ : std::clamp(room / p_.stride[2] + 1, inner_, width_);
  }

  static std::int64_t weights_size(const conv_problem& p) { return p.taps() * round_up(p.out_channels, lanes); }
  /// Writes weights [channels, 1, kh, kw] as [kh, kw, channels], channels padded with zeros to whole vectors.
  static void pack_weights(const conv_problem& p, T* to, const T* weights) {
    const std::int64_t channels = round_up(p.out_channels, lanes), taps = p.taps();
    fill_zero(to, taps * channels);
    for (std::int64_t c = 0; c < p.out_channels; ++c)
      for (std::int64_t t = 0; t < taps; ++t) to[t * channels + c] = weights[c * taps + t];
  }

  /// Images of which some rows and channels are computed.
  struct part {
    const T* input = nullptr;  ///< pixel (0, 0) of an image at the part's first channel
    std::ptrdiff_t in_step = 0;
    const T* weights = nullptr;  ///< of all channels
    T* output = nullptr;         ///< pixel (0, 0) at channel 0
    std::ptrdiff_t out_step = 0;
    std::int64_t image = 0, row = 0, end_row = 0;                                    ///< of the output
    std::int64_t vector = 0, end_vector = 0;                                         ///< of channels
    std::int64_t column = 0, end_column = std::numeric_limits<std::int64_t>::max();  ///< where there are no blocks
  };

  /// As `nhwc_gemm_convolution::run`, without scratch; an epilogue's tile is a row of pixels, of all channels or of a
  /// vector of them.
  template <class Epilogue>
  void run(thread_pool& pool, const T* input, std::ptrdiff_t in_step, const T* weights, T* output,
           std::ptrdiff_t out_step, Epilogue&& epilogue) const {
    const std::int64_t vectors = channels_ / lanes;
    const auto part_of = [&](std::int64_t image, std::int64_t row, std::int64_t end_row, std::int64_t vector,
                             std::int64_t end_vector) {
      return part{input + image * p_.input_pixels() * in_step + vector * lanes,
                  in_step,
                  weights,
                  output + image * height_ * width_ * out_step,
                  out_step,
                  image,
                  row,
                  end_row,
                  vector,
                  end_vector};
    };
    if (in_blocks()) {
      // A task is a strip of rows of one image and some vectors of channels. Images are first cut into equal bands for
      // the workers, who find the rows there that they wrote in the layer before: those of others take ten times as
      // long to read, and to write.
      constexpr std::int64_t together = depthwise_block<T, 3, 1>::most_rows;
      const std::int64_t many = pool.size(), tasks = 4 * many;
      const std::int64_t bands = std::min(ceil_div(height_, together), ceil_div(many, p_.batch));
      const std::int64_t rows = ceil_div(height_, bands);
      const std::int64_t strip = std::min(rows, round_up(std::max<std::int64_t>(1, height_ / 8), together));
      const std::int64_t strips = ceil_div(rows, strip);
      const std::int64_t cuts = std::clamp<std::int64_t>(ceil_div(tasks, bands * strips * p_.batch), 1,
                                                         std::max<std::int64_t>(1, vectors / 4));
      return pool.parallel_for(p_.batch * bands * strips * cuts, [&](std::int64_t task, unsigned) {
        const std::int64_t cut = task % cuts, at = task / cuts, banded = at / strips, band = banded % bands;
        const auto first = [&](std::int64_t of) { return ceil_div(height_ * of, bands); };
        const std::int64_t begin = first(band) + at % strips * strip, end = std::min(first(band + 1), begin + strip);
        if (begin < end)
          run_part(part_of(banded / bands, begin, end, vectors * cut / cuts, vectors * (cut + 1) / cuts), epilogue);
      });
    }
    // A task is some rows, or some columns of one where rows are few, or longer than what stays in L2 while vector
    // after vector of its channels is computed.
    constexpr std::int64_t cached = 256 * 1024, least = 16;  // bytes, columns
    const std::int64_t rows = p_.batch * height_;
    const std::int64_t work = std::max<std::int64_t>(1, width_ * channels_ * p_.taps());
    const std::int64_t each = std::clamp<std::int64_t>(65536 / work, 1, std::max<std::int64_t>(1, height_ / 8));
    const std::int64_t tasks = ceil_div(rows, each), wanted = pool.size() == 1 ? 1 : 4 * std::int64_t{pool.size()};
    const std::int64_t bytes = p_.input[2] * channels_ * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t cuts = each > 1 ? 1
                                       : std::clamp<std::int64_t>(std::max(ceil_div(wanted, tasks), bytes / cached), 1,
                                                                  std::max<std::int64_t>(1, width_ / least));
    pool.parallel_for(tasks * cuts, [&](std::int64_t task, unsigned) {
      const std::int64_t some = task / cuts, cut = task - some * cuts;
      for (std::int64_t row = some * each; row < std::min(rows, (some + 1) * each); ++row) {
        part of = part_of(row / height_, row % height_, row % height_ + 1, 0, vectors);
        of.column = width_ * cut / cuts, of.end_column = width_ * (cut + 1) / cuts;
        run_rows(of, epilogue);
      }
    });
  }

  /// Computes a part by one thread.
  template <class Epilogue> void run_part(const part& of, Epilogue&& epilogue) const {
    const bool fives = p_.kernel[1] == 5, twos = p_.stride[1] == 2;
    if (!in_blocks()) return run_rows(of, epilogue);
    if (fives) return twos ? run_blocks<5, 2>(of, epilogue) : run_blocks<5, 1>(of, epilogue);
    return twos ? run_blocks<3, 2>(of, epilogue) : run_blocks<3, 1>(of, epilogue);
  }

 private:
  // Whether there are loops for the kernel that keep blocks of outputs in registers.
  bool in_blocks() const {
    return p_.kernel[1] == p_.kernel[2] && (p_.kernel[1] == 3 || p_.kernel[1] == 5) && p_.stride[1] == p_.stride[2] &&
           p_.stride[1] <= 2 && p_.dilation[1] == 1 && p_.dilation[2] == 1;
  }

  // Each vector of channels goes down all rows before the next one, so that the rows that outputs share stay in L1.
  template <int Side, int Stride, class Epilogue> void run_blocks(const part& of, Epilogue&& epilogue) const {
    using block = depthwise_block<T, Side, Stride>;
    constexpr int most = block::most_rows;
    const std::int64_t begin = of.row, end = of.end_row, row0 = of.image * height_ * width_;
    depthwise_rows<T> rows{.in_row = p_.input[2] * of.in_step,
                           .in_step = of.in_step,
                           .height = p_.input[1],
                           .width = p_.input[2],
                           .top = p_.pad_begin[1],
                           .left = p_.pad_begin[2],
                           .weight_step = channels_,
                           .out_row = width_ * of.out_step,
                           .out_step = of.out_step,
                           .out_width = width_};
    for (std::int64_t v = of.vector; v < of.end_vector; ++v) {
      const std::int64_t c = v * lanes;
      rows.input = of.input + (v - of.vector) * lanes;
      rows.weights = of.weights + c;
      rows.output = of.output + c;
      rows.channels = static_cast<int>(std::min<std::int64_t>(lanes, p_.out_channels - c));
      tile_epilogue<T> inside{.activates = true};
      const bool applied = applies_in_registers(epilogue, row0 + begin * width_, (end - begin) * width_, c,
                                                std::int64_t{rows.channels}, inside) &&
                           !inside.row_bias;
      std::int64_t y = begin;
      const auto pass = [&]<int Rows>() {
        const std::int64_t next = y + Rows;
        const T* const ahead =
            rows.input + (next < end ? (next - 1) * Stride + Side - p_.pad_begin[1] : begin * Stride) * rows.in_row +
            (next < end ? 0 : lanes);
        block::template run<Rows>(rows, y, applied ? &inside : nullptr, ahead);
        if (applied)
          inside.advance(Rows * width_);
        else
          epilogue(row0 + y * width_, Rows * width_, c, std::int64_t{rows.channels}, rows.output + y * rows.out_row,
                   of.out_step);
        return next;
      };
      while (y + most <= end) y = pass.template operator()<most>();
      while (y < end) y = pass.template operator()<1>();
    }
  }

  template <class Epilogue> void run_rows(const part& of, Epilogue&& epilogue) const {
    const std::int64_t first = of.vector * lanes, count = std::min(p_.out_channels, of.end_vector * lanes) - first;
    const std::int64_t end = std::min(width_, of.end_column);
    for (std::int64_t y = of.row; y < of.end_row; ++y) {
      T* const out = of.output + y * width_ * of.out_step + first;
      run_row(of.input, of.in_step, of.weights + first, y, of.column, end, out, of.out_step, count);
      epilogue((of.image * height_ + y) * width_ + of.column, end - of.column, first, count,
               out + of.column * of.out_step, of.out_step);
    }
  }

  // Columns [begin, end) of a row, of some channels; `out` is its first pixel.
  void run_row(const T* image, std::ptrdiff_t in_step, const T* weights, std::int64_t y, std::int64_t begin,
               std::int64_t end, T* out, std::ptrdiff_t out_step, std::int64_t channels) const {
    const std::int64_t y0 = y * p_.stride[1] - p_.pad_begin[1], step = p_.dilation[1];
    const std::int64_t first = y0 >= 0 ? 0 : ceil_div(-y0, step);
    const std::int64_t last = std::min(p_.kernel[1], y0 >= p_.input[1] ? 0 : ceil_div(p_.input[1] - y0, step));
    for (std::int64_t c = 0; c < channels; c += lanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, channels - c));
      const auto taps = [&]<int Pixels, bool Whole>(std::int64_t x) {
        V sum[Pixels];
#pragma GCC unroll 8
        for (int i = 0; i < Pixels; ++i) sum[i] = V{};
        const std::int64_t x0 = x * p_.stride[2] - p_.pad_begin[2];
        for (std::int64_t ky = first; ky < last; ++ky) {
          const T* const row = image + (y0 + ky * step) * p_.input[2] * in_step + c;
          const T* w = weights + ky * p_.kernel[2] * channels_ + c;
          for (std::int64_t kx = 0; kx < p_.kernel[2]; ++kx, w += channels_) {
            const std::int64_t ix = x0 + kx * p_.dilation[2];
            if (Pixels == 1 && (ix < 0 || ix >= p_.input[2])) continue;
            const V weight = load<V>(w);
#pragma GCC unroll 8
            for (int i = 0; i < Pixels; ++i) {
              const T* const at = row + (ix + i * p_.stride[2]) * in_step;
              sum[i] = multiply_add(Whole ? load<V>(at) : load_n<V>(at, count), weight, sum[i]);
            }
          }
        }
#pragma GCC unroll 8
        for (int i = 0; i < Pixels; ++i) {
          T* const to = out + (x + i) * out_step + c;
          if (Whole)
            store(to, sum[i]);
          else
            store_n(to, sum[i], count);
        }
      };
      const auto columns = [&]<bool Whole>() {
        const std::int64_t inner = std::min(inner_, end), inner_end = std::min(inner_end_, end);
        std::int64_t x = begin;
        for (; x < inner; ++x) taps.template operator()<1, Whole>(x);
        for (; x + most_pixels <= inner_end; x += most_pixels) taps.template operator()<most_pixels, Whole>(x);
        for (; x + 2 <= inner_end; x += 2) taps.template operator()<2, Whole>(x);
        for (; x < end; ++x) taps.template operator()<1, Whole>(x);
      };
      if (count == lanes)
        columns.template operator()<true>();
      else
        columns.template operator()<false>();
    }
  }

  conv_problem p_;
  std::int64_t height_, width_, channels_, inner_ = 0, inner_end_ = 0;
};

}  // namespace kiln::kernels
