#pragma once
#include "kiln/backend/hip/impl/gemm/gemm_plan.hpp"

namespace kiln::hip {

/// Ends what a C library made.
struct blas_closer {
  int (*close)(void*) = nullptr;
  void operator()(void* at) const { close(at); }
};

/// A product without an epilogue by the vendor's BLAS (cuBLASLt), chosen by its own estimate.
class blas_gemm {
 public:
  /// Null where there is no such library or it has no kernel for the product: of 16-bit floats, all operands' rows or
  /// columns contiguous and aligned to 16 bytes.
  static std::shared_ptr<const blas_gemm> find(const gemm_problem& p, const context& where);
  /// Whether it is asked for a product with this epilogue: one so large that the library gains more than reading its
  /// result again costs, unless kernels that work tile after tile apply the epilogue beside their products.
  static bool is_asked(const gemm_problem& p, const row_program* epilogue, const architecture& where);

  /// With room to align it.
  std::size_t scratch_bytes() const { return scratch_bytes_ == 0 ? 0 : scratch_bytes_ + scratch_aligned; }
  /// False, and nothing was given to the queue, where the library refuses the operands or the scratch memory is less.
  bool run(device_queue& queue, std::span<std::byte> scratch, const void* a, const void* b, void* result) const;

 private:
  using owned = std::unique_ptr<void, blas_closer>;
  static constexpr std::size_t scratch_aligned = 256;  // the library refuses other memory (invalid value)
  owned product_, left_, right_, result_;
  std::array<std::uint64_t, 8> algorithm_{};
  std::size_t scratch_bytes_ = 0;
  void* handle_ = nullptr;
};

}  // namespace kiln::hip
