// expect: "dot" ... "inner dims agree" ... "expected 20" ... "found 21"
// expect: "convolution" ... "input channels are the weight ... "expected 4" ... "found 3"
// expect: "exp" ... "dtype of the operands" ... "found i32"
// expect: "add" ... "operands have equal dims" ... "expected [4, 4]" ... "found [4, 3]"
// expect: "add" ... "operands have one dtype" ... "expected f32" ... "found f64"
// expect: "reduce_sum" ... "a reduced axis lies within the" ... "expected 2" ... "found 3"
// expect: "convolution" ... "stride has a positive entry for" ... "expected at least 1" ... "found 0"
// expect: "pooling" ... "lengths has an entry for each" ... "expected 2" ... "found 1"
// expect: "transpose" ... "a permutation names each axis once" ... "found 0"
// expect: "reshape" ... "a reshape keeps the number of" ... "expected [4, 4]" ... "found [3, 5]"
// expect: "gather" ... "indices are integers" ... "expected an integer dtype" ... "found f32"
#include "kiln/static_program/static_program.hpp"

// Dims that disagree, dtypes that an op does not have, attributes that make no sense: the error names the op, the rule,
// what was expected and what was found.
using kiln::dtype;

constexpr auto inner = [](auto& b) {
  b.output(b.input("x", dtype::f32, {1, 20}).dot(b.weight("w", dtype::f32, {21, 10})));
};
constexpr auto channels = [](auto& b) {
  b.output(b.input("x", dtype::f32, {1, 3, 8, 8}).conv(b.weight("w", dtype::f32, {16, 4, 3, 3})));
};
constexpr auto type = [](auto& b) { b.output(b.input("x", dtype::i32, {4}).exp()); };
constexpr auto extents = [](auto& b) { b.output(b.input("x", dtype::f32, {4, 4}) + b.input("y", dtype::f32, {4, 3})); };
constexpr auto types = [](auto& b) { b.output(b.input("x", dtype::f32, {4}) + b.input("y", dtype::f64, {4})); };
constexpr auto axis = [](auto& b) { b.output(b.input("x", dtype::f32, {4, 4}).reduce_sum({3})); };
constexpr auto stride = [](auto& b) {
  b.output(b.input("x", dtype::f32, {1, 4, 8, 8}).conv(b.weight("w", dtype::f32, {6, 4, 3, 3}), {.stride = {0, 1}}));
};
constexpr auto lengths = [](auto& b) { b.output(b.input("x", dtype::f32, {1, 4, 8, 8}).pool({.lengths = {2}})); };
constexpr auto permutation = [](auto& b) { b.output(b.input("x", dtype::f32, {4, 4}).transpose({0, 0})); };
constexpr auto elements = [](auto& b) { b.output(b.input("x", dtype::f32, {4, 4}).reshape({3, 5})); };
constexpr auto indices = [](auto& b) {
  b.output(b.input("x", dtype::f32, {4, 4}).gather(b.input("i", dtype::f32, {2})));
};

template <auto Net> using program = kiln::static_program<Net>;
int main() {
  static program<inner> a;
  static program<channels> b;
  static program<type> c;
  static program<extents> d;
  static program<types> e;
  static program<axis> f;
  static program<stride> g;
  static program<lengths> h;
  static program<permutation> i;
  static program<elements> j;
  static program<indices> k;
}
