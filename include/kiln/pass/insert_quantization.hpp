#pragma once
#include "kiln/op/quant/centered_dot.hpp"
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/op/quant/dynamic_quantize_linear.hpp"
#include "kiln/pass/channel_scales.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// A value of the main module, and the numbers that stand for it: real = (stored - zero) * scale.
struct quantized_value {
  value_id value;
  dtype type = dtype::u8;
  float scale = 1;
  std::int64_t zero = 0;
};

/// What insert_quantization does.
struct quantization_plan {
  small_vector<value_id> products{};       ///< a dot or convolution each, of constant weights and a value below, or one
                                           ///< that is dequantized already; or of two such values
  small_vector<quantized_value> values{};  ///< results and parameters of f32, each at most once
  weight_quantization weights{};
  bool bias = false;  ///< constants added to products are i32 of the product of both scales
};

/// The products of the main module that integers can compute: a dot or convolution of an f32 value that is no constant
/// and constant weights; or, not `constant_weights` alone, of two such values.
template <class Module> constexpr small_vector<value_id> quantizable_products(Module& m, bool constant_weights = true) {
  small_vector<value_id> out;
  const rewriter<Module> r(m);
  for (std::uint32_t i = 0; i < r.size(); ++i) {
    const value_id v{i, 0};
    if (!r.template get_if<op::dot>(v) && !r.template get_if<op::convolution>(v)) continue;
    if (r.shape_of(v).type != dtype::f32 || viewed_constant(r, r.input(v, 0))) continue;
    const constant_view w = viewed_constant(r, r.input(v, 1));
    if (w ? !w.from->has_symbols() : !constant_weights) out.push_back(v);
  }
  return out;
}

/// The value whose numbers a product of a module (or rewriter) reads: its left operand (or the other), seen through
/// views.
template <class Graph> constexpr value_id quantized_operand(const Graph& m, value_id product, std::size_t side = 0) {
  value_id v = m.producer(product).inputs[side];
  while (is_view(m.producer(v))) v = m.producer(v).inputs[0];
  return v;
}

namespace detail {

// The one value of all elements of a constant of a module (or rewriter), seen through views and conversions of bytes.
template <class Graph> constexpr std::optional<double> constant_number(const Graph& m, value_id v) {
  const auto widens = [&](value_id x) {
    const auto& i = m.producer(x);
    return i.kind == instruction_kind::op && i.op.template is<op::convert>() &&
           is_scaled_type(m.shape_of(i.inputs[0]).type) && !is_narrow(m.shape_of(x).type);
  };
  while (is_view(m.producer(v)) || widens(v)) v = m.producer(v).inputs[0];
  if (m.producer(v).kind != instruction_kind::literal) return std::nullopt;
  return uniform_value(m.producer(v).constant);
}

}  // namespace detail

/// The bytes that an f32 value of a module (or rewriter) is computed of, as dequantization has it: `value` is the
/// bytes (u8, i8 or a float of eight bits), and scale and zero point are constants. Simplification may have moved the
/// scale elsewhere: it is 1 then.
template <class Graph> constexpr std::optional<quantized_value> dequantized_bytes(const Graph& m, value_id v) {
  const auto op_of = [&](value_id x) { return m.producer(x).kind == instruction_kind::op ? &m.producer(x) : nullptr; };
  double scale = 1, zero = 0;
  const auto take = [&](value_id x, double& into, double by) {
    const auto c = detail::constant_number(m, x);
    if (c) into += by * *c;
    return c.has_value();
  };
  const auto scales = [&](value_id x) {
    scale = 0;
    return take(x, scale, 1);
  };
  if (m.shape_of(v).type != dtype::f32 || !op_of(v)) return std::nullopt;
  value_id x = v;
  if (const auto* i = op_of(v); i->op.template is<op::dequantize_linear>()) {
    if (!scales(i->inputs[1]) || (i->inputs.size() == 3 && !take(i->inputs[2], zero, 1))) return std::nullopt;
    x = i->inputs[0];
  } else {
    if (i->op.template is<op::mul>()) {
      if (!scales(i->inputs[1])) return std::nullopt;
      x = i->inputs[0];
    }
    // to integers, less the zero point, to floats, in the one order or the other
    for (int steps = 0; steps < 3 && size_of(m.shape_of(x).type) != 1; ++steps) {
      i = op_of(x);
      const bool adds = i && i->op.template is<op::add>(), subtracts = i && i->op.template is<op::sub>();
      if (adds || subtracts ? is_unsigned_integer(m.shape_of(x).type) || !take(i->inputs[1], zero, adds ? -1 : 1)
                            : !(i && i->op.template is<op::convert>()))
        return std::nullopt;
      x = i->inputs[0];
    }
  }
  const dtype t = m.shape_of(x).type;
  if ((t != dtype::u8 && t != dtype::i8 && !quantize::is_float8(t)) || !(scale > 0)) return std::nullopt;
  const auto [low, high] = detail::bounds_of_scaled(t);
  if (!(zero >= low && zero <= high) || (is_float(t) && zero != 0)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(zero);
  if (static_cast<double>(whole) != zero) return std::nullopt;
  return quantized_value{x, t, static_cast<float>(scale), whole};
}

namespace detail {

template <class Module> class quantization_writer {
 public:
  constexpr quantization_writer(Module& m, const quantization_plan& plan, pass_note& note)
      : r_(m), plan_(plan), note_(note) {}

  constexpr void run() {
    const std::uint32_t count = r_.size();
    for (const value_id v : plan_.products) {
      if (!is_planned(v)) continue;
      if (has_constant_weights(v)) {
        const auto weights = integers_of_weights(v, true);
        if (!weights) continue;
        if (plan_.bias) quantize_bias(v, *weights);
        // operands change in place: the plan goes on naming values by their instructions
        const value_id real = real_weights(v, *weights);
        r_.module()[v.instruction].inputs[1] = real;
      }
      note_.count(r_.producer(v).op.name());
    }
    for (const quantized_value& q : plan_.values) quantize(q, count);
    for (const value_id v : plan_.products)
      for (std::size_t side = 0; side < 2; ++side) restore(quantized_operand(r_, v, side), count);
  }

  /// Each product of the plan reads its left operand as bytes whose scale a run finds.
  constexpr void run_dynamic() {
    for (const value_id v : plan_.products) {
      const auto w = integers_of_weights(v);
      if (!w) continue;
      const text name = r_.producer(v).name;
      const bool convolves = r_.template get_if<op::convolution>(v) != nullptr;
      const value_id x = bytes_of(r_.input(v, 0)), weights = repeated(r_, w->stored, r_.shape_of(r_.input(v, 1)).lens),
                     sum = convolves ? centered_convolution(v, x, weights)
                                     : r_.add(op::centered_dot{}, {x, weights, {x.instruction, 2}}),
                     real = r_.add(op::convert{dtype::f32}, {sum});
      const dims columns = r_.shape_of(w->scale).lens, lens = r_.shape_of(v).lens;
      const std::int64_t axis = convolves ? 1 : static_cast<std::int64_t>(lens.size()) - 1;
      const value_id scale = r_.add(op::mul{}, {repeated(r_, value_id{x.instruction, 1}, columns), w->scale});
      const value_id spread = columns.empty() ? repeated(r_, scale, lens) : r_.add(op::broadcast{axis, lens}, {scale});
      note_.count(r_.producer(v).op.name());
      r_.replace(v, r_.add(op::mul{}, {real, spread}, name.view()));
    }
  }

 private:
  // Weights as numbers of few bits: their own dims (without leading ones that only repeat them), and a scale for each
  // index of `axis`, or one; zero points where some are not 0.
  struct integer_weights {
    value_id stored, scale, zero;
    std::int64_t axis = 0;
    small_vector<float> scale_values;
  };
  // Centered in i32, so that padding with 0 is padding with the zero point.
  constexpr value_id centered_convolution(value_id v, value_id bytes, value_id weights) {
    const op::convolution window = *r_.template get_if<op::convolution>(v);
    const value_id wide = r_.add(op::convert{dtype::i32}, {bytes}),
                   zero = r_.add(op::convert{dtype::i32}, {{bytes.instruction, 2}}),
                   spread = r_.add(op::multibroadcast{r_.shape_of(bytes).lens}, {zero});
    return r_.add(window, {r_.add(op::sub{}, {wide, spread}), r_.add(op::convert{dtype::i32}, {weights})});
  }
  // Once for all products that read a value.
  constexpr value_id bytes_of(value_id x) {
    for (const bytes_made& made : made_)
      if (made.of == x) return made.bytes;
    note_.count("values");
    made_.push_back({x, r_.add(op::dynamic_quantize_linear{}, {x})});
    return made_.back().bytes;
  }
  constexpr bool has_constant_weights(value_id product) const {
    return static_cast<bool>(viewed_constant(r_, r_.input(product, 1)));
  }
  // What stands for the value that a product reads on a side.
  constexpr std::optional<quantized_value> numbers_of(value_id product, std::size_t side) const {
    const value_id x = quantized_operand(r_, product, side);
    for (const quantized_value& q : plan_.values)
      if (q.value == x) return q;
    return dequantized_bytes(r_, x);
  }
  constexpr bool is_planned(value_id product) const {
    return numbers_of(product, 0) && (has_constant_weights(product) || numbers_of(product, 1));
  }

  // A constant that is added to a product along its channels becomes i32, whose scale is that of the product's sums.
  constexpr void quantize_bias(value_id product, const integer_weights& w) {
    const auto left = numbers_of(product, 0);
    const std::uint32_t reader = r_.single_use(product) ? *r_.users(product.instruction).begin() : r_.output_user;
    if (reader == r_.output_user) return;
    const value_id sum{reader, 0};
    if (!r_.template get_if<op::add>(sum)) return;
    const std::size_t side = r_.input(sum, 0) == product ? 1 : 0;
    constant_view c = viewed_constant(r_, r_.input(sum, side));
    const shape out = r_.shape_of(sum);
    const std::size_t axis = r_.template get_if<op::convolution>(product) ? 1 : out.rank() - 1;
    if (!c || c.from->has_symbols() || !out.lens[axis].is_constant()) return;
    for (std::size_t d = 0; d < c.at.lens.size(); ++d) {
      if (d != axis && varies(c.at, d)) return;
      if (d != axis) c.at.lens[d] = 1;
    }
    const dims channels{out.lens[axis]};
    const literal bias = laid_out(*c.from, c.at).reshaped(channels);
    small_vector<float> scale = w.scale_values, values = bias.template to<float>();
    if (const float all = scale[0]; scale.size() == 1) scale.resize(values.size(), all);
    if (scale.size() != values.size()) return;
    small_vector<std::int64_t> codes;
    for (std::size_t k = 0; k < values.size(); ++k) {
      scale[k] *= left->scale;
      const double ratio = static_cast<double>(values[k]) / static_cast<double>(scale[k]);
      if (!(ratio > -2147483648.0 && ratio < 2147483647.0)) {
        text t("the bias of '");
        note_.remark(std::move(t.append(r_.producer(product).name.view())
                                   .append(std::string_view("' stays in f32: its scale leaves it no i32"))));
        return;
      }
      codes.push_back(quantize::detail::round_to_even(ratio));
    }
    const value_id stored = r_.add_literal(literal::of<std::int64_t>(shape{dtype::i32, channels}, codes),
                                           {origin_of(r_, r_.input(sum, side))}),
                   scales = r_.add_literal(literal::of<float>(shape{dtype::f32, channels}, scale)),
                   real = r_.add(op::dequantize_linear{0}, {stored, scales}, r_.producer(stored).name.view());
    r_.module()[sum.instruction].inputs[side] =
        r_.add(op::broadcast{static_cast<std::int64_t>(axis), out.lens}, {real});
    note_.count("bias");
  }

  // Arithmetic on bytes becomes the op again that it came of.
  constexpr void restore(value_id v, std::uint32_t readers) {
    const auto bytes = dequantized_bytes(r_, v);
    if (!bytes || r_.template get_if<op::dequantize_linear>(v)) return;
    const value_id scale = r_.add_literal(literal::scalar(dtype::f32, bytes->scale)),
                   zero = r_.add_literal(literal::scalar(bytes->type, bytes->zero));
    const text name = name_of(v, readers);
    redirect(v, r_.add(op::dequantize_linear{0}, {bytes->value, scale, zero}, name.view()), readers);
  }
  constexpr void redirect(value_id from, value_id to, std::uint32_t readers) {
    for (std::uint32_t i = 0; i < readers; ++i)
      for (value_id& v : r_.module()[i].inputs)
        if (v == from) v = to;
  }

  // Every op that reads the value gets the one that its integers stand for, so that no float copy of it need be kept;
  // outputs of the program stay as they are.
  constexpr void quantize(const quantized_value& q, std::uint32_t readers) {
    const text name = name_of(q.value, readers);
    const value_id scale = r_.add_literal(literal::scalar(dtype::f32, q.scale)),
                   zero = r_.add_literal(literal::scalar(q.type, q.zero)),
                   stored = r_.add(op::quantize_linear{q.type, 0}, {q.value, scale, zero}, name.view()),
                   real = r_.add(op::dequantize_linear{0}, {stored, scale, zero}, name.view());
    redirect(q.value, real, readers);
    note_.count("values");
  }

  // The last of several instructions of one name is what the name means.
  constexpr text name_of(value_id v, std::uint32_t count) const {
    const text& name = r_.producer(v).name;
    for (std::uint32_t i = v.instruction + 1; i < count; ++i)
      if (r_[i].kind == instruction_kind::op && r_[i].name == name.view()) return {};
    return name;
  }

  // `one_for_batch`: matrices of a batch that differ share one scale.
  constexpr std::optional<integer_weights> integers_of_weights(value_id product, bool one_for_batch = false) {
    const value_id w = r_.input(product, 1);
    const constant_view c = viewed_constant(r_, w);
    if (!c || c.from->has_symbols() || c.from->get_shape().type != dtype::f32) return std::nullopt;
    const bool convolves = r_.template get_if<op::convolution>(product) != nullptr;
    const layout core = convolves ? c.at : without_repeats(c.at);
    const literal whole = laid_out(*c.from, core);
    const std::int64_t axis = convolves ? 0 : static_cast<std::int64_t>(core.lens.size()) - 1;
    weight_quantization how = plan_.weights;
    // ONNX Runtime's products of bytes take no scales of columns for matrices that differ
    if (one_for_batch && core.lens.size() > 2 && !convolves && !is_float(how.type)) how.per_channel = false;
    const channel_scales scales(whole, axis, how);
    if (!scales.finite) {
      text t("weights of '");
      note_.remark(std::move(t.append(r_.producer(product).name.view())
                                 .append(std::string_view("' are not all finite, so that its product stays in f32"))));
      return std::nullopt;
    }
    const bool from_floats = plan_.weights.from_floats;
    integer_weights out{r_.add_literal(from_floats ? whole : scales.integers(whole), {origin_of(r_, w)}),
                        r_.add_literal(scales.scales()),
                        {},
                        axis,
                        scales.scale};
    if (from_floats || scales.is_shifted()) out.zero = r_.add_literal(scales.zeros());
    if (from_floats)
      out.stored = r_.add(op::quantize_linear{plan_.weights.type, axis}, {out.stored, out.scale, out.zero});
    return out;
  }
  // What the numbers of a product's weights stand for.
  constexpr value_id real_weights(value_id product, const integer_weights& w) {
    small_vector<value_id> in{w.stored, w.scale};
    if (w.zero) in.push_back(w.zero);
    const text name = r_.producer(origin_of(r_, r_.input(product, 1))).name;
    return repeated(r_, r_.add(op::dequantize_linear{w.axis}, std::move(in), name.view()),
                    r_.shape_of(r_.input(product, 1)).lens);
  }
  struct bytes_made {
    value_id of, bytes;
  };
  rewriter<Module> r_;
  const quantization_plan& plan_;
  pass_note& note_;
  small_vector<bytes_made> made_;  // by run_dynamic
};

}  // namespace detail

/// Puts quantize_linear and dequantize_linear around the values of a plan and writes the weights of its products as
/// integers: static quantization as ONNX files have it. Weights with infinities or NaN, and products whose left operand
/// is neither in the plan nor dequantized already, stay as they are.
template <class Program> constexpr pass_note insert_quantization(Program& p, const quantization_plan& plan) {
  pass_note note("insert_quantization");
  detail::quantization_writer(p.main(), plan, note).run();
  return note;
}

/// Writes the products of a plan, over any f32 values and constant weights, as products of bytes whose scales and zero
/// points a run finds, one for each value: dynamic quantization as ONNX files have it (DynamicQuantizeLinear,
/// MatMulInteger, ConvInteger). Weights with infinities or NaN stay as they are.
template <class Program> constexpr pass_note insert_dynamic_quantization(Program& p, const quantization_plan& plan) {
  pass_note note("insert_dynamic_quantization");
  detail::quantization_writer(p.main(), plan, note).run_dynamic();
  return note;
}

}  // namespace kiln
