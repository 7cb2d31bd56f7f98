// expect: the_net_has_no_such_name
// expect: "head" ... "a weight has this name"
// expect: "y" ... "an output has this name"
// expect: "static_program" ... "one array has all weights" ... "expected floats: 10"
// expect: "static_program" ... "a span for each weight" ... "expected 2" ... "found 1"
// expect: "v" ... "expected elements: 2"
#include "kiln/static_program/static_program.hpp"

// A name that no weight has, weights that are missing, and weights of another size.
using kiln::dtype;

constexpr auto net = [](auto& b) {
  const auto w = b.weight("w", dtype::f32, {4, 2});
  b.output(b.input("x", dtype::f32, {1, 4}).dot(w) + b.weight("v", dtype::f32, {2}));
};
constexpr auto doubles = [](auto& b) {
  const auto w = b.weight("w", dtype::f64, {4, 2});
  b.output(b.input("x", dtype::f64, {1, 4}).dot(w) + b.weight("v", dtype::f64, {2}));
};
using program = kiln::static_program<net>;
const float values[10] = {};
const double other_values[8] = {};

std::size_t place = program::weight("u");
void bind(program& p) {
  p.bind<"head">(std::span<const float, 8>(values, 8));
  (void)p.result<"y">();
}
program one_array(std::span<const float, 8>(values, 8));
kiln::static_program<doubles> one_of_two(std::span<const double, 8>(other_values, 8));
program other_extent(std::span<const float, 8>(values, 8), std::span<const float, 1>(values, 1));
