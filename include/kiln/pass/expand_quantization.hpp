#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

template <class Module> constexpr bool has_quantization(const Module& m) {
  bool any = false;
  for (std::uint32_t i = 0; i < m.size() && !any; ++i)
    any = m[i].kind == instruction_kind::op &&
          (m[i].op.template is<op::quantize_linear>() || m[i].op.template is<op::dequantize_linear>());
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
  value_id y = r.add(op::round{}, {r.add(op::div{}, {in[0], spread_scale(r, in[1], in[0], as.axis)})});
  if (in.size() == 3) y = r.add(op::add{}, {y, spread_scale(r, converted(r, in[2], dtype::f32), in[0], as.axis)});
  const auto [low, high] = bounds_of_integer(as.type);
  const auto bound = [&](std::int64_t x) {
    return spread_scale(r, r.add_literal(literal::scalar(dtype::f32, static_cast<double>(x))), in[0], 0);
  };
  const value_id least = bound(low), most = bound(high);
  return r.add(op::convert{as.type}, {r.add(op::clip{}, {y, least, most})});
}
template <class R> constexpr value_id expand_dequantize(R& r, value_id v) {
  const std::int64_t axis = r.template get_if<op::dequantize_linear>(v)->axis;
  const small_vector<value_id> in = r.producer(v).inputs;
  value_id x = in[0];
  if (in.size() == 3) {
    const dtype wide = r.shape_of(x).type == dtype::i32 ? dtype::i64 : dtype::i32;  // holds any difference
    x = converted(r, x, wide);
    x = r.add(op::sub{}, {x, spread_scale(r, converted(r, in[2], wide), x, axis)});
  }
  return r.add(op::mul{}, {converted(r, x, dtype::f32), spread_scale(r, in[1], in[0], axis)});
}

}  // namespace detail

/// Writes quantize_linear and dequantize_linear as pointwise ops, which fuse with their neighbors and which targets
/// recognize around products (pass/integer_products.hpp).
template <class Program> constexpr pass_note expand_quantization(Program& p) {
  pass_note note("expand_quantization");
  for_each_module(p, [&](auto& m) {
    if (!detail::has_quantization(m)) return;
    note.count(apply_rewrites(m,
                              rewrite_each<op::quantize_linear>(
                                  "quantize_linear", [](auto& r, value_id v) { return detail::expand_quantize(r, v); }),
                              rewrite_each<op::dequantize_linear>("dequantize_linear", [](auto& r, value_id v) {
                                return detail::expand_dequantize(r, v);
                              })));
  });
  return note;
}

}  // namespace kiln
