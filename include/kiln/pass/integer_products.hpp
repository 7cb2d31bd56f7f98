#pragma once
#include <algorithm>
#include <span>

#include "kiln/op/quant/integer_convolution.hpp"
#include "kiln/op/quant/zero_point_sums.hpp"
#include "kiln/pass/attention_pattern.hpp"
#include "kiln/pass/constants.hpp"
#include "kiln/pass/note.hpp"
#include "kiln/pass/rounded_bytes.hpp"
#include "kiln/pass/shifted_filters.hpp"

namespace kiln {

namespace detail {

/// Finds products whose operands are 8-bit integers, and writes them as products of bytes.
template <class Module> class integer_product_finder {
 public:
  constexpr integer_product_finder(Module& m, pass_note& note) : r_(m), note_(note) {}

  constexpr void run() {
    const std::uint32_t n = r_.size();
    find_attention(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      if (r_[i].kind != instruction_kind::op || r_.users(i).empty()) continue;
      if (!r_[i].op.template is<op::convolution>() && !r_[i].op.template is<op::dot>()) continue;
      const dtype t = r_[i].results[0].type;
      if (t == dtype::f32)
        rewrite_real({i, 0});
      else if (t == dtype::i32)
        rewrite_integers({i, 0});
    }
    rounded_bytes<rewriter<Module>>(r_, note_).keep(n);
  }

 private:
  // real = (stored - zero) * scale, zero and scale being one number each; either may be missing.
  struct left {
    value_id stored, zero, scale;
  };
  struct right {
    value_id stored;         // i8, the operand's dims
    literal scale;           // f32, of one element or one for each column
    literal numbers;         // of `stored`, without what a batch repeats
    std::int64_t shift = 0;  // what the operand has more than `stored`
  };

  // The value of one element that a broadcast repeats, or empty.
  constexpr value_id repeated(value_id v) const {
    while (r_.is_kind(v, op_kind::view)) {
      const value_id from = r_.input(v, 0);
      if (product(r_.shape_of(from).lens) == dimension(1) || r_.is_kind(from, op_kind::view))
        v = from;
      else
        return {};
    }
    return product(r_.shape_of(v).lens) == dimension(1) ? v : value_id{};
  }
  static constexpr bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }

  // Bytes, perhaps without their zero point, computed in `t`.
  constexpr std::optional<left> centered(value_id v) const {
    if (r_.template get_if<op::convert>(v)) {
      const value_id from = r_.input(v, 0);
      if (is_byte(r_.shape_of(from).type)) return left{from, {}, {}};
      // exact, whether the difference was taken in integers or in floats
      return r_.shape_of(from).type == dtype::i32 ? centered(from) : std::nullopt;
    }
    if (!r_.template get_if<op::sub>(v)) return std::nullopt;
    const value_id from = r_.input(v, 0), zero = repeated(r_.input(v, 1));
    if (!zero || !r_.template get_if<op::convert>(from) || !is_byte(r_.shape_of(r_.input(from, 0)).type))
      return std::nullopt;
    if (!is_whole_byte(zero)) return std::nullopt;
    return left{r_.input(from, 0), zero, {}};
  }
  // Whether a zero point is an integer of few bits: a byte that was converted, or a constant.
  constexpr bool is_whole_byte(value_id zero) const {
    if (r_.template get_if<op::convert>(zero)) return is_byte(r_.shape_of(r_.input(zero, 0)).type);
    const auto x = uniform_value(r_, zero);
    return x && *x >= -255 && *x <= 255 && *x == static_cast<double>(static_cast<std::int64_t>(*x));
  }
  constexpr std::optional<left> real(value_id v) const {
    if (!r_.template get_if<op::mul>(v)) return std::nullopt;
    auto x = centered(r_.input(v, 0));
    const value_id scale = repeated(r_.input(v, 1));
    if (!x || !scale) return std::nullopt;
    x->scale = scale;
    return x;
  }

  // i8 numbers, and what was subtracted from whole numbers to make them such.
  struct byte_numbers {
    literal numbers;
    std::int64_t shift = 0;
  };

  // Bytes less a zero point, as i8; empty where that leaves more than 256 numbers.
  template <class Byte> static std::optional<byte_numbers> less_zero(const literal& from, double zero) {
    if (zero != static_cast<double>(static_cast<std::int16_t>(zero))) return std::nullopt;
    const auto n = static_cast<std::size_t>(from.elements());
    const std::span<const Byte> x(reinterpret_cast<const Byte*>(from.bytes()), n);
    const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
    const int less = static_cast<int>(zero);
    const auto shift = shift_to_i8(*least - less, *greatest - less);
    if (!shift) return std::nullopt;
    buffer data = buffer::allocate(n);
    auto* to = reinterpret_cast<std::int8_t*>(data.data());
    for (const Byte b : x) *to++ = static_cast<std::int8_t>(b - less - static_cast<int>(*shift));
    return byte_numbers{literal({dtype::i8, from.get_shape().lens}, std::move(data)), *shift};
  }
  // The elements of a constant that `at` selects, less a zero point, as i8 where all are whole numbers of a byte.
  static constexpr std::optional<byte_numbers> whole_bytes(const literal& from, const layout& at, double zero) {
    const literal selected = laid_out(from, at);
    const dtype t = selected.get_shape().type;
    if (selected.elements() == 0) return std::nullopt;
    if (t == dtype::i8 && zero == 0) return byte_numbers{selected};
    if (!std::is_constant_evaluated() && is_byte(t) && zero >= -255 && zero <= 255)
      return t == dtype::i8 ? less_zero<std::int8_t>(selected, zero) : less_zero<std::uint8_t>(selected, zero);
    small_vector<float> values = selected.template to<float>();
    const auto less = static_cast<float>(zero);
    float least = values[0] - less, greatest = least;
    for (float& x : values) {
      if (!(x >= -0x1p23F && x <= 0x1p23F)) return std::nullopt;  // a greater integer may not be what was stored
      x -= less;
      if (static_cast<float>(static_cast<std::int32_t>(x)) != x) return std::nullopt;
      least = x < least ? x : least;
      greatest = x > greatest ? x : greatest;
    }
    const auto shift = shift_to_i8(static_cast<std::int64_t>(least), static_cast<std::int64_t>(greatest));
    if (!shift) return std::nullopt;
    for (float& x : values) x -= static_cast<float>(*shift);
    return byte_numbers{literal::of<float>(shape(dtype::i8, at.lens), values), *shift};
  }
  // The layout of the views between `v` and `end`.
  constexpr std::optional<layout> through_views(value_id v, value_id end, layout at) const {
    inline_vector<std::uint32_t, 16> views;
    for (; !(v == end); v = r_.input(v, 0)) {
      if (!r_.is_kind(v, op_kind::view) || views.size() == views.capacity()) return std::nullopt;
      views.push_back(v.instruction);
    }
    for (std::size_t k = views.size(); k-- > 0;) {
      const auto next = r_[views[k]].op.map(at);
      if (!next) return std::nullopt;
      at = *next;
    }
    return at;
  }
  // A constant right operand whose columns are along dim `column`: whole numbers, or those times scales.
  constexpr std::optional<right> weights(value_id v, std::size_t column, bool scaled) {
    value_id inner = v;
    while (r_.is_kind(inner, op_kind::view)) inner = r_.input(inner, 0);
    right out;
    value_id numbers = inner;
    if (scaled) {
      if (!r_.template get_if<op::mul>(inner)) return std::nullopt;
      numbers = r_.input(inner, 0);
      const constant_view s = viewed_constant(r_, r_.input(inner, 1));
      if (!s || s.from->get_shape().type != dtype::f32) return std::nullopt;
      const auto at = through_views(v, inner, s.at);
      if (!at || !is_constant(at->lens)) return std::nullopt;
      layout columns{{at->lens[column]}, {at->strides[column]}, at->offset};
      for (std::size_t d = 0; d < at->lens.size(); ++d)
        if (d != column && varies(*at, d)) return std::nullopt;
      if (!varies(columns, 0)) columns = {{dimension(1)}, {dimension(0)}, at->offset};
      out.scale = laid_out(*s.from, columns);
    }
    constant_view c = viewed_constant(r_, numbers);
    double zero = 0;
    if (!c) {  // not folded yet: stored numbers, perhaps less their zero points
      const auto stored = [&](value_id x) { return r_.template get_if<op::convert>(x) ? r_.input(x, 0) : x; };
      numbers = stored(numbers);
      if (r_.template get_if<op::sub>(numbers)) {
        const auto z = uniform_stored_value(r_, r_.input(numbers, 1));
        if (!z) return std::nullopt;
        zero = *z;
        numbers = r_.input(numbers, 0);
      }
      c = viewed_constant(r_, stored(numbers));
    }
    if (!c || c.from->has_symbols()) return std::nullopt;
    auto at = through_views(v, inner, c.at);
    if (!at || !is_constant(at->lens) || !is_byte_or_wider(c.from->get_shape().type)) return std::nullopt;
    const dims lens = at->lens;
    if (column != 0)  // one matrix for the whole batch
      for (std::size_t d = 0; d + 2 < lens.size(); ++d) {
        if (varies(*at, d)) return std::nullopt;
        at->lens[d] = 1;
      }
    std::int64_t depth = 1;
    for (std::size_t d = 0; d < at->lens.size(); ++d)
      if (d != column) depth *= at->lens[d].value();
    const auto whole = whole_bytes(*c.from, *at, zero);
    if (!whole || (whole->shift != 0 && column != 0)) return std::nullopt;
    // sums of more products with centered bytes could leave i32
    const std::int64_t most = whole->shift < 0 ? 128 - whole->shift : std::max<std::int64_t>(128, 127 + whole->shift);
    if (depth > 2147483647 / (255 * most)) return std::nullopt;
    out.numbers = whole->numbers;
    out.shift = whole->shift;
    out.stored = r_.add_literal(out.numbers);
    if (!(at->lens == lens)) out.stored = r_.add(op::multibroadcast{lens}, {out.stored});
    return out;
  }
  static constexpr bool is_byte_or_wider(dtype t) { return t == dtype::f32 || t == dtype::i32 || is_byte(t); }
  constexpr std::size_t weight_column(value_id v) const {
    return r_.template get_if<op::dot>(v) ? r_.shape_of(v).rank() - 1 : 0;
  }

  constexpr value_id along_columns(value_id v, value_id columns, bool convolves) {
    const dims lens = r_.shape_of(v).lens;
    const std::size_t column = convolves ? 1 : lens.size() - 1;
    if (r_.shape_of(columns).elements() == dimension(1))
      return r_.add(op::multibroadcast{lens}, {r_.add(op::reshape{dims{}}, {columns})});
    return r_.add(op::broadcast{static_cast<std::int64_t>(column), lens}, {columns});
  }

  // The i32 product of centered bytes. Filters that fit i8 but for a shift are convolved without it, and it is added
  // times the sums of the windows.
  constexpr value_id product_of(value_id v, const left& a, const right& b) {
    if (b.shift == 0) return stored_product_of(v, a, b);
    const std::int64_t group = r_.template get_if<op::convolution>(v)->group;
    right more = b;
    more.numbers = with_sums_of_windows(b.numbers, group);
    more.stored = r_.add_literal(more.numbers);
    return add_shifted_windows(r_, stored_product_of(v, a, more), group, b.shift);
  }
  // The i32 product of centered bytes: the product of the bytes, less the zero point times the sums of the right
  // operand's columns, or of those parts of them that are inside the image.
  constexpr value_id stored_product_of(value_id v, const left& a, const right& b) {
    const auto* conv = r_.template get_if<op::convolution>(v);
    const op::convolution attributes = conv ? *conv : op::convolution{};
    const bool convolves = conv != nullptr;
    const auto outside = padding_of(a);
    const bool padded = conv && is_padded(*conv) && !outside;
    const text name = r_.producer(v).name;
    const value_id out = convolves
                             ? r_.add(op::integer_convolution{attributes.stride, attributes.dilation, attributes.pads,
                                                              attributes.group, outside.value_or(0)},
                                      {a.stored, b.stored}, name.view())
                             : r_.add(op::integer_dot{}, {a.stored, b.stored}, name.view());
    if (is_centered(a)) return out;
    const dims lens = r_.shape_of(out).lens;
    value_id zero = r_.shape_of(a.zero).type == dtype::i32 ? a.zero : r_.add(op::convert{dtype::i32}, {a.zero});
    if (r_.shape_of(zero).rank() != 0) zero = r_.add(op::reshape{dims{}}, {zero});
    const value_id sums = r_.add_literal(sums_of(b, convolves, padded));
    if (!padded) {
      value_id number = zero;
      if (r_.template get_if<op::convert>(a.zero) && is_byte(r_.shape_of(r_.input(a.zero, 0)).type)) {
        number = r_.input(a.zero, 0);
        if (r_.shape_of(number).rank() != 0) number = r_.add(op::reshape{dims{}}, {number});
      }
      return r_.add(op::sub{}, {out, along_columns(out, r_.add(op::zero_point_sums{}, {sums, number}), convolves)});
    }
    dims image = r_.shape_of(a.stored).lens;
    image[0] = image[1] = 1;
    const value_id inside =
        r_.add(op::multibroadcast{image}, {r_.add_literal(literal::scalar(dtype::i32, std::int64_t{1}))});
    op::convolution over_sums = attributes;
    over_sums.group = 1;  // the sums are over the channels of each group already
    const value_id parts = r_.add(over_sums, {inside, sums});
    const value_id spread = r_.add(op::multibroadcast{r_.shape_of(parts).lens}, {zero});
    value_id less = r_.add(op::mul{}, {parts, spread});
    if (!(r_.shape_of(less).lens == lens)) less = r_.add(op::multibroadcast{lens}, {less});
    return r_.add(op::sub{}, {out, less});
  }
  // A zero point that is known.
  constexpr std::optional<double> known_zero(const left& a) const {
    return a.zero ? uniform_stored_value(r_, a.zero) : 0.0;
  }
  // The byte that stands for 0, where it is known.
  constexpr std::optional<std::int64_t> padding_of(const left& a) const {
    const auto zero = known_zero(a);
    const bool is_signed = r_.shape_of(a.stored).type == dtype::i8;
    if (!zero || *zero < (is_signed ? -128 : 0) || *zero > (is_signed ? 127 : 255)) return std::nullopt;
    return static_cast<std::int64_t>(*zero);
  }
  static constexpr bool is_padded(const op::convolution& conv) {
    for (std::int64_t p : conv.pads)
      if (p != 0) return true;
    return false;
  }
  constexpr bool is_centered(const left& a) const { return known_zero(a) == 0.0; }
  // The sums of a right operand's columns; of a filter whose window may be partly outside, those over its channels.
  static constexpr literal sums_of(const right& b, bool convolves, bool padded) {
    if (std::is_constant_evaluated())
      return sums_over(b.numbers.template to<float>().data(), b.numbers.get_shape().lens, convolves, padded);
    return sums_over(reinterpret_cast<const std::int8_t*>(b.numbers.bytes()), b.numbers.get_shape().lens, convolves,
                     padded);
  }
  template <class T> static constexpr literal sums_over(const T* next, const dims& of, bool convolves, bool padded) {
    dims lens;
    std::size_t column = of.size() - 1, each = 1;
    if (convolves) column = 0;
    lens.push_back(of[column]);
    const auto columns = static_cast<std::size_t>(of[column].value()),
               all = static_cast<std::size_t>(product(of).value());
    if (padded) {
      lens = of;
      lens[1] = 1;
      for (std::size_t d = 2; d < lens.size(); ++d) each *= static_cast<std::size_t>(lens[d].value());
    }
    small_vector<std::int64_t> sums(columns * each, 0);
    if (convolves)
      for (std::size_t column_at = 0; column_at < columns; ++column_at)
        for (std::size_t k = 0; k < all / columns; ++k)
          sums[column_at * each + k % each] += static_cast<std::int64_t>(*next++);
    else
      for (std::size_t k = 0; k < all / columns; ++k)
        for (std::size_t column_at = 0; column_at < columns; ++column_at)
          sums[column_at] += static_cast<std::int64_t>(*next++);
    return literal::of<std::int64_t>(shape(dtype::i32, lens), sums);
  }
  // Corrections at the border of an image depend on its extents.
  constexpr bool serves(value_id v, const left& a) const {
    const auto* conv = r_.template get_if<op::convolution>(v);
    return !conv || padding_of(a) || !is_padded(*conv) || is_constant(r_.shape_of(a.stored).lens);
  }

  // The left operand of a product, seen through views: those of its bytes.
  constexpr std::optional<left> left_of(value_id v, bool scaled) {
    value_id inner = v;
    small_vector<typename rewriter<Module>::operation> views;
    for (; r_.is_kind(inner, op_kind::view); inner = r_.input(inner, 0)) views.push_back(r_.producer(inner).op);
    auto a = scaled ? real(inner) : centered(inner);
    for (std::size_t k = views.size(); a && k-- > 0;) a->stored = r_.add(views[k], {a->stored});
    return a;
  }
  // Products within attention over floats, which is one kernel that keeps no scores.
  constexpr void find_attention(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (r_[i].kind != instruction_kind::op || r_.users(i).empty() || !r_[i].op.template is<op::dot>()) continue;
      attention_pattern<rewriter<Module>> found(r_);
      if (!found.match({i, 0})) continue;
      attention_.push_back(found.scores.instruction);
      attention_.push_back(i);
    }
  }
  // A product of bytes that both vary from run to run, their zero points known.
  constexpr void rewrite_varying(value_id v, const std::optional<left>& a, bool scaled) {
    if (!a || !r_.template get_if<op::dot>(v)) return;
    for (const std::uint32_t i : attention_)
      if (i == v.instruction) return;
    constexpr std::int64_t most_depth = 33025;  // sums of more products, 255 times 255 at most, could leave i32
    const auto b = left_of(r_.input(v, 1), scaled);
    if (!b || r_.shape_of(a->stored).lens.back().max() > most_depth) return;
    const auto a_zero = padding_of(*a), b_zero = padding_of(*b);
    if (!a_zero || !b_zero) return;
    const text name = r_.producer(v).name;
    const value_id sum = r_.add(op::integer_dot{*a_zero, *b_zero}, {a->stored, b->stored}, name.view());
    if (!scaled) return put(v, sum);
    const auto number = [&](value_id s) { return r_.shape_of(s).rank() == 0 ? s : r_.add(op::reshape{dims{}}, {s}); };
    const value_id scale = r_.add(op::mul{}, {number(a->scale), number(b->scale)});
    const value_id floats = r_.add(op::convert{dtype::f32}, {sum});
    put(v, r_.add(op::mul{}, {floats, r_.add(op::multibroadcast{r_.shape_of(floats).lens}, {scale})}));
  }
  constexpr void rewrite_integers(value_id v) {
    const auto a = left_of(r_.input(v, 0), false);
    const auto b = a && serves(v, *a) ? weights(r_.input(v, 1), weight_column(v), false) : std::nullopt;
    if (!b) return rewrite_varying(v, a, false);
    put(v, product_of(v, *a, *b));
  }
  constexpr void rewrite_real(value_id v) {
    const auto a = left_of(r_.input(v, 0), true);
    const auto b = a && serves(v, *a) ? weights(r_.input(v, 1), weight_column(v), true) : std::nullopt;
    if (!b) return rewrite_varying(v, a, true);
    const bool convolves = r_.template get_if<op::convolution>(v) != nullptr;
    const value_id sum = r_.add(op::convert{dtype::f32}, {product_of(v, *a, *b)});
    const value_id columns = r_.add_literal(b->scale);
    value_id scale = r_.shape_of(a->scale).rank() == 0 ? a->scale : r_.add(op::reshape{dims{}}, {a->scale});
    scale = r_.add(op::multibroadcast{r_.shape_of(columns).lens}, {scale});
    put(v, r_.add(op::mul{}, {sum, along_columns(sum, r_.add(op::mul{}, {scale, columns}), convolves)}));
    note_.remark(text("products of quantized floats are exact sums of integers, scaled once after the sum"));
  }
  constexpr void put(value_id v, value_id by) {
    note_.count(r_.producer(v).op.name());
    r_.replace(v, by);
  }

  rewriter<Module> r_;
  pass_note& note_;
  small_vector<std::uint32_t> attention_;
};

}  // namespace detail

/// Writes matrix products and convolutions of 8-bit integers and constant 8-bit weights as
/// `integer_dot` and `integer_convolution`: those computed in i32 (MatMulInteger, QLinearConv), and those of
/// dequantized floats, whose scales and zero points are one number on the left and one for each column on the right:
/// the scales move after the product, where an epilogue takes them. Sums are exact; a float result is rounded twice at
/// most, where the program as written rounds every product. Products of bytes that both vary become `integer_dot` too
/// where their zero points are known, but for those of attention over floats.
template <class Program> constexpr pass_note integer_products(Program& p) {
  return run_on_modules<detail::integer_product_finder>("integer_products", p);
}

}  // namespace kiln
