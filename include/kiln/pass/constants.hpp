#pragma once
#include "kiln/graph/fold.hpp"
#include "kiln/graph/literal_values.hpp"
#include "kiln/graph/rewriter.hpp"
#include "kiln/op/pointwise/convert.hpp"

namespace kiln {

/// A constant seen through views: the layout of its elements in a literal. Empty when the value is no such thing.
struct constant_view {
  const literal* from = nullptr;
  layout at;
  constexpr explicit operator bool() const { return from != nullptr; }
};

/// The constant that a value views, through any chain of views that needs no copy; none where a run decides at which
/// place of it.
template <class R> constexpr constant_view viewed_constant(const R& r, value_id v) {
  inline_vector<std::uint32_t, 16> views;
  while (r.is_kind(v, op_kind::view)) {
    if (views.size() == views.capacity()) return {};
    views.push_back(v.instruction);
    v = r.input(v, 0);
  }
  const literal* l = r.constant(v);
  if (!l || !l->get_shape().is_constant()) return {};
  layout at = layout::standard(l->get_shape().lens);
  for (std::size_t k = views.size(); k-- > 0;) {
    const auto next = r[views[k]].op.map(at);
    if (!next) return {};
    at = *next;
  }
  if (!at.offset.is_constant()) return {};
  return {l, at};
}

/// The one value of all elements of a constant, seen through views: scalars broadcast to an operand's dims.
template <class R> constexpr std::optional<double> uniform_value(const R& r, value_id v) {
  while (r.is_kind(v, op_kind::view)) v = r.input(v, 0);
  const literal* l = r.constant(v);
  return l ? uniform_value(*l) : std::nullopt;
}

/// The same of numbers that are stored in few bits and widened, as zero points are, before folding has done it.
template <class R> constexpr std::optional<double> uniform_stored_value(const R& r, value_id v) {
  const auto widens = [&](value_id x) {
    if (!r.template get_if<op::convert>(x)) return false;
    const dtype from = r.shape_of(r.input(x, 0)).type;
    return is_integer(from) && size_of(from) <= 2 && size_of(r.shape_of(x).type) >= 4;
  };
  while (r.is_kind(v, op_kind::view) || widens(v)) v = r.input(v, 0);
  return uniform_value(r, v);
}

/// A scalar of the value's dtype broadcast to its dims.
template <class R> constexpr value_id scalar_like(R& r, value_id v, double x) {
  const shape s = r.shape_of(v);
  const value_id scalar = r.add_literal(literal::scalar(s.type, x));
  return s.rank() == 0 ? scalar : r.add(op::multibroadcast{s.lens}, {scalar});
}

namespace detail {

// Copies the elements of `bytes` bytes each that a layout of constant extents selects, row-major.
void copy_laid_out(const layout& at, std::size_t bytes, const std::byte* from, std::byte* to);

// A pointwise op over constants without symbols that are seen through layouts of the same extents, a part of them at a
// time: what a layout repeats is never written out whole. `finite` gets whether no element of the result is infinite or
// NaN, where that was found out on the way.
literal fold_laid_out(const operation& op, std::span<const literal* const> from, std::span<const layout> at,
                      const shape& result, std::optional<bool>* finite = nullptr);

// Whether no element of a literal of f32 is infinite or NaN; at run time.
bool finite_floats(const literal& l);

template <class T> constexpr void walk_layout(const layout& at, T&& take) {
  const ints lens = to_ints(at.lens), strides = to_ints(at.strides);
  ints index(lens.size(), 0);
  const std::int64_t n = product(lens), base = at.offset.value();
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t o = base;
    for (std::size_t d = 0; d < index.size(); ++d) o += index[d] * strides[d];
    take(o);
    next_index(index, lens);
  }
}

inline literal laid_out_bytes(const literal& l, const layout& at) {
  const shape s(l.get_shape().type, at.lens);
  const std::size_t bytes = size_of(s.type);
  buffer data = buffer::allocate(static_cast<std::size_t>(s.elements().value()) * bytes);
  copy_laid_out(at, bytes, l.bytes(), data.data());
  return literal(s, std::move(data));
}

// Worth a computation by parts: at run time, more elements than one part has.
constexpr bool folds_by_parts(const dims& core, const small_vector<constant_view>& views) {
  if (std::is_constant_evaluated()) return false;
  for (const constant_view& c : views)
    if (c.from->has_symbols()) return false;
  return product(core).value() > 8192;
}

}  // namespace detail

/// The elements that a layout selects from a literal, row-major. The layout's extents are constants.
constexpr literal laid_out(const literal& l, const layout& at) {
  const shape s(l.get_shape().type, at.lens);
  if (at.is_standard() && product(at.lens) == product(l.get_shape().lens)) return l.reshaped(at.lens);
  const auto selected = [&]<class T>(const small_vector<T>* held) {  // null where there are no elements
    small_vector<T> values;
    detail::walk_layout(at, [&](std::int64_t o) { values.push_back((*held)[static_cast<std::size_t>(o)]); });
    return values;
  };
  if (const auto* held = l.data().values<dimension>()) return literal::of_dimensions(at.lens, selected(held), s.type);
  if (!std::is_constant_evaluated()) return detail::laid_out_bytes(l, at);
  return visit_compute(
      s.type, [&]<class T>(type_tag<T>) { return literal::of<T>(s, selected(l.data().template values<T>())); });
}

/// The dims of a constant operand that vary, others 1: what has to be computed of a broadcast.
constexpr bool varies(const layout& at, std::size_t d) {
  return !(at.lens[d] == dimension(1)) && !(at.strides[d] == dimension(0));
}

/// Extents without the leading ones, which a broadcast adds again.
constexpr dims without_leading_ones(const dims& lens) {
  dims out;
  for (dimension d : lens)
    if (!out.empty() || !(d == dimension(1))) out.push_back(d);
  return out;
}

/// Computes a pointwise op over constants at the dims along which one of them varies, and broadcasts the result: a
/// constant never grows by its broadcast. Empty when an operand is no constant, or the result has more than
/// `most_elements`. `finite` is as `fold_laid_out` has it.
template <class R>
constexpr value_id fold_pointwise(R& r, const typename R::operation& op, const small_vector<value_id>& operands,
                                  std::int64_t most_elements, std::optional<bool>* finite = nullptr) {
  if (!op.info().pure || operands.empty()) return {};
  small_vector<constant_view> views;
  for (value_id v : operands) {
    views.push_back(viewed_constant(r, v));
    if (!views.back()) return {};
  }
  const dims full = r.shape_of(operands[0]).lens;
  dims core = full;
  for (std::size_t d = 0; d < full.size(); ++d) {
    bool any = full[d] == dimension(0);
    for (const constant_view& c : views) any = any || varies(c.at, d);
    if (!any) core[d] = 1;
  }
  if (!is_constant(core) || product(core).value() > most_elements) return {};
  const auto broadcast = [&](const literal& made) {
    if (core == full) return r.add_literal(made, operands);
    return r.add(op::multibroadcast{full}, {r.add_literal(made.reshaped(without_leading_ones(core)), operands)});
  };
  small_vector<literal> values;
  small_vector<const literal*> pointers;
  shapes in;
  if constexpr (std::is_same_v<typename R::operation, operation>)
    if (detail::folds_by_parts(core, views)) {
      small_vector<layout> at;
      for (const constant_view& c : views) {
        pointers.push_back(c.from);
        in.push_back(shape(c.from->get_shape().type, core));
        at.push_back({core, c.at.strides, c.at.offset});
      }
      const auto out = op.shape_rule(in);
      if (!out) return {};
      return broadcast(detail::fold_laid_out(op, pointers, at, (*out)[0], finite));
    }
  for (constant_view& c : views) {
    c.at.lens = core;
    values.push_back(laid_out(*c.from, c.at));
  }
  for (const literal& l : values) {
    pointers.push_back(&l);
    in.push_back(l.get_shape());
  }
  const auto out = op.shape_rule(in);
  if (!out) return {};
  const auto made = fold(op, std::span<const literal* const>(pointers.data(), pointers.size()), *out);
  return made.empty() ? value_id{} : broadcast(made[0]);
}

}  // namespace kiln
