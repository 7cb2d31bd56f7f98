#pragma once
#include "kiln/static_program/step/reduce.hpp"

namespace kiln::aot {

/// Reductions whose rows are adjacent in memory, as over the pixels of NHWC images: a vector of rows at a time, and one
/// load for an element of each. Serves steps of one level whose results all have one element per row.
template <class Step> struct reduce_across_step {
  using along = reduce_step<Step>;
  static constexpr auto& rows = along::rows;
  static constexpr auto& inside = along::inside;
  static constexpr auto& plan = along::plan;

  static constexpr bool serves() {
    if (along::vectors() || rows.inner() < 2 || plan.levels != 1 || plan.buffers != 0) return false;
    for (std::size_t k = 0; k < Step::outputs; ++k)
      if (plan.results[k].full) return false;
    return rows.contiguous(Step::outputs) && !std::is_same_v<lanes_of<Step, true>, scalar_lanes>;
  }
  static KILN_FN void run(const step_memory& m) {
    // adjacent vectors: an element of all of them is contiguous, and their additions do not wait for each other
    constexpr int most = 8;
    constexpr std::int64_t inner = rows.inner(), all = inner / lanes::count, whole = all / most * most;
    for (std::int64_t row = 0; row < rows.elements(); row += inner) {
      for (std::int64_t x = 0; x < whole; x += most) block<most, lanes::count>(m, row + x * lanes::count);
      if constexpr (whole != all) block<static_cast<int>(all - whole), lanes::count>(m, row + whole * lanes::count);
      if constexpr (all * lanes::count != inner)
        block<1, static_cast<int>(inner - all * lanes::count)>(m, row + all * lanes::count);
    }
  }

 private:
  using lanes = lanes_of<Step, true>;
  using reg = typename lanes::reg;
  template <std::size_t K> using folded = typename lanes::template of<compute_of<Step::body[K].type>>;
  template <std::size_t K> static KILN_FN auto& value(reg* r) {
    return r[K].template get<compute_of<Step::body[K].type>>();
  }
  template <std::size_t K, int N>
  static KILN_FN auto loaded(const step_memory& m, std::int64_t row, std::int64_t element) {
    constexpr std::int64_t step = rows.inner_step(K);
    return lanes::template load<stored_of<Step::body[K].type>, step, N>(along::template at<K>(m, row) + element);
  }
  template <class F> static KILN_FN void each_fold(F&& f) {
    each<Step::nodes>([&](auto k) {
      if constexpr (plan.folds_in(k, 0)) f(k);
    });
  }

  // adds one element of each of N rows to their sums
  template <int N>
  static KILN_FN void element(const step_memory& m, std::int64_t row, std::int64_t part, std::int64_t x, reg* known,
                              reg* sums) {
    reg r[Step::nodes];
    each<Step::nodes>([&](auto k) {
      constexpr auto v = plan.values[k];
      if constexpr (!v.full) {
        if constexpr (v.level == 0) r[k] = known[k];
      } else if constexpr (v.op == lower::row_op::parameter) {
        value<k>(r) = loaded<k, N>(m, row, offset_at<inside, k, along::inside_dims>(part) + x * inside.inner_step(k));
      } else {
        compute_node<Step, k, lanes>(r);
      }
    });
    each_fold([&](auto k) {
      value<k>(sums) =
          node_op<Step, k>::op.combine(value<k>(sums), along::template prepared<k>(value<Step::body[k].inputs[0]>(r)));
    });
  }
  // Not a lambda: clang 16 does not find `finish` from one.
  template <std::size_t K> static KILN_FN void finish(folded<K>& total) {
    using V = folded<K>;
    constexpr auto& op = node_op<Step, K>::op;
    if constexpr (requires { op.finish(total, V{}); })
      total = op.finish(total, splat<V>(static_cast<element_t<V>>(along::length)));
  }
  // Vectors times N rows
  template <int Vectors, int N> static KILN_FN void block(const step_memory& m, std::int64_t row) {
    constexpr std::int64_t most = 256, inner = inside.inner();  // long sums lose less in parts
    reg known[Vectors][Step::nodes];
    each<Vectors>([&](auto v) {
      each<Step::nodes>([&](auto k) {
        if constexpr (!plan.values[k].full && plan.values[k].level == 0) {
          if constexpr (plan.values[k].op == lower::row_op::parameter)
            value<k>(known[v]) = loaded<k, N>(m, row + v * N, 0);
          else
            compute_node<Step, k, lanes>(known[v]);
        }
      });
      each_fold([&](auto k) { value<k>(known[v]) = identity_of<folded<k>>(node_op<Step, k>::op); });
    });
    for (std::int64_t part = 0; part < inside.outer(); ++part)
      for (std::int64_t first = 0; first < inner; first += most) {
        reg sums[Vectors][Step::nodes];
        each<Vectors>([&](auto v) {
          each_fold([&](auto k) { value<k>(sums[v]) = identity_of<folded<k>>(node_op<Step, k>::op); });
        });
        const std::int64_t end = first + most < inner ? first + most : inner;
        for (std::int64_t x = first; x < end; ++x)
          each<Vectors>([&](auto v) { element<N>(m, row + v * N, part, x, known[v], sums[v]); });
        each<Vectors>([&](auto v) {
          each_fold([&](auto k) {
            value<k>(known[v]) = node_op<Step, k>::op.combine(value<k>(known[v]), value<k>(sums[v]));
          });
        });
      }
    each<Vectors>([&](auto v) {
      each_fold([&](auto k) { finish<k>(value<k>(known[v])); });
      each<Step::nodes>([&](auto k) {
        if constexpr (!plan.values[k].full && plan.values[k].level == 1 && !plan.folds_in(k, 0))
          compute_node<Step, k, lanes>(known[v]);
      });
      each<Step::outputs>([&](auto k) {
        constexpr std::size_t from = Step::result(k);
        lanes::template store<stored_of<Step::body[from].type>, 1, N>(
            along::template at<Step::inputs + k>(m, row + v * N), value<from>(known[v]));
      });
    });
  }
};

}  // namespace kiln::aot
