// expect: this op is not in the program's registry; extend it
#include "kiln/fixed/static_program.hpp"

struct cube {
  template <class T>
  constexpr T operator()(T x) const {
    return x * x * x;
  }
};
constexpr auto net = [](auto& b) { b.output(b.input("x", kiln::dtype::f32, {4}) | cube{}); };

int main() { static kiln::static_program<net> program; }
