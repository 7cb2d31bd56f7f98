#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/op/quant/block_dequantize.hpp"
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

template <class Module> constexpr bool has_quantization(const Module& m) {
  const auto is_one = [](const auto& o) {
    return o.template is<op::quantize_linear>() || o.template is<op::dequantize_linear>() ||
           o.template is<op::dynamic_quantize_linear>() || o.template is<op::centered_dot>();
  };
  bool any = false;
  for (std::uint32_t i = 0; i < m.size() && !any; ++i) any = m[i].kind == instruction_kind::op && is_one(m[i].op);
  return any;
}

// A scale or zero point as an operand of the dims of `like`.
template <class R> constexpr value_id spread_scale(R& r, value_id v, value_id like, std::int64_t axis) {
  const dims lens = r.shape_of(like).lens;
  if (r.shape_of(v).lens == lens) return v;
  if (r.shape_of(v).rank() == 0) return r.add(op::multibroadcast{lens}, {v});
  return r.add(op::broadcast{normal_axis(axis, lens.size()), lens}, {v});
}
template <class R> constexpr value_id converted(R& r, value_id v, dtype t) {
  return r.shape_of(v).type == t ? v : r.add(op::convert{t}, {v});
}

template <class R> constexpr value_id expand_quantize(R& r, value_id v) {
  const op::quantize_linear as = *r.template get_if<op::quantize_linear>(v);
  const small_vector<value_id> in = r.producer(v).inputs;
  value_id y = r.add(op::div{}, {in[0], spread_scale(r, in[1], in[0], as.axis)});
  if (!is_float(as.type)) y = r.add(op::round{}, {y});  // converting to a float rounds
  if (in.size() == 3) y = r.add(op::add{}, {y, spread_scale(r, converted(r, in[2], dtype::f32), in[0], as.axis)});
  const auto [low, high] = bounds_of_scaled(as.type);
  const auto bound = [&](double x) { return spread_scale(r, r.add_literal(literal::scalar(dtype::f32, x)), in[0], 0); };
  const value_id least = bound(low), most = bound(high);
  return r.add(op::convert{as.type}, {r.add(op::clip{}, {y, least, most})});
}
// Constant matrices of floats of eight bits are numbers in blocks, which stay as they are stored; or empty.
template <class R> constexpr value_id expand_stored_floats(R& r, value_id v, std::int64_t axis) {
  const small_vector<value_id> in = r.producer(v).inputs;
  const shape x = r.shape_of(in[0]);
  if (!quantize::is_float8(x.type) || x.rank() != 2 || !x.is_constant() || !r.constant(in[0])) return {};
  const literal* const scale = r.constant(in[1]);
  if (!scale || product(x.lens) == dimension(0)) return {};
  if (in.size() == 3 && uniform_value(r, in[2]) != 0.0) return {};
  const bool one = scale->get_shape().rank() == 0;
  const std::size_t along = one || normal_axis(axis, 2) == 1 ? 0 : 1;  // of the blocks
  const std::int64_t depth = x.lens[along].value(), whole_words = (depth + 3) / 4 * 4;
  if (whole_words > op::block_dequantize::most_block) return {};
  dims lens = x.lens;
  lens[along] = 1;
  small_vector<float> scales = scale->template to<float>();
  if (const float all = scales[0]; one) scales.resize(static_cast<std::size_t>(x.lens[1 - along].value()), all);
  const value_id each = r.add_literal(literal::of<float>(shape{dtype::f32, lens}, scales), {in[1]});
  return r.add(op::block_dequantize{.axis = static_cast<std::int64_t>(along), .block = whole_words}, {in[0], each});
}
template <class R> constexpr value_id expand_dequantize(R& r, value_id v) {
  const std::int64_t axis = r.template get_if<op::dequantize_linear>(v)->axis;
  if (const value_id stored = expand_stored_floats(r, v, axis)) return stored;
  const small_vector<value_id> in = r.producer(v).inputs;
  value_id x = in[0];
  if (in.size() == 3) {
    const dtype t = r.shape_of(x).type;  // the wide one holds any difference
    const dtype wide = is_float(t) ? dtype::f32 : t == dtype::i32 ? dtype::i64 : dtype::i32;
    x = converted(r, x, wide);
    x = r.add(op::sub{}, {x, spread_scale(r, converted(r, in[2], wide), x, axis)});
  }
  return r.add(op::mul{}, {converted(r, x, dtype::f32), spread_scale(r, in[1], in[0], axis)});
}
template <class R> constexpr value_id expand_dynamic_quantize(R& r, value_id v) {
  const value_id x = r.input(v, 0), nothing = r.add_literal(literal::scalar(dtype::f32, 0.0));
  const auto number = [&](value_id y) { return r.shape_of(y).rank() == 0 ? y : r.add(op::reshape{dims{}}, {y}); };
  const value_id high = r.add(op::max{}, {number(r.add(op::reduce_max{}, {x})), nothing}),
                 low = r.add(op::min{}, {number(r.add(op::reduce_min{}, {x})), nothing}),
                 codes = r.add_literal(literal::scalar(dtype::f32, 255.0)),
                 range = r.add(op::div{}, {r.add(op::sub{}, {high, low}), codes}),
                 one = r.add_literal(literal::scalar(dtype::f32, 1.0)),
                 scale = r.add(op::where{}, {r.add(op::equal{}, {range, nothing}), one, range}),
                 zero = r.add(op::quantize_linear{dtype::u8}, {r.add(op::neg{}, {low}), scale}),
                 numbers = r.add(op::quantize_linear{dtype::u8}, {x, scale, zero});
  r.replace({v.instruction, 1}, scale);
  r.replace({v.instruction, 2}, zero);
  return r.users(v.instruction).empty() ? value_id{} : numbers;
}
// Whether a convolution reads the bytes, perhaps as they are widened and less their zero point.
template <class R> constexpr bool convolution_reads(const R& r, value_id v, int depth = 8) {
  for (const std::uint32_t u : r.users(v.instruction)) {
    if (u == R::output_user || depth == 0) continue;
    const value_id user{u, 0};
    if (!r.producer(user).inputs.empty() && !(r.input(user, 0) == v)) continue;
    if (r.template get_if<op::convolution>(user)) return true;
    const bool passes = r.is_kind(user, op_kind::view) || r.template get_if<op::convert>(user) ||
                        r.template get_if<op::sub>(user) || r.template get_if<op::mul>(user) ||
                        r.template get_if<op::dequantize_linear>(user);
    if (passes && convolution_reads(r, user, depth - 1)) return true;
  }
  return false;
}
template <class R> constexpr value_id expand_centered_dot(R& r, value_id v) {
  const small_vector<value_id> in = r.producer(v).inputs;
  const value_id wide = converted(r, in[0], dtype::i32),
                 zero = spread_scale(r, converted(r, in[2], dtype::i32), in[0], 0);
  return r.add(op::dot{}, {r.add(op::sub{}, {wide, zero}), converted(r, in[1], dtype::i32)});
}

}  // namespace detail

/// Writes quantize_linear, dequantize_linear, dynamic_quantize_linear and centered_dot as reductions, pointwise ops and
/// products, which fuse with their neighbors and which targets recognize (pass/integer_products.hpp). With
/// `keeps_dynamic`, for targets with a kernel for it, dynamic_quantize_linear stays where no convolution reads its
/// bytes: those of images may be stored in another order than the kernel's.
template <class Program> constexpr pass_note expand_quantization(Program& p, bool keeps_dynamic = false) {
  pass_note note("expand_quantization");
  for_each_module(p, [&](auto& m) {
    if (!detail::has_quantization(m)) return;
    const auto dynamic = rewrite_each<op::dynamic_quantize_linear>("dynamic_quantize_linear", [=](auto& r, value_id v) {
      return keeps_dynamic && !detail::convolution_reads(r, v) ? value_id{} : detail::expand_dynamic_quantize(r, v);
    });
    const auto product = rewrite_each<op::centered_dot>(
        "centered_dot", [](auto& r, value_id v) { return detail::expand_centered_dot(r, v); });
    const auto quantize = rewrite_each<op::quantize_linear>(
        "quantize_linear", [](auto& r, value_id v) { return detail::expand_quantize(r, v); });
    const auto dequantize = rewrite_each<op::dequantize_linear>(
        "dequantize_linear", [](auto& r, value_id v) { return detail::expand_dequantize(r, v); });
    note.count(apply_rewrites(m, dynamic, product, quantize, dequantize));
  });
  return note;
}

}  // namespace kiln
