#pragma once
#include "kiln/op/quant/dequantize_linear.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

namespace detail {

/// Writes the constants that are added to products of dequantized bytes as integers.
template <class Module> class bias_quantizer {
 public:
  constexpr bias_quantizer(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::size_t k = 0; r_.template get_if<op::add>({i, 0}) && k < 2; ++k)
        if (const value_id bias = integers_of({i, 0}, k)) {
          // operands change in place: the loop goes on naming instructions
          r_.module()[i].inputs[1 - k] = bias;
          note_.count("add");
          break;
        }
  }

 private:
  // The scale of a dequantized operand, seen through views that do not move its channels: a literal, or null.
  constexpr const literal* scale_of(value_id v) const {
    v = origin_of(r_, v);
    return r_.template get_if<op::dequantize_linear>(v) ? r_.constant(r_.input(v, 1)) : nullptr;
  }
  // What input 1 - k of an addition becomes if input k is a product.
  constexpr value_id integers_of(value_id sum, std::size_t k) {
    const value_id product = r_.input(sum, k);
    const bool convolves = r_.template get_if<op::convolution>(product) != nullptr;
    if (!convolves && !r_.template get_if<op::dot>(product)) return {};
    const literal *const left = scale_of(r_.input(product, 0)), *const right = scale_of(r_.input(product, 1));
    const constant_view c = viewed_constant(r_, r_.input(sum, 1 - k));
    if (!left || !right || !c || c.from->has_symbols() || left->elements() != 1) return {};
    const std::size_t rank = c.at.lens.size(), axis = convolves ? 1 : rank - 1;
    for (std::size_t d = 0; d < rank; ++d)
      if (d != axis && varies(c.at, d)) return {};
    const dimension columns = c.at.lens[axis];
    if (c.from->get_shape().type != dtype::f32 || !columns.is_constant()) return {};
    const std::int64_t count = columns.value();
    if (right->elements() != 1 && right->elements() != count) return {};
    const literal whole = laid_out(*c.from, layout{{columns}, {c.at.strides[axis]}, c.at.offset});
    small_vector<float> scales = right->template to<float>();
    for (float& s : scales) s *= left->template at<float>(0);
    small_vector<std::int64_t> numbers;
    for (const float x : whole.template to<float>()) {
      const float y = kiln::round(x / scales[scales.size() == 1 ? 0 : numbers.size()]);
      if (!(y >= -0x1p31F && y < 0x1p31F)) {
        text t("bias of '");
        note_.remark(std::move(t.append(r_.producer(product).name.view())
                                   .append(std::string_view("' stays in f32: 32 bits do not hold it"))));
        return {};
      }
      numbers.push_back(static_cast<std::int64_t>(y));
    }
    const dims scale_lens = scales.size() == 1 ? dims{} : dims{columns};
    const value_id stored = r_.add_literal(literal::of<std::int64_t>({dtype::i32, {columns}}, numbers),
                                           {origin_of(r_, r_.input(sum, 1 - k))}),
                   scale = r_.add_literal(literal::of<float>({dtype::f32, scale_lens}, scales)),
                   real = r_.add(op::dequantize_linear{0}, {stored, scale});
    return r_.add(op::broadcast{static_cast<std::int64_t>(axis), r_.shape_of(sum).lens}, {real});
  }

  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Writes constants of f32 that are added to products of dequantized bytes, one number for each output channel, as i32
/// of the scale that the sums of bytes have, the product of both scales: biases as operators on integers take them.
/// What 32 bits do not hold stays as it is, and a remark names it.
template <class Program> constexpr pass_note quantize_biases(Program& p) {
  pass_note note("quantize_biases");
  detail::bias_quantizer(p.main(), note).run();
  return note;
}

}  // namespace kiln
