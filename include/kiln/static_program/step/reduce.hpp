#pragma once
#include "kiln/static_program/plan/row_records.hpp"
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// A step with reductions, run level by level over one row at a time, which stays in L1: softmax and the norms take two
/// or three.
template <class Step> struct reduce_step {
  using net = typename Step::net;

  static constexpr auto plan = [] {
    inline_vector<std::uint32_t, Step::outputs> results;
    for (std::size_t k = 0; k < Step::outputs; ++k) results.push_back(static_cast<std::uint32_t>(Step::result(k)));
    return lower::find_row_body<Step::nodes>(std::span<const node>(Step::body), results).value();
  }();
  template <int Level> static constexpr auto needed = plan.needed(Level, true);
  static constexpr std::int64_t length = plan.row_elements();

  static constexpr std::size_t operands = Step::inputs + Step::outputs;
  static constexpr bool full(std::size_t k) {
    return k < Step::inputs ? plan.values[k].full : plan.results[k - Step::inputs].full;
  }

  static constexpr walk<operands> rows = make_walk<operands>(
      plan.full, [](std::size_t k, std::size_t d) { return Step::operand(k).strides[d]; },
      [](std::size_t d) { return !plan.folded[d]; });
  static constexpr walk<operands> inside = make_walk<operands>(
      plan.full, [](std::size_t k, std::size_t d) { return full(k) ? Step::operand(k).strides[d] : std::int64_t{0}; },
      [](std::size_t d) { return plan.folded[d]; });
  static constexpr std::size_t row_dims = rows.extent.size(),
                               inside_dims = inside.extent.empty() ? 0 : inside.extent.size() - 1;
  static constexpr bool vectors() {
    if (inside.extent.empty()) return false;
    for (std::size_t k = 0; k < operands; ++k) {
      if (!full(k)) continue;
      const std::int64_t s = inside.inner_step(k);
      if (s != 1 && (s != 0 || k >= Step::inputs)) return false;
    }
    return true;
  }
  using lanes = lanes_of<Step, vectors()>;
  using scalar = scalar_lanes::reg;

  // a fold over part of the row: one accumulator a lane, and one for what remains
  template <std::size_t K> using folded = compute_of<Step::body[K].type>;
  template <std::size_t K> static KILN_FN auto prepared(auto x) {
    if constexpr (requires { node_op<Step, K>::op.prepare(x); })
      return node_op<Step, K>::op.prepare(x);
    else
      return x;
  }

  template <std::size_t K> static KILN_FN auto* at(const step_memory& m, std::int64_t row) {
    if constexpr (K < Step::inputs)
      return buffer_of<Step, K>(m) + Step::in[K].offset + offset_at<rows, K, row_dims>(row);
    else
      return buffer_of<Step, K>(m) + Step::out[K - Step::inputs].offset + offset_at<rows, K, row_dims>(row);
  }
  // Element `flat` of the row in the buffer of a kept value.
  template <std::size_t K> static KILN_FN auto* kept(const step_memory& m, std::int64_t flat) {
    using S = stored_of<Step::body[K].type>;
    return reinterpret_cast<S*>(m.scratch + plan.values[K].buffer * row_buffer_bytes(length)) + flat;
  }

  // [value]
  // Value K of level L for N elements of the row from `x` of the inner dim on
  template <int L, int N, std::size_t K>
  static KILN_FN void compute(const step_memory& m, std::int64_t row, std::int64_t part, std::int64_t x, scalar* known,
                              typename lanes::reg* r) {
    constexpr node n = Step::body[K];
    constexpr auto v = plan.values[K];
    using T = compute_of<n.type>;
    using S = stored_of<n.type>;
    if constexpr (!v.full) {
      if constexpr (v.level <= L) spread<T>(r[K], known[K]);
    } else if constexpr (needed<L>[v.source]) {
      if constexpr (v.op == lower::row_op::parameter)
        r[K].template get<T>() = lanes::template load<S, inside.inner_step(K), N>(
            at<K>(m, row) + offset_at<inside, K, inside_dims>(part) + x * inside.inner_step(K));
      else if constexpr (v.kept && v.level < L)
        r[K].template get<T>() = lanes::template load<S, 1, N>(kept<K>(m, part * inside.inner() + x));
      else
        compute_node<Step, K, lanes>(r);
      if constexpr (v.kept && v.level == L)
        lanes::template store<S, 1, N>(kept<K>(m, part * inside.inner() + x), r[K].template get<T>());
    }
  }
  // [/value]
  // Level L over N elements of the row from `x` of the inner dim on
  template <int L, int N>
  static KILN_FN void block(const step_memory& m, std::int64_t row, std::int64_t part, std::int64_t x, scalar* known,
                            typename lanes::reg* acc) {
    typename lanes::reg r[Step::nodes];
    each<Step::nodes>([&](auto k) { compute<L, N, k>(m, row, part, x, known, r); });
    each<Step::nodes>([&](auto k) {
      if constexpr (plan.folds_in(k, L))
        fold<k, N>(acc[k].template get<folded<k>>(), known[k].template get<folded<k>>(),
                   r[Step::body[k].inputs[0]].template get<folded<k>>());
    });
    each<Step::outputs>([&](auto k) {
      constexpr std::size_t from = Step::result(k), operand_index = Step::inputs + k;
      if constexpr (plan.writes_in(k, L)) {
        using T = compute_of<Step::body[from].type>;
        constexpr std::int64_t step = inside.inner_step(operand_index);
        lanes::template store<stored_of<Step::body[from].type>, step, N>(
            at<operand_index>(m, row) + offset_at<inside, operand_index, inside_dims>(part) + x * step,
            r[from].template get<T>());
      }
    });
  }
  template <class T> static KILN_FN void spread(typename lanes::reg& r, scalar& from) {
    if constexpr (std::is_same_v<lanes, scalar_lanes>)
      r.template get<T>() = from.get<T>();
    else if constexpr (std::is_same_v<T, bool>)
      r.m = splat<decltype(r.m)>(from.b ? -1 : 0);
    else
      r.v = splat<decltype(r.v)>(from.get<T>());
  }
  template <std::size_t K, int N, class Acc, class T, class X> static KILN_FN void fold(Acc& acc, T& rest, X x) {
    const auto p = prepared<K>(x);
    if constexpr (N == lanes::count) {
      acc = node_op<Step, K>::op.combine(acc, p);
    } else {
      for (int i = 0; i < N; ++i) rest = node_op<Step, K>::op.combine(rest, T(p[i]));
    }
  }

  // What has one element per row and is known before level L; then the level and those after it
  template <int L> static KILN_FN void run_levels(const step_memory& m, std::int64_t row, scalar* known) {
    each<Step::nodes>([&](auto k) {
      constexpr auto v = plan.values[k];
      if constexpr (!v.full && v.level == L && v.op != lower::row_op::reduction && v.op != lower::row_op::parameter)
        compute_node<Step, k, scalar_lanes>(known);
    });
    if constexpr (L < plan.levels) {
      typename lanes::reg acc[Step::nodes];
      each<Step::nodes>([&](auto k) {
        if constexpr (plan.folds_in(k, L)) {
          using T = folded<k>;
          acc[k].template get<T>() = identity_of<typename lanes::template of<T>>(node_op<Step, k>::op);
          known[k].template get<T>() = identity_of<T>(node_op<Step, k>::op);
        }
      });
      constexpr std::int64_t inner = inside.inner(), whole = inner / lanes::count * lanes::count;
      for (std::int64_t part = 0; part < inside.outer(); ++part) {
        for (std::int64_t x = 0; x < whole; x += lanes::count) block<L, lanes::count>(m, row, part, x, known, acc);
        if constexpr (whole != inner) block<L, static_cast<int>(inner - whole)>(m, row, part, whole, known, acc);
      }
      each<Step::nodes>([&](auto k) {
        if constexpr (plan.folds_in(k, L)) finish<k>(acc[k], known[k]);
      });
      run_levels<L + 1>(m, row, known);
    }
  }
  template <std::size_t K> static KILN_FN void finish(typename lanes::reg& acc, scalar& known) {
    using T = folded<K>;
    constexpr auto& op = node_op<Step, K>::op;
    T total = known.template get<T>();
    if constexpr (std::is_same_v<lanes, scalar_lanes>) {
      total = op.combine(total, acc.template get<T>());
    } else {
      for (int i = 0; i < lanes::count; ++i) total = op.combine(total, T(acc.template get<T>()[i]));
    }
    if constexpr (requires { op.finish(total, T(1)); }) total = op.finish(total, static_cast<T>(length));
    known.template get<T>() = convert_value<T>(convert_value<stored_of<Step::body[K].type>>(total));
  }

  static KILN_FN void run(const step_memory& m) {
    for (std::int64_t row = 0; row < rows.elements(); ++row) {
      scalar known[Step::nodes];
      each<Step::nodes>([&](auto k) {
        if constexpr (!plan.values[k].full && plan.values[k].op == lower::row_op::parameter)
          known[k].template get<compute_of<Step::body[k].type>>() =
              scalar_lanes::load<stored_of<Step::body[k].type>, 1, 1>(at<k>(m, row));
      });
      run_levels<0>(m, row, known);
      each<Step::outputs>([&](auto k) {
        constexpr std::size_t from = Step::result(k);
        if constexpr (!plan.results[k].full) {
          using S = stored_of<Step::body[from].type>;
          *at<Step::inputs + k>(m, row) = convert_value<S>(known[from].template get<compute_of<dtype_of<S>>>());
        }
      });
    }
  }
};

}  // namespace kiln::aot
