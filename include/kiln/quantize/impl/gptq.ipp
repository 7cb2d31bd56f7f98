#include "kiln/quantize/gptq.hpp"

#include <Eigen/Cholesky>
#include <string>

#include "kiln/quantize/impl/block_scale.hpp"

namespace kiln::quantize {
namespace {

using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The upper factor U of the inverse of the damped products H: H^-1 = U' U. With all indices reversed H is L L', whose
// inverse has the factor L^-1: reversed, that is U.
matrix inverse_factor(const input_products& inputs, double damping) {
  const Eigen::Index n = inputs.depth();
  double mean = 0;
  for (Eigen::Index i = 0; i < n; ++i) mean += inputs.at(i, i) / static_cast<double>(n);
  if (!(mean > 0) || !std::isfinite(mean))
    raise(errc::invalid_argument, "inputs of a product are finite and not all 0: found otherwise in its samples");
  matrix reversed(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j)
      reversed(n - 1 - i, n - 1 - j) = inputs.at(i, j) + (i == j ? damping * mean : 0);
  const Eigen::LLT<matrix> factored(reversed);
  if (factored.info() != Eigen::Success)
    raise(errc::invalid_argument, "inputs of a product are too much alike: a greater damping is needed");
  matrix inverse = matrix::Identity(n, n);
  factored.matrixL().solveInPlace(inverse);
  return inverse.reverse();
}

}  // namespace

bool input_products::is_zero() const {
  for (std::int64_t i = 0; i < depth_; ++i)
    if (at(i, i) != 0) return false;
  return true;
}

void input_products::add(std::span<const float> rows, thread_pool& pool) {
  const auto depth = static_cast<std::size_t>(depth_);
  if (depth == 0 || rows.size() % depth != 0)
    raise(fault::of(errc::shape_mismatch, "elements of a product's inputs", "rows of its depth", rows.size()));
  const std::size_t count = rows.size() / depth;
  rows_ += static_cast<std::int64_t>(count);
  pool.parallel_for(depth_, [&](std::int64_t task, unsigned) {
    const auto i = static_cast<std::size_t>(task);
    double* const to = &sums_[i * depth];
    for (std::size_t r = 0; r < count; ++r) {
      const float* const row = &rows[r * depth];
      const double x = row[i];
      for (std::size_t j = 0; j < depth; ++j) to[j] += x * row[j];
    }
  });
}

void input_products::add(const input_products& more) {
  if (more.depth_ != depth_) raise(fault::of(errc::shape_mismatch, "depth of a product's inputs", depth_, more.depth_));
  rows_ += more.rows_;
  for (std::size_t k = 0; k < sums_.size(); ++k) sums_[k] += more.sums_[k];
}

block_weights gptq_blocks(std::span<const float> weights, std::int64_t rows, const block_format& format,
                          const input_products& inputs, double damping, thread_pool& pool) {
  block_weights out = empty_blocks(weights, rows, format, false);
  if (inputs.depth() != out.depth)
    raise(fault::of(errc::shape_mismatch, "depth of a product's inputs", out.depth, inputs.depth()));
  if (!(damping > 0)) raise(errc::invalid_argument, "damping is positive: found " + std::to_string(damping));
  const matrix factor = inverse_factor(inputs, damping);
  const block_codes codes(format);
  constexpr std::int64_t rows_at_once = 8;  // each row of the factor is read once for so many
  const auto depth = static_cast<std::size_t>(out.depth);
  pool.parallel_for((rows + rows_at_once - 1) / rows_at_once, [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * rows_at_once, count = std::min(rows_at_once, rows - first);
    const auto chosen =
        weights.subspan(static_cast<std::size_t>(first) * depth, static_cast<std::size_t>(count) * depth);
    std::vector<double> left(chosen.begin(), chosen.end());
    std::vector<block_scale> scales(static_cast<std::size_t>(count));
    std::vector<float> now;
    for (std::size_t k = 0; k < depth; ++k) {
      const double* const next = factor.row(static_cast<Eigen::Index>(k)).data();
      for (std::int64_t r = 0; r < count; ++r) {
        double* const row = &left[static_cast<std::size_t>(r) * depth];
        block_scale& s = scales[static_cast<std::size_t>(r)];
        if (k % static_cast<std::size_t>(format.block) == 0) {
          now.assign(row + k, row + std::min(depth, k + static_cast<std::size_t>(format.block)));
          s = format.symmetric ? symmetric_range(now, codes) : whole_range(now, codes);
          put_scale(out, first + r, static_cast<std::int64_t>(k) / format.block, s);
        }
        const float code = codes.code(static_cast<float>(row[k]), s);
        put_code(out, first + r, static_cast<std::int64_t>(k), code);
        const double error = (row[k] - static_cast<double>((code - s.zero) * s.scale)) / next[k];
        for (std::size_t j = k + 1; j < depth; ++j) row[j] -= error * next[j];
      }
    }
  });
  return out;
}

}  // namespace kiln::quantize
