#pragma once
#include "kiln/fixed/reduce_plan.hpp"
#include "kiln/fixed/walk.hpp"

namespace kiln::fixed {

/// A step with reductions, run row by row (see reduce_plan): softmax and the norms are two or three loops over a row
/// that stays in the first-level cache.
template <class Step>
struct reduce_step {
  using net = typename Step::net;

  // what reduce_plan says, without the heap
  struct facts {
    bool row[Step::nodes]{}, saved[Step::nodes]{};
    std::uint32_t stage[Step::nodes]{};
    std::int64_t slot[Step::nodes]{};
    ints full{};
    inline_vector<bool, max_rank> reduced{};
    std::uint32_t stages = 1;
    std::int64_t length = 1, slots = 0;
  };
  static constexpr facts plan = [] {
    const reduce_plan p = plan_reduce(Step::body);
    facts f;
    for (std::size_t k = 0; k < Step::nodes; ++k) {
      f.row[k] = p.values[k].row;
      f.saved[k] = p.values[k].saved;
      f.stage[k] = p.values[k].stage;
      f.slot[k] = p.values[k].slot;
    }
    f.full = p.full;
    f.reduced = p.reduced;
    f.stages = p.stages;
    f.length = p.row_elements();
    f.slots = p.slots;
    return f;
  }();

  static constexpr std::size_t operands = Step::inputs + Step::outputs;
  static constexpr std::size_t node_of(std::size_t k) { return k < Step::inputs ? k : Step::result(k - Step::inputs); }
  static constexpr bool is_row(std::size_t k) { return plan.row[node_of(k)]; }

  static constexpr walk<operands> rows = make_walk<operands>(
      plan.full, [](std::size_t k, std::size_t d) { return Step::operand(k).strides[d]; },
      [](std::size_t d) { return !plan.reduced[d]; });
  static constexpr walk<operands> inside = make_walk<operands>(
      plan.full, [](std::size_t k, std::size_t d) { return is_row(k) ? std::int64_t{0} : Step::operand(k).strides[d]; },
      [](std::size_t d) { return plan.reduced[d]; });
  static constexpr std::size_t row_dims = rows.extent.size(),
                               inside_dims = inside.extent.empty() ? 0 : inside.extent.size() - 1;
  static constexpr bool vectors() {
    if (inside.extent.empty()) return false;
    for (std::size_t k = 0; k < operands; ++k) {
      if (is_row(k)) continue;
      const std::int64_t s = inside.inner_step(k);
      if (s != 1 && (s != 0 || k >= Step::inputs)) return false;
    }
    return true;
  }
  using lanes = lanes_of<Step, vectors()>;
  using scalar = scalar_lanes::reg;
  static constexpr std::int64_t slot_bytes = (plan.length * 8 + 63) / 64 * 64;

  // a fold over part of the row: one accumulator a lane, and one for what remains
  template <std::size_t K>
  using folded = compute_of<Step::body[K].type>;
  template <std::size_t K>
  static KILN_FN auto prepared(auto x) {
    if constexpr (requires { node_op<Step, K>::op.prepare(x); })
      return node_op<Step, K>::op.prepare(x);
    else
      return x;
  }

  template <std::size_t K>
  static KILN_FN auto* at(const step_memory& m, std::int64_t row) {
    if constexpr (K < Step::inputs)
      return buffer_of<Step, K>(m) + Step::in[K].offset + offset_at<rows, K, row_dims>(row);
    else
      return buffer_of<Step, K>(m) + Step::out[K - Step::inputs].offset + offset_at<rows, K, row_dims>(row);
  }
  template <std::size_t K>
  static KILN_FN auto* saved(const step_memory& m, std::int64_t flat) {
    using S = stored_of<Step::body[K].type>;
    return reinterpret_cast<S*>(m.scratch + plan.slot[K] * slot_bytes) + flat;
  }

  // stage S over N elements of the row from `x` of the inner dim on
  template <std::uint32_t S, int N>
  static KILN_FN void block(const step_memory& m, std::int64_t row, std::int64_t part, std::int64_t x, scalar* known,
                            typename lanes::reg* acc) {
    typename lanes::reg r[Step::nodes];
    const std::int64_t flat = part * inside.inner() + x;
    each<Step::nodes>([&](auto k) {
      constexpr node n = Step::body[k];
      using T = compute_of<n.type>;
      if constexpr (plan.row[k]) {
        if constexpr (plan.stage[k] <= S) spread<T>(r[k], known[k]);
      } else if constexpr (n.op == node::parameter) {
        constexpr std::int64_t step = inside.inner_step(k);
        r[k].template get<T>() = lanes::template load<stored_of<n.type>, step, N>(
            at<k>(m, row) + offset_at<inside, k, inside_dims>(part) + x * step);
      } else if constexpr (plan.stage[k] < S) {
        if constexpr (plan.saved[k])
          r[k].template get<T>() = lanes::template load<stored_of<n.type>, 1, N>(saved<k>(m, flat));
        else if constexpr (n.op == node::literal || n.kind == op_kind::view)
          compute_node<Step, k, lanes>(r);
      } else if constexpr (plan.stage[k] == S) {
        compute_node<Step, k, lanes>(r);
        if constexpr (plan.saved[k])
          lanes::template store<stored_of<n.type>, 1, N>(saved<k>(m, flat), r[k].template get<T>());
      }
    });
    each<Step::nodes>([&](auto k) {
      if constexpr (is_reduction(Step::body[k]) && plan.stage[k] == S + 1)
        fold<k, N>(acc[k].template get<folded<k>>(), known[k].template get<folded<k>>(),
                   r[Step::body[k].inputs[0]].template get<folded<k>>());
    });
    each<Step::outputs>([&](auto k) {
      constexpr std::size_t from = Step::result(k), operand_index = Step::inputs + k;
      if constexpr (!plan.row[from] && plan.stage[from] == S) {
        using T = compute_of<Step::body[from].type>;
        constexpr std::int64_t step = inside.inner_step(operand_index);
        lanes::template store<stored_of<Step::body[from].type>, step, N>(
            at<operand_index>(m, row) + offset_at<inside, operand_index, inside_dims>(part) + x * step,
            r[from].template get<T>());
      }
    });
  }
  template <class T>
  static KILN_FN void spread(typename lanes::reg& r, scalar& from) {
    if constexpr (std::is_same_v<lanes, scalar_lanes>)
      r.template get<T>() = from.get<T>();
    else if constexpr (std::is_same_v<T, bool>)
      r.m = splat<decltype(r.m)>(from.b ? -1 : 0);
    else
      r.v = splat<decltype(r.v)>(from.get<T>());
  }
  template <std::size_t K, int N, class Acc, class T, class X>
  static KILN_FN void fold(Acc& acc, T& rest, X x) {
    const auto p = prepared<K>(x);
    if constexpr (N == lanes::count) {
      acc = node_op<Step, K>::op.combine(acc, p);
    } else {
      for (int i = 0; i < N; ++i) rest = node_op<Step, K>::op.combine(rest, T(p[i]));
    }
  }

  template <std::uint32_t S>
  static KILN_FN void stage(const step_memory& m, std::int64_t row, scalar* known) {
    each<Step::nodes>([&](auto k) {
      constexpr node n = Step::body[k];
      if constexpr (plan.row[k] && plan.stage[k] == S && !is_reduction(n) && n.op != node::parameter)
        compute_node<Step, k, scalar_lanes>(known);
    });
    if constexpr (S < plan.stages) {
      typename lanes::reg acc[Step::nodes];
      each<Step::nodes>([&](auto k) {
        if constexpr (is_reduction(Step::body[k]) && plan.stage[k] == S + 1) {
          using T = folded<k>;
          acc[k].template get<T>() = node_op<Step, k>::op.template identity<typename lanes::template of<T>>();
          known[k].template get<T>() = node_op<Step, k>::op.template identity<T>();
        }
      });
      constexpr std::int64_t inner = inside.inner(), whole = inner / lanes::count * lanes::count;
      for (std::int64_t part = 0; part < inside.outer(); ++part) {
        for (std::int64_t x = 0; x < whole; x += lanes::count) block<S, lanes::count>(m, row, part, x, known, acc);
        if constexpr (whole != inner) block<S, static_cast<int>(inner - whole)>(m, row, part, whole, known, acc);
      }
      each<Step::nodes>([&](auto k) {
        if constexpr (is_reduction(Step::body[k]) && plan.stage[k] == S + 1) finish<k>(acc[k], known[k]);
      });
      stage<S + 1>(m, row, known);
    }
  }
  template <std::size_t K>
  static KILN_FN void finish(typename lanes::reg& acc, scalar& known) {
    using T = folded<K>;
    constexpr auto& op = node_op<Step, K>::op;
    T total = known.template get<T>();
    if constexpr (std::is_same_v<lanes, scalar_lanes>) {
      total = op.combine(total, acc.template get<T>());
    } else {
      for (int i = 0; i < lanes::count; ++i) total = op.combine(total, T(acc.template get<T>()[i]));
    }
    if constexpr (requires { op.finish(total, T(1)); }) total = op.finish(total, static_cast<T>(plan.length));
    known.template get<T>() = convert_value<T>(convert_value<stored_of<Step::body[K].type>>(total));
  }

  static KILN_FN void run(const step_memory& m) {
    for (std::int64_t row = 0; row < rows.elements(); ++row) {
      scalar known[Step::nodes];
      each<Step::nodes>([&](auto k) {
        if constexpr (plan.row[k] && Step::body[k].op == node::parameter)
          known[k].template get<compute_of<Step::body[k].type>>() =
              scalar_lanes::load<stored_of<Step::body[k].type>, 1, 1>(at<k>(m, row));
      });
      stage<0>(m, row, known);
      each<Step::outputs>([&](auto k) {
        constexpr std::size_t from = Step::result(k);
        if constexpr (plan.row[from]) {
          using S = stored_of<Step::body[from].type>;
          *at<Step::inputs + k>(m, row) = convert_value<S>(known[from].template get<compute_of<dtype_of<S>>>());
        }
      });
    }
  }
};

}  // namespace kiln::fixed
