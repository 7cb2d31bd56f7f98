#pragma once
#include "kiln/core/simd/nearest.hpp"
#include "kiln/kernel/pointwise/row_loop.hpp"
#include "kiln/op/pointwise/round.hpp"

namespace kiln::kernels {

namespace loop_steps {

/// The passed value rounded to the nearest whole number.
struct rounded {
  static auto step() { return step_of(code::pointwise<op::round, 0>); }
  static std::uint16_t operand(const block_step& s) { return s.in[0]; }
  static constexpr bool has_operand = false, follows = false;
  rounded(const block_step&, const block_frame&, const block_rows&) {}
  KILN_FN int begin(std::int64_t) const { return 0; }
  template <class Part> KILN_FN void run(Part& p, int) const {
    p.each([&](auto v) __attribute__((always_inline)) { p.x[v] = nearest(p.x[v]); });
  }
  KILN_FN void end(std::int64_t, int) const {}
};

}  // namespace loop_steps
}  // namespace kiln::kernels
