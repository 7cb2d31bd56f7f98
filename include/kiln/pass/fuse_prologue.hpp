#pragma once
#include "kiln/pass/channel_prologue.hpp"

namespace kiln {

namespace detail {

/// How a value shows a literal of f32 through views that need no copy; empty for other values.
template <class Module> constexpr std::optional<layout> layout_in_literal(const Module& m, value_id v) {
  const auto& from = m.producer(root_of_views(m, v));
  const bool is_literal = from.kind == instruction_kind::literal && from.results[0].type == dtype::f32;
  if (!is_literal || from.constant.has_symbols()) return std::nullopt;
  return layout_in_root(m, v);
}

/// Makes one instruction of a pointwise one and the contraction that reads it: the body of both, over the inputs of
/// both.
template <class Program> class prologue_fuser {
 public:
  using module_type = typename Program::module_type;
  using operation = typename Program::operation_type;

  constexpr prologue_fuser(Program& p, module_type& m, shared_bodies<Program>& bodies)
      : program_(p), module_(m), bodies_(bodies) {}

  constexpr void fuse(std::uint32_t first, std::uint32_t second) {
    const value_id between{first, 0};
    move_in(first, {}, {});
    const value_id made = body_.outputs[0];
    body_.outputs = {};
    move_in(second, between, made);
    body_.output_names.push_back(text("r0"));
    // no conditional expression: g++ 12 does not evaluate one of two texts in constant evaluation
    if (module_[second].op.template is<op::fused>())
      body_.name = body_of(second).name;
    else
      body_.name = text(module_[second].op.name());
    module_[second].op = operation(op::fused{fusion::contraction, bodies_.add(std::move(body_))});
    module_[second].inputs = std::move(inputs_);
  }

 private:
  constexpr const module_type& body_of(std::uint32_t i) const {
    return program_.module(module_[i].op.template get_if<op::fused>()->body);
  }
  constexpr value_id parameter(value_id from) {
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      if (inputs_[k] == from) return parameters_[k];
    text name("p");
    name.append(static_cast<std::int64_t>(inputs_.size()));
    inputs_.push_back(from);
    parameters_.push_back(body_.add_parameter(name.view(), module_.shape_of(from)));
    return parameters_.back();
  }
  // Appends what instruction i does; where it reads `between`, it finds `made`.
  constexpr void move_in(std::uint32_t i, value_id between, value_id made) {
    const auto outer = [&](value_id v) { return between && v == between ? made : parameter(v); };
    small_vector<value_id> of;
    if (!module_[i].op.template is<op::fused>()) {
      for (value_id v : module_[i].inputs) of.push_back(outer(v));
      body_.outputs.push_back(
          body_.add_with_shapes(module_[i].op, std::move(of), module_[i].results, module_[i].name.view()));
      return;
    }
    const module_type& inner = body_of(i);
    std::size_t parameters = 0;
    for (std::uint32_t k = 0; k < inner.size(); ++k) {
      const auto& ins = inner[k];
      if (ins.kind == instruction_kind::parameter) {
        of.push_back(outer(module_[i].inputs[parameters++]));
      } else if (ins.kind == instruction_kind::literal) {
        of.push_back(body_.add_literal(ins.constant));
      } else {
        small_vector<value_id> in;
        for (value_id v : ins.inputs) in.push_back(of[v.instruction]);
        of.push_back(body_.add_with_shapes(ins.op, std::move(in), ins.results, ins.name.view()));
      }
    }
    body_.outputs.push_back(of[inner.outputs[0].instruction]);
  }

  Program& program_;
  module_type& module_;
  shared_bodies<Program>& bodies_;
  module_type body_;
  small_vector<value_id> inputs_, parameters_;
};

/// The image that a convolution reads where it reads every pixel of it once and its channels are known; empty for
/// others.
template <class Module> constexpr value_id image_of_pointwise_convolution(const Module& m, std::uint32_t i) {
  const auto* conv = m[i].op.template get_if<op::convolution>();
  if (!conv || conv->group != 1) return {};
  const dims& w = m.shape_of(m[i].inputs[1]).lens;
  if (!w[1].is_constant()) return {};
  for (std::size_t d = 2; d < w.size(); ++d)
    if (!(w[d] == dimension(1))) return {};
  for (const auto s : conv->stride)
    if (s != 1) return {};
  for (const auto s : conv->pads)
    if (s != 0) return {};
  return m[i].inputs[0];
}

/// What an instruction reads as the image of a pointwise convolution, and how often it reads that.
struct image_read {
  value_id image;  ///< empty: it is no such convolution, bare or fused
  std::size_t times = 1;
};

/// What instruction i reads as the image of the contraction in its body: `image_of(k)` gives that of a contraction.
template <class Module, class ImageOf>
constexpr image_read read_by_body(const Module& m, std::uint32_t i, const Module& body, const ImageOf& image_of) {
  value_id image;
  for (std::uint32_t k = 0; k < body.size() && !image; ++k) {
    if (!is_kind(body, k, op_kind::contraction)) continue;
    image = image_of(k);
    if (!image || body[image.instruction].kind != instruction_kind::parameter) return {};
  }
  if (!image) return {};
  // equal operands of an instruction are one parameter of its body: a gate or a residual sum reads the image again
  std::size_t times = 0;
  for (std::uint32_t k = 0; k < body.size(); ++k)
    for (const value_id v : body[k].inputs) times += v == image;
  return {m[i].inputs[parameter_index(body, image.instruction)], times};
}

template <class Program, class Module>
constexpr image_read read_by_pointwise_convolution(const Program& p, const Module& m, std::uint32_t i) {
  if (m[i].kind != instruction_kind::op) return {};
  const auto* fused = m[i].op.template get_if<op::fused>();
  if (!fused) return {image_of_pointwise_convolution(m, i)};
  if (fused->kind != fusion::contraction) return {};
  const Module& body = p.module(fused->body);
  return read_by_body(m, i, body, [&](std::uint32_t k) { return image_of_pointwise_convolution(body, k); });
}

/// What a pointwise instruction is as the prologue of a convolution.
enum class prologue_kind : std::uint8_t { none, constant, gate };

/// What instruction i is as the prologue of a convolution that reads it: `none` unless it scales, shifts and clamps the
/// channels of images of rank 3 or 4.
template <class Program, class Module>
constexpr prologue_kind channel_prologue_kind(const Program& p, const Module& m, std::uint32_t i) {
  constexpr auto none = prologue_kind::none, constant = prologue_kind::constant;
  const auto& ins = m[i];
  if (ins.kind != instruction_kind::op || ins.results.size() != 1) return none;
  // Volumes never have their NHWC, where kernels apply a prologue; elsewhere it takes a copy of the image, no
  // less than its own step does.
  const std::size_t rank = ins.results[0].lens.size();
  if (rank < 3 || rank > 4) return none;
  const auto* fused = ins.op.template get_if<op::fused>();
  if (!fused) return ins.op.template is<op::relu>() && ins.results[0].type == dtype::f32 ? constant : none;
  if (fused->kind != fusion::pointwise) return none;
  const Module& body = p.module(fused->body);
  const auto form = find_channel_prologue(
      body, body.outputs[0],
      [&](std::size_t k) {
        const auto at = layout_in_literal(m, ins.inputs[k]);
        return at && lies_by_channel(*at);
      },
      [&](std::size_t k) { return is_gate(m, ins.inputs[k]); });
  if (!form || !(m.shape_of(ins.inputs[form->data]) == ins.results[0])) return none;
  return form->scale.gates ? prologue_kind::gate : constant;
}

}  // namespace detail

/// Says of every gate that it gains as a prologue.
struct all_gates_gain {
  template <class Program, class Module> constexpr bool operator()(const Program&, const Module&, std::uint32_t) const {
    return true;
  }
};

/// Gives pointwise convolutions what scales, shifts and clamps the channels of their input as a prologue, where nothing
/// else reads that: batch norm and ReLU before a 1x1 layer, as in networks whose layers begin with them, and the gates
/// of squeeze-and-excitation before the layer that projects. For targets whose kernels apply it while they read; it
/// runs after the fusion passes. `gate_gains(program, module, i)` says whether convolution i takes less time with its
/// gate than a step of its own for that.
template <class Program, class GateGains = all_gates_gain>
constexpr pass_note fuse_prologue(Program& p, const GateGains& gate_gains = {}) {
  pass_note note("fuse_prologue");
  shared_bodies<Program> bodies(p);
  for_each_unfused(p, [&](auto& m) {
    const user_lists users(m);
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      const auto [image, times] = detail::read_by_pointwise_convolution(p, m, i);
      const auto kind = image ? detail::channel_prologue_kind(p, m, image.instruction) : detail::prologue_kind::none;
      if (kind == detail::prologue_kind::none) continue;
      if (kind == detail::prologue_kind::gate && !gate_gains(p, m, i)) {
        note.remark(
            text("factors that the run computes stay a step before a 1x1 convolution of a small image or of the "
                 "matrix unit"));
        continue;
      }
      if (times != 1 || users[image.instruction].size() != 1) {
        note.remark(text("what changes channels before a 1x1 convolution stays a step where others read it too"));
        continue;
      }
      detail::prologue_fuser<Program>(p, m, bodies).fuse(image.instruction, i);
      note.count("prologue");
    }
    m.compact();
  });
  return note;
}

}  // namespace kiln
