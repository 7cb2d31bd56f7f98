#pragma once
#include <optional>
#include <type_traits>

#include "kiln/kernel/pointwise/row_loop.hpp"
#include "kiln/op/pointwise/add.hpp"
#include "kiln/op/pointwise/mul.hpp"
#include "kiln/op/pointwise/sub.hpp"

namespace kiln::kernels {

/// A rotation, x * a - y * b and y * c + x * d, as one loop: step by step both operands, and factors that both results
/// share, would be read twice, and products put aside, ten loads and four stores where four and two do.
template <class Stored> class rotation_loop {
  using in = loop_steps::loaded;
  using product = loop_steps::computed<op::mul>;
  using steps = row_loop<in, product, loop_steps::held, in, product, loop_steps::computed_with<op::sub, 1>, Stored, in,
                         product, loop_steps::held, in, product, loop_steps::computed_with<op::add>, Stored>;
  static constexpr std::size_t loads[4] = {0, 3, 7, 10}, hold[2] = {2, 9}, use[2] = {5, 12}, result[2] = {6, 13};

  struct places {
    std::uint16_t x, y, a, b, c, d;
    bool shares() const { return a == c && b == d; }
  };

  // The places of the rotation's operands, where those of the products make one.
  static std::optional<places> find(const block_step* program) {
    for (std::size_t k = 0; k < 2; ++k)
      if (program[hold[k]].out != program[use[k]].in[0]) return {};
    const auto factor = [&](std::size_t k, std::size_t side) { return program[loads[k] + side].in[0]; };
    const auto beside = [&](std::size_t k, std::uint16_t place) -> std::optional<std::uint16_t> {
      for (const std::size_t side : {0U, 1U})
        if (factor(k, side) == place) return factor(k, 1 - side);
      return {};
    };
    for (std::size_t s = 0; s < 8; ++s) {
      const std::size_t of_x = s & 1, of_y = s >> 1 & 1, summand = 2 + (s >> 2);
      const std::uint16_t x = factor(0, of_x), y = factor(1, of_y);
      const auto c = beside(summand, y), d = beside(5 - summand, x);
      if (c && d) return places{x, y, factor(0, 1 - of_x), factor(1, 1 - of_y), *c, *d};
    }
    return {};
  }

 public:
  static bool stands_for(const block_step* program, const block_advance* moves, std::size_t count) {
    return steps::stands_for(program, moves, count) && find(program);
  }

  static void run(const block_step* program, block_frame& frame, const block_rows& over) {
    const places p = *find(program);
    p.shares() ? run_rows<true>(program, p, frame, over) : run_rows<false>(program, p, frame, over);
  }

 private:
  template <bool Shares>
  static void run_rows(const block_step* program, const places& p, block_frame& frame, const block_rows& over) {
    const auto operand = [&](std::uint16_t place) { return row_operand(place, frame, over); };
    const row_operand x = operand(p.x), y = operand(p.y), a = operand(p.a), b = operand(p.b), c = operand(p.c),
                      d = operand(p.d);
    const Stored first(program[result[0]], frame, over), second(program[result[1]], frame, over);
    struct row {
      const float *x, *y, *a, *b, *c, *d;
      float *first, *second;
    };
    each_row(
        over,
        [&](std::int64_t r) __attribute__((always_inline)) {
          return row{x.at(r), y.at(r), a.at(r), b.at(r), c.at(r), d.at(r), first.begin(r), second.begin(r)};
        },
        [&](auto& part, const row& at) __attribute__((always_inline)) {
          std::remove_cvref_t<decltype(part)> other;
          other.from = part.from;
          other.rest = part.rest;
          part.each([&](auto v) __attribute__((always_inline)) {
            const float_vec left = part.read(at.x, v), right = part.read(at.y, v), by = part.read(at.a, v),
                            across = part.read(at.b, v);
            part.x[v] = left * by - right * across;
            other.x[v] = right * (Shares ? by : part.read(at.c, v)) + left * (Shares ? across : part.read(at.d, v));
          });
          first.run(part, at.first);
          second.run(other, at.second);
        },
        [](std::int64_t, const row&) {});
  }
};

}  // namespace kiln::kernels
