#pragma once
#include <concepts>
#include <span>

#include "kiln/core/argument.hpp"
#include "kiln/core/layout.hpp"
#include "kiln/core/small_vector.hpp"
#include "kiln/op/extent_agreement.hpp"

namespace kiln {

/// Shapes of an op's operands or results.
using shapes = small_vector<shape>;
class evaluation;
struct contraction;

/// An op is a flat aggregate of attributes without a base class, small enough to live inside an instruction.
inline constexpr std::size_t max_op_bytes = 320;

template <class Op>
concept op_struct = std::is_aggregate_v<Op> && std::is_trivially_copyable_v<Op> && sizeof(Op) <= max_op_bytes;

namespace detail {

// Defaults for what an op may leave unsaid.
template <class Op> constexpr dtype_set types_of() {
  if constexpr (requires { Op::types; })
    return Op::types;
  else if constexpr (requires(const Op& op, const layout& in) { op.map(in); })
    return dtypes::movable;
  else
    return dtypes::floats;
}
/// How many leading inputs of a pointwise op are conditions (bool) beside its values.
template <class Op> constexpr int condition_args_of() {
  if constexpr (requires { Op::condition_args; })
    return Op::condition_args;
  else
    return 0;
}

// A C++ type the op computes in: the first its dtype set names.
template <class Op>
using probe_type = std::conditional_t<
    (types_of<Op>().mask & dtypes::floats.mask) != 0, float,
    std::conditional_t<
        (types_of<Op>().mask & dtypes::signed_integers.mask) != 0, std::int64_t,
        std::conditional_t<(types_of<Op>().mask & dtypes::unsigned_integers.mask) != 0, std::uint64_t, bool>>>;

template <class T, std::size_t> struct repeat_type { using type = T; };
template <class T, std::size_t I> using repeat = typename repeat_type<T, I>::type;

template <class Op, class T, std::size_t... I, std::size_t... C>
constexpr bool callable(std::index_sequence<C...>, std::index_sequence<I...>) {
  return std::is_invocable_v<const Op&, repeat<bool, C>..., repeat<T, I>...>;
}
template <class Op, class T, std::size_t N> constexpr bool callable_with() {
  constexpr std::size_t conditions = static_cast<std::size_t>(condition_args_of<Op>());
  if constexpr (N < conditions)
    return false;
  else
    return callable<Op, T>(std::make_index_sequence<conditions>{}, std::make_index_sequence<N - conditions>{});
}

/// Number of arguments of `operator()`, 0 when there is none.
template <class Op> constexpr int call_arity() {
  using T = probe_type<Op>;
  if constexpr (callable_with<Op, T, 1>())
    return 1;
  else if constexpr (callable_with<Op, T, 2>())
    return 2;
  else if constexpr (callable_with<Op, T, 3>())
    return 3;
  else if constexpr (callable_with<Op, T, 4>())
    return 4;
  else if constexpr (callable_with<Op, T, 5>())
    return 5;
  else if constexpr (callable_with<Op, T, 6>())
    return 6;
  else
    return 0;
}

}  // namespace detail

/// Computes one element from the elements at the same index: `operator()(T...)` over any arithmetic type T of the op's
/// `types`. Everything else (shape rule, reference, SIMD loop, fusion, source) is derived.
template <class Op>
concept pointwise = op_struct<Op> && detail::call_arity<Op>()
> 0;

/// What a reduction starts from: the op's `identity<T>()`, or that of its `combine`, where this is an object.
template <class T, class Op> constexpr T identity_of(const Op& op) {
  if constexpr (requires { op.template identity<T>(); })
    return op.template identity<T>();
  else
    return op.combine.template identity<T>();
}

/// Folds the elements along `axes` (extents of 1 remain): `identity<T>()`, `combine(acc, x)`, optionally `prepare(x)`
/// before and `finish(acc, n)` after, n being the number of elements folded.
template <class Op>
concept reduction = op_struct<Op> && requires(const Op& op, detail::probe_type<Op> x) {
  op.axes;
  { identity_of<detail::probe_type<Op>>(op) } -> std::same_as<detail::probe_type<Op>>;
  { op.combine(x, x) } -> std::same_as<detail::probe_type<Op>>;
};

/// Moves no data: `map(layout)` gives the result's layout in the same buffer, or a fault where the input's strides do
/// not allow it (a copy then precedes). It succeeds for every standard layout that obeys the shape rule.
template <class Op>
concept view = op_struct<Op> && requires(const Op& op, const layout& in) {
  { op.map(in) } -> std::same_as<result<layout>>;
};

/// A sum of products of two operands over affine index maps: `maps(shapes)` (dot, convolution, einsum).
template <class Op>
concept contracting = op_struct<Op> && requires(const Op& op, std::span<const shape> in) {
  { op.maps(in) } -> std::same_as<result<contraction>>;
};

/// Anything else: a shape rule and a reference computation.
template <class Op>
concept generic = op_struct<Op> && requires(const Op& op, std::span<const shape> in) {
  op.compute_shape(in);
} && !contracting<Op>;

/// Results that only a run can size or make (counts of what was found, strings, sequences): `produce(arguments)` gives
/// them as arguments of their own. The shape rule states their extents over symbols that the op's attributes name; the
/// run binds these to what was produced, or asks `bind(results, bindings)` where the op has one.
template <class Op>
concept producing = op_struct<Op> && requires(const Op& op, std::span<const argument> in) {
  { op.produce(in) } -> std::same_as<small_vector<argument>>;
};

/// Calls other modules of the program with values of the run (if, loop, scan): every attribute that is a `module_ref`
/// is one. The runtime knows how; results have the shapes that the instruction was made with.
template <class Op>
concept calling = op_struct<Op> && requires {
  requires Op::calls_bodies;
};

/// Needs extents of its operands equal, and says which.
template <class Op>
concept agreeing = op_struct<Op> && requires(const Op& op, extent_agreement& extents) {
  op.agree(extents);
};

/// Groups instructions of the program into one: `body` names the module that says their meaning.
template <class Op>
concept control = op_struct<Op> && requires(const Op& op) {
  op.body;
};

/// `dynamic` is what `producing` and `calling` ops are.
enum class op_kind : std::uint8_t { pointwise, reduction, view, contraction, generic, control, dynamic };

constexpr std::string_view to_string(op_kind k) {
  return enumerator_name(k, {"pointwise", "reduction", "view", "contraction", "generic", "control", "dynamic"});
}

/// What an op is, by the first concept it models.
template <class Op> constexpr op_kind kind_of() {
  if constexpr (control<Op>)
    return op_kind::control;
  else if constexpr (producing<Op> || calling<Op>)
    return op_kind::dynamic;
  else if constexpr (reduction<Op>)
    return op_kind::reduction;
  else if constexpr (view<Op>)
    return op_kind::view;
  else if constexpr (contracting<Op>)
    return op_kind::contraction;
  else if constexpr (pointwise<Op>)
    return op_kind::pointwise;
  else {
    static_assert(generic<Op>,
                  "kiln: an op needs one of: operator()(T...) [pointwise], identity/combine/axes [reduction], "
                  "map(layout) [view], maps(shapes) [contraction], or compute_shape and compute [generic]");
    return op_kind::generic;
  }
}

}  // namespace kiln
