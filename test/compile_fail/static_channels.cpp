// expect: "input channels are the weight
#include "kiln/fixed/static_program.hpp"

constexpr auto net = [](auto& b) {
  auto x = b.input("image", kiln::dtype::f32, {1, 3, 8, 8});
  b.output(x.conv(b.weight("w", kiln::dtype::f32, {16, 4, 3, 3})).relu());
};

int main() { static kiln::static_program<net> program; }
