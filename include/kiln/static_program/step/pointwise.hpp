#pragma once
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// A step over equal dims: every element of the results from the elements at the same index.
template <class Step> struct pointwise_step {
  static constexpr std::size_t operands = Step::inputs + Step::outputs;
  static constexpr walk<operands> over = make_memory_walk<operands>(
      Step::out[0], [](std::size_t k, std::size_t d) { return Step::operand(k).strides[d]; });
  static constexpr std::size_t outer_dims = over.extent.empty() ? 0 : over.extent.size() - 1;
  using lanes = lanes_of<Step, over.contiguous(Step::outputs)>;

  template <int N> static KILN_FN void block(const step_memory& m, std::int64_t row, std::int64_t x) {
    typename lanes::reg r[Step::nodes];
    each<Step::inputs>([&](auto k) {
      using T = compute_of<Step::in[k].type>;
      constexpr std::int64_t step = over.inner_step(k);
      const auto* p = buffer_of<Step, k>(m) + Step::in[k].offset + offset_at<over, k, outer_dims>(row) + x * step;
      r[k].template get<T>() = lanes::template load<stored_of<Step::in[k].type>, step, N>(p);
    });
    each<Step::nodes>([&](auto k) {
      if constexpr (Step::body[k].op != node::parameter) compute_node<Step, k, lanes>(r);
    });
    each<Step::outputs>([&](auto k) {
      using T = compute_of<Step::out[k].type>;
      constexpr std::int64_t step = over.inner_step(Step::inputs + k);
      auto* p = buffer_of<Step, Step::inputs + k>(m) + Step::out[k].offset +
                offset_at<over, Step::inputs + k, outer_dims>(row) + x * step;
      lanes::template store<stored_of<Step::out[k].type>, step, N>(p, r[Step::result(k)].template get<T>());
    });
  }

  static KILN_FN void run(const step_memory& m) {
    constexpr std::int64_t rows = over.outer(), inner = over.inner(), whole = inner / lanes::count * lanes::count;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t x = 0; x < whole; x += lanes::count) block<lanes::count>(m, row, x);
      if constexpr (whole != inner) block<static_cast<int>(inner - whole)>(m, row, whole);
    }
  }
};

/// Copies a value to other strides.
template <class Step> struct copy_step {
  static constexpr walk<2> over = make_memory_walk<2>(Step::out[0], [](std::size_t k, std::size_t d) {
    return k == 0 ? Step::in[0].strides[d] : Step::out[0].strides[d];
  });

  static KILN_FN void run(const step_memory& m) {
    constexpr std::size_t dims = over.extent.empty() ? 0 : over.extent.size() - 1;
    constexpr std::int64_t from_step = over.inner_step(0), to_step = over.inner_step(1);
    const auto* from = buffer_of<Step, 0>(m) + Step::in[0].offset;
    auto* to = buffer_of<Step, Step::inputs>(m) + Step::out[0].offset;
    for (std::int64_t row = 0; row < over.outer(); ++row) {
      const auto* a = from + offset_at<over, 0, dims>(row);
      auto* b = to + offset_at<over, 1, dims>(row);
      for (std::int64_t x = 0; x < over.inner(); ++x) b[x * to_step] = a[x * from_step];
    }
  }
};

}  // namespace kiln::aot
