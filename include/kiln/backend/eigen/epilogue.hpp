#pragma once
#include <functional>
#include <optional>

#include "kiln/backend/eigen/affine.hpp"
#include "kiln/backend/eigen/tile_program.hpp"
#include "kiln/lower/contraction.hpp"
#include "kiln/pass/channel_prologue.hpp"

namespace kiln::eigen {

/// A contraction of floats with its prologue and epilogue as the kernels run them.
struct fused_contraction {
  operation op;             ///< the contraction
  std::size_t operands[2];  ///< which inputs of the instruction it, or the prologue of its first operand, reads
  std::optional<channel_prologue_form> prologue{};
  decltype(lower::contraction_split::epilogue_inputs) epilogue_inputs;  ///< parameters 1, 2, … of the epilogue
  std::unique_ptr<tile_program> epilogue{};    ///< parameter 0 is the product; null where nothing follows
  std::optional<affine_form> affine{};         ///< the epilogue's form, where it is one
  std::unique_ptr<tile_program> activation{};  ///< what the form leaves; null where the kernels do all
  std::vector<float> bias{};                   ///< instead of the form's first addend, where this is not empty

  /// Adds up the constants of the form that differ along dim `dim` of the result alone: the kernels add one.
  void sum_biases(const kernel_request& request, std::size_t dim);
  /// The epilogue as one that the kernels know, for a result whose last `inner` dims are columns, or dim 1 where that
  /// counts as the last one; false where it is another.
  bool bind(std::span<const tensor> inputs, const tensor& out, std::size_t inner, kernels::affine_epilogue<float>& to,
            bool nhwc = false) const;
  /// Runs the activation over `rows` rows of `cols` elements, in place.
  void apply_activation(std::int64_t rows, std::int64_t cols, float* c, std::ptrdiff_t c_row) const;
  /// Elements that the activation runs over together: rows of a tile are short.
  static constexpr std::int64_t activation_elements = 256;
};

/// The contraction of an instruction; empty where it is none of a form that the kernels know. `is_constant(k)`, where
/// it is given, says whether input k is a constant of f32 that `lies_by_channel`: without it there is no prologue. The
/// gates of a prologue are inputs that `is_gate` in the request's graph.
std::optional<fused_contraction> read_contraction(const kernel_request& request,
                                                  const std::function<bool(std::size_t)>& is_constant = {});

/// A contraction without a prologue, its epilogue compiled.
fused_contraction compiled_contraction(const lower::contraction_body<module_graph>& body);

/// An operand beside the rows and columns of a result.
struct operand_rows {
  std::byte* data = nullptr;
  std::int64_t width = 4;  ///< bytes of an element
  ints steps{};            ///< along the row dims
  std::int64_t step = 0;   ///< along the columns

  /// Of a result whose last `inner` dims are columns; empty where these are not one step apart.
  static std::optional<operand_rows> of(const tensor& t, const tensor& out, std::size_t inner);
  std::byte* at(const ints& row, std::int64_t col) const {
    std::int64_t offset = col * step;
    for (std::size_t d = 0; d < row.size(); ++d) offset += row[d] * steps[d];
    return data + offset * width;
  }
};

/// Applies an epilogue to the tiles of a product, in place. The last `inner` dims of the result are the columns,
/// the ones before are the rows, counted row-major.
class tiled_epilogue {
 public:
  tiled_epilogue(const fused_contraction& body, std::span<const tensor> inputs, const tensor& out, std::size_t inner);
  /// Whether every operand has one step along the columns and the epilogue's tiles are small enough for the stack;
  /// otherwise the epilogue runs by itself after the product.
  bool fits() const { return fits_; }
  /// Applies it to `rows` rows from `row0` at columns [col0, col0 + cols); the product's row r is at c + r * c_row.
  void apply(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* c,
             std::ptrdiff_t c_row) const;

 private:
  static constexpr std::int64_t most_columns = 128;
  static constexpr std::size_t stack_bytes = 24 * 1024;
  const tile_program* epilogue_;
  inline_vector<operand_rows, 40> operands_;
  ints row_lens_;
  bool fits_ = true;
};

/// Runs an epilogue over whole tensors, from `product` to `out`, which may be one.
void run_epilogue(const fused_contraction& body, std::span<const tensor> inputs, const tensor& product,
                  const tensor& out, std::span<std::byte> scratch, thread_pool& pool);
std::size_t epilogue_scratch_bytes(const fused_contraction& body, std::span<const tensor> inputs, const tensor& product,
                                   const tensor& out, unsigned threads);

/// Where a product of floats is computed whose result is `out`: there, or in scratch memory of `product_bytes` where
/// the result is no f32.
tensor product_place(const tensor& out, std::byte* scratch);
std::size_t product_bytes(const tensor& out);

}  // namespace kiln::eigen
