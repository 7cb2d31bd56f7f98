#pragma once
#include "kiln/kernel/pointwise/block.hpp"
#include "kiln/kernel/pointwise/op_cost.hpp"
#include "kiln/kernel/pointwise/tile.hpp"

namespace kiln::kernels {

/// Vectors of a block: as many as fit into registers beside what a step needs.
template <block_width Width>
inline constexpr std::size_t block_vectors = Width == block_width::narrow ? 1
                                             : native_bytes == 64         ? 8
                                                                          : 4;
template <block_width Width>
inline constexpr std::size_t block_lanes = block_vectors<Width>* static_cast<std::size_t>(native_lanes<float>);

/// Which lanes are among the first n.
KILN_FN float_mask lanes_below(int n) {
  float_mask lane;
  for (int i = 0; i < native_lanes<float>; ++i) lane[i] = i;
  return lane < splat<float_mask>(n);
}

template <block_width Width, class = std::make_index_sequence<block_vectors<Width>>> struct block_code;

/// Step functions of one width. The accumulator's vectors are arguments, so that by the calling convention they are in
/// registers, and the next step is a sibling call.
template <block_width Width, std::size_t... V> struct block_code<Width, std::index_sequence<V...>> {
  template <std::size_t> using vector = float_vec;
  using function = void (*)(const block_step*, block_frame*, vector<V>...);
  static constexpr std::ptrdiff_t step = native_lanes<float>;

  KILN_FN static void next(const block_step* at, block_frame* frame, vector<V>... a) {
    ++at;
    return reinterpret_cast<function>(at->call)(at, frame, a...);
  }
  KILN_FN static float* place(const block_frame* frame, std::uint16_t k) {
    return reinterpret_cast<float*>(frame->at[k]);
  }

  // An argument as the op wants it: conditions are masks, kept in float registers.
  template <class Op, std::size_t Argument> KILN_FN static auto argument(float_vec v) {
    if constexpr (Argument < static_cast<std::size_t>(detail::condition_args_of<Op>()) || !computes_floats<Op>)
      return (float_mask)v;
    else
      return v;
  }
  template <class Op> static constexpr bool computes_floats = (detail::types_of<Op>().mask & dtypes::floats.mask) != 0;
  template <class Op> static constexpr std::size_t arity = static_cast<std::size_t>(detail::call_arity<Op>());
  // Ops of many instructions loop over the block in memory: their code would be too long unrolled.
  template <class Op>
  static constexpr bool loops = sizeof...(V) > 1 && op_cost<Op>(std::make_index_sequence<arity<Op>>{}) > 12;

  template <class Op, std::size_t Acc, std::size_t... A>
  KILN_FN static float_vec apply(const Op& op, float_vec a, const float* const* in, std::size_t at,
                                 std::index_sequence<A...>) {
    const auto pick = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      if constexpr (I == Acc)
        return argument<Op, I>(a);
      else
        return argument<Op, I>(load<float_vec>(in[I < Acc ? I : I - 1] + at));
    };
    return (float_vec)op(pick(std::integral_constant<std::size_t, A>{})...);
  }

  /// acc = op(…), the accumulator being argument Acc and the others at places in order.
  template <class Op, std::size_t Acc> static void pointwise(const block_step* s, block_frame* frame, vector<V>... a) {
    const Op& op = *static_cast<const Op*>(s->op);
    constexpr auto arguments = std::make_index_sequence<arity<Op>>{};
    const float* in[2] = {};
    if constexpr (arity < Op >> 1) in[0] = place(frame, s->in[0]);
    if constexpr (arity < Op >> 2) in[1] = place(frame, s->in[1]);
    if constexpr (loops<Op>) {
      float* const spare = frame->spare;
      (store(spare + V * step, a), ...);
#pragma GCC unroll 2
      for (std::size_t v = 0; v < sizeof...(V); ++v)
        store(spare + v * step, apply<Op, Acc>(op, load<float_vec>(spare + v * step), in, v * step, arguments));
      return next(s, frame, load<float_vec>(spare + V * step)...);
    } else {
      return next(s, frame, apply<Op, Acc>(op, a, in, V * step, arguments)...);
    }
  }

  template <class Op> KILN_FN static float_vec prepared(const Op& op, float_vec x) {
    if constexpr (requires { op.prepare(x); })
      return op.prepare(x);
    else
      return x;
  }

  /// Place `out` = combine(it, prepare(acc)) lane by lane, over the valid lanes.
  template <class Op> static void fold(const block_step* s, block_frame* frame, vector<V>... a) {
    const Op& op = *static_cast<const Op*>(s->op);
    float* const sum = place(frame, s->out);
    if (frame->valid == static_cast<std::int64_t>(block_lanes<Width>)) {
      (store(sum + V * step, op.combine(load<float_vec>(sum + V * step), prepared(op, a))), ...);
    } else {
      const auto counted = [&](std::size_t v, float_vec x) {
        const auto valid = static_cast<int>(frame->valid) - static_cast<int>(v * step);
        return select(lanes_below(valid), prepared(op, x), splat<float_vec>(identity_of<float>(op)));
      };
      (store(sum + V * step, op.combine(load<float_vec>(sum + V * step), counted(V, a))), ...);
    }
    return next(s, frame, a...);
  }
};

template <class Op> inline constexpr bool has_block_steps = requires(const Op& op, float_vec x) {
  requires kind_of<Op>()
  == op_kind::pointwise;
  requires block_code<block_width::wide>::computes_floats<Op> || detail::types_of<Op>()
  .mask == dtypes::boolean.mask;
  requires block_code<block_width::wide>::arity<Op>
  <= 3;
};

template <class Op, block_width Width> constexpr void add_pointwise_steps(pointwise_steps& to) {
  using code = block_code<Width>;
  const auto set = [&]<std::size_t Acc>(std::integral_constant<std::size_t, Acc>) {
    if constexpr (Acc < code::template arity<Op>)
      to.of[static_cast<std::size_t>(Width)][Acc] = reinterpret_cast<void (*)()>(code::template pointwise<Op, Acc>);
  };
  set(std::integral_constant<std::size_t, 0>{});
  set(std::integral_constant<std::size_t, 1>{});
  set(std::integral_constant<std::size_t, 2>{});
}

/// The steps of a pointwise op over floats, or over conditions where it takes nothing else.
template <class Op> pointwise_steps pointwise_steps_of() {
  pointwise_steps s;
  s.weight = op_cost<Op>(std::make_index_sequence<block_code<block_width::wide>::arity<Op>>{});
  add_pointwise_steps<Op, block_width::narrow>(s);
  add_pointwise_steps<Op, block_width::wide>(s);
  return s;
}

/// The steps of a reduction over floats.
template <class Op> fold_steps fold_steps_of() {
  constexpr int lanes = native_lanes<float>;
  constexpr std::size_t vectors = block_vectors<block_width::wide>;
  fold_steps s;
  s.of[0] = reinterpret_cast<void (*)()>(block_code<block_width::narrow>::fold<Op>);
  s.of[1] = reinterpret_cast<void (*)()>(block_code<block_width::wide>::fold<Op>);
  s.prepares = requires(const Op& op, float_vec x) { op.prepare(x); };
  s.start = [](const void* data, float* block) {
    const auto identity = broadcast<float_vec>(identity_of<float>(*static_cast<const Op*>(data)));
    for (std::size_t v = 0; v < vectors; ++v) store(block + v * lanes, identity);
  };
  s.join = [](const void* data, float* block, std::size_t joined, std::int64_t count) {
    const Op& op = *static_cast<const Op*>(data);
    float_vec all = load<float_vec>(block);
    if (joined == vectors) {
      float_vec part[vectors];
      for (std::size_t v = 0; v < vectors; ++v) part[v] = load<float_vec>(block + v * lanes);
      for (std::size_t n = vectors / 2; n > 0; n /= 2)
        for (std::size_t v = 0; v < n; ++v) part[v] = op.combine(part[v], part[v + n]);
      all = part[0];
    } else {
      for (std::size_t v = 1; v < joined; ++v) all = op.combine(all, load<float_vec>(block + v * lanes));
    }
    float total = elementary::reduce(all, [&](auto a, auto b) { return decltype(a)(op.combine(a, b)); });
    if constexpr (requires { op.finish(total, total); }) total = op.finish(total, static_cast<float>(count));
    for (std::size_t v = 0; v < vectors; ++v) store(block + v * lanes, broadcast<float_vec>(total));
  };
  s.finish = [](const void* data, float* block, std::int64_t n, std::int64_t count) {
    const Op& op = *static_cast<const Op*>(data);
    if constexpr (requires(float_vec x) { op.finish(x, x); }) {
      const auto elements = broadcast<float_vec>(static_cast<float>(count));
      for (std::int64_t i = 0; i < n; i += lanes) store(block + i, op.finish(load<float_vec>(block + i), elements));
    }
  };
  return s;
}

}  // namespace kiln::kernels
