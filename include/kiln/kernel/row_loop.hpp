#pragma once
#include <tuple>

#include "kiln/kernel/block_moves.hpp"

namespace kiln::kernels {

/// What a compiled loop holds of an operand: where it is, and the floats from one wide block to the next (0: it stays).
struct loop_operand {
  float* at = nullptr;
  std::ptrdiff_t advance = 0;

  loop_operand(std::uint16_t place, const block_frame& frame, const block_loop& loop)
      : at(reinterpret_cast<float*>(frame.at[place])) {
    for (std::size_t k = 0; k < loop.move_count; ++k)
      if (loop.moves[k].place == place) advance = loop.moves[k].bytes / static_cast<std::int64_t>(sizeof(float));
  }
  KILN_FN void next() { at += advance; }
};

/// The stages of a compiled loop. Each stands for the wide step function `step()` and does the same to some vectors x,
/// which begin `from` floats into the block.
namespace stage {

inline constexpr std::size_t group = 4;  ///< vectors that a loop works on at a time
using group_vectors = float_vec[group];
inline constexpr std::ptrdiff_t width = native_lanes<float>;
using code = block_code<block_width::wide>;
using moves = block_moves<block_width::wide>;

template <class Function>
auto step_of(Function* f) {
  return reinterpret_cast<void (*)()>(f);
}
template <class Each>
KILN_FN void each(Each&& one) {
  [&]<std::size_t... V>(std::index_sequence<V...>) __attribute__((always_inline)) {
    (one(std::integral_constant<std::size_t, V>{}), ...);
  }
  (std::make_index_sequence<group>{});
}

struct loaded {
  static auto step() { return step_of(moves::load_step<block_form::f32>); }
  loop_operand in;
  loaded(const block_step& s, const block_frame& frame, const block_loop& loop) : in(s.in[0], frame, loop) {}
  KILN_FN void run(group_vectors& x, std::ptrdiff_t from) {
    each([&](auto v) __attribute__((always_inline)) { x[v] = load<float_vec>(in.at + from + v * width); });
  }
  KILN_FN void next() { in.next(); }
  void end() {}
};

struct stored {
  static auto step() { return step_of(moves::store_step<block_form::f32>); }
  loop_operand out;
  stored(const block_step& s, const block_frame& frame, const block_loop& loop) : out(s.out, frame, loop) {}
  KILN_FN void run(group_vectors& x, std::ptrdiff_t from) {
    each([&](auto v) __attribute__((always_inline)) { store(out.at + from + v * width, x[v]); });
  }
  KILN_FN void next() { out.next(); }
  void end() {}
};

struct streamed : stored {
  static auto step() { return step_of(moves::stream_step); }
  using stored::stored;
  KILN_FN void run(group_vectors& x, std::ptrdiff_t from) {
    each([&](auto v) __attribute__((always_inline)) { stream(out.at + from + v * width, x[v]); });
  }
};

/// A pointwise op of one or two arguments, the first being x.
template <class Op>
struct computed {
  static auto step() { return step_of(code::pointwise<Op, 0>); }
  static constexpr std::size_t arity = static_cast<std::size_t>(detail::call_arity<Op>());
  Op op;
  loop_operand other;
  computed(const block_step& s, const block_frame& frame, const block_loop& loop)
      : op(*static_cast<const Op*>(s.op)), other(s.in[0], frame, loop) {}
  KILN_FN void run(group_vectors& x, std::ptrdiff_t from) {
    each([&](auto v) __attribute__((always_inline)) {
      const float* const in[] = {other.at};
      const auto at = static_cast<std::size_t>(from) + v * static_cast<std::size_t>(width);
      x[v] = code::apply<Op, 0>(op, x[v], in, at, std::make_index_sequence<arity>{});
    });
  }
  KILN_FN void next() { other.next(); }
  void end() {}
};

/// The quotient by a repeated value.
struct divided {
  static auto step() { return step_of(moves::divide_step); }
  const float* by;
  float_vec inverse;
  bool multiplies;
  divided(const block_step& s, const block_frame& frame, const block_loop&) : by(code::place(&frame, s.in[0])) {
    multiplies = moves::has_inverse(frame, *by);
    inverse = broadcast<float_vec>(multiplies ? 1.0F / *by : 0.0F);
  }
  KILN_FN void run(group_vectors& x, std::ptrdiff_t from) {
    if (multiplies) [[likely]]
      each([&](auto v) __attribute__((always_inline)) { x[v] = x[v] * inverse; });
    else
      each([&](auto v) __attribute__((always_inline)) { x[v] = x[v] / load<float_vec>(by + from + v * width); });
  }
  KILN_FN void next() {}
  void end() {}
};

/// A reduction, whose partial results stay in registers.
template <class Op>
struct folded {
  static auto step() { return step_of(code::fold<Op>); }
  Op op;
  float* to;
  group_vectors sum;
  folded(const block_step& s, const block_frame& frame, const block_loop&)
      : op(*static_cast<const Op*>(s.op)), to(code::place(&frame, s.out)) {
    each([&](auto v) __attribute__((always_inline)) { sum[v] = load<float_vec>(to + v * width); });
  }
  KILN_FN void run(group_vectors& x, std::ptrdiff_t) {
    each([&](auto v) __attribute__((always_inline)) { sum[v] = op.combine(sum[v], code::prepared(op, x[v])); });
  }
  KILN_FN void next() {}
  void end() {
    each([&](auto v) __attribute__((always_inline)) { store(to + v * width, sum[v]); });
  }
};

}  // namespace stage

/// The steps of a level compiled as one loop over its wide blocks: without calls from step to step, which for rows that
/// a cache holds took as long as the arithmetic.
template <class... Stage>
struct row_loop {
  static bool stands_for(const block_step* program) {
    std::size_t at = 0;
    return ((program[at++].call == Stage::step()) && ...) && program[at].call == stage::step_of(stage::moves::end_step);
  }

  static void run(const block_step* program, block_frame& frame, const block_loop& loop) {
    run_stages(program, frame, loop, std::index_sequence_for<Stage...>{});
  }

 private:
  template <std::size_t... S>
  KILN_FN static void run_stages(const block_step* program, block_frame& frame, const block_loop& loop,
                                 std::index_sequence<S...>) {
    constexpr std::ptrdiff_t block = block_lanes<block_width::wide>, part = stage::group * stage::width;
    std::tuple<Stage...> stages(Stage(program[S], frame, loop)...);
    for (std::int64_t b = 0; b < loop.blocks; ++b) {
      fetch(loop);
      for (std::ptrdiff_t from = 0; from < block; from += part) {
        stage::group_vectors x;
        (std::get<S>(stages).run(x, from), ...);
      }
      (std::get<S>(stages).next(), ...);
    }
    (std::get<S>(stages).end(), ...);
    for (std::size_t k = 0; k < loop.move_count; ++k)
      frame.at[loop.moves[k].place] += loop.blocks * loop.moves[k].bytes;
    leave_wide_registers();
  }
};

}  // namespace kiln::kernels
