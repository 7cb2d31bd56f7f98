#pragma once
#include <optional>

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/tile_program.hpp"
#include "kiln/runtime/contraction_parts.hpp"

namespace kiln::eigen {

/// A contraction taken apart: the product itself and the pointwise ops behind it.
struct product_body {
  operation product;                              ///< a contraction
  std::size_t operands[2] = {0, 1};               ///< which inputs of the instruction the product reads
  std::optional<channel_prologue_form> prologue;  ///< of the first one
  std::vector<std::size_t> extra;                 ///< inputs that only the tail reads; the tail's parameters 1, 2, …
  std::unique_ptr<tile_program> tail;             ///< parameter 0 is the product; null when nothing follows
  std::optional<affine_form> affine;              ///< the tail's form, where it is one
  std::unique_ptr<tile_program> rest;             ///< what the form leaves; null when nothing
  std::vector<float> bias;                        ///< instead of the form's first addend, where this is not empty

  /// Adds up the constants of the form that differ along dim `dim` of the result alone: the kernels add one.
  void sum_biases(const kernel_request& request, std::size_t dim);
  /// The tail as one that the kernels know, for a result whose last `inner` dims are columns, or dim 1 where that
  /// counts as the last one; false where it is another.
  bool bind(std::span<const tensor> inputs, const tensor& out, std::size_t inner, kernels::affine_tail<float>& to,
            bool channels_last = false) const;
  /// Runs the rest over `rows` rows of `cols` elements, in place.
  void apply_rest(std::int64_t rows, std::int64_t cols, float* c, std::ptrdiff_t c_row) const;
  /// Elements that the rest runs over together: rows of a tile are short.
  static constexpr std::int64_t rest_elements = 256;
};

/// Takes a contraction, bare or fused with its pointwise users, apart. Empty where the body has another form.
/// `is_constant` as for `split_contraction`.
std::optional<product_body> split_product(const program& whole, const basic_instruction<operation>& ins,
                                          const std::function<bool(std::size_t)>& is_constant = {});

/// Applies a tail to finished tiles of a product, in place. The last `inner` dims of the result are the columns, the
/// ones before are the rows, counted row-major.
class epilogue {
 public:
  epilogue(const product_body& body, std::span<const tensor> inputs, const tensor& out, std::size_t inner);
  /// Whether every operand has one step along the columns and the tail's tiles are small enough for the stack;
  /// otherwise the tail runs on its own behind the product.
  bool fits() const { return fits_; }
  /// Finishes `rows` rows from `row0` at columns [col0, col0 + cols); the product's row r is at c + r * c_row.
  void apply(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
             std::ptrdiff_t c_row) const;

 private:
  struct operand {
    std::byte* data = nullptr;
    std::int64_t width = 4;  // bytes of an element
    ints steps;              // along the row dims
    std::int64_t step = 0;   // along the columns
  };
  static constexpr std::int64_t most_columns = 128;
  static constexpr std::size_t stack_bytes = 24 * 1024;
  const tile_program* tail_;
  inline_vector<operand, 40> operands_;
  ints row_lens_;
  bool fits_ = true;
};

/// Runs a tail over whole tensors, from `product` to `out`, which may be one.
void run_tail(const product_body& body, std::span<const tensor> inputs, const tensor& product, const tensor& out,
              std::span<std::byte> scratch, thread_pool& pool);
std::size_t tail_scratch_bytes(const product_body& body, std::span<const tensor> inputs, const tensor& product,
                               const tensor& out, unsigned threads);

/// Where a product of floats is computed whose result is `out`: there, or in scratch memory of `product_bytes` where
/// the result is no f32.
tensor product_place(const tensor& out, std::byte* scratch);
std::size_t product_bytes(const tensor& out);

}  // namespace kiln::eigen
