#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

/// A tail that adds values, then clamps, then does what needs no other operand: y = rest(clamp(product + sum of
/// parameters)).
struct affine_form {
  float offset = 0;
  small_vector<std::size_t> addends;  ///< the tail's parameters, counted without the product
  bool clamps = false;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  std::uint32_t last = 0;  ///< the instruction that ends the sum and the clamp; what follows is the rest
};

/// The form of a tail whose parameter 0 is the product, where it has it.
std::optional<affine_form> find_affine(const module_graph& tail);

/// What follows the sum and the clamp, as a body of one parameter.
module_graph rest_of(const module_graph& tail, const affine_form& form);

/// Fills `to` for the form's addends and a result whose last `inner` dims are columns. False where an operand neither
/// repeats along all dims but one nor lies as the result does. With `channels_last` dim 1 counts as the last one.
bool bind_affine(const affine_form& form, std::span<const tensor* const> addends, const tensor& out, std::size_t inner,
                 bool channels_last, kernels::affine_tail<float>& to);

/// How a tensor [batch, channels, spatial...] lies. Its strides are those of planes, or of channels that are last.
kernels::image_layout image_layout_of(const tensor& t);

/// The same memory with the channels as the last dim.
tensor with_channels_last(const tensor& t);

}  // namespace kiln::eigen
