#pragma once
#include "kiln/fixed/pack.hpp"

namespace kiln::fixed {

/// A contraction with its epilogue: loops over matrix products whose tiles stay in registers, finished by the body's
/// pointwise ops before they are stored.
template <class Step>
struct product_step {
  using net = typename Step::net;
  static constexpr product_inputs sources = product_operands(Step::body);
  static constexpr auto extra = epilogue_inputs(Step::body);
  static constexpr std::size_t extras = extra.size(), operands = extras + 3;
  static constexpr std::size_t product_node = [] {
    std::size_t k = 0;
    while (Step::body[k].op < 0 || Step::body[k].kind != op_kind::contraction) ++k;
    return k;
  }();
  struct facts {
    bool swapped = false, pack[2] = {}, along_sum = false;
    axes<operands> batch, rows, columns, sum;
    inline_vector<std::int64_t, 64> offset;
    inline_vector<guard, max_rank> guards[2];
  };
  static constexpr facts plan = [] {
    shapes in;
    for (std::size_t k : {sources.lhs, sources.rhs}) in.push_back({Step::in[k].type, to_dims(Step::in[k].lens)});
    const auto c = node_op<Step, product_node>::op.maps(in).value();
    small_vector<place> read;
    for (std::uint32_t k : extra) read.push_back(Step::in[k]);
    const product_plan p = plan_product(c, Step::in[sources.lhs], Step::in[sources.rhs], Step::out[0],
                                        std::span<const place>(read.data(), read.size()));
    facts f;
    f.swapped = p.swapped;
    f.along_sum = p.along_sum;
    for (std::size_t k = 0; k < 2; ++k) {
      f.pack[k] = p.pack[k];
      f.guards[k] = p.guards[k];
    }
    f.batch = axes<operands>::of(p.batch), f.rows = axes<operands>::of(p.rows);
    f.columns = axes<operands>::of(p.columns), f.sum = axes<operands>::of(p.sum);
    for (std::int64_t o : p.offset) f.offset.push_back(o);
    return f;
  }();
  static constexpr axes<operands> batch = plan.batch;
  static constexpr std::int64_t m = plan.rows.elements(), n = plan.columns.elements(), k_count = plan.sum.elements();
  static constexpr dtype type = Step::body[product_node].type;
  using element = stored_of<type>;
  static_assert(type == dtype::f32 || type == dtype::f64 || is_integer(type),
                "kiln: a static program multiplies f32, f64 or integers");
  using lanes = lanes_of<Step, plan.columns.size() != 0>;
  using value = typename lanes::template of<compute_of<type>>;
  static constexpr int width = lanes::count;

  static constexpr std::int64_t a_elements = plan.pack[0] ? (m * k_count + 15) / 16 * 16 : 0;
  static constexpr std::int64_t a_row = plan.pack[0] ? k_count : plan.rows.last(0),
                                a_step = plan.pack[0] ? 1 : plan.sum.last(0),
                                b_row = !plan.pack[1]         ? plan.sum.last(1)
                                        : plan.columns.size() ? padded_columns(n)
                                                              : 1;

  // packed forms: a is [rows][sum], b is [sum][columns]
  template <std::size_t Operand>
  struct packed_shape {
    static constexpr std::size_t operand = Operand;
    static constexpr const auto& outside = Operand == 0 ? plan.rows : plan.sum;
    static constexpr const auto& row = Operand == 0 ? plan.sum : plan.columns;
    static constexpr std::size_t row_dims = row.size();
    static constexpr axes<operands> nest = [] {
      axes<operands> a = outside;
      for (std::size_t d = 0; d < row.size(); ++d) {
        a.extent.push_back(row.extent[d]);
        a.iteration.push_back(row.iteration[d]);
        for (std::size_t k = 0; k < operands; ++k) a.step[k].push_back(row.step[k][d]);
      }
      return a;
    }();
    static constexpr const auto& guards = plan.guards[Operand];
    static constexpr std::int64_t pitch = Operand == 0 ? k_count : b_row;
  };
  // whether an operand stays the same over the loops
  static constexpr bool fixed_operand(std::size_t k) {
    for (std::size_t d = 0; d < batch.size(); ++d) {
      if (batch.step[k][d] != 0) return false;
      for (const guard& g : plan.guards[k])
        if (g.index.coefficient[static_cast<std::size_t>(batch.iteration[d])] != 0) return false;
    }
    return true;
  }

  template <std::size_t K>
  static constexpr std::size_t input_of = [] {
    if constexpr (K < 2)
      return (K == 0) != plan.swapped ? sources.lhs : sources.rhs;
    else
      return static_cast<std::size_t>(extra[K - 3]);
  }();
  template <std::size_t K>
  static KILN_FN auto* operand_at(const memory_map& mm, std::int64_t loop) {
    const std::int64_t o = plan.offset[K] + offset_at<batch, K, batch.size()>(loop);
    if constexpr (K == 2)
      return buffer_of<Step, Step::inputs>(mm) + o;
    else
      return buffer_of<Step, input_of<K>>(mm) + o;
  }

  template <std::size_t K>
  static const element* matrix(const memory_map& mm, std::int64_t loop) {
    const element* from = operand_at<K>(mm, loop);
    if constexpr (!plan.pack[K]) {
      return from;
    } else {
      auto* to = reinterpret_cast<element*>(mm.arena + Step::what.scratch) + (K == 0 ? 0 : a_elements);
      if (fixed_operand(K) && loop != 0) return to;
      using pack = packer<packed_shape<K>>;
      typename pack::position start{};
      each<pack::guards>([&](auto g) {
        std::int64_t index = plan.guards[K][g].index.constant, rest = loop;
        for (std::size_t d = batch.size(); d-- > 0; rest /= batch.extent[d])
          index += rest % batch.extent[d] *
                   plan.guards[K][g].index.coefficient[static_cast<std::size_t>(batch.iteration[d])];
        start.index[g] = index;
      });
      pack::run(from, to, start);
      return to;
    }
  }

  // finishes N results of one vector at (row, column) and stores them
  template <int N>
  static KILN_FN void finish(const memory_map& mm, std::int64_t loop, std::int64_t row, std::int64_t column,
                             value acc) {
    typename lanes::reg r[Step::nodes];
    r[product_node].template get<compute_of<type>>() = acc;
    each<extras>([&](auto k) {
      constexpr std::size_t input = extra[k];
      constexpr std::int64_t step = plan.columns.last(k + 3);
      r[input].template get<compute_of<Step::in[input].type>>() =
          lanes::template load<stored_of<Step::in[input].type>, step, N>(operand_at<k + 3>(mm, loop) +
                                                                         row * plan.rows.last(k + 3) + column * step);
    });
    each<Step::nodes>([&](auto k) {
      if constexpr (Step::body[k].op != node::parameter && k != product_node) compute_node<Step, k, lanes>(r);
    });
    constexpr std::size_t from = Step::result(0);
    lanes::template store<stored_of<Step::out[0].type>, 1, N>(
        operand_at<2>(mm, loop) + row * plan.rows.last(2) + column,
        r[from].template get<compute_of<Step::body[from].type>>());
  }

  static KILN_FN value multiply(value a, value b, value c) {
    if constexpr (floating<value>)
      return elementary::mad(a, b, c);
    else
      return static_cast<value>(c + a * b);
  }

  // Rows x Vectors vectors of results, of which the last has Last elements
  template <int Rows, int Vectors, int Last>
  static KILN_FN void tile(const memory_map& mm, std::int64_t loop, const element* a, const element* b,
                           std::int64_t row, std::int64_t column) {
    value acc[Rows][Vectors]{};
    const element* ap = a + row * a_row;
    const element* bp = b + column;
    for (std::int64_t k = 0; k < k_count; ++k, ap += a_step, bp += b_row) {
      value bv[Vectors];
      each<static_cast<std::size_t>(Vectors)>([&](auto v) {
        // a packed row is padded to whole vectors
        constexpr int count = plan.pack[1] || v + 1 < Vectors ? width : Last;
        bv[v] = lanes::template load<element, 1, count>(bp + static_cast<std::int64_t>(v) * width);
      });
      each<static_cast<std::size_t>(Rows)>([&](auto i) {
        const value av = lanes::template load<element, 0, width>(ap + static_cast<std::int64_t>(i) * a_row);
        each<static_cast<std::size_t>(Vectors)>([&](auto v) { acc[i][v] = multiply(av, bv[v], acc[i][v]); });
      });
    }
    each<static_cast<std::size_t>(Rows)>([&](auto i) {
      each<static_cast<std::size_t>(Vectors)>([&](auto v) {
        finish<v + 1 < Vectors ? width : Last>(mm, loop, row + static_cast<std::int64_t>(i),
                                               column + static_cast<std::int64_t>(v) * width, acc[i][v]);
      });
    });
  }

  // ---- tiles of at most `accumulators` vectors
  static constexpr int accumulators = native_bytes == 64 ? 24 : 12;
  static constexpr std::int64_t vectors = (n + width - 1) / width;
  static constexpr int last_lanes = static_cast<int>(n - (vectors - 1) * width);
  static constexpr int tile_vectors = vectors <= 3 ? static_cast<int>(vectors) : 2;
  static constexpr int tile_rows = [] {
    const int most = accumulators / tile_vectors;
    if (m <= most) return static_cast<int>(m);
    for (int r = most; 2 * r > most; --r)
      if (m % r == 0) return r;
    return most;
  }();

  template <int Rows>
  static KILN_FN void row_of_tiles(const memory_map& mm, std::int64_t loop, const element* a, const element* b,
                                   std::int64_t row) {
    // the last tile is one like the others where the columns fill it
    constexpr bool even = vectors % tile_vectors == 0 && last_lanes == width;
    constexpr std::int64_t full = even ? vectors / tile_vectors : (vectors - 1) / tile_vectors;
    for (std::int64_t t = 0; t < full; ++t)
      tile<Rows, tile_vectors, width>(mm, loop, a, b, row, t * tile_vectors * width);
    if constexpr (!even)
      tile<Rows, static_cast<int>(vectors - full * tile_vectors), last_lanes>(mm, loop, a, b, row,
                                                                              full * tile_vectors * width);
  }

  // one row against a b whose sum is contiguous: a vector of sums for each result
  template <int N>
  static KILN_FN void dots(const memory_map& mm, std::int64_t loop, const element* a, const element* b,
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
      finish<N>(mm, loop, 0, column, sums[0]);
    } else {
      value out{};
      each<static_cast<std::size_t>(N)>([&](auto i) { out[static_cast<int>(i)] = reduce_add(sums[i]); });
      finish<N>(mm, loop, 0, column, out);
    }
  }

  static void run(const memory_map& mm) {
    for (std::int64_t loop = 0; loop < batch.elements(); ++loop) {
      const element* a = matrix<0>(mm, loop);
      const element* b = matrix<1>(mm, loop);
      if constexpr (plan.along_sum) {
        constexpr std::int64_t whole = n / width * width;
        for (std::int64_t column = 0; column < whole; column += width) dots<width>(mm, loop, a, b, column);
        if constexpr (whole != n) dots<static_cast<int>(n - whole)>(mm, loop, a, b, whole);
      } else {
        constexpr std::int64_t whole = m / tile_rows * tile_rows;
        for (std::int64_t row = 0; row < whole; row += tile_rows) row_of_tiles<tile_rows>(mm, loop, a, b, row);
        if constexpr (whole != m) row_of_tiles<static_cast<int>(m - whole)>(mm, loop, a, b, whole);
      }
    }
  }
};

}  // namespace kiln::fixed
