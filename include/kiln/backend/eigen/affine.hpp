#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// An epilogue that multiplies by a number, adds values, clamps, then does what needs no other operand: y =
/// activation(clamp(product * factor + sum of parameters)).
struct affine_form {
  float factor = 1;
  float offset = 0;
  small_vector<std::size_t> addends;  ///< the epilogue's parameters, counted without the product
  bool clamps = false;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  std::uint32_t last = 0;      ///< the instruction that ends the sum and the clamp; what follows is the activation
  kernels::activation then{};  ///< the activation, where the kernels have it
};

/// The form of an epilogue whose parameter 0 is the product, where it has it. `scales`: the factor may be other than 1.
std::optional<affine_form> find_affine(const module_graph& epilogue, bool scales);

/// What follows the sum and the clamp, as a body of one parameter.
module_graph activation_of(const module_graph& epilogue, const affine_form& form);

/// The activation that a body of one parameter computes, where the kernels have it.
kernels::activation compiled_activation(const module_graph& body);

/// Fills `to` for the form's addends and a result whose last `inner` dims are columns. False where an operand neither
/// repeats along all dims but one nor lies as the result does. With `nhwc` dim 1 counts as the last one.
bool bind_affine(const affine_form& form, std::span<const tensor* const> addends, const tensor& out, std::size_t inner,
                 bool nhwc, kernels::affine_epilogue<float>& to);

/// The layout of a tensor [batch, channels, spatial...]: NHWC where its strides say so, else NCHW.
kernels::image_layout image_layout_of(const tensor& t);

/// A tensor [batch, channels, spatial...] as [batch, spatial..., channels], in the same memory.
tensor nhwc_view(const tensor& t);

}  // namespace kiln::eigen
