#pragma once
#include "kiln/fixed/records.hpp"
#include "kiln/op/contraction.hpp"

namespace kiln::fixed {

/// A dim of a product's iteration: its extent and the steps of the operands along it. Operand 0 is the one whose
/// elements are broadcast, 1 the one that is read in vectors, 2 the result, the others belong to the epilogue.
struct axis {
  std::int64_t extent = 1;
  std::int64_t iteration = 0;  ///< which dim of the contraction
  small_vector<std::int64_t> step;
};

/// A dim of an operand whose index may lie outside (padding).
struct guard {
  affine index{};
  std::int64_t limit = 0;
};

/// How a contraction runs: loops over `batch`, then a matrix product of `rows` and `columns` summed over `sum`.
struct product_plan {
  bool swapped = false;  ///< operand 0 is the contraction's rhs
  small_vector<axis> batch, rows, columns, sum;
  small_vector<std::int64_t> offset;  ///< of each operand
  inline_vector<guard, max_rank> guards[2];
  bool pack[2] = {};       ///< the operand is gathered into dense memory first
  bool along_sum = false;  ///< one row whose vector operand is contiguous along the sum

  static constexpr std::int64_t product(const small_vector<axis>& axes) {
    std::int64_t n = 1;
    for (const axis& a : axes) n *= a.extent;
    return n;
  }
};

/// Element steps of an operand along the iteration.
struct operand_steps {
  inline_vector<std::int64_t, max_iteration_rank> step{};
  std::int64_t offset = 0;
  inline_vector<guard, max_rank> guards{};
};

constexpr operand_steps steps_of(const access& a, const place& p,
                                 const inline_vector<std::int64_t, max_iteration_rank>& extents) {
  operand_steps out;
  out.step.resize(extents.size());
  out.offset = p.offset;
  for (std::size_t d = 0; d < a.size(); ++d) {
    std::int64_t low = a[d].constant, high = low;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const std::int64_t c = a[d].coefficient[i];
      if (c == 0) continue;
      out.step[i] += c * p.strides[d];
      const std::int64_t reach = c * (extents[i] - 1);
      (reach < 0 ? low : high) += reach;
    }
    out.offset += a[d].constant * p.strides[d];
    if (low < 0 || high >= p.lens[d]) out.guards.push_back({a[d], p.lens[d]});
  }
  return out;
}

namespace detail {

// Whether the axis before continues the one behind for operand k.
constexpr bool continues(const axis& before, const axis& behind, std::size_t k) {
  return before.step[k] == behind.step[k] * behind.extent;
}

// The longest suffix of axes that is one axis for the result and the epilogue; the axes before become loops.
constexpr small_vector<axis> take_group(small_vector<axis>& axes, small_vector<axis>& loops, bool one_step) {
  small_vector<axis> group;
  if (axes.empty()) return group;
  std::size_t first = axes.size() - 1;
  bool usable = true;
  if (one_step)  // the columns: results are stored in vectors, what the epilogue reads is loaded or broadcast
    for (std::size_t k = 2; k < axes[first].step.size(); ++k)
      usable = usable && (axes[first].step[k] == 1 || (k > 2 && axes[first].step[k] == 0));
  if (!usable) {
    for (const axis& a : axes) loops.push_back(a);
    axes.clear();
    return group;
  }
  while (first > 0) {
    bool joins = true;
    for (std::size_t k = 2; k < axes[first].step.size(); ++k)
      joins = joins && continues(axes[first - 1], axes[first], k);
    if (!joins) break;
    --first;
  }
  for (std::size_t i = 0; i < first; ++i) loops.push_back(axes[i]);
  for (std::size_t i = first; i < axes.size(); ++i) group.push_back(axes[i]);
  return group;
}

constexpr bool one_axis(const small_vector<axis>& axes, std::size_t k) {
  for (std::size_t i = 0; i + 1 < axes.size(); ++i)
    if (!continues(axes[i], axes[i + 1], k)) return false;
  return true;
}

}  // namespace detail

/// Which inputs of a step its contraction reads.
struct product_inputs {
  std::size_t lhs = 0, rhs = 1;
};
constexpr product_inputs product_operands(std::span<const node> nodes) {
  for (const node& n : nodes)
    if (n.op >= 0 && n.kind == op_kind::contraction) return {n.inputs[0], n.inputs[1]};
  return {};
}

/// The inputs that its epilogue reads; an operand of the product may be among them.
constexpr inline_vector<std::uint32_t, 64> epilogue_inputs(std::span<const node> nodes) {
  inline_vector<std::uint32_t, 64> out;
  for (std::uint32_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].op != node::parameter) continue;
    bool read = false;
    for (const node& n : nodes)
      for (std::uint32_t i : n.inputs) read = read || (i == k && n.kind != op_kind::contraction);
    if (read) out.push_back(k);
  }
  return out;
}

/// Plans a contraction over operands that lie at `in[0]`, `in[1]`, with a result at `out` and an epilogue that reads
/// `extra`, whose dims are the result's.
constexpr product_plan plan_product(const contraction& c, const place& lhs, const place& rhs, const place& out,
                                    std::span<const place> extra) {
  inline_vector<std::int64_t, max_iteration_rank> extents;
  for (dimension d : c.extents) extents.push_back(d.value());
  const std::size_t outer = extents.size() - c.reduced;
  small_vector<operand_steps> steps;
  steps.push_back(steps_of(c.lhs, lhs, extents));
  steps.push_back(steps_of(c.rhs, rhs, extents));
  steps.push_back(steps_of(c.out, out, extents));
  for (const place& p : extra) steps.push_back(steps_of(c.out, p, extents));
  const auto depends = [&](std::size_t k, std::size_t i) {
    bool any = steps[k].step[i] != 0;
    for (const guard& g : steps[k].guards) any = any || g.index.coefficient[i] != 0;
    return any;
  };
  product_plan p;
  for (std::size_t i = outer; i-- > 0;) {  // the operand that varies along the result's innermost dim is the vector one
    if (extents[i] == 1) continue;
    p.swapped = depends(0, i) && !depends(1, i);
    break;
  }
  if (p.swapped) {
    operand_steps left = steps[0];
    steps[0] = steps[1];
    steps[1] = left;
  }
  for (const operand_steps& s : steps) p.offset.push_back(s.offset);
  p.guards[0] = steps[0].guards, p.guards[1] = steps[1].guards;
  small_vector<axis> rows, columns;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    axis a;
    a.extent = extents[i];
    a.iteration = static_cast<std::int64_t>(i);
    for (const operand_steps& s : steps) a.step.push_back(s.step[i]);
    if (i >= outer) {
      std::size_t at = 0;  // by falling steps of the broadcast operand
      while (at < p.sum.size() && p.sum[at].step[0] >= a.step[0]) ++at;
      p.sum.push_back(axis());
      for (std::size_t k = p.sum.size() - 1; k > at; --k) p.sum[k] = std::move(p.sum[k - 1]);
      p.sum[at] = std::move(a);
      continue;
    }
    const bool left = depends(0, i), right = depends(1, i);
    (left == right ? p.batch : left ? rows : columns).push_back(std::move(a));
  }
  p.columns = detail::take_group(columns, p.batch, true);
  p.rows = detail::take_group(rows, p.batch, false);
  p.pack[0] = !p.guards[0].empty() || !detail::one_axis(p.sum, 0) || !detail::one_axis(p.rows, 0);
  const bool sum_is_one = detail::one_axis(p.sum, 1) && p.guards[1].empty();
  p.pack[1] = !sum_is_one || !detail::one_axis(p.columns, 1) || (!p.columns.empty() && p.columns.back().step[1] != 1);
  if (p.pack[1] && !p.pack[0] && sum_is_one && p.rows.empty() && detail::one_axis(p.columns, 1) && !p.sum.empty() &&
      p.sum.back().step[1] == 1 && p.sum.back().step[0] == 1) {
    p.pack[1] = false;
    p.along_sum = true;
  }
  return p;
}

/// Columns of a packed operand, rounded up so that its rows hold whole vectors of any width.
constexpr std::int64_t padded_columns(std::int64_t n) { return (n + 15) / 16 * 16; }

/// Elements of scratch memory for the packed operands.
constexpr std::int64_t product_scratch(const product_plan& p) {
  const std::int64_t k = product_plan::product(p.sum);
  std::int64_t n = 0;
  if (p.pack[0]) n += (product_plan::product(p.rows) * k + 15) / 16 * 16;
  if (p.pack[1]) n += padded_columns(product_plan::product(p.columns)) * k;
  return n;
}

}  // namespace kiln::fixed
