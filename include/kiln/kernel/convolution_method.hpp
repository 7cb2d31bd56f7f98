#pragma once

#include <limits>

#include "kiln/kernel/convolution_filtered_rows.hpp"
#include "kiln/kernel/convolution_images.hpp"
#include "kiln/kernel/convolution_rows.hpp"
#include "kiln/kernel/convolution_winograd.hpp"
#include "kiln/kernel/depthwise_images.hpp"

namespace kiln::kernels {

/// How a convolution is computed. The first five read planes; `channels` and `filtered_rows` write either layout, the
/// others planes. The rest read and write images whose channels are last, and minimal filtering either layout.
/// - channels: vectors run over output channels, the window is read through a table of offsets; weights are packed.
/// - pixels: vectors run over output pixels (1x1 kernels read the input, others are gathered per panel).
/// - planes: one input channel per group; each output plane is a sum of shifted rows.
/// - rows: vectors run over the pixels of an output row, which reads a padded strip of the input.
/// - filtered_rows: minimal filtering along rows alone, with output tiles of 1x4 (up to 5 taps of each column phase).
/// - images: vectors run over output channels, the left operand over input channels.
/// - winograd2, winograd4: minimal filtering with output tiles of 2x2 (kernels of 3x3 and 5x5, at stride 2 too) or 4x4
///   (3x3).
/// - depthwise: vectors run over channels.
enum class conv_method : std::uint8_t {
  channels,
  pixels,
  planes,
  rows,
  filtered_rows,
  images,
  winograd2,
  winograd4,
  depthwise
};

constexpr bool reads_channels_last(conv_method m) { return m >= conv_method::images; }
constexpr bool reads_either_layout(conv_method m) { return m == conv_method::winograd2 || m == conv_method::winograd4; }
constexpr bool writes_either_layout(conv_method m) {
  return reads_either_layout(m) || m == conv_method::channels || m == conv_method::filtered_rows;
}
/// Whether a method writes planes that lie apart (`image_layout::planes`).
constexpr bool writes_planes_apart(conv_method m) { return m == conv_method::pixels || m == conv_method::planes; }

/// What the costs of a convolution's methods depend on beside the problem.
struct conv_machine {
  double byte_cost = 1;  ///< how long a byte of a shared cache takes beside a product, 1 being that of Intel's servers
  bool matrix_unit = false;  ///< there is one, which multiplies windows
};

/// Estimated work of a convolution, in products of one element, where input and output lie as told; infinite where the
/// method does not serve. It depends on the problem and the machine only. The weights of each term were fitted to
/// measurements at AVX-512 of Intel's servers; bytes of weights count because each block of pixels streams them from a
/// cache that is shared.
template <class T>
class conv_cost {
 public:
  constexpr conv_cost(const conv_problem& p, bool in_last, bool out_last, const conv_machine& machine = {})
      : p_(p), in_last_(in_last), out_last_(out_last), machine_(machine) {
    const std::int64_t outputs = std::max<std::int64_t>(1, p.group_outputs());
    pixels_ = std::max<double>(1, static_cast<double>(p.batch * p.output_pixels()));
    depth_ = static_cast<double>(std::max<std::int64_t>(1, p.depth()));
    const double panel = static_cast<double>(p.groups * round_up(outputs, native_lanes<T>));
    direct_ = pixels_ * panel * depth_;
    useful_ = pixels_ * static_cast<double>(p.out_channels) * depth_;
    inputs_ = static_cast<double>(p.batch * p.in_channels * p.input_pixels());
    results_ = pixels_ * static_cast<double>(p.out_channels);
    conversion_ = (in_last ? 0 : 30 * inputs_ * padding(p.in_channels)) +
                  (out_last ? 0 : 30 * results_ * padding(p.out_channels));
  }

  constexpr double of(conv_method method) const {
    constexpr double never = std::numeric_limits<double>::infinity();
    switch (method) {
      case conv_method::channels:
        return in_last_ ? never : direct_ * (p_.taps() == 1 ? 1.2 : 1.1) + (out_last_ ? 2 : 20) * results_;
      case conv_method::pixels: {
        if (in_last_ || out_last_) return never;
        const std::int64_t pixels = std::max<std::int64_t>(1, p_.output_pixels());
        const double packing = p_.pointwise() ? 2 : p_.taps() == 1 ? 8 : 40;
        return 1.05 * useful_ * static_cast<double>(round_up(pixels, native_lanes<T>)) / static_cast<double>(pixels) *
               (1 + packing / static_cast<double>(std::max<std::int64_t>(1, p_.group_outputs())));
      }
      case conv_method::planes: {
        const bool serves = p_.group_inputs() == 1 && p_.group_outputs() <= 8 && p_.kernel[0] == 1 &&
                            p_.input[0] == 1 && p_.output(0) == 1;
        return serves && !in_last_ && !out_last_ ? 4 * useful_ : never;
      }
      case conv_method::rows: {
        const std::int64_t width = std::max<std::int64_t>(1, p_.output(2));
        const std::int64_t padded = round_up(width, native_lanes<T>) * p_.stride[2] + p_.span(2);
        // what a row of outputs reads has to stay in the first-level cache: its planes lie far apart
        constexpr std::int64_t most = 28 * 1024 / static_cast<std::int64_t>(sizeof(T));
        if (!row_convolution<T>::serves(p_) || in_last_ || out_last_ || p_.taps() == 1 ||
            p_.group_inputs() * p_.kernel[1] * padded > most)
          return never;
        // rows end with a part of a vector, a tile costs what a few steps do, and the strip is copied
        return useful_ * static_cast<double>(round_up(width, native_lanes<T>)) / static_cast<double>(width) *
                   (1 + 8 / depth_) * (p_.group_outputs() < register_tile<T>::rows ? 2 : 1) +
               8 * inputs_ * static_cast<double>(p_.span(1)) / static_cast<double>(p_.stride[1]);
      }
      case conv_method::filtered_rows:
        return filtered_rows();
      case conv_method::images:
        return image_convolution<T>::serves(p_)
                   ? direct_ + 4 * pixels_ * depth_ * (p_.padded() ? 1.0 : 0.0) / 9 + conversion_
                   : never;
      case conv_method::winograd2:
        return with_filtering_of_2x2<T>(p_, [&]<class Filtering>() { return filtering<Filtering>(); });
      case conv_method::winograd4:
        return filtering<winograd_convolution<T, 4>>();
      case conv_method::depthwise:
        return depthwise_convolution<T>::serves(p_) ? 4 * useful_ + conversion_ : never;
    }
    return never;
  }

 private:
  // Fewer channels than a vector has are converted as if they filled it.
  static constexpr double padding(std::int64_t channels) {
    return static_cast<double>(std::max<std::int64_t>(channels, native_lanes<T>)) /
           static_cast<double>(std::max<std::int64_t>(channels, 1));
  }

  constexpr double filtered_rows() const {
    using method = filtered_row_convolution<T>;
    const std::int64_t height = std::max<std::int64_t>(1, p_.output(1)), rows = p_.batch * height;
    // Strips of rows are what workers share.
    if (in_last_ || !method::serves(p_) || rows * p_.groups < 16) return std::numeric_limits<double>::infinity();
    const std::int64_t cols = method::row_tiles(p_);
    const double panel = static_cast<double>(p_.groups * round_up(p_.group_outputs(), native_lanes<T>));
    // Each point's sums are stored and read again, which takes the longer beside products the wider vectors are.
    constexpr double wide = native_bytes / 64.0;
    const double tile = 1.1 * static_cast<double>(method::products(p_)) +
                        wide * (6 * static_cast<double>(method::points(p_)) + 26) + (out_last_ ? 0 : 50);
    // Rows of the input are transformed in vectors of tiles, those that two strips read twice.
    const std::int64_t strip = std::clamp<std::int64_t>(method::most_rows(p_), 1, ceil_div(height, 8));
    const double inputs = static_cast<double>(rows * p_.in_channels) *
                          (static_cast<double>((strip - 1) * p_.stride[1] + p_.span(1)) / static_cast<double>(strip));
    const auto row = static_cast<double>(round_up(cols, native_lanes<T>) *
                                         (method::phase_points(p_) + method::tile_width * p_.stride[2]));
    return static_cast<double>(rows * cols) * panel * tile + 20 * inputs * row;
  }

  template <class Filtering>
  constexpr double filtering() const {
    using terms = typename Filtering::terms;
    constexpr int taps = Filtering::kernel_side * Filtering::kernel_side;
    if (!Filtering::serves(p_) || p_.group_inputs() < 8) return std::numeric_limits<double>::infinity();
    const double tiles = static_cast<double>(p_.batch * ceil_div(p_.output(1), Filtering::tile_side) *
                                             ceil_div(p_.output(2), Filtering::tile_side));
    constexpr double all = terms::all, products = terms::products;
    const auto groups = static_cast<double>(p_.groups);
    const auto inputs = static_cast<double>(round_up(p_.group_inputs(), native_lanes<T>));
    const auto outputs = static_cast<double>(round_up(p_.group_outputs(), native_lanes<T>));
    // Kernels of 5x5 and groups have few channels, and their direct methods take longer than their products.
    const bool small = Filtering::kernel_side == 5 || p_.groups > 1;
    // Transforms cost as much as some channels; each block of about 24 tiles reads what the weights take beyond
    // untransformed ones from a cache that is shared.
    const double more_bytes = (all - taps) * inputs * outputs * static_cast<double>(sizeof(T));
    // Few tiles are shared by panels of output channels, which are seldom as many as serve all workers alike.
    const std::int64_t panels = ceil_div(p_.group_outputs(), register_tile<T>::width);
    const double uneven = tiles < 24 && panels > 1 ? 1 + 0.5 / static_cast<double>(panels) : 1;
    // The bytes of up to 512 KiB count half: much of them comes while the first points are multiplied.
    const bool few_bytes = groups * all * inputs * outputs * static_cast<double>(sizeof(T)) <= 512 * 1024;
    const double transformed = all * inputs + products * outputs;
    const double work = tiles * (uneven * all * inputs * outputs + (small ? 18 : 8) * transformed) +
                        machine_.byte_cost * (few_bytes ? 3 : 6) * more_bytes * std::clamp(tiles / 24, 1.0, 2.0);
    const double far = (small && tiles >= 24 ? 0.85 : 1) * groups * work;
    // Reading weights takes as long as three tiles' products with them.
    const double near_work = std::max(tiles, 3.0) * all * inputs * outputs + 12 * tiles * transformed;
    const double least = p_.near_weights ? std::min(far, groups * near_work) : far;
    // Where filtering saves least, at stride 2, the estimate counts the products that a matrix unit makes meanwhile.
    const bool beside_unit = Filtering::stride > 1 && machine_.matrix_unit;
    return least * (beside_unit ? image_convolution<T>::matrix_unit_gain(p_) : 1) + conversion_;
  }

  conv_problem p_;
  bool in_last_, out_last_;
  conv_machine machine_;
  double pixels_, depth_, direct_, useful_, inputs_, results_, conversion_;
};

/// The method with the least estimated work for an input and an output that lie as told.
template <class T>
constexpr conv_method choose_conv_method(const conv_problem& p, bool in_last = false, bool out_last = false,
                                         const conv_machine& machine = {}) {
  const conv_cost<T> cost(p, in_last, out_last, machine);
  if (!in_last && !out_last && cost.of(conv_method::planes) < std::numeric_limits<double>::infinity())
    return conv_method::planes;
  if ((in_last || out_last) && cost.of(conv_method::depthwise) < std::numeric_limits<double>::infinity())
    return conv_method::depthwise;
  conv_method best = conv_method::channels;
  double least = std::numeric_limits<double>::infinity();
  for (conv_method m : {conv_method::channels, conv_method::pixels, conv_method::rows, conv_method::filtered_rows,
                        conv_method::images, conv_method::winograd2, conv_method::winograd4})
    if (const double c = cost.of(m); c < least) best = m, least = c;
  return best;
}

/// Whether a convolution of images whose channels are last is estimated to take less work than one of planes.
template <class T>
constexpr bool gains_from_channels_last(const conv_problem& p, const conv_machine& machine = {}) {
  const auto least = [&](bool last) {
    return conv_cost<T>(p, last, last, machine).of(choose_conv_method<T>(p, last, last, machine));
  };
  return least(true) < least(false);
}

}  // namespace kiln::kernels
