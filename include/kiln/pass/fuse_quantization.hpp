#pragma once
#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/pass/fuse_prologue.hpp"

namespace kiln {

/// Pointwise ops that make bytes of floats: clip(round(bound(x) / scale) + zero, low, high), `bound` being a ReLU or
/// bounds of the floats, if any.
struct byte_prologue_form {
  std::size_t data = 0;  ///< the parameter that is x
  double scale = 1, zero = 0, low = 0, high = 255;
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  dtype type = dtype::u8;
};

/// The form of the ops of a body that end in `end`, where they have it.
template <class Module>
constexpr std::optional<byte_prologue_form> find_byte_prologue(const Module& body, value_id end) {
  byte_prologue_form out;
  value_id v = end;
  const auto is = [&]<class Op>(std::type_identity<Op>) {
    const auto& i = body[v.instruction];
    return i.kind == instruction_kind::op && i.op.template is<Op>();
  };
  const auto number = [&](std::size_t k, double& to) {
    const auto l = repeated_constant(body, body[v.instruction].inputs[k]);
    const auto x = l ? uniform_value(*l) : std::nullopt;
    if (x) to = *x;
    return x.has_value();
  };
  const auto step = [&] { v = body[v.instruction].inputs[0]; };
  out.type = body.shape_of(v).type;
  if (!is(std::type_identity<op::convert>{}) || (out.type != dtype::u8 && out.type != dtype::i8)) return std::nullopt;
  step();
  if (!is(std::type_identity<op::clip>{}) || !number(1, out.low) || !number(2, out.high)) return std::nullopt;
  step();
  if (is(std::type_identity<op::add>{})) {
    if (!number(1, out.zero)) return std::nullopt;
    step();
  }
  if (!is(std::type_identity<op::round>{})) return std::nullopt;
  step();
  if (!is(std::type_identity<op::div>{}) || !number(1, out.scale)) return std::nullopt;
  step();
  if (is(std::type_identity<op::relu>{})) {
    out.least = 0;
    step();
  } else if (is(std::type_identity<op::clip>{})) {
    if (!number(1, out.least) || !number(2, out.most)) return std::nullopt;
    step();
  }
  const double low = out.type == dtype::u8 ? 0 : -128, high = out.type == dtype::u8 ? 255 : 127;
  const auto is_whole = [](double x) { return x >= -255 && x <= 255 && static_cast<double>(static_cast<int>(x)) == x; };
  // no quotient near the bytes' leaves the range of normal floats
  constexpr double least_scale = 0x1p-60, greatest_scale = 0x1p60;
  if (!(out.scale > least_scale && out.scale < greatest_scale) || !(out.least <= out.most) || !is_whole(out.zero) ||
      !is_whole(out.low) || !is_whole(out.high) || out.low < low || out.high > high || out.low > out.high)
    return std::nullopt;
  if (body[v.instruction].kind != instruction_kind::parameter || body.shape_of(v).type != dtype::f32)
    return std::nullopt;
  out.data = parameter_index(body, v.instruction);
  return out;
}

namespace detail {

// What an instruction reads as the image of an integer convolution.
template <class Program, class Module>
constexpr image_read read_by_integer_convolution(const Program& p, const Module& m, std::uint32_t i) {
  if (m[i].kind != instruction_kind::op) return {};
  if (m[i].op.template is<op::integer_convolution>()) return {m[i].inputs[0]};
  const auto* fused = m[i].op.template get_if<op::fused>();
  if (!fused || fused->kind != fusion::contraction) return {};
  const Module& body = p.module(fused->body);
  return read_by_body(m, i, body, [&](std::uint32_t k) {
    return body[k].op.template is<op::integer_convolution>() ? body[k].inputs[0] : value_id{};
  });
}

}  // namespace detail

/// Gives integer convolutions the quantization of the floats that they read, where nothing else reads those bytes: for
/// targets whose kernels copy an image anyway. It runs after the fusion passes.
template <class Program> constexpr pass_note fuse_quantization(Program& p) {
  pass_note note("fuse_quantization");
  shared_bodies<Program> bodies(p);
  for_each_unfused(p, [&](auto& m) {
    const user_lists users(m);
    for (std::uint32_t i = 0; i < m.size(); ++i) {
      const auto [image, times] = detail::read_by_integer_convolution(p, m, i);
      if (!image || times != 1 || users[image.instruction].size() != 1) continue;
      const auto& made = m[image.instruction];
      const auto* fused = made.kind == instruction_kind::op ? made.op.template get_if<op::fused>() : nullptr;
      if (!fused || fused->kind != fusion::pointwise || made.results.size() != 1) continue;
      const auto& body = p.module(fused->body);
      const auto form = find_byte_prologue(body, body.outputs[0]);
      if (!form || made.inputs.size() != 1 || !(m.shape_of(made.inputs[form->data]).lens == made.results[0].lens))
        continue;
      detail::prologue_fuser<Program>(p, m, bodies).fuse(image.instruction, i);
      note.count("quantization");
    }
    m.compact();
  });
  return note;
}

}  // namespace kiln
