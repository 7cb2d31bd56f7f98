#pragma once
#include "kiln/op/nn/resample.hpp"
#include "kiln/pass/insert_quantization.hpp"

namespace kiln {

namespace detail {

/// Finds what quantizes values that were moved or selected only, and moves or selects their bytes.
template <class Module> class quantization_mover {
 public:
  constexpr quantization_mover(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i) {
      const value_id v{i, 0};
      if (r_[i].kind != instruction_kind::op || r_.users(i).empty() || !is_byte(r_.shape_of(v).type)) continue;
      const auto as = quantization_of(v);
      if (!as) continue;
      if (const auto stored = same_bytes(as->from, *as)) {
        note_.count("identity");
        r_.replace(v, *stored);
      } else if (moved_operands(as->from) > 0 && can_move(as->from, *as, most_depth)) {
        note_.count(r_.producer(as->from).op.name());
        r_.replace(v, bytes_of(as->from, *as));
      }
    }
  }

 private:
  static constexpr int most_depth = 8;
  static constexpr bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }

  static constexpr bool is_power_of_two(double x) {
    if (!(x > 0x1p-200 && x < 0x1p200)) return false;
    while (x > 1) x /= 2;
    while (x < 1) x *= 2;
    return x == 1;
  }

  // clip(round(from / scale) + zero), to all numbers that a byte holds.
  struct quantization {
    value_id from;
    dtype type = dtype::u8;
    double scale = 1, zero = 0;
  };
  constexpr std::optional<quantization> quantization_of(value_id v) const {
    quantization out{v, r_.shape_of(v).type};
    const auto number = [&](std::size_t k, double& to) {
      const auto x = uniform_value(r_, r_.input(out.from, k));
      if (x) to = *x;
      return x.has_value();
    };
    const auto step = [&] { out.from = r_.input(out.from, 0); };
    if (!r_.template get_if<op::convert>(v) || r_.shape_of(r_.input(v, 0)).type != dtype::f32) return std::nullopt;
    step();
    double low = 0, high = 0;
    const auto [least, most] = bounds_of_integer(out.type);
    if (!r_.template get_if<op::clip>(out.from) || !number(1, low) || !number(2, high)) return std::nullopt;
    if (low != static_cast<double>(least) || high != static_cast<double>(most)) return std::nullopt;
    step();
    if (r_.template get_if<op::add>(out.from)) {
      if (!number(1, out.zero) || out.zero < low || out.zero > high) return std::nullopt;
      if (static_cast<double>(static_cast<std::int64_t>(out.zero)) != out.zero) return std::nullopt;
      step();
    }
    if (!r_.template get_if<op::round>(out.from)) return std::nullopt;
    step();
    // a division by a power of two has become a product
    const bool multiplies = r_.template get_if<op::mul>(out.from) != nullptr;
    if (!(multiplies || r_.template get_if<op::div>(out.from)) || !number(1, out.scale) || !(out.scale > 0))
      return std::nullopt;
    if (multiplies) out.scale = 1 / out.scale;
    if (multiplies && !is_power_of_two(out.scale)) return std::nullopt;
    step();
    return out;
  }

  // The bytes that `v` is made of by the same numbers: quantizing gives them again, since x * scale / scale is nearer
  // to x than to another whole number.
  constexpr std::optional<value_id> same_bytes(value_id v, const quantization& as) const {
    const auto bytes = dequantized_bytes(r_, v);
    const bool same = bytes && bytes->type == as.type && static_cast<double>(bytes->scale) == as.scale &&
                      static_cast<double>(bytes->zero) == as.zero;
    return same && r_.shape_of(bytes->value).lens == r_.shape_of(v).lens ? std::optional(bytes->value) : std::nullopt;
  }

  // How many of an instruction's first operands it moves to its result, or selects from: rounding to bytes keeps order.
  constexpr std::size_t moved_operands(value_id v) const {
    if (r_.is_kind(v, op_kind::view)) return 1;
    if (r_.producer(v).kind != instruction_kind::op || r_.producer(v).results.size() != 1) return 0;
    if (r_.template get_if<op::concat>(v)) return r_.producer(v).inputs.size();
    if (r_.template get_if<op::pad>(v)) return r_.producer(v).inputs.size();
    if (r_.template get_if<op::gather>(v) || r_.template get_if<op::gather_elements>(v)) return 1;
    if (const auto* picked = r_.template get_if<op::resample>(v)) return picked->weighted ? 0 : 1;
    const auto* pooled = r_.template get_if<op::pooling>(v);
    return pooled && pooled->mode == op::pooling_mode::max ? 1 : 0;
  }
  // Whether the bytes of `v` are at hand or take less to make than they did: where nothing else reads what is moved.
  constexpr bool can_move(value_id v, const quantization& as, int depth) const {
    if (same_bytes(v, as) || r_.producer(v).kind == instruction_kind::literal) return true;
    if (r_.producer(v).kind != instruction_kind::op || !r_.single_use(v)) return false;
    const std::size_t moved = moved_operands(v);
    if (moved == 0) return r_.is_kind(v, op_kind::pointwise) || r_.is_kind(v, op_kind::contraction);
    if (depth == 0) return false;
    for (std::size_t k = 0; k < moved; ++k)
      if (!can_move(r_.input(v, k), as, depth - 1)) return false;
    return true;
  }
  constexpr value_id bytes_of(value_id v, const quantization& as) {
    if (const auto stored = same_bytes(v, as)) return *stored;
    const std::size_t moved = moved_operands(v);
    if (moved == 0) return quantized(v, as);
    const auto op = r_.producer(v).op;
    const text name = r_.producer(v).name;
    small_vector<value_id> in = r_.producer(v).inputs;
    for (std::size_t k = 0; k < moved; ++k) in[k] = bytes_of(in[k], as);
    // a constant that is not told is the float 0, whose byte is the zero point
    if (r_.template get_if<op::pad>(v) && in.size() == 1 && as.zero != 0)
      in.push_back(r_.add_literal(literal::scalar(as.type, as.zero)));
    return r_.add(op, std::move(in), name.view());
  }
  constexpr value_id quantized(value_id v, const quantization& as) {
    const auto [low, high] = bounds_of_integer(as.type);
    value_id y = r_.add(op::round{}, {r_.add(op::div{}, {v, scalar_like(r_, v, as.scale)})});
    if (as.zero != 0) y = r_.add(op::add{}, {y, scalar_like(r_, v, as.zero)});
    const value_id least = scalar_like(r_, v, static_cast<double>(low)),
                   most = scalar_like(r_, v, static_cast<double>(high));
    return r_.add(op::convert{as.type}, {r_.add(op::clip{}, {y, least, most})});
  }

  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Quantizes before values are moved or selected rather than after it: views, concatenation, padding, gathering and
/// maxima of windows then read and write bytes. Bytes that are dequantized and quantized again by the same numbers pass
/// through. NaN, for which no byte stands, may come out as another byte than before.
template <class Program> constexpr pass_note move_quantization(Program& p) {
  return run_on_modules<detail::quantization_mover>("move_quantization", p);
}

}  // namespace kiln
