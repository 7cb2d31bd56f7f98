#pragma once

#include <cstring>

#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/int8/quantize.hpp"
#include "kiln/kernel/int8/tile.hpp"
#include "kiln/kernel/simd/transpose_square.hpp"

namespace kiln::kernels {

/// Copies `count` bytes `step` apart as left operands of a machine, signed ones with its offset added.
template <class Machine>
KILN_FN void copy_left(typename Machine::left* to, const std::byte* from, std::ptrdiff_t step, std::int64_t count,
                       bool is_signed) {
  using left = typename Machine::left;
  if constexpr (sizeof(left) == 1) {
    if (step == 1 && !is_signed) {
      std::memcpy(to, from, static_cast<std::size_t>(count));
      return;
    }
    if (step == 1) {
      using V = native_vec<std::uint8_t>;
      constexpr int lanes = native_lanes<std::uint8_t>;
      const V high = broadcast<V>(0x80);
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
      std::int64_t i = 0;
      for (; i + lanes <= count; i += lanes) store(to + i, load<V>(bytes + i) ^ high);
      if (i < count)
        store_n(to + i, load_n<V>(bytes + i, static_cast<int>(count - i)) ^ high, static_cast<int>(count - i));
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint8_t>(from[i * step]);
    const int value = is_signed ? static_cast<std::int8_t>(bits) + Machine::offset : bits;
    to[i] = static_cast<left>(value);
  }
}

/// Bytes [16 * Part, 16 * Part + 16) of the 48 that 16 pixels of three channels are.
template <int Part, class V, int... Lane>
KILN_FN V interleave_three(V first, V second, V third, std::integer_sequence<int, Lane...>) {
  constexpr int begin = 16 * Part;
  const V two = __builtin_shufflevector(first, second, ((begin + Lane) % 3 * 16 + (begin + Lane) / 3) % 32 ...);
  return __builtin_shufflevector(two, third, ((begin + Lane) % 3 == 2 ? 16 + (begin + Lane) / 3 : Lane)...);
}

/// Copies a row of `width` pixels whose channels are planes `channel` bytes apart, pixel by pixel.
template <class Machine>
void copy_planes(typename Machine::left* to, const std::byte* from, std::ptrdiff_t channel, std::int64_t channels,
                 std::int64_t width, bool is_signed) {
  using left = typename Machine::left;
  std::int64_t c = 0, done = 0;
  if constexpr (sizeof(left) == 1) {
    using V = vec<std::uint8_t, 16>;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
    const V flip = broadcast<V>(is_signed ? 0x80 : 0);
    for (; c + 4 <= channels; c += 16) {
      const int deep = static_cast<int>(std::min<std::int64_t>(16, channels - c));
      for (std::int64_t x = 0; x < width; x += 16) {
        const int wide = static_cast<int>(std::min<std::int64_t>(16, width - x));
        V row[16];
        for (int r = 0; r < 16; ++r) {
          const std::uint8_t* const at = bytes + (c + r) * channel + x;
          row[r] = r >= deep ? V{} : wide == 16 ? load<V>(at) ^ flip : load_n<V>(at, wide) ^ flip;
        }
        transpose_square<16>(row);
        left* const out = to + x * channels + c;
        for (int r = 0; r < wide; ++r)
          if (deep == 16)
            store(out + r * channels, row[r]);
          else
            store_n(out + r * channels, row[r], deep);
      }
    }
    constexpr auto lanes_of = std::make_integer_sequence<int, 16>{};
    std::int64_t x = 0;
    for (; channels == 3 && x + 16 <= width; x += 16) {
      const V r = load<V>(bytes + x) ^ flip, g = load<V>(bytes + channel + x) ^ flip,
              b = load<V>(bytes + 2 * channel + x) ^ flip;
      store(to + 3 * x, interleave_three<0>(r, g, b, lanes_of));
      store(to + 3 * x + 16, interleave_three<1>(r, g, b, lanes_of));
      store(to + 3 * x + 32, interleave_three<2>(r, g, b, lanes_of));
    }
    done = x;
  }
  for (; c < channels; ++c)
    for (std::int64_t x = done; x < width; ++x)
      copy_left<Machine>(to + x * channels + c, from + c * channel + x, 1, 1, is_signed);
}

/// Copies a line of `width` pixels of an image of bytes, laid out as `x`.
template <class Machine>
void copy_line(typename Machine::left* out, const std::byte* from, const byte_image& x, std::int64_t channels,
               std::int64_t width) {
  if (x.channel == 1 && (x.axis[2] == channels || width == 1))
    copy_left<Machine>(out, from, 1, width * channels, x.is_signed);
  else if (x.axis[2] == 1 && channels > 1)
    copy_planes<Machine>(out, from, x.channel, channels, width, x.is_signed);
  else
    for (std::int64_t i = 0; i < width; ++i)
      copy_left<Machine>(out + i * channels, from + i * x.axis[2], x.channel, channels, x.is_signed);
}

/// Likewise of an image of floats, whose pixels or channels are adjacent: part by part as bytes in L1, then those.
template <class Machine>
void copy_floats(typename Machine::left* out, const std::byte* from, const byte_image& x, std::int64_t channels,
                 std::int64_t width) {
  constexpr std::int64_t size = 16 * 1024, slack = native_lanes<float>;
  alignas(64) std::uint8_t part[size + slack];
  const auto* const bytes = reinterpret_cast<const std::byte*>(part);
  if (x.channel == std::ptrdiff_t{sizeof(float)}) {  // runs of channels
    const bool adjacent = x.axis[2] == channels * x.channel || width == 1;
    const std::int64_t run = adjacent ? width * channels : channels;
    for (std::int64_t i = 0; i < width * channels; i += run)
      for (std::int64_t k = 0; k < run; k += size) {
        const std::int64_t count = std::min(size, run - k);
        const std::byte* const of = from + i / channels * x.axis[2] + k * x.channel;
        x.floats->write(part, reinterpret_cast<const float*>(of), count);
        copy_left<Machine>(out + i + k, bytes, 1, count, x.is_signed);
      }
    return;
  }
  // as many pixels at a time as all channels of them fit
  const std::int64_t each = std::clamp<std::int64_t>(size / channels / slack * slack, slack, round_up(width, slack));
  const std::int64_t deep = std::min(channels, size / each);
  for (std::int64_t i = 0; i < width; i += each)
    for (std::int64_t c0 = 0; c0 < channels; c0 += deep) {
      const std::int64_t wide = std::min(each, width - i), some = std::min(deep, channels - c0);
      x.floats->write_rows(part, each, reinterpret_cast<const float*>(from + c0 * x.channel + i * x.axis[2]),
                           x.channel / static_cast<std::ptrdiff_t>(sizeof(float)), some, wide);
      if (some == channels && channels > 1)
        copy_planes<Machine>(out + i * channels, bytes, each, channels, wide, x.is_signed);
      else
        for (std::int64_t k = 0; k < wide; ++k)
          copy_left<Machine>(out + (i + k) * channels + c0, bytes + k, each, some, x.is_signed);
    }
}

/// How the windows of a convolution are runs of adjacent bytes. A row of taps is one run where its pixels are adjacent
/// and all channels are read; channels of a pixel are, those of a group. The depth of the packed right operand is that
/// of the runs, whole words each. Where each channel is convolved alone, every tap is a run, with the last one repeated
/// until they fill whole words.
template <class Machine> struct window_runs {
  std::int64_t each, count;  ///< elements of a run, runs

  explicit constexpr window_runs(const conv_problem& p)
      : each(p.group_inputs() * (joins(p) ? p.kernel[2] : 1)),
        count(by_channel(p) ? round_up(p.taps(), Machine::depth)
              : joins(p)    ? p.kernel[0] * p.kernel[1]
                            : p.taps()) {}
  static constexpr bool joins(const conv_problem& p) { return p.dilation[2] == 1 && p.groups == 1; }
  static constexpr bool by_channel(const conv_problem& p) {
    return p.groups > 1 && p.group_inputs() == 1 && p.group_outputs() == 1;
  }
  constexpr std::int64_t words() const { return integer_words<Machine>(each); }
};

/// An image as a machine reads its windows: NHWC with its padding, signed bytes with the machine's offset.
template <class Machine> class padded_image {
 public:
  using left = typename Machine::left;

  explicit constexpr padded_image(const conv_problem& p) : p_(p) {
    for (std::size_t d = 0; d < 3; ++d) extent_[d] = p.input[d] + p.pad_begin[d] + p.pad_end[d];
    step_[2] = p.in_channels * static_cast<std::ptrdiff_t>(sizeof(left));
    step_[1] = extent_[2] * step_[2];
    step_[0] = extent_[1] * step_[1];
  }
  /// Bytes that it takes, with those that the last words read beyond it and vectors write.
  constexpr std::int64_t size() const { return p_.batch * extent_[0] * step_[0] + 64; }
  constexpr std::ptrdiff_t step(std::size_t d) const { return step_[d]; }
  constexpr std::ptrdiff_t image() const { return extent_[0] * step_[0]; }

  void write(thread_pool& pool, const byte_image& x, std::byte* to) const {
    const auto outside = static_cast<left>(x.outside + (x.is_signed ? Machine::offset : 0));
    const std::int64_t channels = p_.in_channels, width = p_.input[2];
    std::memset(to + size() - 64, 0, 64);
    pool.parallel_for(p_.batch * extent_[0] * extent_[1], [&](std::int64_t line, unsigned) {
      auto* out = reinterpret_cast<left*>(to + line * step_[1]);
      const std::int64_t y = line % extent_[1] - p_.pad_begin[1], z = line / extent_[1] % extent_[0] - p_.pad_begin[0],
                         image = line / extent_[1] / extent_[0];
      if (y < 0 || y >= p_.input[1] || z < 0 || z >= p_.input[0]) {
        std::fill_n(out, extent_[2] * channels, outside);
        return;
      }
      out = std::fill_n(out, p_.pad_begin[2] * channels, outside);
      const std::byte* const from = x.at + image * x.batch + z * x.axis[0] + y * x.axis[1];
      if (x.floats)
        copy_floats<Machine>(out, from, x, channels, width);
      else
        copy_line<Machine>(out, from, x, channels, width);
      std::fill_n(out + width * channels, p_.pad_end[2] * channels, outside);
    });
  }

 private:
  conv_problem p_;
  std::int64_t extent_[3];
  std::ptrdiff_t step_[3];
};

/// The places of a convolution's windows in memory whose pixels, lines and planes are `step` bytes apart: the rows of
/// its output, and its runs, which are written to `runs`.
template <class Machine>
void find_windows(const conv_problem& p, const std::byte* at, const std::ptrdiff_t (&step)[3], std::ptrdiff_t image,
                  std::ptrdiff_t* runs, integer_problem& to) {
  to.rows.at = at;
  to.rows.image = image;
  for (std::size_t d = 0; d < 3; ++d) {
    to.rows.extent[d] = p.output(d);
    to.rows.step[d] = p.stride[d] * step[d];
  }
  const window_runs<Machine> window(p);
  to.groups = p.groups;
  to.group = p.group_inputs() * static_cast<std::ptrdiff_t>(sizeof(typename Machine::left));
  to.by_channel = window.by_channel(p);
  to.runs = {runs, window.count, window.words()};
  std::ptrdiff_t* next = runs;
  for (std::int64_t z = 0; z < p.kernel[0]; ++z)
    for (std::int64_t y = 0; y < p.kernel[1]; ++y)
      for (std::int64_t x = 0; x < (window.joins(p) ? 1 : p.kernel[2]); ++x)
        *next++ = z * p.dilation[0] * step[0] + y * p.dilation[1] * step[1] + x * p.dilation[2] * step[2];
  for (; next != runs + window.count; ++next) *next = next[-1];
}

}  // namespace kiln::kernels
