#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kiln/backend/eigen/kernels/gemm_pack.hpp"

namespace kiln::kernels {

/// A convolution of an input [batch, in_channels, D, H, W] with weights [out_channels, in_channels / groups, kd, kh,
/// kw]. Fewer spatial dimensions are right-aligned: the leading ones stay 1.
struct conv_problem {
  using extents = std::array<std::int64_t, 3>;
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  extents input{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad_begin{}, pad_end{};

  constexpr std::int64_t group_inputs() const { return in_channels / groups; }
  constexpr std::int64_t group_outputs() const { return out_channels / groups; }
  constexpr std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Products summed for one output.
  constexpr std::int64_t depth() const { return group_inputs() * taps(); }
  /// Input elements that the dilated kernel spans along dimension `d`.
  constexpr std::int64_t span(std::size_t d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  /// Output extent along dimension `d`; 0 where the kernel does not fit.
  constexpr std::int64_t output(std::size_t d) const {
    const std::int64_t room = input[d] + pad_begin[d] + pad_end[d] - span(d);
    return room < 0 ? 0 : room / stride[d] + 1;
  }
  constexpr std::int64_t input_pixels() const { return input[0] * input[1] * input[2]; }
  constexpr std::int64_t output_pixels() const { return output(0) * output(1) * output(2); }
  constexpr bool padded() const {
    for (std::size_t d = 0; d < 3; ++d)
      if (pad_begin[d] != 0 || pad_end[d] != 0) return true;
    return false;
  }
  /// Whether output pixel i depends on input pixel i alone.
  constexpr bool pointwise() const { return taps() == 1 && !padded() && stride == extents{1, 1, 1}; }
  constexpr bool empty() const { return batch <= 0 || out_channels <= 0 || output_pixels() <= 0; }
};

/// How a convolution is computed.
/// - channels: vectors run over output channels, the window is read through a table of offsets; weights are packed.
/// - pixels: vectors run over output pixels (1x1 kernels read the input, others are gathered per panel).
/// - planes: one input channel per group; each output plane is a sum of shifted rows.
enum class conv_method { channels, pixels, planes };

/// The method with the least estimated work; depends on the sizes only.
template <class T>
constexpr conv_method choose_conv_method(const conv_problem& p) {
  constexpr std::int64_t n = native_lanes<T>;
  if (p.group_inputs() == 1 && p.group_outputs() <= 8 && p.kernel[0] == 1 && p.input[0] == 1 && p.output(0) == 1)
    return conv_method::planes;
  const std::int64_t outputs = std::max<std::int64_t>(1, p.group_outputs());
  const std::int64_t pixels = std::max<std::int64_t>(1, p.output_pixels());
  const double depth = static_cast<double>(std::max<std::int64_t>(1, p.depth()));
  // Per useful product, in units of one vector product: padding lanes, then the transposition of the sums, or the
  // packing of a panel that the rows of a tile share.
  const double channels = static_cast<double>(round_up(outputs, n)) / static_cast<double>(outputs) * (1 + 10.0 / depth);
  const double gather = p.pointwise() ? 4.0 : 12.0;
  const double by_pixels = static_cast<double>(round_up(pixels, n)) / static_cast<double>(pixels) *
                           (1 + gather / static_cast<double>(outputs));
  return by_pixels < channels ? conv_method::pixels : conv_method::channels;
}

/// Copies `count` elements that lie `step` apart.
template <class T>
[[gnu::always_inline]] inline void copy_strided(T* to, const T* from, std::ptrdiff_t step, std::int64_t count) {
  constexpr int n = native_lanes<T>;
  if (step != 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
    return;
  }
  std::int64_t i = 0;
  for (; i + n <= count; i += n) store(to + i, load<native_vec<T>>(from + i));
  if (i < count)
    store_n(to + i, load_n<native_vec<T>>(from + i, static_cast<int>(count - i)), static_cast<int>(count - i));
}

/// Copies elements [first, first + count) of a row of `extent` elements; those outside it are zero.
template <class T>
void copy_padded_row(T* to, const T* row, std::int64_t extent, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t end = std::clamp<std::int64_t>(extent - first, begin, count);
  for (std::int64_t i = 0; i < begin; ++i) to[i] = T(0);
  copy_strided(to + begin, row + first + begin, 1, end - begin);
  for (std::int64_t i = end; i < count; ++i) to[i] = T(0);
}

}  // namespace kiln::kernels
