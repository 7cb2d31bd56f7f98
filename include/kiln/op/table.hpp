#pragma once
#include "kiln/core/expr.hpp"
#include "kiln/op/control/fused.hpp"
#include "kiln/op/derive.hpp"
#include "kiln/op/fields.hpp"
#include "kiln/op/normalize.hpp"
#include "kiln/op/saved_fields.hpp"

namespace kiln {

/// What can be said of an op without its attributes.
struct op_info {
  std::string_view name;
  op_kind kind = op_kind::generic;
  int inputs = -1;     ///< pointwise: the number of inputs; -1: the shape rule decides
  int conditions = 0;  ///< leading bool inputs of a pointwise op
  dtype_set types{};
  bool commutative = false;
  bool folds_dimensions = false;
  bool returns_bool = false;  ///< a pointwise op whose computation gives a condition
  bool pure = true;           ///< equal inputs give equal results (a random op is not)
};

template <class Op> constexpr op_info info_of() {
  op_info i;
  i.name = type_name<Op>();
  i.kind = kind_of<Op>();
  if constexpr (kind_of<Op>() == op_kind::pointwise) i.returns_bool = detail::result_is_bool<Op>();
  if constexpr (kind_of<Op>() == op_kind::pointwise)
    i.inputs = detail::call_arity<Op>();
  else if constexpr (kind_of<Op>() == op_kind::view || kind_of<Op>() == op_kind::reduction)
    i.inputs = 1;
  else if constexpr (kind_of<Op>() == op_kind::contraction)
    i.inputs = 2;
  i.conditions = detail::condition_args_of<Op>();
  i.types = detail::types_of<Op>();
  if constexpr (requires { Op::commutative; }) i.commutative = Op::commutative;
  if constexpr (requires { Op::pure; }) i.pure = Op::pure;
  if constexpr (!control<Op> && kind_of<Op>() != op_kind::dynamic) i.folds_dimensions = folds_dimensions<Op>();
  return i;
}

/// The parts of an op that have a text: a pointwise op's computation, and what a reduction does with an element, with
/// two sums, and with the whole sum and its number of elements.
enum class trace_part : std::uint8_t { compute, prepare, combine, finish };

/// The waist between an op's struct and everything at run time: attributes are bytes, behavior is this table. One is
/// generated for every op, the library's and a user's alike, so passes and targets never know the difference.
struct op_table : op_info {
  std::size_t bytes = 0;
  std::uint32_t index = 0xffff'ffff;  ///< in the default registry; a user's op has none
  result<shapes> (*shape_rule)(const void* op, std::span<const shape> in) = nullptr;
  result<layout> (*map)(const void* op, const layout& in) = nullptr;                 ///< views
  result<contraction> (*maps)(const void* op, std::span<const shape> in) = nullptr;  ///< contractions
  const ints* (*axes)(const void* op) = nullptr;                                     ///< reductions
  void (*evaluate)(const void* op, evaluation& e, bool symbolic) = nullptr;
  /// Pointwise over n contiguous elements of the compute type of `t` (conditions are bool); out is bool or that type.
  void (*tile)(const void* op, dtype t, const void* const* in, void* out, std::int64_t n) = nullptr;
  /// Reductions: acc = combine(acc, prepare(in[i])) over n contiguous elements; `start` sets acc to the identity,
  /// `finish` ends a fold over n elements.
  void (*start)(const void* op, dtype t, void* acc) = nullptr;
  void (*fold)(const void* op, dtype t, const void* in, std::int64_t n, void* acc) = nullptr;
  void (*finish)(const void* op, dtype t, void* acc, std::int64_t n) = nullptr;
  /// What a part computes from these values, conditions first, as an expression; pointwise ops and reductions.
  expr (*trace)(const void* op, trace_part part, std::span<const expr> in) = nullptr;
  void (*normalize)(void* op, std::span<const shape> in, const shape& out) = nullptr;
  void (*print)(const void* op, text& out) = nullptr;
  void (*save)(const void* op, archive_writer& to) = nullptr;
  void (*restore)(void* op, archive_reader& from) = nullptr;  ///< makes one in these bytes
  std::uint64_t (*hash)(const void* op) = nullptr;
  bool (*equal)(const void* a, const void* b) = nullptr;
  void (*substitute)(void* op, const bindings& values) = nullptr;
  void (*symbols)(const void* op, small_vector<dimension>& out) = nullptr;
  const module_ref* (*body)(const void* op) = nullptr;                                           ///< control
  small_vector<argument> (*produce)(const void* op, std::span<const argument> in) = nullptr;     ///< producing
  void (*bind)(const void* op, std::span<const argument> results, bindings& symbols) = nullptr;  ///< where it has one
  void (*bodies)(const void* op, small_vector<module_ref>& out) = nullptr;                       ///< calling
  void (*agree)(const void* op, extent_agreement& extents) = nullptr;                            ///< agreeing
};

namespace detail {

// Calls f with a compute type of `t` that Op serves.
template <class Op, class F> void visit_served(dtype t, F&& f) {
  visit_compute(t, [&]<class T>(type_tag<T> tag) {
    constexpr dtype_set types = types_of<Op>();
    constexpr bool served = std::is_same_v<T, double>          ? types.contains(dtype::f64)
                            : std::is_same_v<T, float>         ? (types.mask & 0x0e) != 0
                            : std::is_same_v<T, std::int64_t>  ? (types.mask & dtypes::signed_integers.mask) != 0
                            : std::is_same_v<T, std::uint64_t> ? (types.mask & dtypes::unsigned_integers.mask) != 0
                                                               : types.contains(dtype::boolean);
    if constexpr (served)
      f(tag);
    else
      raise(fault::of(errc::unsupported, "dtype the op computes in", "one of its types", t));
  });
}

template <class Op, class T, std::size_t... C, std::size_t... I>
void pointwise_tile(const Op& op, const void* const* in, void* out, std::int64_t n, std::index_sequence<C...>,
                    std::index_sequence<I...>) {
  using R = std::invoke_result_t<const Op&, repeat<bool, C>..., repeat<T, I>...>;
  const bool* conditions[sizeof...(C) + 1] = {static_cast<const bool*>(in[C])...};
  const T* values[sizeof...(I)] = {static_cast<const T*>(in[sizeof...(C) + I])...};
  R* result = static_cast<R*>(out);
  (void)conditions;
  for (std::int64_t k = 0; k < n; ++k) result[k] = op(conditions[C][k]..., values[I][k]...);
}

template <class Op, std::size_t... I>
expr trace_pointwise(const Op& op, std::span<const expr> in, std::index_sequence<I...>) {
  return expr(op(in[I]...));
}
template <class Op> expr trace_reduction(const Op& op, trace_part part, std::span<const expr> in) {
  if (part == trace_part::combine) return op.combine(in[0], in[1]);
  if constexpr (requires { op.prepare(in[0]); })
    if (part == trace_part::prepare) return op.prepare(in[0]);
  if constexpr (requires { op.finish(in[0], in[1]); })
    if (part == trace_part::finish) return op.finish(in[0], in[1]);
  return in[0];
}

template <class Op, class T>
concept finishes = requires(const Op& op, T x) {
  op.finish(x, x);
};

template <class Op> const Op& as(const void* op) { return *static_cast<const Op*>(op); }

}  // namespace detail

/// Generates an op's table.
template <class Op> constexpr op_table make_table() {
  using detail::as;
  constexpr op_kind kind = kind_of<Op>();
  op_table t;
  static_cast<op_info&>(t) = info_of<Op>();
  t.bytes = sizeof(Op);
  if constexpr (kind == op_kind::dynamic) {
    t.shape_rule = [](const void* op, std::span<const shape> in) { return shape_of(as<Op>(op), in); };
    if constexpr (producing<Op>)
      t.produce = [](const void* op, std::span<const argument> in) { return as<Op>(op).produce(in); };
    if constexpr (requires(const Op& op, std::span<const argument> made, bindings& b) { op.bind(made, b); })
      t.bind = [](const void* op, std::span<const argument> made, bindings& b) { as<Op>(op).bind(made, b); };
    if constexpr (calling<Op>)
      t.bodies = [](const void* op, small_vector<module_ref>& out) { collect_bodies(as<Op>(op), out); };
  } else if constexpr (kind != op_kind::control) {
    t.shape_rule = [](const void* op, std::span<const shape> in) { return shape_of(as<Op>(op), in); };
    t.evaluate = [](const void* op, evaluation& e, bool symbolic) { kiln::evaluate(as<Op>(op), e, symbolic); };
  }
  if constexpr (kind == op_kind::view) t.map = [](const void* op, const layout& in) { return as<Op>(op).map(in); };
  if constexpr (kind == op_kind::contraction)
    t.maps = [](const void* op, std::span<const shape> in) { return as<Op>(op).maps(in); };
  if constexpr (kind == op_kind::pointwise) {
    t.tile = [](const void* op, dtype type, const void* const* in, void* out, std::int64_t n) {
      constexpr auto arity = static_cast<std::size_t>(detail::call_arity<Op>()),
                     c = static_cast<std::size_t>(detail::condition_args_of<Op>());
      detail::visit_served<Op>(type, [&]<class T>(type_tag<T>) {
        detail::pointwise_tile<Op, T>(as<Op>(op), in, out, n, std::make_index_sequence<c>{},
                                      std::make_index_sequence<arity - c>{});
      });
    };
  }
  if constexpr (kind == op_kind::reduction) {
    t.axes = [](const void* op) { return &as<Op>(op).axes; };
    t.start = [](const void* op, dtype type, void* acc) {
      detail::visit_served<Op>(type, [&]<class T>(type_tag<T>) { *static_cast<T*>(acc) = identity_of<T>(as<Op>(op)); });
    };
    t.fold = [](const void* op, dtype type, const void* in, std::int64_t n, void* acc) {
      detail::visit_served<Op>(type, [&]<class T>(type_tag<T>) {
        const Op& o = as<Op>(op);
        T sum = *static_cast<T*>(acc);
        for (std::int64_t i = 0; i < n; ++i) {
          T x = static_cast<const T*>(in)[i];
          if constexpr (requires { o.prepare(x); }) x = o.prepare(x);
          sum = o.combine(sum, x);
        }
        *static_cast<T*>(acc) = sum;
      });
    };
    t.finish = []([[maybe_unused]] const void* op, [[maybe_unused]] dtype type, [[maybe_unused]] void* acc,
                  [[maybe_unused]] std::int64_t n) {
      detail::visit_served<Op>(type, [&]<class T>(type_tag<T>) {
        T& sum = *static_cast<T*>(acc);
        if (n == 0) sum = detail::nearest_in(type, sum);
        if constexpr (detail::finishes<Op, detail::probe_type<Op>>) sum = as<Op>(op).finish(sum, static_cast<T>(n));
      });
    };
  }
  if constexpr (kind == op_kind::pointwise)
    t.trace = [](const void* op, trace_part, std::span<const expr> in) {
      return detail::trace_pointwise(as<Op>(op), in,
                                     std::make_index_sequence<static_cast<std::size_t>(detail::call_arity<Op>())>{});
    };
  if constexpr (kind == op_kind::reduction)
    t.trace = [](const void* op, trace_part part, std::span<const expr> in) {
      return detail::trace_reduction(as<Op>(op), part, in);
    };
  if constexpr (kind == op_kind::control) t.body = [](const void* op) { return &as<Op>(op).body; };
  if constexpr (kind != op_kind::control)
    t.normalize = [](void* op, std::span<const shape> in, const shape& out) {
      *static_cast<Op*>(op) = normalized(as<Op>(op), in, out);
    };
  if constexpr (agreeing<Op>) t.agree = [](const void* op, extent_agreement& extents) { as<Op>(op).agree(extents); };
  t.print = [](const void* op, text& out) { print_fields(as<Op>(op), out); };
  t.save = [](const void* op, archive_writer& to) { detail::put_saved(to, as<Op>(op)); };
  t.restore = [](void* op, archive_reader& from) { detail::take_saved(from, *::new (op) Op{}); };
  t.hash = [](const void* op) { return hash_fields(as<Op>(op)); };
  t.equal = [](const void* a, const void* b) { return equal_fields(as<Op>(a), as<Op>(b)); };
  t.substitute = [](void* op, const bindings& values) { substitute_fields(*static_cast<Op*>(op), values); };
  t.symbols = [](const void* op, small_vector<dimension>& out) { collect_field_symbols(as<Op>(op), out); };
  return t;
}

}  // namespace kiln
