#pragma once
#include <tuple>

#include "kiln/kernel/block_moves.hpp"

namespace kiln::kernels {

/// What a compiled loop holds of an operand: it follows the row, or is one value of it.
class loop_operand {
 public:
  loop_operand(std::uint16_t place, const block_frame& frame, const block_rows& over)
      : first_(reinterpret_cast<float*>(frame.at[place])) {
    for (std::size_t k = 0; k < over.move_count; ++k)
      if (over.moves[k].place == place) {
        follows_ = -1;
        row_ = over.moves[k].bytes / static_cast<std::int64_t>(sizeof(float));
      }
  }
  KILN_FN void begin(std::int64_t r) {
    if (follows_ != 0) {
      at_ = first_ + r * row_;
    } else {
      store(held_, broadcast<float_vec>(first_[r]));
      at_ = held_;
    }
  }
  KILN_FN float* from(std::ptrdiff_t element) const { return at_ + (element & follows_); }

 private:
  float* first_;
  float* at_ = nullptr;
  std::ptrdiff_t follows_ = 0;  // all bits or none
  std::int64_t row_ = 0;
  float held_[native_lanes<float>];
};

/// How much of a row a loop works on at a time: some vectors, the last of which may have `rest` lanes only.
template <int Vectors, bool Partial>
struct row_part {
  static constexpr std::ptrdiff_t width = native_lanes<float>;
  float_vec x[Vectors];  ///< the value that passes from stage to stage
  std::ptrdiff_t from;   ///< element of the row
  int rest;

  KILN_FN float_vec read(const loop_operand& o, int v) const {
    const float* const at = o.from(from + v * width);
    if constexpr (Partial)
      return load_n<float_vec>(at, rest);
    else
      return load<float_vec>(at);
  }
  KILN_FN void write(const loop_operand& o, int v) const {
    float* const at = o.from(from + v * width);
    if constexpr (Partial)
      store_n(at, x[v], rest);
    else
      store(at, x[v]);
  }
  /// Calls one(v) for each vector.
  template <class Each>
  KILN_FN static void each(Each&& one) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) one(v);
  }
};

/// The stages of a compiled loop. Each stands for the wide step function `step()` and does the same to part of a row.
namespace stage {

inline constexpr int group = 4;  ///< vectors that a loop works on at a time
using code = block_code<block_width::wide>;
using moves = block_moves<block_width::wide>;

template <class Function>
auto step_of(Function* f) {
  return reinterpret_cast<void (*)()>(f);
}

struct loaded {
  static auto step() { return step_of(moves::load_step<block_form::f32>); }
  loop_operand in;
  loaded(const block_step& s, const block_frame& frame, const block_rows& over) : in(s.in[0], frame, over) {}
  KILN_FN void begin(std::int64_t r) { in.begin(r); }
  template <class Part>
  KILN_FN void run(Part& p) {
    p.each([&](int v) __attribute__((always_inline)) { p.x[v] = p.read(in, v); });
  }
  KILN_FN void end(std::int64_t) {}
};

struct stored {
  static auto step() { return step_of(moves::store_step<block_form::f32>); }
  loop_operand out;
  stored(const block_step& s, const block_frame& frame, const block_rows& over) : out(s.out, frame, over) {}
  KILN_FN void begin(std::int64_t r) { out.begin(r); }
  template <class Part>
  KILN_FN void run(Part& p) {
    p.each([&](int v) __attribute__((always_inline)) { p.write(out, v); });
  }
  KILN_FN void end(std::int64_t) {}
};

struct streamed : stored {
  static auto step() { return step_of(moves::stream_step); }
  using stored::stored;
  template <bool Partial, int Vectors>
  KILN_FN void run(row_part<Vectors, Partial>& p) {
    if constexpr (Partial)
      stored::run(p);
    else
      p.each([&](int v) __attribute__((always_inline)) { stream(out.from(p.from + v * p.width), p.x[v]); });
  }
};

/// A pointwise op of one or two arguments, the first being the value that passes.
template <class Op>
struct computed {
  static auto step() { return step_of(code::pointwise<Op, 0>); }
  Op op;
  loop_operand other;
  computed(const block_step& s, const block_frame& frame, const block_rows& over)
      : op(*static_cast<const Op*>(s.op)), other(s.in[0], frame, over) {}
  KILN_FN void begin(std::int64_t r) {
    if constexpr (code::arity < Op >> 1) other.begin(r);
  }
  template <class Part>
  KILN_FN void run(Part& p) {
    p.each([&](int v) __attribute__((always_inline)) {
      if constexpr (code::arity<Op> == 1)
        p.x[v] = (float_vec)op(code::argument<Op, 0>(p.x[v]));
      else
        p.x[v] = (float_vec)op(code::argument<Op, 0>(p.x[v]), code::argument<Op, 1>(p.read(other, v)));
    });
  }
  KILN_FN void end(std::int64_t) {}
};

/// The quotient by a repeated value.
struct divided {
  static auto step() { return step_of(moves::divide_step); }
  const float* values;
  float_vec by, inverse;
  bool multiplies;
  divided(const block_step& s, const block_frame& frame, const block_rows&) : values(code::place(&frame, s.in[0])) {}
  KILN_FN void begin(std::int64_t r) {
    multiplies = moves::has_inverse(values[r]);
    by = broadcast<float_vec>(values[r]);
    inverse = broadcast<float_vec>(1.0F) / by;
  }
  template <class Part>
  KILN_FN void run(Part& p) {
    if (multiplies) [[likely]]
      p.each([&](int v) __attribute__((always_inline)) { p.x[v] = p.x[v] * inverse; });
    else
      p.each([&](int v) __attribute__((always_inline)) { p.x[v] = p.x[v] / by; });
  }
  KILN_FN void end(std::int64_t) {}
};

/// A reduction, whose partial results stay in registers.
template <class Op>
struct folded {
  static auto step() { return step_of(code::fold<Op>); }
  static constexpr std::ptrdiff_t width = native_lanes<float>;
  Op op;
  float* to;
  const block_rows& over;
  float_vec sum[group];
  folded(const block_step& s, const block_frame& frame, const block_rows& rows)
      : op(*static_cast<const Op*>(s.op)), to(code::place(&frame, s.out)), over(rows) {}
  KILN_FN void begin(std::int64_t) {
    const auto identity = broadcast<float_vec>(op.template identity<float>());
#pragma GCC unroll 8
    for (float_vec& part : sum) part = identity;
  }
  template <int Vectors, bool Partial>
  KILN_FN void run(row_part<Vectors, Partial>& p) {
    p.each([&](int v) __attribute__((always_inline)) {
      float_vec x = code::prepared(op, p.x[v]);
      if constexpr (Partial) x = select(lanes_below(p.rest), x, broadcast<float_vec>(op.template identity<float>()));
      sum[v] = op.combine(sum[v], x);
    });
  }
  KILN_FN void end(std::int64_t r) {
    const float_vec all = op.combine(op.combine(sum[0], sum[1]), op.combine(sum[2], sum[3]));
    if (over.rows == 0) return store(to, op.combine(load<float_vec>(to), all));
    float total = elementary::reduce(all, [&](auto a, auto b) { return decltype(a)(op.combine(a, b)); });
    if constexpr (requires { op.finish(total, total); }) total = op.finish(total, static_cast<float>(over.elements));
    to[r] = total;
  }
};

}  // namespace stage

/// The steps of a level compiled as one loop over rows: without calls from step to step and with partial results in
/// registers, which for rows that a cache holds took longer than the arithmetic.
template <class... Stage>
struct row_loop {
  static bool stands_for(const block_step* program) {
    std::size_t at = 0;
    return ((program[at++].call == Stage::step()) && ...) && program[at].call == stage::step_of(stage::moves::end_step);
  }

  static void run(const block_step* program, block_frame& frame, const block_rows& over) {
    run_stages(program, frame, over, std::index_sequence_for<Stage...>{});
  }

 private:
  template <std::size_t... S>
  KILN_FN static void run_stages(const block_step* program, block_frame& frame, const block_rows& over,
                                 std::index_sequence<S...>) {
    constexpr std::ptrdiff_t width = native_lanes<float>, together = stage::group * width;
    std::tuple<Stage...> stages(Stage(program[S], frame, over)...);
    const auto part = [&]<int Vectors, bool Partial>(std::ptrdiff_t from, int rest) __attribute__((always_inline)) {
      row_part<Vectors, Partial> p;
      p.from = from;
      p.rest = rest;
      (std::get<S>(stages).run(p), ...);
    };
    const std::int64_t n = over.elements;
    for (std::int64_t r = 0; r == 0 || r < over.rows; ++r) {
      (std::get<S>(stages).begin(r), ...);
      std::int64_t from = 0;
      for (; from + together <= n; from += together) {
        fetch(over.fetches, over.fetch_count);
        part.template operator()<stage::group, false>(from, 0);
      }
      for (; from + width <= n; from += width) part.template operator()<1, false>(from, 0);
      if (from < n) part.template operator()<1, true>(from, static_cast<int>(n - from));
      (std::get<S>(stages).end(r), ...);
    }
    leave_wide_registers();
  }
};

}  // namespace kiln::kernels
