#pragma once
#include "kiln/runtime/kernel.hpp"
#include "kiln/runtime/stored_block_reader.hpp"

namespace kiln {

/// The CPU: kernels compiled for several instruction-set levels, of which the dynamic loader picks one.
class eigen_target final : public target, public stored_block_reader {
 public:
  /// An `unsupported` error where the kernel library that the loader found is of another build of kiln.
  eigen_target();
  /// Keeps all kernels of this process off the processor's matrix unit (AMX) from now on. Large products of floats run
  /// there, and the first program that has some asks the operating system for the unit's registers, for the whole
  /// process: stacks for signals (`sigaltstack`) must then have room for them, 8 KiB more.
  static void forbid_matrix_unit();
  std::string_view name() const override { return "eigen"; }
  target_passes passes() const override;
  bool flushes_denormals() const override { return true; }
  std::string binary_format() const override;
  std::string machine(unsigned threads) const override;
  lower::layout_role role(const program& whole, const basic_instruction<operation>& instruction) const override;
  std::unique_ptr<kernel> make_kernel(const kernel_request& request) const override;
};

}  // namespace kiln
