#include <array>
#include <cstdlib>
#include <new>

#include "../../examples/digits_net.hpp"
#include "fixed/equal.hpp"
#include "kiln/pass/passes.hpp"

namespace {
thread_local bool counting = false;
std::size_t allocations = 0;
}  // namespace

// every other form of new ends here
void* operator new(std::size_t size) {
  if (counting) ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace kiln::test {
namespace {

// An array outlives constant evaluation, the text it is copied from does not.
constexpr auto printed_while_compiling = [] {
  static_builder<> b;
  digits_net(b);
  auto p = b.finish();
  optimise_graph(p);
  std::array<char, 8192> out{};
  const text t = print(p);
  for (std::size_t i = 0; i < t.size(); ++i) out[i] = t.view()[i];
  return out;
}();

TEST(static_same_program, digits_prints_as_at_run_time) {
  builder b;
  digits_net(b);
  program p = b.finish();
  optimise_graph(p);
  EXPECT_EQ(print(p).str(), std::string(printed_while_compiling.data()));
}

TEST(static_same_program, digits_computes_as_at_run_time) {
  static_assert(static_program<digits_net>::kernels <= 8);
  expect_equal<digits_net>(1);
}

TEST(static_same_program, running_allocates_nothing) {
  using program = static_program<digits_net>;
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
