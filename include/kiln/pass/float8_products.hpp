#pragma once
#include "kiln/op/quant/float8_dot.hpp"
#include "kiln/pass/constant_matrix.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/stored_weights.hpp"

namespace kiln {

namespace detail {

/// Finds products whose operands are floats of eight bits, and writes them as products of these.
template <class Module> class float8_product_finder {
 public:
  constexpr float8_product_finder(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    for (std::uint32_t i = 0; i < n; ++i)
      if (r_.template get_if<op::dot>({i, 0}) && !r_.users(i).empty()) rewrite({i, 0});
  }

 private:
  using operation = typename rewriter<Module>::operation;

  // A left operand: numbers times a scale of their dims, none being 1, both seen through views, the last one first.
  struct left {
    value_id stored, scale;
    small_vector<operation> views;
  };
  // A right operand: rows of numbers along the depth, and a scale for each.
  struct right {
    value_id rows;
    small_vector<float> scales;
  };

  static constexpr bool is_short(dtype t) { return op::float8_dot::stored.contains(t); }
  constexpr bool is_widened(value_id v) const {
    return r_.template get_if<op::convert>(v) && is_short(r_.shape_of(r_.input(v, 0)).type);
  }

  constexpr std::optional<left> left_of(value_id v) const {
    left out;
    for (; r_.is_kind(v, op_kind::view); v = r_.input(v, 0)) out.views.push_back(r_.producer(v).op);
    if (r_.template get_if<op::convert>(v) && !is_widened(v)) v = r_.input(v, 0);
    if (!is_float(r_.shape_of(v).type)) return std::nullopt;
    if (r_.template get_if<op::mul>(v)) {
      const std::size_t side = is_widened(r_.input(v, 0)) ? 0 : 1;
      out.scale = r_.input(v, 1 - side);
      v = r_.input(v, side);
    }
    if (!is_widened(v)) return std::nullopt;
    out.stored = r_.input(v, 0);
    if (out.scale && !is_alike_along_depth(out)) return std::nullopt;
    return out;
  }
  // Whether the scale, seen through the views, is one number along the last dim.
  constexpr bool is_alike_along_depth(const left& x) const {
    small_vector<operation> views = x.views;
    value_id from = x.scale;
    for (; r_.is_kind(from, op_kind::view); from = r_.input(from, 0)) views.push_back(r_.producer(from).op);
    layout at = layout::standard(r_.shape_of(from).lens);
    for (std::size_t k = views.size(); k-- > 0;) {
      const auto next = views[k].map(at);
      if (!next) return false;
      at = *next;
    }
    return !at.lens.empty() && !varies(at, at.lens.size() - 1);
  }

  // Kernels copy rows of whole pieces of 16 bytes, and of nothing there are no scales.
  constexpr std::optional<right> right_of(value_id v, dtype product, dtype stored) {
    constexpr std::int64_t piece = 16;
    const auto w = find_stored_weights(r_.module(), v, product);
    if (!w || w->depth == 0 || w->columns == 0 || w->in_blocks || w->op.bits != 8 || w->operands.size() != 2 ||
        w->op.block < w->depth || w->depth % piece != 0 || r_.shape_of(w->operands[0]).type != stored)
      return std::nullopt;
    const constant_view numbers = viewed_constant(r_, w->operands[0]), scales = viewed_constant(r_, w->operands[1]);
    if (!numbers || !scales || numbers.from->has_symbols() || scales.from->has_symbols()) return std::nullopt;
    layout at = numbers.at;
    if (!w->depth_last) {
      std::swap(at.lens[0], at.lens[1]);
      std::swap(at.strides[0], at.strides[1]);
    }
    right out;
    out.scales = laid_out(*scales.from, scales.at).template to<float>();
    for (float& s : out.scales) s *= w->op.factor;
    out.rows = r_.add_literal(laid_out(*numbers.from, at), {w->operands[0]});
    return out;
  }

  constexpr value_id through(value_id v, const small_vector<operation>& views) {
    for (std::size_t k = views.size(); k-- > 0;) v = r_.add(views[k], {v});
    return v;
  }
  // What columns are scaled by, as an operand of these dims.
  constexpr value_id along_columns(const small_vector<float>& scales, const dims& lens) {
    bool alike = true;
    for (const float s : scales) alike = alike && s == scales[0];
    if (alike) return r_.add(op::multibroadcast{lens}, {r_.add_literal(literal::scalar(dtype::f32, scales[0]))});
    const shape columns{dtype::f32, {static_cast<std::int64_t>(scales.size())}};
    return r_.add(op::broadcast{static_cast<std::int64_t>(lens.size()) - 1, lens},
                  {r_.add_literal(literal::of<float>(columns, scales))});
  }
  // The same of rows: a scale that is alike along the depth.
  constexpr value_id along_rows(value_id scale, const dims& lens) {
    const auto last = static_cast<std::int64_t>(lens.size()) - 1;
    const value_id one = r_.add(op::slice{.axes = {last}, .starts = {0}, .ends = {1}, .steps = {}}, {scale});
    const value_id wide = r_.shape_of(one).type == dtype::f32 ? one : r_.add(op::convert{dtype::f32}, {one});
    return r_.add(op::multibroadcast{lens}, {wide});
  }

  constexpr void rewrite(value_id v) {
    const dtype t = r_.shape_of(v).type;
    if (!is_float(t) || t == dtype::f64) return;  // sums are of f32
    const auto a = left_of(r_.input(v, 0));
    auto b = a ? right_of(r_.input(v, 1), t, r_.shape_of(a->stored).type) : std::nullopt;
    if (!b) return;
    const auto number = a->scale ? uniform_value(r_, a->scale) : 1.0;
    if (number)
      for (float& s : b->scales) s *= static_cast<float>(*number);
    const dims lens = r_.shape_of(v).lens;
    value_id y = r_.add(op::float8_dot{}, {through(a->stored, a->views), b->rows}, r_.producer(v).name.view());
    y = r_.add(op::mul{}, {y, along_columns(b->scales, lens)});
    if (!number) y = r_.add(op::mul{}, {y, along_rows(through(a->scale, a->views), lens)});
    if (t != dtype::f32) y = r_.add(op::convert{t}, {y});
    r_.replace(v, y);
    note_.count("dot");
    note_.remark(
        text("products of floats of eight bits are scaled once after the sum, of which the matrix unit keeps "
             "fewer bits than f32 has for up to 256 products"));
  }

  rewriter<Module> r_;
  pass_note& note_;
};

}  // namespace detail

/// Writes matrix products of f8e4m3fn or f8e5m2 as `float8_dot`: the left operand is such numbers that were widened,
/// perhaps times a scale that is alike along the depth (of the tensor, of rows, found by a run or constant), the right
/// one a constant matrix of the same type with a scale for all or for each column (`block_dequantize` in one block).
/// The scales move after the product, where an epilogue takes them. For targets whose kernels multiply such floats; the
/// depth is a multiple of 16, and the product's type f32, f16 or bf16.
template <class Program> constexpr pass_note float8_products(Program& p) {
  return run_on_modules<detail::float8_product_finder>("float8_products", p);
}

}  // namespace kiln
