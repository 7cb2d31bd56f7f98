// A static program whose steps are reference computations, a user's among them: it builds from this one file and runs
// without exceptions, heap or library (test/static_program/alone.sh).
#include <cstdio>

#include "kiln/op/more.hpp"
#include "kiln/static_program/static_program.hpp"

// [op]
namespace my {

/// Means of `width` elements in a row of the last dim, whose extent becomes n - width + 1.
struct moving_mean {
  std::int64_t width = 1;

  constexpr kiln::result<kiln::shape> compute_shape(std::span<const kiln::shape> in) const {
    using kiln::fault;
    if (in.size() != 1) return fault::of(kiln::errc::invalid_argument, "number of inputs", 1, in.size());
    kiln::shape out = in[0];
    if (out.rank() == 0 || width < 1 || at_most(width, out.lens.back()) == false)
      return fault::of(kiln::errc::shape_mismatch, "a row holds a window", width, in[0].lens);
    out.lens.back() -= width - 1;
    return out;
  }
  template <class T> constexpr void compute(kiln::Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>(0);
    const std::int64_t n = y.lens.back();
    for (std::int64_t k = 0; k < y.size(); ++k) {
      const std::int64_t from = k / n * x.lens.back() + k % n;
      T sum = T(0);
      for (std::int64_t i = 0; i < width; ++i) sum += x[from + i];
      y[k] = sum / static_cast<T>(width);
    }
  }
};

}  // namespace my
// [/op]

namespace {

using namespace kiln;  // NOLINT: one net
constexpr auto net = [](auto& b) {
  const auto x = b.input("x", dtype::f32, {2, 8});
  const auto y = (x | my::moving_mean{.width = 4}) + 1.0;
  const auto best = y | op::topk{.k = 2, .axis = 1};
  b.output(best, "best"), b.output(best.result(1), "places");
  b.output(y.transpose({1, 0}) | op::cumsum{}, "sums");
  const auto i = b.input("i", dtype::i32, {2, 1});
  b.output(b.add(op::scatter_elements{.axis = 1}, x, i, b.add(op::gather_elements{.axis = 1}, y, i)), "scattered");
  b.output(b.add(op::pad{.mode = op::pad_mode::reflect, .pads = {0, 2, 0, 1}}, x) | op::cumprod{.axis = 1}, "padded");
  const auto none = b.weight("none", dtype::f32, {0, 8});  // nobody binds it: there is nothing to bind
  b.output(x.concat(none, 0).slice({.axes = {1}, .starts = {0}, .ends = {2}}), "whole");
};
using program = static_program<net, default_registry::extend<my::moving_mean, op::cumprod>>;
program one;

// Programs that run in turn over one caller's span, each over what the other one left there.
constexpr auto sums = [](auto& b) { b.output(b.input("x", dtype::f32, {8}).exp().log() | op::cumsum{}); };
using first = static_program_view<net, default_registry::extend<my::moving_mean, op::cumprod>>;
using second = static_program_view<sums>;
alignas(64) std::byte memory[first::arena_bytes > second::arena_bytes ? first::arena_bytes : second::arena_bytes];
static_assert(sizeof(first) < first::arena_bytes);

bool equal(const char* name, auto found, std::initializer_list<float> expected) {
  std::size_t k = 0;
  for (const float v : expected)
    if (k == found.size() || static_cast<float>(found[k++]) != v) {
      std::fprintf(stderr, "%s: element %zu is not %g\n", name, k - 1, static_cast<double>(v));
      return false;
    }
  return true;
}

}  // namespace

int main() {
  const float x[] = {0, 4, 8, 4, 0, 4, 8, 4, 1, 1, 1, 1, 5, 5, 5, 5};
  const std::int32_t i[] = {-2, 9};
  one.run(x, i);
  // the means and 1: 5 5 5 5 5 and 2 3 4 5 6
  const bool right = equal("best", one.result<"best">(), {5, 5, 6, 5}) &&
                     equal("places", one.result<"places">(), {0, 1, 4, 3}) &&
                     equal("sums", one.result<"sums">(), {5, 2, 10, 5, 15, 9, 20, 14, 25, 20}) &&
                     equal("scattered", one.result<"scattered">(), {0, 4, 8, 4, 0, 4, 5, 4, 1, 1, 1, 1, 5, 5, 5, 6}) &&
                     equal("padded", one.result<"padded">(), {8, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 5}) &&
                     equal("whole", one.result<"whole">(), {0, 4, 1, 1});
  first a{std::span(memory).first<first::arena_bytes>()};
  second b{std::span(memory).first<second::arena_bytes>()};
  bool shared = true;
  for (int turn = 0; turn < 2; ++turn) {
    const float zeros[8] = {};
    a.run(x, i);
    shared = shared && equal("first", a.result<"sums">(), {5, 2, 10, 5, 15, 9, 20, 14, 25, 20});
    shared = shared && equal("second", b(zeros), {0, 0, 0, 0, 0, 0, 0, 0});
    const auto* const at = reinterpret_cast<const std::byte*>(b.result().data());
    shared = shared && at >= memory && at < memory + sizeof(memory);
  }
  return right && shared ? 0 : 1;
}
