#pragma once
#include "kiln/quantize/weight_blocks.hpp"

// Weights rounded one after another, each to make up for the errors of those before it (Frantar et al., GPTQ, 2022).
namespace kiln::quantize {

/// The sum of products of each pair of a product's inputs over all samples: what its error depends on.
class input_products {
 public:
  explicit input_products(std::int64_t depth) : depth_(depth), sums_(static_cast<std::size_t>(depth * depth), 0.0) {}
  /// Adds rows [any, depth] of a product's left operand.
  void add(std::span<const float> rows, thread_pool& pool);
  /// Adds what another product with the same weights is multiplied with. Another depth is a `shape_mismatch` error.
  void add(const input_products& more);
  std::int64_t depth() const { return depth_; }
  std::int64_t rows() const { return rows_; }
  /// Whether no row had anything but zeros.
  bool is_zero() const;
  double at(std::int64_t i, std::int64_t j) const { return sums_[static_cast<std::size_t>(i * depth_ + j)]; }

 private:
  std::int64_t depth_, rows_ = 0;
  std::vector<double> sums_;
};

/// Writes weights [rows, depth] in blocks, so that products with such inputs change little. `damping`, of the mean
/// square input, keeps it stable. Errors: those of `in_blocks`; `shape_mismatch` for inputs of another depth;
/// `invalid_argument` for none, or a damping that is not positive.
block_weights gptq_blocks(std::span<const float> weights, std::int64_t rows, const block_format& format,
                          const input_products& inputs, double damping, thread_pool& pool);

}  // namespace kiln::quantize
