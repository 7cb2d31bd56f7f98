#pragma once
#include "interface/migraphx/help.hpp"

namespace kiln::migraphx::test {

/// y = x * 2 + 1 of any shape.
inline program line(const shape& s) {
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", s);
  const auto constant_like = [&](double v) {
    const auto one = m.add_literal(floats({1}, {v}));
    return m.add_instruction(operation("multibroadcast"), {one, x});
  };
  const auto doubled = m.add_instruction(operation("mul"), {x, constant_like(2)});
  m.add_return({m.add_instruction(operation("add"), {doubled, constant_like(1)})});
  return p;
}
inline const shape three(type_t::float_type, {3});

}  // namespace kiln::migraphx::test
