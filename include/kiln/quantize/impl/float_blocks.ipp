#include "kiln/quantize/float_blocks.hpp"

#include <bit>
#include <cmath>

#include "kiln/quantize/impl/block_scale.hpp"
#include "kiln/quantize/impl/stored_form.hpp"
#include "kiln/quantize/impl/stored_program.hpp"

namespace kiln::quantize {
namespace {

// The greatest number of the form's type, and the exponent of its greatest power of two.
float greatest_of(float_format f) { return f == float_format::mxfp8 ? 448.0f : 6.0f; }
int greatest_power_of(float_format f) { return f == float_format::mxfp8 ? 8 : 2; }

float magnitude_of(block w) {
  const extremes e = extremes_of(w);
  return std::max(std::abs(e.low), std::abs(e.high));
}

// The code of a block's scale.
std::uint8_t scale_code(float magnitude, float_format f, float factor) {
  if (f == float_format::nvfp4) {
    const float scale = magnitude == 0 ? 1.0f : magnitude / greatest_of(f) / factor;
    return float8_e4m3fn(std::min(scale, 448.0f)).bits;
  }
  if (magnitude == 0) return 127;
  const int power = std::ilogb(magnitude) - greatest_power_of(f);
  return static_cast<std::uint8_t>(std::clamp(power, -127, 127) + 127);
}

float real_scale(std::uint8_t code, float_format f) {
  float8_e4m3fn small;
  float8_e8m0 power;
  small.bits = power.bits = code;
  return f == float_format::nvfp4 ? static_cast<float>(small) : static_cast<float>(power);
}

std::uint8_t number_code(float x, double scale, float_format f) {
  const auto greatest = static_cast<double>(greatest_of(f));
  const double ratio = scale == 0 ? 0 : std::clamp(static_cast<double>(x) / scale, -greatest, greatest);
  const auto y = static_cast<float>(ratio);
  return f == float_format::mxfp8 ? float8_e4m3fn(y).bits : float4_e2m1(y).bits;
}

}  // namespace

namespace detail {

stored_matrix stored(const float_blocks& w) {
  const std::int64_t size = block_of(w.format), blocks = w.blocks(), bits = bits_of(number_of(w.format));
  const bool packed = bits == 4;
  stored_matrix m;
  m.op = {.bits = bits, .axis = 1, .block = size, .floats = packed, .factor = w.factor};
  if (blocks * size != w.depth) m.op.extent = w.depth;
  const std::int64_t row = blocks * size * bits / 8;
  m.operands.push_back(bytes_literal({packed ? dtype::u8 : number_of(w.format), {w.rows, row}}, w.data));
  m.operands.push_back(bytes_literal({scale_of(w.format), {w.rows, blocks}}, w.scales));
  return m;
}

}  // namespace detail

float_blocks in_float_blocks(std::span<const float> weights, std::int64_t rows, float_format format,
                             thread_pool& pool) {
  const auto count = static_cast<std::int64_t>(weights.size());
  if (rows < 1 || count == 0 || count % rows != 0)
    raise(fault::of(errc::invalid_argument, "weights are rows of one depth", rows, count));
  if (!std::all_of(weights.begin(), weights.end(), can_be_stored))
    raise(errc::invalid_argument,
          "weights in blocks are finite and at most half the greatest float: found others, infinity or NaN");
  float_blocks out{.rows = rows, .depth = count / rows, .format = format};
  if (format == float_format::nvfp4)
    if (const float all = magnitude_of(weights); std::isnormal(all / (6.0f * 448.0f)))
      out.factor = all / (6.0f * 448.0f);
  const std::int64_t size = block_of(format), bits = bits_of(number_of(format));
  const std::int64_t row_bytes = out.blocks() * size * bits / 8;
  out.data.resize(static_cast<std::size_t>(rows * row_bytes));
  out.scales.resize(static_cast<std::size_t>(rows * out.blocks()));
  pool.parallel_for(rows, [&](std::int64_t r, unsigned) {
    const block row = weights.subspan(static_cast<std::size_t>(r * out.depth), static_cast<std::size_t>(out.depth));
    for (std::int64_t b = 0; b < out.blocks(); ++b) {
      const block part = row.subspan(static_cast<std::size_t>(b * size),
                                     static_cast<std::size_t>(std::min(size, out.depth - b * size)));
      const std::uint8_t code = scale_code(magnitude_of(part), format, out.factor);
      out.scales[static_cast<std::size_t>(r * out.blocks() + b)] = code;
      const double scale = static_cast<double>(real_scale(code, format)) * static_cast<double>(out.factor);
      for (std::size_t k = 0; k < part.size(); ++k) {
        const std::int64_t bit = (b * size + static_cast<std::int64_t>(k)) * bits;
        out.data[static_cast<std::size_t>(r * row_bytes + bit / 8)] |=
            static_cast<std::uint8_t>(number_code(part[k], scale, format) << (bit % 8));
      }
    }
  });
  return out;
}

quantized_program to_float_blocks(program p, float_format format, const float_block_options& options) {
  thread_pool pool(options.threads);
  const detail::matrix_readers readers = detail::chosen_readers(p, options.ops, options.exclude);
  return detail::stored_program(p, readers, block_of(format), [&](const detail::read_matrix& m, pass_note&) {
    return detail::stored(in_float_blocks(m.weights, m.rows, format, pool));
  });
}

}  // namespace kiln::quantize
