// expect: static programs have no kernel for this op
#include "kiln/fixed/static_program.hpp"

constexpr auto net = [](auto& b) { b.output(b.input("x", kiln::dtype::f32, {4, 4}) | kiln::op::cumsum{}); };

int main() {
  static kiln::static_program<net> program;
  const float x[16]{};
  program.run(x);
}
