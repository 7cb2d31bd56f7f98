// What kernels are told of a program's constants: whether all of them stay near.
#include <gtest/gtest.h>

#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

struct seen_requests {
  std::size_t near = 0, far = 0;
};

class asking_target final : public target {
 public:
  explicit asking_target(seen_requests& to) : to_(to) {}
  std::string_view name() const override { return "asking"; }
  std::unique_ptr<kernel> make_kernel(const kernel_request& r) const override {
    ++(r.near_constants ? to_.near : to_.far);
    return nullptr;
  }

 private:
  seen_requests& to_;
};

value plus_constant(builder& b, value x) {
  const std::int64_t n = x.get_shape().lens[0].value();
  return x + b.constant<float>(dtype::f32, {n}, std::vector<float>(static_cast<std::size_t>(n), 2.0F));
}

seen_requests requests_of(builder& b, bool fuse) {
  seen_requests seen;
  compile_options o = plain_options();
  o.passes.fuse = fuse;
  compile(b.finish(), asking_target(seen), o);
  return seen;
}

constexpr std::int64_t few = 1 << 8, many = 1 << 17;

TEST(near_constants, count_those_of_all_instructions) {
  for (const bool fuse : {true, false}) {
    builder b;
    b.output(plus_constant(b, b.input("x", dtype::f32, {few})).tanh());
    EXPECT_EQ(requests_of(b, fuse).far, 0u);
    b.output(plus_constant(b, b.input("x", dtype::f32, {few})).tanh());
    b.output(plus_constant(b, b.input("y", dtype::f32, {many})).tanh());
    EXPECT_EQ(requests_of(b, fuse).near, 0u);
  }
}

TEST(near_constants, count_those_of_other_stages) {
  builder b;
  const value x = plus_constant(b, b.input("x", dtype::f32, {many}));
  const value found = b.add(op::nonzero{dimension::symbol("found")}, x);
  b.output(found + found);
  const seen_requests seen = requests_of(b, true);
  EXPECT_GE(seen.far, 2u);
  EXPECT_EQ(seen.near, 0u);
}

TEST(near_constants, count_those_of_bodies) {
  for (const std::int64_t n : {few, many}) {
    builder body, b;
    body.output(plus_constant(body, body.input("x", dtype::f32, {n})).tanh());
    const module_ref doubled = b.get_program().add_module(body.finish().main());
    const value x = b.input("x", dtype::f32, {n}).tanh(), which = b.input("which", dtype::boolean, {});
    b.output(b.wrap(b.module().add_with_shapes(operation(op::branch{doubled, doubled, 1}), {which.id(), x.id(), x.id()},
                                               {shape{dtype::f32, {n}}})));
    const seen_requests seen = requests_of(b, true);
    EXPECT_GE(seen.near + seen.far, 2u);
    EXPECT_EQ(n == few ? seen.far : seen.near, 0u);
  }
}

}  // namespace
}  // namespace kiln::testing
