#include "kiln/quantize/weight_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kiln/quantize/impl/block_scale.hpp"
#include "kiln/quantize/impl/named.hpp"

namespace kiln::quantize {
namespace {

// Large weights count more, as they do in what a network computes.
float importance(float x, float typical) { return typical + std::abs(x); }

double weighed_error(block w, const block_scale& s, const block_codes& codes, float typical) {
  double error = 0;
  for (const float x : w) {
    const double apart = static_cast<double>((codes.code(x, s) - s.zero) * s.scale) - x;
    error += importance(x, typical) * apart * apart;
  }
  return error;
}

// The scale with the least weighed squared error for the codes that another scale gives.
float fitted_scale(block w, const block_scale& s, const block_codes& codes, float typical) {
  double along = 0, square = 0;
  for (const float x : w) {
    const double q = codes.code(x, s) - s.zero, weight = importance(x, typical);
    along += weight * q * x;
    square += weight * q * q;
  }
  return square == 0 ? s.scale : static_cast<float>(along / square);
}

// Of ranges somewhat narrower and wider than the weights' own, each fitted to its codes, the best.
block_scale searched_range(block w, const block_codes& codes, bool symmetric) {
  constexpr int steps = 20;
  double square = 0;
  for (const float x : w) square += static_cast<double>(x) * x;
  const auto typical = static_cast<float>(std::sqrt(square / static_cast<double>(w.size())));
  const block_scale first = symmetric ? symmetric_range(w, codes) : whole_range(w, codes);
  block_scale best = first;
  if (first.scale == 0) return best;
  double least = weighed_error(w, best, codes, typical);
  const auto attempt = [&](const block_scale& s) {
    if (const double error = weighed_error(w, s, codes, typical); error < least) least = error, best = s;
  };
  for (int k = 0; k <= steps; ++k) {
    const float narrower = .8f + .02f * static_cast<float>(k);  // of .8 to 1.2
    for (float shift : {-1.0f, 0.0f, 1.0f}) {
      if (symmetric && shift != 0) continue;
      block_scale s{first.scale * narrower, std::clamp(first.zero + shift, 0.0f, codes.most())};
      attempt(s);
      s.scale = fitted_scale(w, s, codes, typical);
      attempt(s);
    }
  }
  return best;
}

// Alternates between codes and the zero point: what is far from its code counts little (a norm of .7).
block_scale robust_zero(block w, const block_codes& codes) {
  constexpr int most_steps = 20;
  constexpr float norm = .7f, growth = 1.01f;
  const auto [low, high] = extremes_of(w);
  block_scale s{(high - low) / codes.most(), 0};
  if (s.scale == 0) return {high, high == 0 ? 0.0f : -1.0f};  // all weights are one: its code is 0
  s.zero = -low / s.scale;
  block_scale best = s;
  double least = -1;
  float sharpness = 10;
  for (int k = 0; k < most_steps; ++k) {
    double error = 0, zero = 0;
    for (const float x : w) {
      const float code = codes.code(x, s), apart = x - (code - s.zero) * s.scale, size = std::abs(apart);
      error += size;
      const float kept = size == 0 ? 0 : std::max(0.0f, size - std::pow(size, norm - 1) / sharpness);
      zero += code - (x - std::copysign(kept, apart)) / s.scale;
    }
    if (least >= 0 && error >= least) break;
    least = error;
    best = s;
    s.zero = static_cast<float>(zero / static_cast<double>(w.size()));
    sharpness *= growth;
  }
  return best;
}

void check(const block_format& f) {
  if (f.bits != 2 && f.bits != 4 && f.bits != 8)
    raise(fault::of(errc::invalid_argument, "bits of a weight", "2, 4 or 8", f.bits));
  if (f.block < 16 || f.block > 65536 || !std::has_single_bit(static_cast<std::uint64_t>(f.block)))
    raise(fault::of(errc::invalid_argument, "weights of a block", "a power of two from 16 to 65536", f.block));
}

void write_row(block_weights& to, std::int64_t row, std::span<const float> weights, weight_method method) {
  const block_codes codes(to.format);
  for (std::size_t b = 0; b < static_cast<std::size_t>(to.blocks()); ++b) {
    const auto from = b * static_cast<std::size_t>(to.format.block);
    const block w = weights.subspan(from, std::min(weights.size() - from, static_cast<std::size_t>(to.format.block)));
    const block_scale s = method == weight_method::hqq       ? robust_zero(w, codes)
                          : method == weight_method::k_quant ? searched_range(w, codes, to.format.symmetric)
                          : to.format.symmetric              ? symmetric_range(w, codes)
                                                             : whole_range(w, codes);
    put_scale(to, row, static_cast<std::int64_t>(b), s);
    for (std::size_t k = 0; k < w.size(); ++k)
      put_code(to, row, static_cast<std::int64_t>(from + k), codes.code(w[k], s));
  }
}

}  // namespace

block_weights empty_blocks(std::span<const float> weights, std::int64_t rows, const block_format& format,
                           bool real_zeros) {
  check(format);
  const auto count = static_cast<std::int64_t>(weights.size());
  if (rows < 1 || count == 0 || count % rows != 0)
    raise(fault::of(errc::invalid_argument, "rows of the weights", "a divisor of their number", rows));
  if (!std::all_of(weights.begin(), weights.end(), can_be_stored))
    raise(errc::invalid_argument,
          "weights in blocks are finite and at most half the greatest float: found others, infinity or NaN");
  block_weights out;
  out.rows = rows;
  out.depth = count / rows;
  out.format = format;
  if (real_zeros) out.format.symmetric = false;
  const auto blocks = static_cast<std::size_t>(rows * out.blocks());
  out.data.resize(static_cast<std::size_t>(rows) * row_bytes(out));
  out.scales.resize(blocks);
  if (real_zeros)
    out.real_zeros.resize(blocks);
  else if (!format.symmetric)
    out.zeros.resize(static_cast<std::size_t>(rows) * zero_bytes(out));
  return out;
}

weight_method weight_method_named(std::string_view name) {
  return detail::named(name, weight_methods, "method for weights");
}

std::vector<float> block_weights::row(std::int64_t r) const {
  std::vector<float> out;
  const auto at = static_cast<std::size_t>(r);
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t b = k / format.block;
    const std::size_t block_at = at * static_cast<std::size_t>(blocks()) + static_cast<std::size_t>(b);
    float zero = static_cast<float>(1 << (format.bits - 1));
    if (!real_zeros.empty()) zero = real_zeros[block_at];
    if (!zeros.empty()) zero = static_cast<float>(field_of(zeros, at * zero_bytes(*this), b, format.bits));
    const auto code = static_cast<float>(field_of(data, at * row_bytes(*this), k, format.bits));
    out.push_back((code - zero) * scales[block_at]);
  }
  return out;
}

block_weights in_blocks(std::span<const float> weights, std::int64_t rows, const block_format& format,
                        weight_method method, thread_pool& pool) {
  if (method == weight_method::gptq)
    raise(errc::invalid_argument, "gptq needs samples of what the weights are multiplied with: use gptq_blocks");
  block_weights out = empty_blocks(weights, rows, format, method == weight_method::hqq);
  const auto depth = static_cast<std::size_t>(out.depth);
  pool.parallel_for(rows, [&](std::int64_t r, unsigned) {
    write_row(out, r, weights.subspan(static_cast<std::size_t>(r) * depth, depth), method);
  });
  return out;
}

}  // namespace kiln::quantize
