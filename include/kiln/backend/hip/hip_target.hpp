#pragma once
#include "kiln/runtime/block_reader.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln {

namespace hip {
class context;
}

/// How a HIP target is made.
struct hip_options {
  int device = 0;              ///< which of the platform's devices
  std::string architecture{};  ///< "gfx90a", "sm_90", …: compile for an absent device; empty: for the device
  std::string cache{};         ///< a folder for compiled kernels; empty: the user's cache folder
  bool keep = true;            ///< whether compiled kernels are kept there
  /// Whether products of floats of eight bits multiply these as they are where the matrix unit does (sm_90), which
  /// keeps about 14 bits of up to 256 products' sum, errors of 1e-4 of the results' norm; else they are widened, and
  /// sums have all bits of f32.
  bool multiplies_float8 = true;
};

/// A GPU, through HIP on AMD's or NVIDIA's platform. Making one without a device and without an architecture is an
/// `unsupported` error that says what is missing.
class hip_target final : public target, public block_reader {
 public:
  explicit hip_target(const hip_options& options = {});
  std::string_view name() const override { return "hip"; }
  target_passes passes() const override;
  lower::layout_role role(const program& whole, const basic_instruction<operation>& instruction) const override;
  std::unique_ptr<kernel> make_kernel(const kernel_request& request) const override;
  std::unique_ptr<kernel> make_copy(const derived_data* derived) const override;
  std::string binary_format() const override;
  std::int64_t block_attention_rows() const override;
  bool has_device() const override { return true; }
  std::shared_ptr<const device> get_device() const override { return device_; }

  /// Uninitialized memory of the device for a value of constant shape.
  argument allocate(const shape& s) const;
  /// Copies to the device and from it; both wait.
  argument to_device(const argument& a) const;
  argument to_host(const argument& a) const;

 private:
  std::shared_ptr<const hip::context> context_of(const kernel_request& request) const;
  std::shared_ptr<const hip::context> context_;
  std::shared_ptr<const device> device_;
  bool multiplies_float8_ = true;
};

}  // namespace kiln
