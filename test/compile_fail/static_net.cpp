// expect: "net" ... "a net has an output:" ... "found 0"
// expect: "x" ... "inputs and weights differ in name"
// expect: "constant" ... "a constant has a value for each" ... "expected 4" ... "found 3"
// expect: "x" ... "a value takes at most 2^40 bytes" ... "expected 1099511627776"
// expect: "cumsum" ... "a static program has a step for" ... "each op"
#include "kiln/fixed/static_program.hpp"

// What a static program asks of a whole net: the error names what breaks the rule.
using kiln::dtype;

constexpr auto without_output = [](auto& b) { b.input("x", dtype::f32, {4}).relu(); };
constexpr auto equal_names = [](auto& b) { b.output(b.input("x", dtype::f32, {4}) + b.weight("x", dtype::f32, {4})); };
constexpr float three[] = {1, 2, 3};
constexpr auto short_constant = [](auto& b) {
  b.output(b.input("x", dtype::f32, {4}) + b.constant(dtype::f32, {4}, std::span<const float>(three)));
};
constexpr auto too_large = [](auto& b) {
  b.output(b.input("x", dtype::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}).relu());
};
constexpr auto without_step = [](auto& b) { b.output(b.input("x", dtype::f32, {4, 4}) | kiln::op::cumsum{}); };

template <auto Net>
using program = kiln::static_program<Net>;
int main() {
  static program<without_output> a;
  static program<equal_names> b;
  static program<short_constant> c;
  static program<too_large> d;
  static program<without_step> e;
}
