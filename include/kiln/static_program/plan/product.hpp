#pragma once
#include "kiln/op/contraction.hpp"
#include "kiln/static_program/plan/step_body.hpp"

namespace kiln::aot {

/// A dim of a product's iteration: its extent and the steps of the operands along it. Operand 0 is the one whose
/// elements are broadcast, 1 the one that is read in vectors, 2 the result, the others belong to the epilogue.
struct axis {
  std::int64_t extent = 1;
  std::int64_t iteration = 0;  ///< which dim of the contraction
  small_vector<std::int64_t> step;
};

/// An operand within zeros, so that no index of the contraction lies outside of it. `where` is the operand itself where
/// all indices are inside anyway.
struct padded_operand {
  place where{};
  access maps{};
  ints begin{};  ///< zeros before each dim
  bool padded = false;

  static constexpr padded_operand of(const access& a, const place& p, const contraction& c) {
    padded_operand out;
    out.where = p;
    out.maps = a;
    for (std::size_t d = 0; d < a.size(); ++d) {
      std::int64_t low = a[d].constant, high = low;
      for (std::size_t i = 0; i < c.extents.size(); ++i) {
        const std::int64_t reach = a[d].coefficient[i] * (c.extents[i].value() - 1);
        (reach < 0 ? low : high) += reach;
      }
      const std::int64_t begin = low < 0 ? -low : 0, end = high >= p.lens[d] ? high - p.lens[d] + 1 : 0;
      out.begin.push_back(begin);
      out.padded = out.padded || begin != 0 || end != 0;
      out.where.lens[d] = begin + p.lens[d] + end;
      out.maps[d].constant += begin;
    }
    if (out.padded) {
      out.where.strides = row_major(out.where.lens);
      out.where.offset = 0;
    }
    return out;
  }
  /// Where the operand's elements lie within the zeros.
  constexpr place inside(const ints& lens) const {
    place p = where;
    p.lens = lens;
    for (std::size_t d = 0; d < begin.size(); ++d) p.offset += begin[d] * p.strides[d];
    return p;
  }
};

/// The columns that are multiplied at a time: `rows` whole lines of `width`, or a part of one line. The last panel
/// overlaps the one before it, so that all are alike.
struct panel_shape {
  std::int64_t rows = 1, width = 1, count_rows = 1, count_width = 1;

  constexpr std::int64_t columns() const { return rows * width; }
  /// Columns in memory: whole vectors of any width.
  constexpr std::int64_t pitch() const { return (columns() + 15) / 16 * 16; }

  /// Panels that waste few lanes and stay in the first cache levels.
  static constexpr panel_shape of(std::int64_t lines, std::int64_t width) {
    constexpr std::int64_t most = 64;
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    panel_shape p;
    p.count_rows = lines;
    p.width = width;
    if (width > most) {
      p.width = lines == 1 ? most : ceil_div(width, ceil_div(width, most));
      p.count_width = ceil_div(width, p.width);
      return p;
    }
    std::int64_t least = 0;
    for (std::int64_t rows = 1; rows <= lines && (rows == 1 || rows * width <= most + 16); ++rows) {
      const std::int64_t vectors = ceil_div(lines, rows) * ceil_div(rows * width, 16);
      if (rows == 1 || vectors <= least) {
        least = vectors;
        p.rows = rows;
      }
    }
    p.count_rows = ceil_div(lines, p.rows);
    return p;
  }
};

/// How a contraction runs: loops over `batch`, then a matrix product of `rows` and `columns` summed over `sum`.
struct product_plan {
  bool swapped = false;  ///< operand 0 is the contraction's rhs
  small_vector<axis> batch, rows, columns, sum;
  small_vector<std::int64_t> offset;                 ///< of each operand
  bool pack[2] = {};                                 ///< the operand is gathered into dense memory first
  bool along_sum = false;                            ///< one row whose vector operand is contiguous along the sum
  std::int64_t lines = 1, width = 1, line_step = 0;  ///< the columns as lines, whose steps are the vector operand's

  constexpr std::int64_t column_step(std::size_t k) const { return columns.empty() ? 0 : columns.back().step[k]; }
  constexpr std::int64_t row_step(std::size_t k) const { return rows.empty() ? 0 : rows.back().step[k]; }
  constexpr std::int64_t sum_step(std::size_t k) const { return sum.empty() ? 0 : sum.back().step[k]; }

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
};

constexpr operand_steps steps_of(const access& a, const place& p,
                                 const inline_vector<std::int64_t, max_iteration_rank>& extents) {
  operand_steps out;
  out.step.resize(extents.size());
  out.offset = p.offset;
  for (std::size_t d = 0; d < a.size(); ++d) {
    for (std::size_t i = 0; i < extents.size(); ++i) out.step[i] += a[d].coefficient[i] * p.strides[d];
    out.offset += a[d].constant * p.strides[d];
  }
  return out;
}

namespace detail {

// Whether the axis before continues the one after for operand k.
constexpr bool continues(const axis& before, const axis& after, std::size_t k) {
  return before.step[k] == after.step[k] * after.extent;
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

/// Plans a contraction over operands that lie at `lhs` and `rhs` (padded, so that all indices are inside), with a
/// result at `out` and an epilogue that reads `extra`, whose dims are the result's.
constexpr product_plan plan_product(const contraction& c, const padded_operand& lhs, const padded_operand& rhs,
                                    const place& out, std::span<const place> extra) {
  inline_vector<std::int64_t, max_iteration_rank> extents;
  for (dimension d : c.extents) extents.push_back(d.value());
  const std::size_t outer = extents.size() - c.reduced;
  small_vector<operand_steps> steps;
  steps.push_back(steps_of(lhs.maps, lhs.where, extents));
  steps.push_back(steps_of(rhs.maps, rhs.where, extents));
  steps.push_back(steps_of(c.out, out, extents));
  for (const place& p : extra) steps.push_back(steps_of(c.out, p, extents));
  const auto depends = [&](std::size_t k, std::size_t i) { return steps[k].step[i] != 0; };
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
  if (p.columns.size() > 2 && !detail::one_axis(p.columns, 1)) {  // lines of a width; the axes before them are loops
    small_vector<axis> two;
    for (std::size_t i = 0; i < p.columns.size(); ++i)
      (i + 2 < p.columns.size() ? p.batch : two).push_back(std::move(p.columns[i]));
    p.columns = std::move(two);
  }
  p.rows = detail::take_group(rows, p.batch, false);
  p.pack[0] = !detail::one_axis(p.sum, 0) || !detail::one_axis(p.rows, 0);
  const bool sum_is_one = detail::one_axis(p.sum, 1), columns_are_one = detail::one_axis(p.columns, 1);
  p.pack[1] = !sum_is_one || !columns_are_one || (!p.columns.empty() && p.column_step(1) != 1);
  if (p.pack[1] && !p.pack[0] && sum_is_one && p.rows.empty() && columns_are_one && p.sum_step(1) == 1 &&
      p.sum_step(0) == 1) {
    p.pack[1] = false;
    p.along_sum = true;
  }
  if (columns_are_one) {
    p.width = product_plan::product(p.columns);
  } else {
    p.lines = p.columns[p.columns.size() - 2].extent;
    p.line_step = p.columns[p.columns.size() - 2].step[1];
    p.width = p.columns.back().extent;
  }
  return p;
}

/// Bytes-free sizes, in elements, of the memory that a product takes for padded and packed operands.
struct product_memory {
  std::int64_t padded[2] = {}, packed[2] = {};

  static constexpr product_memory of(const product_plan& p, const padded_operand& first, const padded_operand& second) {
    const auto whole = [](std::int64_t n) { return (n + 15) / 16 * 16; };
    product_memory m;
    if (first.padded) m.padded[0] = whole(kiln::product(first.where.lens));
    if (second.padded) m.padded[1] = whole(kiln::product(second.where.lens));
    const std::int64_t k = product_plan::product(p.sum);
    if (p.pack[0]) m.packed[0] = whole(product_plan::product(p.rows) * k);
    if (p.pack[1]) m.packed[1] = panel_shape::of(p.lines, p.width).pitch() * k;
    return m;
  }
  constexpr std::int64_t elements() const { return padded[0] + padded[1] + packed[0] + packed[1]; }
};

/// Elements from one row of a prepared matrix to the next: they begin on whole vectors.
KILN_FN constexpr std::int64_t row_pitch(const place& matrix) { return (matrix.lens[1] + 15) / 16 * 16; }

/// Whether a product of few rows gains from its right operand as a matrix of aligned rows: each element is read once or
/// a few times, and the matrix stays in L2.
constexpr bool reads_rows(std::span<const node> nodes, std::span<const place> in, const shape& out) {
  constexpr std::int64_t most_bytes = 256 * 1024;
  const lower::contraction_split split = split_of(nodes);
  const std::size_t right = split.operands[1];
  const place& w = in[right];
  for (std::uint32_t k : split.epilogue_inputs)
    if (k == right) return false;
  return w.type == dtype::f32 && w.lens.size() == 2 && w.lens[1] >= 8 && kiln::product(w.lens) * 4 <= most_bytes &&
         kiln::product(to_ints(out.lens)) <= 4 * w.lens[1];
}

/// The elements of a step's own memory for a contraction over its inputs.
constexpr std::int64_t product_elements(const contraction& c, std::span<const node> nodes, std::span<const place> in,
                                        const place& out) {
  const lower::contraction_split split = split_of(nodes);
  small_vector<place> extra;
  for (std::uint32_t k : split.epilogue_inputs) extra.push_back(in[k]);
  const auto lhs = padded_operand::of(c.lhs, in[split.operands[0]], c),
             rhs = padded_operand::of(c.rhs, in[split.operands[1]], c);
  return product_memory::of(plan_product(c, lhs, rhs, out, extra), lhs, rhs).elements();
}

}  // namespace kiln::aot
