#pragma once
#include "kiln/kernel/gemm/operands.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// Products of elements T in one instruction-set level; integers wrap.
template <class T> struct product_functions {
  /// Of a right operand packed ahead; null where that gains nothing.
  std::int64_t (*packed_size)(std::int64_t k, std::int64_t n) = nullptr;
  void (*pack)(thread_pool& pool, T* to, const void* from, std::ptrdiff_t row, std::ptrdiff_t col, std::int64_t k,
               std::int64_t n) = nullptr;
  /// Elements of scratch; `m` counts the rows of the whole batch.
  std::int64_t (*scratch_size)(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) = nullptr;
  void (*run)(thread_pool& pool, const kernels::gemm_problem<T>& p, bool packed, T* scratch) = nullptr;
};

/// Square matrices of floats, of any strides, one after the other.
template <class T> struct square_matrices {
  std::int64_t count = 0, n = 0;
  const T* at = nullptr;
  std::ptrdiff_t matrix = 0, row = 0, col = 1;
};

/// Lines of numbers of one or two parts along an axis of a tensor, of any strides.
struct fourier_lines {
  std::int64_t count = 0;
  ints lens;                  ///< of the dims that are neither the axis nor the parts
  ints from_steps, to_steps;  ///< along them
  std::int64_t given = 0;     ///< numbers of an operand's line that are used; zeros follow
  std::int64_t made = 0;      ///< numbers of a result's line
  const void* from = nullptr;
  void* to = nullptr;
  std::ptrdiff_t from_step = 0, from_part = 1, to_step = 0, to_part = 1;  ///< along the axis and the parts
};

/// What is transformed: see `op::dft`.
struct fourier_kind {
  dtype type = dtype::f32;  ///< f32 or f64
  std::int64_t length = 0;  ///< from 1 to `most_length`
  bool from_real = false;   ///< numbers have one part
  bool inverse = false, one_sided = false;

  static constexpr std::int64_t most_length = std::int64_t{1} << 28;
  friend bool operator==(const fourier_kind&, const fourier_kind&) = default;
};

/// A Fourier transform planned for its length, which any number of threads may run at once.
class fourier_plan {
 public:
  virtual ~fourier_plan() = default;
  virtual std::size_t scratch_bytes(unsigned workers) const = 0;
  virtual void run(thread_pool& pool, const fourier_lines& lines, std::byte* scratch) const = 0;
};

/// Linear algebra of one instruction-set level, most of it Eigen's.
struct linear_algebra_table {
  product_functions<double> f64;
  product_functions<std::uint32_t> u32;
  product_functions<std::uint64_t> u64;
  void (*determinants_f32)(thread_pool& pool, const square_matrices<float>& in, float* out) = nullptr;
  void (*determinants_f64)(thread_pool& pool, const square_matrices<double>& in, double* out) = nullptr;
  /// Dense inverses; NaN throughout where a matrix is singular.
  void (*inverses_f32)(thread_pool& pool, const square_matrices<float>& in, float* out) = nullptr;
  void (*inverses_f64)(thread_pool& pool, const square_matrices<double>& in, double* out) = nullptr;
  fourier_plan* (*plan_fourier)(const fourier_kind& kind) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const linear_algebra_table* kiln_eigen_linear_algebra();

// As lower.hpp: a kernel, or null.

/// Matrix products of f64 and of integers with their epilogue.
std::unique_ptr<kernel> lower_product(const kernel_request& r);
/// Determinants and inverses of f32 and f64.
std::unique_ptr<kernel> lower_squares(const kernel_request& r);
/// Fourier transforms of f32 and f64.
std::unique_ptr<kernel> lower_fourier(const kernel_request& r);

}  // namespace kiln::eigen
