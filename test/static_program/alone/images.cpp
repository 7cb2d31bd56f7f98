// A static program of images in NHWC and weights in panels. Each convolution's filters are zero but in
// their middle, so that its results are known. Its functions are other ones in each instruction set's unit
// (test/static_program/alone.sh).
#include <cmath>
#include <cstdio>

#include "kiln/static_program/static_program.hpp"

/// As a header that several units include would have it.
inline constexpr auto images_net = [](auto& b) {
  using namespace kiln;
  const ints pads{1, 1, 1, 1};
  auto x = b.input("x", dtype::f32, {1, 3, 20, 20});
  x = x.conv(b.weight("stem", dtype::f32, {32, 3, 3, 3}), {.pads = pads}).relu();
  x = x.conv(b.weight("tiles", dtype::f32, {64, 32, 3, 3}), {.pads = pads}).relu();
  x = x.conv(b.weight("apart", dtype::f32, {64, 1, 3, 3}), {.pads = pads, .group = 64});
  x = b.add(op::lrn{.size = 3, .alpha = 0.0f, .beta = 0.75f, .bias = 16.0f}, x);
  b.output(x.reduce_mean({2, 3}).flatten().dot(b.weight("head", dtype::f32, {64, 20})));
};

namespace {
using program = kiln::static_program<images_net>;
static_assert(program::prepared_bytes > 4 * 9 * 64 * 32);
program one;
float stem[32 * 3 * 9], tiles[64 * 32 * 9], apart[64 * 9], head[64 * 20], image[3 * 400];
}  // namespace

int main() {
  for (int f = 0; f < 32; ++f) stem[f * 27 + 4] = 1;
  for (int f = 0; f < 64; ++f) tiles[(f * 32 + f % 32) * 9 + 4] = 2;
  for (int f = 0; f < 64; ++f) apart[f * 9 + 4] = static_cast<float>(f + 1);
  for (int k = 0; k < 20; ++k) head[k * 20 + k] = 1;
  for (int p = 0; p < 400; ++p) image[p] = static_cast<float>(p % 5 + 1);
  one.bind<"stem">(stem), one.bind<"tiles">(tiles), one.bind<"apart">(apart), one.bind<"head">(head);
  const auto found = one(image);
  for (int k = 0; k < 20; ++k) {
    const float expected = static_cast<float>(3 * 2 * (k + 1)) / 8;  // the mean of 1 to 5; 16^0.75
    if (std::fabs(found[static_cast<std::size_t>(k)] - expected) < 1e-4f * expected) continue;
    std::fprintf(stderr, "column %d: expected %g, found %g\n", k, static_cast<double>(expected),
                 static_cast<double>(found[static_cast<std::size_t>(k)]));
    return 1;
  }
  return 0;
}
