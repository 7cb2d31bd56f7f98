#pragma once

#include <limits>

#include "kiln/kernel/conv/depthwise_nhwc.hpp"
#include "kiln/kernel/conv/direct_rows.hpp"
#include "kiln/kernel/conv/im2col.hpp"
#include "kiln/kernel/conv/nhwc_gemm.hpp"
#include "kiln/kernel/conv/winograd/convolution.hpp"
#include "kiln/kernel/conv/winograd/convolution_1d.hpp"

namespace kiln::kernels {

/// How a convolution is computed. The first five read NCHW; `direct_channels` and `winograd_1d` write either layout,
/// the other three NCHW. The last four read and write NHWC; `winograd_2x2` and `winograd_4x4` also NCHW.
/// - direct_channels: vectors over output channels; the window is read through a table of offsets; packed weights.
/// - im2col: vectors over output pixels; 1x1 kernels read the input, others a panel gathered by im2col.
/// - depthwise_nchw: one input channel per group, vectors over columns; an output channel is a sum of shifted rows.
/// - direct_rows: vectors over the pixels of an output row, which reads a padded strip of the input.
/// - winograd_1d: F(4, r) along rows alone, up to 5 taps in each column phase.
/// - nhwc_gemm: GEMM over windows that are read in place, vectors over output channels.
/// - winograd_2x2, winograd_4x4: F(2x2) for 3x3 and 5x5 kernels at strides 1 and 2; F(4x4) for 3x3.
/// - depthwise_nhwc: vectors over channels.
enum class conv_method : std::uint8_t {
  direct_channels,
  im2col,
  depthwise_nchw,
  direct_rows,
  winograd_1d,
  nhwc_gemm,
  winograd_2x2,
  winograd_4x4,
  depthwise_nhwc
};

constexpr bool reads_nhwc(conv_method m) { return m >= conv_method::nhwc_gemm; }
constexpr bool reads_either_layout(conv_method m) {
  return m == conv_method::winograd_2x2 || m == conv_method::winograd_4x4;
}
constexpr bool writes_either_layout(conv_method m) {
  return reads_either_layout(m) || m == conv_method::direct_channels || m == conv_method::winograd_1d;
}
/// Whether a method writes NCHW with any strides of batch and channels (`image_layout::nchw`).
constexpr bool writes_strided_channels(conv_method m) {
  return m == conv_method::im2col || m == conv_method::depthwise_nchw;
}

/// What the cost of a method depends on besides the problem.
struct conv_machine {
  double byte_cost = 1;      ///< time of a byte from a shared cache over that of a product; 1 on Intel's servers
  bool matrix_unit = false;  ///< the processor has one: a GEMM on it takes less work, counted in products of vectors
};

/// Estimated work of a convolution in multiplications, for the given layouts of input and output; infinite where the
/// method does not apply. It depends on the problem and the machine only. The coefficients were fitted to AVX-512
/// measurements on Intel's servers. Bytes of weights count because each block of pixels streams them from a shared
/// cache.
template <class T> class conv_cost {
 public:
  constexpr conv_cost(const conv_problem& p, bool in_nhwc, bool out_nhwc, const conv_machine& machine = {})
      : p_(p), in_nhwc_(in_nhwc), out_nhwc_(out_nhwc), machine_(machine) {
    const std::int64_t outputs = std::max<std::int64_t>(1, p.group_outputs());
    pixels_ = std::max<double>(1, static_cast<double>(p.batch * p.output_pixels()));
    depth_ = static_cast<double>(std::max<std::int64_t>(1, p.depth()));
    const double panel = static_cast<double>(p.groups * round_up(outputs, native_lanes<T>));
    direct_ = pixels_ * panel * depth_;
    useful_ = pixels_ * static_cast<double>(p.out_channels) * depth_;
    inputs_ = static_cast<double>(p.batch * p.in_channels * p.input_pixels());
    results_ = pixels_ * static_cast<double>(p.out_channels);
    // An image of one pixel lies the same way in both layouts: its copy is nothing beside the weights.
    conversion_ = (in_nhwc || p.input_pixels() == 1 ? 0 : 30 * inputs_ * padding(p.in_channels)) +
                  (out_nhwc || p.output_pixels() == 1 ? 0 : 30 * results_ * padding(p.out_channels));
  }

  constexpr double of(conv_method method) const {
    constexpr double never = std::numeric_limits<double>::infinity();
    switch (method) {
      case conv_method::direct_channels:
        return in_nhwc_ ? never : direct_ * (p_.taps() == 1 ? 1.2 : 1.1) + (out_nhwc_ ? 2 : 20) * results_;
      case conv_method::im2col: {
        if (in_nhwc_ || out_nhwc_) return never;
        const std::int64_t pixels = std::max<std::int64_t>(1, p_.output_pixels());
        const bool copies = im2col_convolution<T>::gathers_whole_rows(p_);
        const double packing = p_.pointwise() ? 2 : p_.taps() == 1 ? 8 : copies ? 12 : p_.stride[2] > 2 ? 80 : 40;
        const double short_tiles = p_.taps() == 1 ? 1 : 1 + 8 / depth_;
        // Single elements gathered for each chunk of channels take longer than a unit gains.
        const bool on_unit = machine_.matrix_unit && p_.groups == 1 && (p_.taps() == 1 || copies);
        const double unit = on_unit ? matrix_unit_gain<T>(p_.out_channels, pixels, p_.depth(), 0) : 1;
        const auto gathers = static_cast<double>(unit > 1 ? ceil_div(p_.out_channels, split_schedule::most_rows) : 1);
        return 1.05 * useful_ * short_tiles * static_cast<double>(round_up(pixels, native_lanes<T>)) /
               static_cast<double>(pixels) *
               (1 / unit + gathers * packing / static_cast<double>(std::max<std::int64_t>(1, p_.group_outputs())));
      }
      case conv_method::depthwise_nchw: {
        const bool serves = p_.group_inputs() == 1 && p_.group_outputs() <= 8;
        return serves && !in_nhwc_ && !out_nhwc_ ? 4 * useful_ * short_rows() : never;
      }
      case conv_method::direct_rows: {
        const std::int64_t width = std::max<std::int64_t>(1, p_.output(2));
        if (!direct_rows_convolution<T>::serves(p_) || in_nhwc_ || out_nhwc_ || p_.taps() == 1 ||
            !direct_rows_convolution<T>::stays_near(p_))
          return never;
        // rows end in a partial vector, each tile has the overhead of a few steps, and the strip is copied; vectors of
        // many channels across two lines take as long as panels of whole ones
        const double across = p_.kernel[1] == 1 && p_.group_inputs() >= 16 ? 1.3 : 1;
        return useful_ * static_cast<double>(round_up(width, native_lanes<T>)) / static_cast<double>(width) * across *
                   (1 + 8 / depth_) * (p_.group_outputs() < register_tile<T>::rows ? 2 : 1) +
               8 * inputs_ * static_cast<double>(p_.span(1)) / static_cast<double>(p_.stride[1]);
      }
      case conv_method::winograd_1d: return winograd_1d();
      case conv_method::nhwc_gemm:
        return nhwc_gemm_convolution<T>::serves(p_)
                   ? direct_ * window_cut(p_).share() / unit_gain() +
                         4 * pixels_ * depth_ * (p_.padded() ? 1.0 : 0.0) / 9 + conversion_
                   : never;
      case conv_method::winograd_2x2:
        return with_winograd_2x2<T>(p_, [&]<class Winograd>() { return winograd<Winograd>(); });
      case conv_method::winograd_4x4: return winograd<winograd_convolution<T, 4>>();
      case conv_method::depthwise_nhwc:
        return depthwise_nhwc_convolution<T>::serves(p_) ? 4 * useful_ + conversion_ : never;
    }
    return never;
  }

 private:
  // Conversion of fewer channels than a vector has lanes costs as much as that of a whole vector.
  static constexpr double padding(std::int64_t channels) {
    return static_cast<double>(std::max<std::int64_t>(channels, native_lanes<T>)) /
           static_cast<double>(std::max<std::int64_t>(channels, 1));
  }

  // What rows shorter than a vector cost over full ones; 3x3 kernels have loops for them.
  constexpr double short_rows() const {
    const auto width = static_cast<double>(std::max<std::int64_t>(1, p_.output(2)));
    const bool own_loops = p_.kernel[0] == 1 && p_.kernel[1] == 3 && p_.kernel[2] == 3;
    return own_loops || width >= native_lanes<T> || p_.output_pixels() == 1 ? 1 : 1.5 * native_lanes<T> / width;
  }

  constexpr double winograd_1d() const {
    using method = winograd_1d_convolution<T>;
    const std::int64_t height = std::max<std::int64_t>(1, p_.output(1)), rows = p_.batch * height;
    // Workers share the problem by strips of rows.
    if (in_nhwc_ || !method::serves(p_) || rows * p_.groups < 16) return std::numeric_limits<double>::infinity();
    const std::int64_t cols = method::row_tiles(p_);
    const double panel = static_cast<double>(p_.groups * round_up(p_.group_outputs(), native_lanes<T>));
    // The sums of each point are stored and reloaded; the wider the vectors, the larger its share of the time.
    constexpr double wide = native_bytes / 64.0;
    const double tile = 1.1 * static_cast<double>(method::products(p_)) +
                        wide * (6 * static_cast<double>(method::points(p_)) + 26) + (out_nhwc_ ? 0 : 50);
    // Input rows are transformed in vectors of tiles; rows that two strips read are transformed twice.
    const std::int64_t strip = std::clamp<std::int64_t>(method::most_rows(p_), 1, ceil_div(height, 8));
    const double inputs = static_cast<double>(rows * p_.in_channels) *
                          (static_cast<double>((strip - 1) * p_.stride[1] + p_.span(1)) / static_cast<double>(strip));
    const auto row = static_cast<double>(round_up(cols, native_lanes<T>) *
                                         (method::phase_points(p_) + method::tile_width * p_.stride[2]));
    return static_cast<double>(rows * cols) * panel * tile + 20 * inputs * row;
  }

  template <class Winograd> constexpr double winograd() const {
    using terms = typename Winograd::terms;
    constexpr int taps = Winograd::kernel_side * Winograd::kernel_side;
    if (!Winograd::serves(p_) || p_.group_inputs() < 8) return std::numeric_limits<double>::infinity();
    const double tiles = static_cast<double>(p_.batch * ceil_div(p_.output(1), Winograd::tile_side) *
                                             ceil_div(p_.output(2), Winograd::tile_side));
    constexpr double all = terms::all, products = terms::products;
    const auto groups = static_cast<double>(p_.groups);
    const auto inputs = static_cast<double>(round_up(p_.group_inputs(), native_lanes<T>));
    const auto outputs = static_cast<double>(round_up(p_.group_outputs(), native_lanes<T>));
    // 5x5 kernels and groups have few channels, and their direct methods take longer than the products alone.
    const bool small = Winograd::kernel_side == 5 || p_.groups > 1;
    // Transforms cost as much as some channels; each block of about 24 tiles reads the bytes by which transformed
    // weights exceed plain ones from a shared cache.
    const double more_bytes = (all - taps) * inputs * outputs * static_cast<double>(sizeof(T));
    // Where tiles are few, workers share panels of output channels, seldom a number that divides evenly.
    const std::int64_t panels = ceil_div(p_.group_outputs(), register_tile<T>::width);
    const double uneven = tiles < 24 && panels > 1 ? 1 + 0.5 / static_cast<double>(panels) : 1;
    // Up to 512 KiB, bytes count half: much of them is fetched while the first points are multiplied.
    const bool few_bytes = groups * all * inputs * outputs * static_cast<double>(sizeof(T)) <= 512 * 1024;
    const double transformed = all * inputs + products * outputs;
    const double work = tiles * (uneven * all * inputs * outputs + (small ? 18 : 8) * transformed) +
                        machine_.byte_cost * (few_bytes ? 3 : 6) * more_bytes * std::clamp(tiles / 24, 1.0, 2.0);
    const double far = (small && tiles >= 24 ? 0.85 : 1) * groups * work;
    // Reading the weights takes as long as multiplying three tiles by them.
    const double near_work = std::max(tiles, 3.0) * all * inputs * outputs + 12 * tiles * transformed;
    const double least = p_.near_weights ? std::min(far, groups * near_work) : far;
    return least + conversion_;
  }

  // The speedup of a matrix unit, if there is one, over vectors for NHWC's GEMM.
  constexpr double unit_gain() const {
    return machine_.matrix_unit ? nhwc_gemm_convolution<T>::matrix_unit_gain(p_) : 1;
  }

  conv_problem p_;
  bool in_nhwc_, out_nhwc_;
  conv_machine machine_;
  double pixels_, depth_, direct_, useful_, inputs_, results_, conversion_;
};

/// The method with the least estimated work for the given layouts of input and output.
template <class T>
constexpr conv_method choose_conv_method(const conv_problem& p, bool in_nhwc = false, bool out_nhwc = false,
                                         const conv_machine& machine = {}) {
  const conv_cost<T> cost(p, in_nhwc, out_nhwc, machine);
  constexpr double never = std::numeric_limits<double>::infinity();
  const double planes = cost.of(conv_method::depthwise_nchw), channels = cost.of(conv_method::depthwise_nhwc);
  if (std::min(planes, channels) < never)
    return planes <= channels ? conv_method::depthwise_nchw : conv_method::depthwise_nhwc;
  conv_method best = conv_method::direct_channels;
  double least = never;
  for (conv_method m :
       {conv_method::direct_channels, conv_method::im2col, conv_method::direct_rows, conv_method::winograd_1d,
        conv_method::nhwc_gemm, conv_method::winograd_2x2, conv_method::winograd_4x4})
    if (const double c = cost.of(m); c < least) best = m, least = c;
  return best;
}

/// Whether a convolution is estimated to take less work in NHWC than in NCHW.
template <class T> constexpr bool gains_from_nhwc(const conv_problem& p, const conv_machine& machine = {}) {
  const auto least = [&](bool last) {
    return conv_cost<T>(p, last, last, machine).of(choose_conv_method<T>(p, last, last, machine));
  };
  return least(true) < least(false);
}

}  // namespace kiln::kernels
