#pragma once
#include "kiln/static_program/kernel/product.hpp"
#include "kiln/static_program/step/axes.hpp"
#include "kiln/static_program/step/epilogue.hpp"

namespace kiln::aot {

/// A contraction with its epilogue: loops over GEMMs whose tiles stay in registers while the epilogue is applied.
template <class Step> struct product_step {
  using net = typename Step::net;
  using body = contraction_body<Step>;
  static constexpr lower::contraction_split split = body::split;
  static constexpr auto extra = body::extra;
  static constexpr std::size_t operands = extra.size() + 3;
  struct facts {
    bool swapped = false, along_sum = false;
    bool pack[2] = {}, padded[2] = {};
    axes<operands> batch, rows, columns, sum;
    inline_vector<std::int64_t, 64> offset;
    place inside[2];  ///< of a padded operand: where its elements lie in the memory of its own
    std::int64_t elements[2] = {};
    panel_shape panel;
    std::int64_t lines = 1, width = 1, line_step = 0;
    product_memory memory;
  };
  static constexpr facts plan = [] {
    shapes in;
    for (std::size_t k : {split.operands[0], split.operands[1]})
      in.push_back({Step::in[k].type, to_dims(Step::in[k].lens)});
    const auto c = body::product_op::op.maps(in).value();
    small_vector<place> read;
    for (std::uint32_t k : extra) read.push_back(Step::in[k]);
    const auto lhs = padded_operand::of(c.lhs, Step::in[split.operands[0]], c),
               rhs = padded_operand::of(c.rhs, Step::in[split.operands[1]], c);
    const product_plan p = plan_product(c, lhs, rhs, Step::out[0], std::span<const place>(read.data(), read.size()));
    facts f;
    f.swapped = p.swapped;
    f.along_sum = p.along_sum;
    const padded_operand& first = p.swapped ? rhs : lhs;
    const padded_operand& second = p.swapped ? lhs : rhs;
    for (std::size_t k = 0; k < 2; ++k) {
      const padded_operand& o = k == 0 ? first : second;
      f.pack[k] = p.pack[k];
      f.padded[k] = o.padded;
      f.inside[k] = o.inside(Step::in[(k == 0) != p.swapped ? split.operands[0] : split.operands[1]].lens);
      f.elements[k] = product(o.where.lens);
    }
    f.batch = axes<operands>::of(p.batch), f.rows = axes<operands>::of(p.rows);
    f.columns = axes<operands>::of(p.columns), f.sum = axes<operands>::of(p.sum);
    for (std::int64_t o : p.offset) f.offset.push_back(o);
    f.panel = panel_shape::of(p.lines, p.width);
    f.lines = p.lines, f.width = p.width, f.line_step = p.line_step;
    f.memory = product_memory::of(p, first, second);
    return f;
  }();
  static constexpr axes<operands> batch = plan.batch, rows = plan.rows, sum = plan.sum;
  static constexpr panel_shape panel = plan.panel;
  static constexpr std::int64_t m = plan.rows.elements(), n = plan.columns.elements(), k_count = plan.sum.elements();
  static constexpr dtype type = Step::body[body::product_node].type;
  using element = stored_of<type>;
  using lanes = lanes_of<Step, plan.columns.size() != 0>;
  using value = typename lanes::template of<compute_of<type>>;
  static constexpr int width = lanes::count;

  static constexpr std::int64_t a_row = plan.pack[0] ? k_count : plan.rows.last(0),
                                a_step = plan.pack[0] ? 1 : plan.sum.last(0),
                                b_row = plan.pack[1] ? panel.pitch() : plan.sum.last(1),
                                b_column = plan.pack[1] ? 1 : plan.columns.last(1);

  static constexpr bool same_for_all_loops(std::size_t k) {
    for (std::size_t d = 0; d < batch.size(); ++d)
      if (batch.step[k][d] != 0) return false;
    return true;
  }

  template <std::size_t K>
  static constexpr std::size_t input_of = [] {
    if constexpr (K < 2)
      return (K == 0) != plan.swapped ? split.operands[0] : split.operands[1];
    else
      return static_cast<std::size_t>(extra[K - 3]);
  }();
  template <std::size_t K> static KILN_FN auto* operand_at(const step_memory& mm, std::int64_t loop) {
    const std::int64_t o = plan.offset[K] + offset_at<batch, K, batch.size()>(loop);
    if constexpr (K == 2)
      return buffer_of<Step, Step::inputs>(mm) + o;
    else
      return buffer_of<Step, input_of<K>>(mm) + o;
  }

  // ---- operands within zeros, and packed ones, in the step's own memory
  static KILN_FN element* own(const step_memory& mm, std::int64_t at) {
    return reinterpret_cast<element*>(mm.scratch) + at;
  }
  template <std::size_t K> struct padding {
    static constexpr place from = Step::in[input_of<K>], to = plan.inside[K];
    static constexpr walk<2> over = make_walk<2>(
        from.lens, [](std::size_t k, std::size_t d) { return k == 0 ? from.strides[d] : to.strides[d]; },
        [](std::size_t) { return true; });
    static constexpr std::size_t dims = over.extent.empty() ? 0 : over.extent.size() - 1;

    static void fill(const step_memory& mm) {
      element* const padded = own(mm, K == 0 ? 0 : plan.memory.padded[0]);
      const element* const in = buffer_of<Step, input_of<K>>(mm) + from.offset;
      const element zero{};
      copy_run<plan.elements[K], 0, 1>(padded, &zero);
      for (std::int64_t row = 0; row < over.outer(); ++row)
        copy_run<over.inner(), over.inner_step(0), over.inner_step(1)>(
            padded + to.offset + offset_at<over, 1, dims>(row), in + offset_at<over, 0, dims>(row));
    }
  };

  template <std::size_t K> static KILN_FN const element* source(const step_memory& mm, std::int64_t loop) {
    if constexpr (plan.padded[K])
      return own(mm, K == 0 ? 0 : plan.memory.padded[0]) + plan.offset[K] + offset_at<batch, K, batch.size()>(loop);
    else
      return operand_at<K>(mm, loop);
  }
  // calls f(element offset in operand K) for every index of a group, the last axis fastest
  template <std::size_t K, const auto& Group, std::size_t D = 0, class F>
  static KILN_FN void for_group(std::int64_t at, F&& f) {
    if constexpr (D == Group.size())
      f(at);
    else
      for (std::int64_t i = 0; i < Group.extent[D]; ++i) for_group<K, Group, D + 1>(at + i * Group.step[K][D], f);
  }
  static const element* rows_of(const step_memory& mm, std::int64_t loop) {
    const element* const from = source<0>(mm, loop);
    if constexpr (plan.pack[0]) {
      element* const to = own(mm, plan.memory.padded[0] + plan.memory.padded[1]);
      if (same_for_all_loops(0) && loop != 0) return to;
      element* next = to;
      for_group<0, rows>(0,
                         [&](std::int64_t row) { for_group<0, sum>(row, [&](std::int64_t o) { *next++ = from[o]; }); });
      return to;
    } else {
      return from;
    }
  }
  // the panel that begins at line y, column x
  static const element* panel_of(const step_memory& mm, const element* from, std::int64_t y, std::int64_t x) {
    const std::int64_t first = y * plan.line_step + x * plan.columns.last(1);
    if constexpr (plan.pack[1]) {
      element* const to = own(mm, plan.memory.padded[0] + plan.memory.padded[1] + plan.memory.packed[0]);
      element* next = to;
      for_group<1, sum>(first, [&](std::int64_t o) {
        for (std::int64_t line = 0; line < panel.rows; ++line)
          copy_run<panel.width, plan.columns.last(1), 1>(next + line * panel.width, from + o + line * plan.line_step);
        next += panel.pitch();
      });
      return to;
    } else {
      return from + first;
    }
  }

  // applies the epilogue to N sums of one vector at (row, column) and stores them
  template <int N>
  static KILN_FN void apply_epilogue(const step_memory& mm, std::int64_t loop, std::int64_t row, std::int64_t column,
                                     value acc) {
    const auto made = body::template apply_epilogue<lanes>(acc, [&](auto k) {
      constexpr std::int64_t step = plan.columns.last(k + 3);
      return lanes::template load<stored_of<Step::in[extra[k]].type>, step, N>(
          operand_at<k + 3>(mm, loop) + row * plan.rows.last(k + 3) + column * step);
    });
    lanes::template store<stored_of<Step::out[0].type>, 1, N>(
        operand_at<2>(mm, loop) + row * plan.rows.last(2) + column, made);
  }

  static KILN_FN value multiply(value a, value b, value c) {
    if constexpr (std::is_same_v<lanes, scalar_lanes>)
      return a * b + c;
    else
      return elementary::mad(a, b, c);
  }

  // all rows of the panel whose first column is `column`
  static KILN_FN void multiply_panel(const step_memory& mm, std::int64_t loop, const element* a, const element* b,
                                     std::int64_t column) {
    if constexpr (std::is_same_v<lanes, scalar_lanes>) {
      for (std::int64_t row = 0; row < m; ++row)
        for (std::int64_t i = 0; i < panel.columns(); ++i) {
          value total{};
          for (std::int64_t k = 0; k < k_count; ++k)
            total += static_cast<value>(a[row * a_row + k * a_step]) * static_cast<value>(b[k * b_row + i * b_column]);
          apply_epilogue<1>(mm, loop, row, column + i, total);
        }
    } else {
      constexpr kernels::product_extents extents{
          m, panel.columns(), k_count, a_row, a_step, b_row, plan.pack[1] || panel.columns() % 16 == 0};
      kernels::static_product<extents, width, native_bytes == 64 ? 24 : 12>(
          a, b, [&](std::int64_t row, std::int64_t at, auto count, value total) {
            apply_epilogue<decltype(count)::value>(mm, loop, row, column + at, total);
          });
    }
  }

  // one row against a b whose sum is contiguous: a vector of sums for each result
  template <int N>
  static KILN_FN void dots(const step_memory& mm, std::int64_t loop, const element* a, const element* b,
                           std::int64_t column) {
    constexpr std::int64_t whole = k_count / width * width;
    constexpr std::int64_t b_column = plan.columns.last(1);
    const element* bp = b + column * b_column;
    value sums[N]{};
    for (std::int64_t k = 0; k < whole; k += width) {
      const value av = lanes::template load<element, 1, width>(a + k);
      each<static_cast<std::size_t>(N)>([&](auto i) {
        sums[i] = multiply(
            av, lanes::template load<element, 1, width>(bp + static_cast<std::int64_t>(i) * b_column + k), sums[i]);
      });
    }
    if constexpr (whole != k_count) {
      constexpr int rest = static_cast<int>(k_count - whole);
      const value av = lanes::template load<element, 1, rest>(a + whole);
      each<static_cast<std::size_t>(N)>([&](auto i) {
        sums[i] = multiply(
            av, lanes::template load<element, 1, rest>(bp + static_cast<std::int64_t>(i) * b_column + whole), sums[i]);
      });
    }
    if constexpr (width == 1) {
      apply_epilogue<N>(mm, loop, 0, column, sums[0]);
    } else {
      value out{};
      each<static_cast<std::size_t>(N)>([&](auto i) { out[static_cast<int>(i)] = reduce_add(sums[i]); });
      apply_epilogue<N>(mm, loop, 0, column, out);
    }
  }

  static KILN_FN void run(const step_memory& mm) {
    if constexpr (plan.padded[0]) padding<0>::fill(mm);
    if constexpr (plan.padded[1]) padding<1>::fill(mm);
    for (std::int64_t loop = 0; loop < batch.elements(); ++loop) {
      const element* const a = rows_of(mm, loop);
      const element* const b = source<1>(mm, loop);
      if constexpr (plan.along_sum) {
        constexpr std::int64_t whole = n / width * width;
        for (std::int64_t column = 0; column < whole; column += width) dots<width>(mm, loop, a, b, column);
        if constexpr (whole != n) dots<static_cast<int>(n - whole)>(mm, loop, a, b, whole);
      } else {
        for (std::int64_t y = 0; y < panel.count_rows; ++y)
          for (std::int64_t x = 0; x < panel.count_width; ++x) {
            const std::int64_t y0 = last(y * panel.rows, plan.lines - panel.rows),
                               x0 = last(x * panel.width, plan.width - panel.width);
            multiply_panel(mm, loop, a, panel_of(mm, b, y0, x0), y0 * plan.width + x0);
          }
      }
    }
  }
  // the last panel overlaps the one before it
  static KILN_FN std::int64_t last(std::int64_t at, std::int64_t most) { return at < most ? at : most; }
};

}  // namespace kiln::aot
