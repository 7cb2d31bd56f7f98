#pragma once
#include "kiln/pass/channel_prologue.hpp"

namespace kiln {

namespace detail {

/// Whether a value is one literal of f32, repeated along every dim of `lens` but dim 1.
template <class Module>
constexpr bool is_channel_constant(const Module& m, value_id v, const dims& lens) {
  if (is_kind(m, v.instruction, op_kind::view)) {
    if (!m.producer(v).op.template is<op::multibroadcast>()) return false;
    v = m.producer(v).inputs[0];
  }
  const auto& i = m.producer(v);
  if (i.kind != instruction_kind::literal || i.results[0].type != dtype::f32 || !i.results[0].is_constant())
    return false;
  const dims& own = i.results[0].lens;
  for (std::size_t k = 0; k < own.size(); ++k) {
    const std::size_t d = lens.size() - own.size() + k;
    if (!(own[k] == dimension(1)) && !(d == 1 && own[k] == lens[1])) return false;
  }
  return true;
}

/// Makes one instruction of a pointwise one and the contraction that reads it: the body of both, over the inputs of
/// both.
template <class Program>
class prologue_fuser {
 public:
  using module_type = typename Program::module_type;
  using operation = typename Program::operation_type;

  constexpr prologue_fuser(Program& p, module_type& m) : program_(p), module_(m) {}

  constexpr void fuse(std::uint32_t first, std::uint32_t second) {
    const value_id between{first, 0};
    move_in(first, {}, {});
    const value_id made = body_.outputs[0];
    body_.outputs = {};
    move_in(second, between, made);
    body_.output_names.push_back(text("r0"));
    body_.name = module_[second].op.template is<op::fused>() ? body_of(second).name : text(module_[second].op.name());
    module_[second].op = operation(op::fused{fusion::contraction, program_.add_module(std::move(body_))});
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
      body_.outputs.push_back(body_.add_with_shapes(module_[i].op, std::move(of), module_[i].results));
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
        of.push_back(body_.add_with_shapes(ins.op, std::move(in), ins.results));
      }
    }
    body_.outputs.push_back(of[inner.outputs[0].instruction]);
  }

  Program& program_;
  module_type& module_;
  module_type body_;
  small_vector<value_id> inputs_, parameters_;
};

/// The input of a pointwise convolution, bare or fused, which reads every pixel of it once; empty for others.
template <class Program, class Module>
constexpr value_id read_by_pointwise_convolution(const Program& p, const Module& m, std::uint32_t i) {
  const auto input = [](const Module& in, std::uint32_t k) -> value_id {
    const auto* conv = in[k].op.template get_if<op::convolution>();
    if (!conv || conv->group != 1) return {};
    const dims& w = in.shape_of(in[k].inputs[1]).lens;
    for (std::size_t d = 2; d < w.size(); ++d)
      if (!(w[d] == dimension(1))) return {};
    for (const auto s : conv->stride)
      if (s != 1) return {};
    for (const auto s : conv->pads)
      if (s != 0) return {};
    return in[k].inputs[0];
  };
  if (m[i].kind != instruction_kind::op) return {};
  const auto* fused = m[i].op.template get_if<op::fused>();
  if (!fused) return input(m, i);
  if (fused->kind != fusion::contraction) return {};
  const Module& body = p.module(fused->body);
  std::size_t parameter = 0;
  for (std::uint32_t k = 0; k < body.size(); ++k) {
    if (!is_kind(body, k, op_kind::contraction)) continue;
    const value_id x = input(body, k);
    if (!x || body[x.instruction].kind != instruction_kind::parameter) return {};
    for (std::uint32_t j = 0; j < x.instruction; ++j) parameter += body[j].kind == instruction_kind::parameter;
    return m[i].inputs[parameter];
  }
  return {};
}

/// Whether a pointwise instruction has the form of a channel prologue.
template <class Program, class Module>
constexpr bool is_channel_prologue(const Program& p, const Module& m, std::uint32_t i) {
  const auto& ins = m[i];
  if (ins.kind != instruction_kind::op || ins.results.size() != 1 || ins.results[0].lens.size() < 3) return false;
  const auto constant = [&](std::size_t k) { return is_channel_constant(m, ins.inputs[k], ins.results[0].lens); };
  const auto* fused = ins.op.template get_if<op::fused>();
  if (!fused && !ins.op.template is<op::relu>()) return false;
  if (fused && fused->kind != fusion::pointwise) return false;
  if (!fused) return ins.results[0].type == dtype::f32;
  const Module& body = p.module(fused->body);
  const auto form = find_channel_prologue(body, body.outputs[0], constant);
  return form && m.shape_of(ins.inputs[form->data]) == ins.results[0];
}

}  // namespace detail

/// Gives pointwise convolutions what scales, shifts and clamps the channels of their input as a prologue, where nothing
/// else reads that: batch norm and ReLU in front of a 1x1 layer, as in networks whose layers begin with them. For
/// targets whose kernels apply it while they read; it runs behind the fusion passes.
template <class Program>
constexpr pass_note fuse_prologue(Program& p) {
  pass_note note("fuse_prologue");
  for_each_unfused(p, [&](auto& m) {
    const user_lists users(m);
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      const value_id x = detail::read_by_pointwise_convolution(p, m, i);
      if (!x || users[x.instruction].size() != 1 || !detail::is_channel_prologue(p, m, x.instruction)) continue;
      detail::prologue_fuser<Program>(p, m).fuse(x.instruction, i);
      note.count("prologue");
    }
    m.compact();
  });
  return note;
}

}  // namespace kiln
