#pragma once
#include <limits>
#include <optional>

#include "kiln/pass/fusion_body.hpp"

namespace kiln {

/// Pointwise ops over images that a convolution's kernel may apply while it reads them: clamp(x * scale + shift). The
/// addend is constant by channel (dim 1), and so is the factor, or it is a gate: a number by image and channel, as
/// those of squeeze-and-excitation (Hu et al. 2018). Each part is optional.
struct channel_prologue_form {
  /// One number, or parameter `at` of the body.
  struct operand {
    bool present = false, uniform = false;
    float value = 0;
    std::size_t at = 0;
    bool gates = false;  ///< not constant by channel: a value of the run, or a constant that images differ in
  };
  std::size_t data = 0;  ///< the parameter that is x
  operand scale, shift;
  bool clamps = false;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

/// Whether a constant laid out like this differs along dim 1 at most, as one number or one a channel does.
constexpr bool lies_by_channel(const layout& l) {
  if (l.lens.size() < 2 || !l.offset.is_constant() || !l.strides[1].is_constant()) return false;
  for (std::size_t d = 0; d < l.lens.size(); ++d)
    if (d != 1 && !(l.strides[d] == dimension(0)) && !(l.lens[d] == dimension(1))) return false;
  return true;
}

/// Whether a value laid out like this differs along dims 0 and 1 at most: it has one number for each channel of each
/// image.
constexpr bool lies_by_image_and_channel(const layout& l) {
  if (l.lens.size() < 2 || !l.offset.is_constant()) return false;
  for (std::size_t d = 0; d < l.lens.size(); ++d)
    if (d < 2 ? !l.strides[d].is_constant() : !(l.strides[d] == dimension(0)) && !(l.lens[d] == dimension(1)))
      return false;
  return true;
}

/// The value at the root of the views that make a value, which is no view.
template <class Module> constexpr value_id root_of_views(const Module& m, value_id v) {
  while (is_kind(m, v.instruction, op_kind::view)) v = m[v.instruction].inputs[0];
  return v;
}

/// The layout in which a value shows the one at its root; empty where a view between them needs a copy.
template <class Module> constexpr std::optional<layout> layout_in_root(const Module& m, value_id v) {
  if (!is_kind(m, v.instruction, op_kind::view)) return layout::standard(m.shape_of(v).lens);
  const auto viewed = layout_in_root(m, m[v.instruction].inputs[0]);
  if (!viewed) return std::nullopt;
  const auto mapped = m[v.instruction].op.map(*viewed);
  if (!mapped) return std::nullopt;
  return *mapped;
}

/// Whether a value of f32 repeats one number for each channel of each image.
template <class Module> constexpr bool is_gate(const Module& m, value_id v) {
  if (!(m.shape_of(v).type == dtype::f32) || !is_kind(m, v.instruction, op_kind::view)) return false;
  const auto at = layout_in_root(m, v);
  return at && lies_by_image_and_channel(*at);
}

/// Which of a body's parameters an instruction is, or would be.
template <class Module> constexpr std::size_t parameter_index(const Module& body, std::uint32_t instruction) {
  std::size_t k = 0;
  for (std::uint32_t i = 0; i < instruction; ++i) k += body[i].kind == instruction_kind::parameter;
  return k;
}

/// Says that no parameter of a body is a gate.
struct no_gates {
  constexpr bool operator()(std::size_t) const { return false; }
};

/// The form of the ops that end in `end`, where they have it. `is_constant(k)` says whether parameter k is a constant
/// of f32 that `lies_by_channel`, `gates(k)` whether it is a value that `is_gate`.
template <class Module, class IsConstant, class Gates = no_gates>
constexpr std::optional<channel_prologue_form> find_channel_prologue(const Module& body, value_id end,
                                                                     IsConstant&& is_constant,
                                                                     const Gates& gates = {}) {
  channel_prologue_form out;
  const auto uniform = [&](value_id v) -> std::optional<float> {
    const auto c = repeated_constant(body, v);
    if (!c || c->get_shape().type != dtype::f32) return std::nullopt;
    return c->template to<float>()[0];
  };
  // The op's operand that is not a bound, where the op is bounds.
  const auto input_of_bounds = [&](const auto& ins) -> value_id {
    // NaN is no bound: it makes NaN of everything
    const auto bound = [&](std::size_t k) {
      const auto x = uniform(ins.inputs[k]);
      return x && *x == *x ? x : std::nullopt;
    };
    std::optional<float> low, high;
    std::size_t data = 0;
    if (ins.op.template is<op::relu>()) {
      low = 0.0F;
    } else if (ins.op.template is<op::clip>()) {
      low = bound(1), high = bound(2);
      if (!low || !high || !(*low <= *high)) return {};
    } else if (const bool lower = ins.op.template is<op::max>(); lower || ins.op.template is<op::min>()) {
      const auto left = bound(0), right = bound(1);
      if (left.has_value() == right.has_value()) return {};
      (lower ? low : high) = left ? left : right;
      data = left ? 1 : 0;
    } else {
      return {};
    }
    // what comes later is met first, and its bounds hold
    if (low) out.low = out.low > *low ? out.low : *low < out.high ? *low : out.high;
    if (high) out.high = out.high < *high ? out.high : *high > out.low ? *high : out.low;
    out.clamps = true;
    return ins.inputs[data];
  };
  // The op's operand that is not constant, where the op is the addend or, before that, the factor.
  const auto input_of_affine = [&](const auto& ins) -> value_id {
    const bool adds = ins.op.template is<op::add>();
    if (out.scale.present || (adds ? out.shift.present : !ins.op.template is<op::mul>())) return {};
    const auto operand_of = [&](value_id v) -> channel_prologue_form::operand {
      if (const auto x = uniform(v)) return {true, true, *x};
      if (body[v.instruction].kind != instruction_kind::parameter) return {};
      const std::size_t k = parameter_index(body, v.instruction);
      if (is_constant(k)) return {true, false, 0, k};
      return {!adds && gates(k), false, 0, k, true};
    };
    const auto left = operand_of(ins.inputs[0]), right = operand_of(ins.inputs[1]);
    if (left.present == right.present) return {};
    (adds ? out.shift : out.scale) = left.present ? left : right;
    return ins.inputs[left.present ? 1 : 0];
  };
  for (value_id v = end; v;) {
    const auto& ins = body[v.instruction];
    if (!(ins.results[0].type == dtype::f32)) return std::nullopt;
    if (ins.kind == instruction_kind::parameter) {
      out.data = parameter_index(body, v.instruction);
      if (is_constant(out.data) || gates(out.data)) return std::nullopt;
      return out;
    }
    if (ins.kind != instruction_kind::op) return std::nullopt;
    const bool affine_began = out.scale.present || out.shift.present;
    const value_id bounded = affine_began ? value_id{} : input_of_bounds(ins);
    v = bounded ? bounded : input_of_affine(ins);
  }
  return std::nullopt;
}

}  // namespace kiln
