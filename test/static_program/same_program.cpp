#include <array>
#include <cstdlib>
#include <new>

#include "kiln/pass/passes.hpp"
#include "static_program/equal.hpp"

namespace {
thread_local bool counting = false;
std::size_t allocations = 0;
}  // namespace

// every other form of new ends here; inline, they would look like a pair that does not match
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (counting) ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace kiln::test {
namespace {

// The digits network of examples/static_digits.cpp.
constexpr auto digits = [](auto& b) {
  const auto layer = [&](auto x, std::string_view weight, std::string_view bias, std::int64_t from, std::int64_t to) {
    const auto w = b.weight(weight, dtype::f32, {to, from, 3, 3});
    const auto c = b.weight(bias, dtype::f32, {to});
    return x.conv(w, {.pads = {1, 1, 1, 1}}).add_along(1, c).relu();
  };
  const op::pooling halved{.lengths = {2, 2}, .stride = {2, 2}};
  auto x = b.input("image", dtype::f32, {1, 1, 8, 8});
  x = layer(x, "conv1.weight", "conv1.bias", 1, 16);
  x = layer(x, "conv2.weight", "conv2.bias", 16, 32).pool(halved);
  x = layer(x, "conv3.weight", "conv3.bias", 32, 64).pool(halved).flatten();
  x = x.dot(b.weight("hidden.weight", dtype::f32, {256, 64}));
  x = (x + b.weight("hidden.bias", dtype::f32, {64})).relu();
  x = x.dot(b.weight("head.weight", dtype::f32, {64, 10}));
  x = x + b.weight("head.bias", dtype::f32, {10});
  b.output(x.softmax(), "probabilities");
};

// An array outlives constant evaluation, the text it is copied from does not.
constexpr auto printed_while_compiling = [] {
  static_builder<> b;
  digits(b);
  auto p = b.finish();
  optimize_graph(p);
  std::array<char, 8192> out{};
  const text t = print(p);
  for (std::size_t i = 0; i < t.size(); ++i) out[i] = t.view()[i];
  return out;
}();

TEST(static_same_program, digits_prints_as_at_run_time) {
  builder b;
  digits(b);
  program p = b.finish();
  optimize_graph(p);
  EXPECT_EQ(print(p).str(), std::string(printed_while_compiling.data()));
}

TEST(static_same_program, digits_computes_as_at_run_time) {
  static_assert(static_program<digits>::kernels <= 8);
  expect_equal<digits>(1);
}

TEST(static_same_program, running_allocates_nothing) {
  using program = static_program<digits>;
  static std::array<float, program::weight_elements> weights{};
  weights.fill(0.01f);
  const std::array<float, 64> image{};
  counting = true;
  static program p(weights);
  float sum = 0;
  for (int i = 0; i < 3; ++i)
    for (float x : p(image)) sum += x;
  counting = false;
  EXPECT_EQ(allocations, 0u);
  EXPECT_NEAR(sum, 3, 1e-5);
}

}  // namespace
}  // namespace kiln::test
