#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/graph/verify.hpp"
#include "kiln/pass/fusion_body.hpp"

/// Small graphs and helpers for the tests of the fusion passes. They use a registry of few ops, so that constant
/// evaluation stays cheap; the passes are the same templates that run on every program.
namespace kiln::test {

using few_ops =
    registry<op::add, op::sub, op::mul, op::div, op::exp, op::sqrt, op::erf, op::relu, op::sigmoid, op::where, op::log,
             op::less, op::max, op::recip, op::rsqrt, op::gelu, op::neg, op::convert, op::reduce_max, op::reduce_mean,
             op::reduce_sum, op::broadcast, op::multibroadcast, op::reshape, op::reverse, op::slice, op::squeeze,
             op::transpose, op::unsqueeze, op::dot, op::convolution, op::attention, op::concat, op::cumsum, op::fused>;
using graph = static_graph<few_ops>;
using graph_builder = static_builder<few_ops>;
using node = graph_builder::value;

/// The program that `build(builder)` describes.
template <class Build> constexpr graph made_by(Build build) {
  graph_builder b;
  build(b);
  return b.finish();
}
/// The same after passes.
template <class Build, class... Passes> constexpr graph after(Build build, Passes... passes) {
  graph p = made_by(build);
  (passes(p), ...);
  return p;
}
constexpr std::uint32_t fused_count(const graph& p, fusion kind) {
  std::uint32_t n = 0;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::op)
      if (const auto* f = p.main()[i].op.get_if<op::fused>()) n += f->kind == kind;
  return n;
}

/// Runs a module instruction by instruction through the ops' reference computations, bodies recursively.
template <class Program>
std::vector<literal> evaluate_module(const Program& p, module_ref at, const std::vector<literal>& inputs) {
  const auto& m = p.module(at);
  std::vector<std::vector<literal>> values(m.size());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < m.size(); ++i) {
    const auto& step = m[i];
    if (step.kind == instruction_kind::parameter) {
      values[i] = {inputs.at(next++)};
      continue;
    }
    if (step.kind == instruction_kind::literal) {
      values[i] = {step.constant};
      continue;
    }
    std::vector<literal> in;
    for (value_id v : step.inputs) in.push_back(values[v.instruction].at(v.result));
    if (step.op.kind() == op_kind::control) {
      values[i] = evaluate_module(p, step.op.body(), in);
      continue;
    }
    std::vector<const literal*> pointers;
    for (const literal& l : in) pointers.push_back(&l);
    for (literal& l : fold(step.op, std::span<const literal* const>(pointers), step.results)) values[i].push_back(l);
  }
  std::vector<literal> out;
  for (value_id v : m.outputs) out.push_back(values[v.instruction].at(v.result));
  return out;
}

/// Inputs for every parameter: floats in [-1, 1), bools by the same draw.
template <class Program> std::vector<literal> random_inputs(const Program& p, std::uint32_t seed = 1) {
  std::vector<literal> out;
  for (value_id v : p.main().parameters()) {
    const shape& s = p.main().shape_of(v);
    std::vector<float> x(static_cast<std::size_t>(s.elements().value()));
    for (float& f : x) {
      seed = seed * 1664525u + 1013904223u;
      f = static_cast<float>(static_cast<std::int32_t>(seed)) / 2147483648.0f;
      if (s.type == dtype::boolean) f = f > 0;
    }
    out.push_back(literal::of<float>(s, x));
  }
  return out;
}

/// The greatest difference between the outputs of two programs on the same random inputs; infinite where they do not
/// match in number or shape, or one is not a number.
template <class Program> double difference(const Program& a, const Program& b) {
  const auto inputs = random_inputs(a);
  const auto x = evaluate_module(a, {0}, inputs), y = evaluate_module(b, {0}, inputs);
  if (x.size() != y.size()) return INFINITY;
  double most = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!(x[k].get_shape() == y[k].get_shape())) return INFINITY;
    const auto u = x[k].template to<double>(), v = y[k].template to<double>();
    for (std::size_t i = 0; i < u.size(); ++i) {
      const double d = std::fabs(u[i] - v[i]);
      most = d <= most ? most : std::isnan(d) ? INFINITY : d;
    }
  }
  return most;
}

}  // namespace kiln::test
