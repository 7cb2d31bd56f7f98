#pragma once
#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"

namespace kiln::detail {

/// Finds floats that become bytes only to be floats again.
template <class R> class rounded_bytes {
 public:
  constexpr rounded_bytes(R& r, pass_note& note) : r_(r), note_(note) {}

  /// Looks at the first `n` instructions.
  constexpr void keep(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i)
      if (r_[i].kind == instruction_kind::op && !r_.users(i).empty()) keep_rounded({i, 0});
  }

 private:
  static constexpr bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }

  // A whole number between two that `t` holds: rounded, perhaps shifted, then clipped.
  constexpr bool is_whole_within(value_id v, dtype t) const {
    if (!r_.template get_if<op::clip>(v)) return false;
    const auto low = uniform_value(r_, r_.input(v, 1)), high = uniform_value(r_, r_.input(v, 2));
    const auto whole = [](const std::optional<double>& x, double least, double most) {
      return x && *x >= least && *x <= most && static_cast<double>(static_cast<std::int64_t>(*x)) == *x;
    };
    const double least = t == dtype::u8 ? 0 : -128, most = t == dtype::u8 ? 255 : 127;
    if (!whole(low, least, most) || !whole(high, least, most)) return false;
    value_id x = r_.input(v, 0);
    if (r_.template get_if<op::add>(x) && whole(uniform_stored_value(r_, r_.input(x, 1)), -255, 255))
      x = r_.input(x, 0);
    return r_.template get_if<op::round>(x) != nullptr;
  }
  // Bytes that are read only to be floats again never become bytes: whole numbers of that size are the same in floats.
  constexpr void keep_rounded(value_id v) {
    const auto converts = [&](value_id x, dtype t) {
      return r_.template get_if<op::convert>(x) && r_.shape_of(x).type == t;
    };
    if (!converts(v, dtype::f32)) return;
    value_id x = r_.input(v, 0);
    // a zero point of a run, which as a float is one with those that it is added to
    if (const dtype t = r_.shape_of(x).type; is_byte(t) && r_.shape_of(x).elements() == dimension(1)) {
      if (!converts(x, t)) return;
      const value_id whole = r_.input(x, 0);
      if (r_.shape_of(whole).type == dtype::f32 && is_whole_within(whole, t)) r_.replace(v, whole);
      return;
    }
    double zero = 0;
    if (r_.template get_if<op::sub>(x) && r_.single_use(x)) {
      const auto z = uniform_stored_value(r_, r_.input(x, 1));
      if (!z) return;
      zero = *z;
      x = r_.input(x, 0);
    }
    if (!converts(x, dtype::i32) || !r_.single_use(x)) return;
    x = r_.input(x, 0);
    const dtype t = r_.shape_of(x).type;
    if (!is_byte(t) || !converts(x, t) || !r_.single_use(x)) return;
    x = r_.input(x, 0);
    if (r_.shape_of(x).type != dtype::f32 || !is_whole_within(x, t) || crosses_layers(v, x)) return;
    note_.remark(text("bytes between quantizing and dequantizing stay floats: NaN stays NaN there"));
    note_.count("rounded");
    r_.replace(v, zero == 0 ? x : r_.add(op::sub{}, {x, scalar_like(r_, x, zero)}));
  }
  // Whether the floats `v`, perhaps scaled, are summed with another branch, and the bytes that they are stand for exact
  // sums `x` with constants: then no NaN is among them, and one of the two branches passes through memory, as bytes.
  constexpr bool crosses_layers(value_id v, value_id x) const {
    const auto only_user = [&](std::uint32_t i) {
      const auto users = r_.users(i);
      return users.size() == 1 && *users.begin() != user_lists::output_user ? *users.begin() : r_.size();
    };
    std::uint32_t user = only_user(v.instruction);
    if (user != r_.size() && r_[user].op.template is<op::mul>()) user = only_user(user);
    if (user == r_.size() || !r_[user].op.template is<op::add>()) return false;
    for (const value_id in : r_[user].inputs)
      if (is_of_constants(in)) return false;
    while (r_.is_kind(x, op_kind::pointwise)) {
      value_id varying;
      for (std::size_t k = 0; k < r_.producer(x).inputs.size(); ++k) {
        const value_id in = r_.input(x, k);
        if (is_of_constants(in)) continue;
        if (varying) return false;
        varying = in;
      }
      if (!varying) return false;
      x = varying;
    }
    return r_.template get_if<op::integer_convolution>(x) != nullptr;
  }
  // Whether folding makes a constant of a value, as far as `depth` ops tell.
  constexpr bool is_of_constants(value_id v, int depth = 8) const {
    if (r_.producer(v).kind == instruction_kind::literal) return true;
    if (depth == 0 || !(r_.is_kind(v, op_kind::pointwise) || r_.is_kind(v, op_kind::view))) return false;
    for (std::size_t k = 0; k < r_.producer(v).inputs.size(); ++k)
      if (!is_of_constants(r_.input(v, k), depth - 1)) return false;
    return true;
  }

  R& r_;
  pass_note& note_;
};

}  // namespace kiln::detail
