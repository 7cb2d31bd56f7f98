#pragma once
#include "kiln/runtime/kernel.hpp"

// As lower.hpp: one function a family of ops, here of those without a fusion of their own.
namespace kiln::eigen {

/// Transposed convolutions of floats.
std::unique_ptr<kernel> lower_deconvolution(const kernel_request& r);
/// Padding by constant amounts and triangles, of numbers and bools, and indices along an axis.
std::unique_ptr<kernel> lower_placement(const kernel_request& r);

}  // namespace kiln::eigen
