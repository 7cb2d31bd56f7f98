// The memory of a calibration does not grow with the number of samples.
#include <gmock/gmock.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kiln/quantize/calibration.hpp"
#include "runtime/compare.hpp"

namespace {

std::atomic<std::size_t> held{0}, most_held{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, whole != 0 ? whole : alignment);
  if (!p) throw std::bad_alloc();
  const std::size_t now = held += malloc_usable_size(p);
  for (std::size_t most = most_held; most < now && !most_held.compare_exchange_weak(most, now);) {
  }
  return p;
}

void released(void* p) {
  if (p) held -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

// Out of line: g++ would see new and delete of one object in different wrappings and warn.
#define OUT_OF_LINE [[gnu::noinline]]

OUT_OF_LINE void* operator new(std::size_t n) { return counted(n, alignof(std::max_align_t)); }
OUT_OF_LINE void* operator new[](std::size_t n) { return counted(n, alignof(std::max_align_t)); }
OUT_OF_LINE void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
OUT_OF_LINE void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
OUT_OF_LINE void operator delete(void* p) noexcept { released(p); }
OUT_OF_LINE void operator delete[](void* p) noexcept { released(p); }
OUT_OF_LINE void operator delete(void* p, std::size_t) noexcept { released(p); }
OUT_OF_LINE void operator delete[](void* p, std::size_t) noexcept { released(p); }
OUT_OF_LINE void operator delete(void* p, std::align_val_t) noexcept { released(p); }
OUT_OF_LINE void operator delete[](void* p, std::align_val_t) noexcept { released(p); }
OUT_OF_LINE void operator delete(void* p, std::size_t, std::align_val_t) noexcept { released(p); }
OUT_OF_LINE void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { released(p); }

namespace kiln::quantize {
namespace {

// The most bytes held while so many samples of differing extents calibrate.
std::size_t peak_of(std::size_t samples, calibration_method method) {
  builder b;
  const value x = b.input("x", dtype::f32, {dimension::symbol("rows", 1, 1000), 64});
  b.output(x.tanh() * 3.0f, "y");
  program p = b.finish();
  calibration_options o;
  o.method = method;
  const auto watched = float_values(p);
  most_held = held.load();
  const std::size_t before = held;
  std::size_t made = 0;
  const calibration_data data = [&]() -> std::optional<sample> {
    if (made == samples) return std::nullopt;
    const auto seed = static_cast<unsigned>(made++ % 10);
    return sample{{"x", kiln::testing::random_argument({dtype::f32, {40 + 13 * (seed % 4), 64}}, seed)}};
  };
  EXPECT_EQ(calibrate(p, watched, eigen_target(), data, o).size(), watched.size());
  EXPECT_EQ(made, samples);
  return most_held - before;
}

TEST(memory, a_hundred_times_the_samples_take_the_same_memory) {
  using enum calibration_method;
  for (const calibration_method m : {min_max, percentile, entropy}) {
    const auto few = static_cast<double>(peak_of(10, m)), many = static_cast<double>(peak_of(1000, m));
    EXPECT_GT(few, 4 * 79 * 64);  // a sample at least: allocations are counted
    EXPECT_LT(many, 1.05 * few) << to_string(m);
  }
}

}  // namespace
}  // namespace kiln::quantize
