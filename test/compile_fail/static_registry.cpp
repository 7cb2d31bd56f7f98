// expect: this_op_is_not_in_the_registry_extend_it<cube, kiln::default_registry>
// expect: the_shapes_of_this_op_depend_on_data_that_only_a_run_has<kiln::op::nonzero>
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/static_program/static_program.hpp"

// An op that nobody registered, and one whose result only a run can size.
struct cube {
  template <class T> constexpr T operator()(T x) const { return x * x * x; }
};
constexpr auto unknown = [](auto& b) { b.output(b.input("x", kiln::dtype::f32, {4}) | cube{}); };
constexpr auto unsized = [](auto& b) { b.output(b.input("x", kiln::dtype::f32, {4}) | kiln::op::nonzero{}); };

kiln::static_program<unknown> a;
kiln::static_program<unsized, kiln::default_registry::extend<kiln::op::nonzero>> b;
