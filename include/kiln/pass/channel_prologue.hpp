#pragma once
#include <limits>

#include "kiln/pass/fusion_body.hpp"

namespace kiln {

/// Pointwise ops over images that a convolution's kernel may apply while it reads them: clamp(x * scale + shift), the
/// factor and the addend constants by channel (dim 1). Each part is optional.
struct channel_prologue_form {
  /// A constant: one number, or parameter `at` of the body.
  struct constant {
    bool present = false, uniform = false;
    float value = 0;
    std::size_t at = 0;
  };
  std::size_t data = 0;  ///< the parameter that is x
  constant scale, shift;
  bool clamps = false;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

/// The form of the ops that end in `end`, where they have it. `is_constant(k)` says whether parameter k is a constant
/// that differs along dim 1 at most.
template <class Module, class IsConstant>
constexpr std::optional<channel_prologue_form> find_channel_prologue(const Module& body, value_id end,
                                                                     IsConstant&& is_constant) {
  channel_prologue_form out;
  const auto parameter_of = [&](value_id v) {
    std::size_t k = 0;
    for (std::uint32_t i = 0; i < v.instruction; ++i) k += body[i].kind == instruction_kind::parameter;
    return k;
  };
  const auto uniform = [&](value_id v) -> std::optional<float> {
    const auto c = repeated_constant(body, v);
    if (!c || c->get_shape().type != dtype::f32) return std::nullopt;
    return c->template to<float>()[0];
  };
  const auto constant_of = [&](value_id v) -> channel_prologue_form::constant {
    if (const auto x = uniform(v)) return {true, true, *x, 0};
    if (body[v.instruction].kind != instruction_kind::parameter) return {};
    const std::size_t k = parameter_of(v);
    return {is_constant(k), false, 0, k};
  };
  const auto clamp = [&](std::optional<float> low, std::optional<float> high) {
    // what comes later is met first, and its bounds hold
    if (low) out.low = out.low > *low ? out.low : *low < out.high ? *low : out.high;
    if (high) out.high = out.high < *high ? out.high : *high > out.low ? *high : out.low;
    out.clamps = true;
  };
  for (value_id v = end;;) {
    const auto& ins = body[v.instruction];
    if (!(ins.results[0].type == dtype::f32)) return std::nullopt;
    if (ins.kind == instruction_kind::parameter) {
      out.data = parameter_of(v);
      if (is_constant(out.data)) return std::nullopt;
      return out;
    }
    if (ins.kind != instruction_kind::op) return std::nullopt;
    if (!out.scale.present && !out.shift.present && ins.op.template is<op::relu>()) {
      clamp(0.0F, std::nullopt);
      v = ins.inputs[0];
      continue;
    }
    if (!out.scale.present && !out.shift.present && ins.op.template is<op::clip>()) {
      const auto low = uniform(ins.inputs[1]), high = uniform(ins.inputs[2]);
      if (!low || !high || !(*low <= *high)) return std::nullopt;
      clamp(low, high);
      v = ins.inputs[0];
      continue;
    }
    const bool lower = ins.op.template is<op::max>(), upper = ins.op.template is<op::min>();
    if (!out.scale.present && !out.shift.present && (lower || upper)) {
      const auto left = uniform(ins.inputs[0]), right = uniform(ins.inputs[1]);
      if (left.has_value() == right.has_value()) return std::nullopt;
      const std::optional<float> bound = left ? left : right;
      clamp(lower ? bound : std::nullopt, upper ? bound : std::nullopt);
      v = ins.inputs[left ? 1 : 0];
      continue;
    }
    const bool adds = ins.op.template is<op::add>(), scales = ins.op.template is<op::mul>();
    if (!(adds && !out.shift.present && !out.scale.present) && !(scales && !out.scale.present)) return std::nullopt;
    const auto left = constant_of(ins.inputs[0]), right = constant_of(ins.inputs[1]);
    if (left.present == right.present) return std::nullopt;
    (adds ? out.shift : out.scale) = left.present ? left : right;
    v = ins.inputs[left.present ? 1 : 0];
  }
}

}  // namespace kiln
