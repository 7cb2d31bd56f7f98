// expect: "net" ... "a net has an output:" ... "found 0"
// expect: "x" ... "inputs and weights differ in name"
// expect: "constant" ... "a constant has a value for each" ... "expected 4" ... "found 3"
// expect: "x" ... "a value takes at most 2^40 bytes" ... "expected 1099511627776"
// expect: "s" ... "dtype that static programs hold" ... "expected numbers or bool" ... "found string"
// expect: "dot" ... "dtype that products run in" ... "expected f32, f64 or an integer" ... "found f16"
// expect: "sum_of_all" ... "a computation takes any evaluation" ... "expected compute(auto& e)"
#include "kiln/static_program/static_program.hpp"

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
constexpr auto strings = [](auto& b) { b.output(b.input("s", dtype::string, {4}).reshape({2, 2})); };
constexpr auto halves = [](auto& b) {
  b.output(b.input("x", dtype::f16, {4, 4}).dot(b.input("y", dtype::f16, {4, 4})).relu());
};
struct sum_of_all {
  constexpr kiln::result<kiln::shape> compute_shape(std::span<const kiln::shape> in) const { return in[0]; }
  template <class T> constexpr void compute(kiln::evaluation& e) const {
    for (std::int64_t k = 0; k < e.out<T>().size(); ++k) e.out<T>()[k] = e.in<T>(0)[k];
  }
};
constexpr auto own_evaluation = [](auto& b) { b.output(b.input("x", dtype::f32, {4}) | sum_of_all{}); };

template <auto Net> using program = kiln::static_program<Net>;
int main() {
  static program<without_output> a;
  static program<equal_names> b;
  static program<short_constant> c;
  static program<too_large> d;
  static program<strings> e;
  static program<halves> f;
  static kiln::static_program<own_evaluation, kiln::default_registry::extend<sum_of_all>> g;
  const float x[4] = {};
  g.run(x);
}
