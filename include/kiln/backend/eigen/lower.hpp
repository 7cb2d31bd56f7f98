#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

// One function a family of ops: a kernel where the target has one for these types and attributes, else null.

/// Matrix products of floats with their epilogue.
std::unique_ptr<kernel> lower_dot(const kernel_request& r);
/// Convolutions of floats with their epilogue.
std::unique_ptr<kernel> lower_convolution(const kernel_request& r);
/// Makes one step of pointwise convolutions and the depthwise ones that alone read them, where what is between exceeds
/// the L2 caches: a body of the two. For networks of inverted residuals.
pass_note fuse_expanded_depthwise(program& p);
/// Whether an instruction is such a step.
bool is_expanded_depthwise(const program& whole, const basic_instruction<operation>& instruction);
/// Such steps.
std::unique_ptr<kernel> lower_expanded_depthwise(const kernel_request& r);
/// What a convolution of images `x` with weights `w` wants of its layout.
lower::layout_role role_of_convolution(const op::convolution& conv, const shape& x, const shape& w);
/// Attention over floats.
std::unique_ptr<kernel> lower_attention(const kernel_request& r);
/// Pooling and local response normalization of floats.
std::unique_ptr<kernel> lower_window(const kernel_request& r);
/// Fused pointwise and reduction bodies, and single pointwise or reduction ops, of any dtype.
std::unique_ptr<kernel> lower_rows(const kernel_request& r);

}  // namespace kiln::eigen
