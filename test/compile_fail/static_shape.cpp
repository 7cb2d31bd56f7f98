// expect: "found 21"
#include "kiln/fixed/static_program.hpp"

constexpr auto net = [](auto& b) {
  auto x = b.input("x", kiln::dtype::f32, {1, 20});
  x = x.relu().dot(b.weight("w", kiln::dtype::f32, {21, 10}));
  b.output(x.softmax());
};

int main() { static kiln::static_program<net> program; }
