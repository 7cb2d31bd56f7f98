#pragma once
#include <tuple>

#include "kiln/kernel/pointwise/row_parts.hpp"
#include "kiln/op/pointwise/clip.hpp"

namespace kiln::kernels {

/// The steps of a compiled loop. Each does to part of a row what the wide step function `step()` does to a block, where
/// its operand, if it has one, follows the rows or not as `follows` says. `begin` gives what a step holds while a row
/// runs.
namespace loop_steps {

using code = block_code<block_width::wide>;
using moves = block_moves<block_width::wide>;

template <class Function> auto step_of(Function* f) { return reinterpret_cast<void (*)()>(f); }

struct loaded {
  static auto step() { return step_of(moves::load_step<block_form::f32>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = true, follows = true;
  row_operand in;
  loaded(const block_step& s, const block_frame& frame, const block_rows& over) : in(operand(s), frame, over) {}
  KILN_FN const float* begin(std::int64_t r) const { return in.at(r); }
  template <class Part> KILN_FN void run(Part& p, const float* row) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = p.read(row, v); });
  }
  KILN_FN void end(std::int64_t, const float*) const {}
};

struct stored {
  static auto step() { return step_of(moves::store_step<block_form::f32>); }
  static std::uint16_t operand(const block_step& s) { return s.out; }
  static constexpr bool has_operand = true, follows = true;
  row_operand out;
  stored(const block_step& s, const block_frame& frame, const block_rows& over) : out(operand(s), frame, over) {}
  KILN_FN float* begin(std::int64_t r) const { return out.at(r); }
  template <class Part> KILN_FN void run(Part& p, float* row) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.write(row, v, p.x[v]); });
  }
  KILN_FN void end(std::int64_t, float*) const {}
};

/// How an element of a narrow form is stored.
template <block_form Form>
using narrow_element = std::conditional_t<Form == block_form::u8, std::uint8_t,
                                          std::conditional_t<Form == block_form::i8, std::int8_t, std::uint16_t>>;

/// Elements of a 16-bit float form, as floats.
template <block_form Form> struct loaded_as {
  using element = narrow_element<Form>;
  static auto step() { return step_of(moves::load_step<Form>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = true, follows = true;
  row_operand_of<element> in;
  loaded_as(const block_step& s, const block_frame& frame, const block_rows& over) : in(operand(s), frame, over) {}
  KILN_FN const element* begin(std::int64_t r) const { return in.at(r); }
  template <std::size_t Vectors, bool Partial>
  KILN_FN void run(row_part<Vectors, Partial>& p, const element* row) const {
    if constexpr (Partial) {
      element part[native_lanes<float>] = {};
      for (int i = 0; i < p.rest; ++i) part[i] = row[p.from + i];
      p.x[0] = moves::read<Form>(part, 0);
    } else {
      p.each([&](auto v) __attribute__((always_inline)) {
        p.x[v] = moves::read<Form>(row + p.from, static_cast<std::size_t>(v * p.width));
      });
    }
  }
  KILN_FN void end(std::int64_t, const element*) const {}
};

/// Floats as what a 16-bit form or bytes hold, in memory or in place.
template <block_form Form> struct stored_as {
  using element = narrow_element<Form>;
  static auto step() { return step_of(moves::store_step<Form>); }
  static std::uint16_t operand(const block_step& s) { return s.out; }
  static constexpr bool has_operand = true, follows = true;
  row_operand_of<element> out;
  stored_as(const block_step& s, const block_frame& frame, const block_rows& over) : out(operand(s), frame, over) {}
  KILN_FN element* begin(std::int64_t r) const { return out.at(r); }
  template <std::size_t Vectors, bool Partial> KILN_FN void run(row_part<Vectors, Partial>& p, element* row) const {
    if constexpr (Partial) {
      element part[native_lanes<float>];
      moves::write<Form>(part, 0, p.x[0]);
      for (int i = 0; i < p.rest; ++i) row[p.from + i] = part[i];
    } else {
      p.each([&](auto v) __attribute__((always_inline)) {
        moves::write<Form>(row + p.from, static_cast<std::size_t>(v * p.width), p.x[v]);
      });
    }
  }
  KILN_FN void end(std::int64_t, element*) const {}
};
template <block_form Form> struct rounded_to {
  static auto step() { return step_of(moves::round_step<Form>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = false, follows = false;
  rounded_to(const block_step&, const block_frame&, const block_rows&) {}
  KILN_FN int begin(std::int64_t) const { return 0; }
  template <class Part> KILN_FN void run(Part& p, int) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = moves::rounded<Form>(p.x[v]); });
  }
  KILN_FN void end(std::int64_t, int) const {}
};

struct streamed : stored {
  static auto step() { return step_of(moves::stream_step); }
  using stored::stored;
  template <std::size_t Vectors, bool Partial> KILN_FN void run(row_part<Vectors, Partial>& p, float* row) const {
    if constexpr (Partial)
      stored::run(p, row);
    else
      p.each([&](auto v) __attribute__((always_inline)) { stream(row + p.from + v * p.width, p.x[v]); });
  }
};

/// A pointwise op of the passed value, and of an operand that follows the rows where it takes two arguments.
template <class Op> struct computed {
  static auto step() { return step_of(code::pointwise<Op, 0>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = code::arity<Op> == 2, follows = true;
  Op op;
  row_operand other;
  computed(const block_step& s, const block_frame& frame, const block_rows& over)
      : op(*static_cast<const Op*>(s.op)), other(operand(s), frame, over) {}
  KILN_FN const float* begin(std::int64_t r) const { return other.at(r); }
  template <class Part> KILN_FN void run(Part& p, const float* row) const {
    p.each([&](auto v) __attribute__((always_inline)) {
      if constexpr (has_operand)
        p.x[v] = op(p.x[v], p.read(row, v));
      else
        p.x[v] = op(p.x[v]);
    });
  }
  KILN_FN void end(std::int64_t, const float*) const {}
};

/// A pointwise op of the passed value and of one element per row, or a constant.
template <class Op> struct computed_by {
  static auto step() { return step_of(code::pointwise<Op, 0>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = true, follows = false;
  Op op;
  const float* values;
  computed_by(const block_step& s, const block_frame& frame, const block_rows&)
      : op(*static_cast<const Op*>(s.op)), values(code::place(&frame, s.in[0])) {}
  KILN_FN float_vec begin(std::int64_t r) const { return broadcast<float_vec>(values[r]); }
  template <class Part> KILN_FN void run(Part& p, float_vec by) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = op(p.x[v], by); });
  }
  KILN_FN void end(std::int64_t, float_vec) const {}
};

/// The passed value within bounds: constants, or one element of each per row.
struct bounded {
  static auto step() { return step_of(code::pointwise<op::clip, 0>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static std::uint16_t second(const block_step& s) { return s.in[1]; }
  static constexpr bool has_operand = true, follows = false;
  struct range {
    float_vec low, high;
  };
  const float *low, *high;
  bounded(const block_step& s, const block_frame& frame, const block_rows&)
      : low(code::place(&frame, s.in[0])), high(code::place(&frame, s.in[1])) {}
  KILN_FN range begin(std::int64_t r) const { return {broadcast<float_vec>(low[r]), broadcast<float_vec>(high[r])}; }
  template <class Part> KILN_FN void run(Part& p, const range& in) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = op::clip{}(p.x[v], in.low, in.high); });
  }
  KILN_FN void end(std::int64_t, const range&) const {}
};

/// The passed value is put aside, in a block that later steps read: `reloaded` and `computed_with`.
struct held {
  static auto step() { return step_of(moves::store_step<block_form::f32>); }
  static std::uint16_t operand(const block_step& s) { return s.out; }
  static constexpr bool has_operand = true, follows = false, holds = true;
  float* block;
  held(const block_step& s, const block_frame& frame, const block_rows&) : block(code::place(&frame, s.out)) {}
  KILN_FN float* begin(std::int64_t) const { return block; }
  template <class Part> KILN_FN void run(Part& p, float* to) const {
    p.each([&](auto v) __attribute__((always_inline)) { store(to + v * Part::width, p.x[v]); });
  }
  KILN_FN void end(std::int64_t, float*) const {}
};

/// What was put aside.
struct reloaded {
  static auto step() { return step_of(moves::load_step<block_form::f32>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = true, follows = false, held_operand = true;
  const float* block;
  reloaded(const block_step& s, const block_frame& frame, const block_rows&) : block(code::place(&frame, s.in[0])) {}
  KILN_FN const float* begin(std::int64_t) const { return block; }
  template <class Part> KILN_FN void run(Part& p, const float* from) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = load<float_vec>(from + v * Part::width); });
  }
  KILN_FN void end(std::int64_t, const float*) const {}
};

/// A pointwise op of the passed value, its argument number `At`, and of what was put aside.
template <class Op, std::size_t At = 0> struct computed_with {
  static auto step() { return step_of(code::pointwise<Op, At>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = true, follows = false, held_operand = true;
  Op op;
  const float* block;
  computed_with(const block_step& s, const block_frame& frame, const block_rows&)
      : op(*static_cast<const Op*>(s.op)), block(code::place(&frame, s.in[0])) {}
  KILN_FN const float* begin(std::int64_t) const { return block; }
  template <class Part> KILN_FN void run(Part& p, const float* from) const {
    p.each([&](auto v) __attribute__((always_inline)) {
      const auto y = load<float_vec>(from + v * Part::width);
      p.x[v] = At == 0 ? op(p.x[v], y) : op(y, p.x[v]);
    });
  }
  KILN_FN void end(std::int64_t, const float*) const {}
};

/// The quotient by one element per row, or by a constant.
struct divided {
  static auto step() { return step_of(moves::divide_step); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = true, follows = false;
  struct divisor {
    float_vec by, inverse;
    bool multiplies;
  };
  const float* values;
  divided(const block_step& s, const block_frame& frame, const block_rows&) : values(code::place(&frame, s.in[0])) {}
  KILN_FN divisor begin(std::int64_t r) const {
    const auto by = broadcast<float_vec>(values[r]);
    return {by, broadcast<float_vec>(1.0F) / by, moves::has_inverse(values[r])};
  }
  template <class Part> KILN_FN void run(Part& p, const divisor& d) const {
    if (d.multiplies) [[likely]]
      p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = p.x[v] * d.inverse; });
    else
      p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = p.x[v] / d.by; });
  }
  KILN_FN void end(std::int64_t, const divisor&) const {}
};

/// A reduction, whose partial results stay in registers.
template <class Op> struct folded {
  static auto step() { return step_of(code::fold<Op>); }
  static std::uint16_t operand(const block_step& s) { return s.out; }
  static constexpr bool has_operand = true, follows = false;
  struct partial {
    float_vec of[group];
  };
  Op op;
  float* to;
  std::int64_t elements, rows;
  folded(const block_step& s, const block_frame& frame, const block_rows& over)
      : op(*static_cast<const Op*>(s.op)), to(code::place(&frame, s.out)), elements(over.elements), rows(over.rows) {}
  KILN_FN float_vec identity() const { return broadcast<float_vec>(identity_of<float>(op)); }
  KILN_FN partial begin(std::int64_t) const { return {identity(), identity(), identity(), identity()}; }
  template <std::size_t Vectors, bool Partial> KILN_FN void run(row_part<Vectors, Partial>& p, partial& sum) const {
    p.each([&](auto v) __attribute__((always_inline)) {
      float_vec x = code::prepared(op, p.x[v]);
      if constexpr (Partial) x = select(lanes_below(p.rest), x, identity());
      sum.of[v] = op.combine(sum.of[v], x);
    });
  }
  KILN_FN void end(std::int64_t r, const partial& sum) const {
    const float_vec all = op.combine(op.combine(sum.of[0], sum.of[1]), op.combine(sum.of[2], sum.of[3]));
    if (rows == 0) return store(to, op.combine(load<float_vec>(to), all));
    float total = elementary::reduce(all, [&](auto a, auto b) { return decltype(a)(op.combine(a, b)); });
    if constexpr (requires { op.finish(total, total); }) total = op.finish(total, static_cast<float>(elements));
    to[r] = total;
  }
};

}  // namespace loop_steps

/// The steps of a level compiled as one loop over rows: without calls from step to step and with partial results in
/// registers, since for rows in a cache both took longer than the arithmetic.
template <class... Step> struct row_loop {
  static bool stands_for(const block_step* program, const block_advance* moves, std::size_t count) {
    std::size_t at = 0;
    const auto stands = [&]<class S>(const S*) {
      const block_step& s = program[at++];
      if constexpr (!S::has_operand) return s.call == S::step();
      bool follows = false, held = false;
      for (std::size_t k = 0; k < count; ++k) {
        follows = follows || moves[k].place == S::operand(s);
        if constexpr (requires { S::second(s); }) follows = follows || moves[k].place == S::second(s);
      }
      if constexpr (!S::follows) held = holds(program, at - 1, S::operand(s));
      if constexpr (requires { S::second(s); }) held = held || holds(program, at - 1, S::second(s));
      return s.call == S::step() && follows == S::follows && held == requires { S::held_operand; };
    };
    return (stands(static_cast<const Step*>(nullptr)) && ...) &&
           program[at].call == loop_steps::step_of(loop_steps::moves::end_step);
  }

  static void run(const block_step* program, block_frame& frame, const block_rows& over) {
    run_steps(program, frame, over, std::index_sequence_for<Step...>{});
  }

 private:
  // Whether one of the first steps puts a value aside at a place.
  static bool holds(const block_step* program, std::size_t count, std::uint16_t place) {
    std::size_t at = 0;
    const auto one = [&]<class S>(const S*) {
      const std::size_t k = at++;
      if constexpr (requires { S::holds; }) return k < count && S::operand(program[k]) == place;
      return false;
    };
    return (one(static_cast<const Step*>(nullptr)) || ...);
  }

  template <std::size_t... S>
  KILN_FN static void run_steps(const block_step* program, block_frame& frame, const block_rows& over,
                                std::index_sequence<S...>) {
    const std::tuple<Step...> steps(Step(program[S], frame, over)...);
    each_row(
        over, [&](std::int64_t r) __attribute__((always_inline)) { return std::tuple(std::get<S>(steps).begin(r)...); },
        [&](auto& part, auto& held)
            __attribute__((always_inline)) { (std::get<S>(steps).run(part, std::get<S>(held)), ...); },
        [&](std::int64_t r, const auto& held)
            __attribute__((always_inline)) { (std::get<S>(steps).end(r, std::get<S>(held)), ...); });
  }
};

}  // namespace kiln::kernels
