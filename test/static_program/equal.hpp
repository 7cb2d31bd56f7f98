#pragma once
#include <gtest/gtest.h>

#include "cpp_export/exported.hpp"
#include "kiln/static_program/static_program.hpp"

/// What tests of static programs share: a net built, optimized and run in both worlds.
namespace kiln::test {

template <class Span> Span elements(const literal& l) {
  return Span(reinterpret_cast<typename Span::pointer>(l.bytes()), Span::extent);
}

/// The static program's outputs on random inputs, and those of the exported program where it `exports`, against each
/// op's own reference computation at run time.
template <auto Net, class Registry = default_registry, bool Exports = true>
void expect_equal(std::uint64_t seed, double tolerance = 4e-6) {
  builder b;
  Net(b);
  const program p = b.finish();
  const auto values = random_inputs(p, seed);
  const auto expected = evaluate(p, values);
  // by name: operands of one expression are evaluated in an order that compilers choose
  const auto named = [&](std::string_view name) -> const literal& {
    std::size_t k = 0;
    while (!(p.main().producer(p.main().parameters()[k]).name == name)) ++k;
    return values[k];
  };
  using static_text_program = static_program<Net, Registry>;
  const auto run = std::make_unique<static_text_program>();
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (run->template bind<K>(
         elements<typename static_text_program::template weight_span<K>>(named(static_text_program::weight_name(K)))),
     ...);
  }
  (std::make_index_sequence<static_text_program::weights>{});
  for (int again = 0; again < 2; ++again) {  // a second run finds the arena full of the first one's values
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      run->run(
          elements<typename static_text_program::template input_span<K>>(named(static_text_program::input_name(K)))...);
    }
    (std::make_index_sequence<static_text_program::inputs>{});
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (..., [&] {
        const auto found = run->template result<K>();
        using stored = typename decltype(found)::value_type;
        EXPECT_TRUE(
            close(literal::of<stored>(expected[K].get_shape(), std::span<const stored>(found)), expected[K], tolerance))
            << "output " << K;
      }());
    }
    (std::make_index_sequence<static_text_program::outputs>{});
  }
  if constexpr (Exports)
    expect_exported(p, {values.data(), values.size()}, {expected.data(), expected.size()}, tolerance);
}

/// Without the export, for what only static programs do.
template <auto Net> void expect_static(std::uint64_t seed, double tolerance = 4e-6) {
  expect_equal<Net, default_registry, false>(seed, tolerance);
}

}  // namespace kiln::test
