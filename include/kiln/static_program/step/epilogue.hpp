#pragma once
#include "kiln/static_program/plan/step_body.hpp"
#include "kiln/static_program/step/body.hpp"

namespace kiln::aot {

/// The body of a step that contracts: an epilogue over the sums of its contraction.
template <class Step> struct contraction_body {
  static constexpr lower::contraction_split split = split_of(Step::body);
  static constexpr std::size_t product_node = split.contraction;
  static constexpr auto extra = split.epilogue_inputs;
  using product_op = node_op<Step, product_node>;

  /// What the epilogue makes of the sums. `load(k)`, of an integral constant k, gives the elements of input `extra[k]`.
  template <class Lanes, class T, class Load> static KILN_FN auto apply_epilogue(T sums, Load&& load) {
    typename Lanes::reg r[Step::nodes];
    r[product_node].template get<compute_of<Step::body[product_node].type>>() = sums;
    each<extra.size()>([&](auto k) {
      constexpr std::size_t input = extra[k];
      r[input].template get<compute_of<Step::in[input].type>>() = load(k);
    });
    each<Step::nodes>([&](auto k) {
      if constexpr (Step::body[k].op != node::parameter && k != product_node) compute_node<Step, k, Lanes>(r);
    });
    constexpr std::size_t result = Step::result(0);
    return r[result].template get<compute_of<Step::body[result].type>>();
  }
};

}  // namespace kiln::aot
