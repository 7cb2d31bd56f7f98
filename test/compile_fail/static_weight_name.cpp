// expect: the_net_has_no_such_name
#include "kiln/fixed/static_program.hpp"

constexpr auto net = [](auto& b) {
  b.output(b.input("x", kiln::dtype::f32, {1, 4}).dot(b.weight("w", kiln::dtype::f32, {4, 2})));
};

int main() { return static_cast<int>(kiln::static_program<net>::weight("v")); }
