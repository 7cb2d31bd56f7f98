#pragma once

#include <cstring>

#include "kiln/kernel/conv/problem.hpp"
#include "kiln/kernel/int8/problem.hpp"
#include "kiln/kernel/int8/tile.hpp"

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

/// im2col of a convolution in one group: batch and output pixels are rows of the left operand, kernel positions and
/// then channels the depth. Elements outside the image are `x.outside`. Rows are `row` bytes apart, whole lanes; bytes
/// after the depth are 0.
template <class Machine>
void gather_windows(thread_pool& pool, const conv_problem& p, const byte_image& x, std::byte* to, std::ptrdiff_t row) {
  using left = typename Machine::left;
  const std::int64_t height = p.output(1), width = p.output(2), lines = p.batch * p.output(0) * height;
  const std::int64_t channels = p.in_channels;
  const auto outside = static_cast<left>(x.outside + (x.is_signed ? Machine::offset : 0));
  // adjacent pixels are as far apart as a window's columns
  const bool joined = x.channel == 1 && p.dilation[2] == 1 && x.axis[2] == channels;
  pool.parallel_for(lines, [&](std::int64_t line, unsigned) {
    const std::int64_t y = line % height, z = line / height % p.output(0), image = line / height / p.output(0);
    for (std::int64_t column = 0; column < width; ++column) {
      auto* out = reinterpret_cast<left*>(to + (line * width + column) * row);
      left* const end = out + row / static_cast<std::ptrdiff_t>(sizeof(left));
      for (std::int64_t dz = 0; dz < p.kernel[0]; ++dz)
        for (std::int64_t dy = 0; dy < p.kernel[1]; ++dy) {
          const std::int64_t from_z = z * p.stride[0] - p.pad_begin[0] + dz * p.dilation[0],
                             from_y = y * p.stride[1] - p.pad_begin[1] + dy * p.dilation[1],
                             from_x = column * p.stride[2] - p.pad_begin[2];
          const bool inside = from_z >= 0 && from_z < p.input[0] && from_y >= 0 && from_y < p.input[1];
          const std::byte* const at =
              x.at + image * x.batch + from_z * x.axis[0] + from_y * x.axis[1] + from_x * x.axis[2];
          if (inside && joined && from_x >= 0 && from_x + p.kernel[2] <= p.input[2]) {
            copy_left<Machine>(out, at, 1, p.kernel[2] * channels, x.is_signed);
            out += p.kernel[2] * channels;
            continue;
          }
          for (std::int64_t dx = 0; dx < p.kernel[2]; ++dx, out += channels) {
            const std::int64_t position = from_x + dx * p.dilation[2];
            if (inside && position >= 0 && position < p.input[2])
              copy_left<Machine>(out, at + dx * p.dilation[2] * x.axis[2], x.channel, channels, x.is_signed);
            else
              std::fill_n(out, channels, outside);
          }
        }
      std::fill(out, end, left(0));
    }
  });
}

}  // namespace kiln::kernels
