// expect: "dtype of the operands"
#include "kiln/fixed/static_program.hpp"

constexpr auto net = [](auto& b) { b.output(b.input("x", kiln::dtype::i32, {4}).exp()); };

int main() { static kiln::static_program<net> program; }
