#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// A convolution of an input [batch, in_channels, D, H, W] with weights [out_channels, in_channels / groups, kd, kh,
/// kw]. Fewer spatial dimensions are right-aligned: the leading ones stay 1.
struct conv_problem {
  using extents = std::array<std::int64_t, 3>;
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  extents input{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad_begin{}, pad_end{};
  bool near_weights = false;  ///< they are in L2 when a run begins

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

template <class V, int... Lane> KILN_FN V even_lanes(V low, V high, std::integer_sequence<int, Lane...>) {
  constexpr int n = sizeof...(Lane);
  return __builtin_shufflevector(low, high, (Lane < n / 2 ? 2 * Lane : 2 * Lane + 1)...);
}

/// Copies `count` elements that are `step` apart.
template <class T> KILN_FN void copy_strided(T* to, const T* from, std::ptrdiff_t step, std::int64_t count) {
  using V = native_vec<T>;
  constexpr int n = native_lanes<T>;
  if (step == 1) {
    std::int64_t i = 0;
    for (; i + n <= count; i += n) store(to + i, load<V>(from + i));
    const int rest = static_cast<int>(count - i);
    if (rest > 0) store_n(to + i, load_n<V>(from + i, rest), rest);
  } else if (step == 2) {
    // The second vector begins one element early, so that nothing after the last element is read.
    constexpr auto lanes_of = std::make_integer_sequence<int, n>{};
    std::int64_t i = 0;
    for (; i + n <= count; i += n)
      store(to + i, even_lanes(load<V>(from + 2 * i), load<V>(from + 2 * i + n - 1), lanes_of));
    const int rest = static_cast<int>(count - i);
    if (rest <= 0) return;
    const int span = 2 * rest - 1;
    const V low = load_n<V>(from + 2 * i, std::min(span, n));
    const V high = span > n ? load_n<V>(from + 2 * i + n - 1, span - n + 1) : V{};
    store_n(to + i, even_lanes(low, high, lanes_of), rest);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
  }
}

/// Sets `count` elements to zero, without a call since the borders of rows are short.
template <class T> KILN_FN void fill_zero(T* to, std::int64_t count) {
  using V = native_vec<T>;
  constexpr int n = native_lanes<T>;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) store(to + i, V{});
  if (i < count) store_n(to + i, V{}, static_cast<int>(count - i));
}

/// The outputs of a strided row that read inside an input row: outputs [begin, end) of `count` read elements `first +
/// output * stride` of `extent`.
struct read_range {
  std::int64_t first, begin, end;

  constexpr read_range(std::int64_t first_read, std::int64_t stride, std::int64_t extent, std::int64_t count)
      : first(first_read),
        begin(std::clamp<std::int64_t>(ceil_div(std::max<std::int64_t>(-first, 0), stride), 0, count)),
        end(extent <= first ? begin : std::clamp<std::int64_t>(ceil_div(extent - first, stride), begin, count)) {}
};

/// Copies outputs [from, to) of a row that reads as `range` says; those outside the input are zero.
template <class T>
KILN_FN void copy_read_range(T* out, const T* row, const read_range& range, std::int64_t stride, std::int64_t from,
                             std::int64_t to) {
  const std::int64_t begin = std::clamp(range.begin, from, to);
  const std::int64_t end = std::clamp(range.end, begin, to);
  if (begin > from) fill_zero(out, begin - from);
  if (end > begin) copy_strided(out + begin - from, row + range.first + begin * stride, stride, end - begin);
  if (to > end) fill_zero(out + end - from, to - end);
}

}  // namespace kiln::kernels
