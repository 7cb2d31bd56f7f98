#pragma once
#include "kiln/graph/matcher.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/patterns.hpp"

namespace kiln {

namespace detail {

// Operands of the op that dequantizes v, where all of v has one scale, else nothing.
template <class R> constexpr small_vector<value_id> bytes_of_one_scale(const R& r, value_id v) {
  const bool has = r.template get_if<op::dequantize_linear>(v) && r.shape_of(r.input(v, 1)).rank() == 0 &&
                   is_integer(r.shape_of(r.input(v, 0)).type);
  return has ? r.producer(v).inputs : small_vector<value_id>{};
}
// The bytes that an op gives of them, dequantized.
template <class R> constexpr value_id dequantized_again(R& r, value_id bytes, small_vector<value_id> as) {
  as[0] = bytes;
  return r.add(op::dequantize_linear{0}, std::move(as));
}
template <class R> constexpr bool is_same_constant(const R& r, value_id a, value_id b) {
  if (a == b) return true;
  const literal *const x = r.constant(a), *const y = r.constant(b);
  return x && y && *x == *y;
}

template <class R> constexpr value_id sink_below_view(R& r, value_id v) {
  if (r.template get_if<op::multibroadcast>(v) || r.template get_if<op::broadcast>(v)) return {};
  const value_id from = r.input(v, 0);
  if (!r.template get_if<op::dequantize_linear>(from)) return {};
  const auto real = bytes_of_one_scale(r, from);
  const typename R::operation view = r.producer(v).op;
  if (!real.empty()) return dequantized_again(r, r.add(view, {real[0]}), real);
  // of a transposed tensor the scales run along another axis
  const auto* const turn = r.template get_if<op::transpose>(v);
  if (!turn) return {};
  const small_vector<value_id> in = r.producer(from).inputs;
  const std::size_t rank = r.shape_of(from).rank();
  const std::int64_t axis = normal_axis(r.template get_if<op::dequantize_linear>(from)->axis, rank);
  std::int64_t to = static_cast<std::int64_t>(rank) - 1 - axis;
  for (std::size_t d = 0; d < turn->permutation.size(); ++d)
    if (normal_axis(turn->permutation[d], rank) == axis) to = static_cast<std::int64_t>(d);
  small_vector<value_id> as = in;
  as[0] = r.add(view, {in[0]});
  return r.add(op::dequantize_linear{to}, std::move(as));
}
template <class R> constexpr value_id sink_below_pooling(R& r, value_id v) {
  if (r.template get_if<op::pooling>(v)->mode != op::pooling_mode::max) return {};
  const auto real = bytes_of_one_scale(r, r.input(v, 0));
  if (real.empty()) return {};
  const typename R::operation pool = r.producer(v).op;
  return dequantized_again(r, r.add(pool, {real[0]}), real);
}
template <class R> constexpr value_id sink_below_gather(R& r, value_id v) {
  const auto real = bytes_of_one_scale(r, r.input(v, 0));
  if (real.empty()) return {};
  const op::gather rows = *r.template get_if<op::gather>(v);
  return dequantized_again(r, r.add(rows, {real[0], r.input(v, 1)}), real);
}
// Around the tensor stands the number that means 0.
template <class R> constexpr value_id sink_below_padding(R& r, value_id v) {
  const op::pad around = *r.template get_if<op::pad>(v);
  const auto real = bytes_of_one_scale(r, r.input(v, 0));
  if (real.empty()) return {};
  const bool of_constant = around.mode == op::pad_mode::constant;
  if (of_constant && r.producer(v).inputs.size() > 1) {
    const literal* const value = r.constant(r.input(v, 1));
    if (!value || value->template at<float>(0) != 0) return {};
  }
  small_vector<value_id> in{real[0]};
  if (of_constant && real.size() > 2) in.push_back(real[2]);
  return dequantized_again(r, r.add(around, std::move(in)), real);
}
// The order of the real numbers is that of the bytes, as scales are positive.
template <class Op, class R> constexpr value_id extreme_of_bytes(R& r, value_id v) {
  const auto real = bytes_of_one_scale(r, r.input(v, 0));
  const literal* const scale = real.empty() ? nullptr : r.constant(real[1]);
  if (!scale || !(scale->template at<float>(0) > 0)) return {};
  const Op which = *r.template get_if<Op>(v);
  return r.add(which, {real[0]});
}
template <class R> constexpr value_id quantized_back(R& r, value_id v) {
  const auto real = bytes_of_one_scale(r, r.input(v, 0));
  const auto& in = r.producer(v).inputs;
  if (real.size() != 3 || in.size() != 3 || r.shape_of(real[0]).type != r.shape_of(v).type) return {};
  const literal* const scale = r.constant(real[1]);
  const bool is_normal = scale && scale->template at<float>(0) >= 0x1p-100F && scale->template at<float>(0) <= 0x1p100F;
  return is_normal && is_same_constant(r, real[1], in[1]) && is_same_constant(r, real[2], in[2]) ? real[0] : value_id{};
}

}  // namespace detail

/// Moves dequantize_linear of one scale after ops that only move or choose numbers (views, gathers, padding with 0,
/// the greatest of a window), which then read the integers, and ends what is quantized again as it was: the same
/// numbers, in the form of networks whose operators read and write integers. Broadcasts stay where they are.
template <class Program> constexpr pass_note sink_dequantize(Program& p) {
  pass_note note("sink_dequantize");
  for_each_module(p, [&](auto& m) {
    const auto views =
        rewrite_kind<op_kind::view>("view", [](auto& r, value_id v) { return detail::sink_below_view(r, v); });
    const auto pools =
        rewrite_each<op::pooling>("pooling", [](auto& r, value_id v) { return detail::sink_below_pooling(r, v); });
    const auto gathers =
        rewrite_each<op::gather>("gather", [](auto& r, value_id v) { return detail::sink_below_gather(r, v); });
    const auto pads =
        rewrite_each<op::pad>("pad", [](auto& r, value_id v) { return detail::sink_below_padding(r, v); });
    const auto greatest = rewrite_each<op::arg_max>(
        "arg_max", [](auto& r, value_id v) { return detail::extreme_of_bytes<op::arg_max>(r, v); });
    const auto least = rewrite_each<op::arg_min>(
        "arg_min", [](auto& r, value_id v) { return detail::extreme_of_bytes<op::arg_min>(r, v); });
    const auto again = rewrite_each<op::quantize_linear>(
        "quantize_linear", [](auto& r, value_id v) { return detail::quantized_back(r, v); });
    note.count(apply_rewrites(m, views, pools, gathers, pads, greatest, least, again));
  });
  return note;
}

}  // namespace kiln
