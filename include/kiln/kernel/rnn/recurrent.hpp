#pragma once
#include <algorithm>

#include "kiln/kernel/rnn/cell_functions.hpp"
#include "kiln/kernel/rnn/gate_panels.hpp"
#include "kiln/kernel/rnn/problem.hpp"
#include "kiln/runtime/own_cache.hpp"
#include "kiln/runtime/step_team.hpp"

namespace kiln::kernels {

/// How a cell's gates are multiplied: all in one pass over the states, or, where a gated unit's reset comes before its
/// last product, two gates first and the third from the reset states.
template <op::cell_kind Kind, bool ResetFirst> struct cell_passes {
  static constexpr op::cell_kind kind = Kind;
  static constexpr int gates = Kind == op::cell_kind::plain ? 1 : Kind == op::cell_kind::gru ? 3 : 4;
  static constexpr int passes = ResetFirst ? 2 : 1;
  using first = gate_panels<ResetFirst ? 2 : gates>;
  using second = gate_panels<1>;

  static std::int64_t packed_size(std::int64_t hidden) {
    return first::size(hidden) + (ResetFirst ? second::size(hidden) : 0);
  }
  static void pack(thread_pool& pool, float* to, const std::byte* from, std::ptrdiff_t row, std::ptrdiff_t col,
                   std::int64_t hidden) {
    first::pack(pool, to, from, row, col, hidden, 0);
    if (ResetFirst) second::pack(pool, to + first::size(hidden), from, row, col, hidden, 2);
  }
};

/// Calls `f.template operator()<Cell>()` with the passes of a cell.
template <class F> auto with_passes(const op::recurrent& cell, F&& f) {
  switch (cell.cell) {
    case op::cell_kind::plain: return f.template operator()<cell_passes<op::cell_kind::plain, false>>();
    case op::cell_kind::gru:
      if (cell.linear_before_reset) return f.template operator()<cell_passes<op::cell_kind::gru, false>>();
      return f.template operator()<cell_passes<op::cell_kind::gru, true>>();
    case op::cell_kind::lstm: break;
  }
  return f.template operator()<cell_passes<op::cell_kind::lstm, false>>();
}

/// The steps of a recurrent layer. States are stored in the sequence of results, so that a step reads what the previous
/// one wrote; a row of the batch takes part while its sequence lasts.
template <class Cell, class Functions> class recurrence {
  using V = native_vec<float>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr bool two = Cell::passes == 2;

 public:
  /// `room` holds `room_size`: the order of rows, then of a cell with two passes its update gates and reset states.
  recurrence(const recurrent_problem& p, float* room)
      : p_(p),
        functions_(*p.cell),
        order_(reinterpret_cast<std::int32_t*>(room)),
        updates_(room + round_up(p.batch, 16)),
        resets_(updates_ + p.batch * p.hidden) {}
  static std::int64_t room_size(std::int64_t batch, std::int64_t hidden) {
    return round_up(batch, 16) + (two ? 2 * batch * hidden : 0);
  }

  struct split {
    unsigned parts = 1;
    bool by_rows = false;
    double step = 0;  ///< estimated nanoseconds
  };
  /// The split with the least estimated time. Numbers are of a processor of 2019; only their ratios matter.
  static split choose(std::int64_t batch, std::int64_t hidden, unsigned workers, std::int64_t steps) {
    constexpr double l1_bytes = 24e3, handover = 400, fork = 3000;  // bytes, ns
    const double l2_bytes = 0.86 * static_cast<double>(own_cache_bytes());
    const double bytes = static_cast<double>(Cell::packed_size(hidden)) * 4;
    const auto step = [&](std::int64_t rows, double share) {
      const double part = bytes * share, rate = part < l1_bytes ? 200 : part < l2_bytes ? 90 : 30;
      const double cells = static_cast<double>(rows * hidden) * share;
      return std::max(part / rate, part * static_cast<double>(rows) / 200) + cells * Cell::gates;
    };
    split best{1, false, step(batch, 1)};
    if (workers == 1) return best;
    const std::int64_t panels = Cell::first::count(hidden);
    const auto by_rows = static_cast<unsigned>(std::min<std::int64_t>(workers, batch));
    const auto by_columns =
        static_cast<unsigned>(std::min({std::int64_t{workers}, panels, std::int64_t{step_team::most_parts}}));
    const double start = fork / static_cast<double>(steps);
    const auto weigh = [&](split s) {
      if (s.parts > 1 && s.step < best.step) best = s;
    };
    weigh({by_rows, true, step(ceil_div(batch, by_rows), 1) + start});
    weigh({by_columns, false,
           step(batch, static_cast<double>(ceil_div(panels, by_columns)) / static_cast<double>(panels)) +
               handover * Cell::passes + start});
    return best;
  }

  void run(thread_pool& pool) {
    pool.parallel_for(1, [&](std::int64_t, unsigned) { begin(); });
    const std::int64_t steps = p_.batch == 0 || p_.hidden == 0 ? 0 : p_.length(order_[0]);
    if (steps == 0) return;
    const split s = choose(p_.batch, p_.hidden, pool.size(), steps);
    if (s.parts == 1 || s.by_rows) {
      // rows are dealt to the parts in turn, so that each has long and short sequences
      pool.parallel_for(s.parts, [&](std::int64_t part, unsigned) { advance_rows(part, s.parts); });
      return;
    }
    step_team::run(pool, s.parts, steps * Cell::passes, [&](std::int64_t at, unsigned part) {
      const std::int64_t step = at / Cell::passes;
      const rows all{order_, 1, active(step)};
      if (at % Cell::passes == 0)
        pass<typename Cell::first, true>(step, all, part, s.parts);
      else
        pass<typename Cell::second, false>(step, all, part, s.parts);
    });
  }

 private:
  struct rows {
    const std::int32_t* at;
    std::int64_t step, count;
    std::int64_t operator[](std::int64_t i) const { return at[i * step]; }
  };
  /// The addresses of one row in one step.
  struct place {
    const float *x, *before;
    float *y, *cell, *last, *update, *reset;
  };

  // Sorts the rows by descending length and writes what no step writes.
  void begin() {
    const std::int64_t n = p_.hidden;
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      order_[b] = static_cast<std::int32_t>(b);
      const std::int64_t own = p_.length(b);
      if (own == 0) std::copy_n(p_.first + b * p_.first_row, n, p_.last + b * p_.last_row);
      if (p_.last_cell) std::copy_n(p_.first_cell + b * p_.first_cell_row, n, p_.last_cell + b * p_.last_cell_row);
      for (std::int64_t t = own; t < p_.steps; ++t) std::fill_n(p_.y + t * p_.y_step + b * p_.y_row, n, 0.0F);
    }
    std::sort(order_, order_ + p_.batch, [this](std::int32_t a, std::int32_t b) {
      const std::int64_t m = p_.length(a), k = p_.length(b);
      return m != k ? m > k : a < b;
    });
  }

  // Rows that take part in a step.
  std::int64_t active(std::int64_t step) const {
    std::int64_t low = 0, high = p_.batch;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      p_.length(order_[middle]) > step ? low = middle + 1 : high = middle;
    }
    return low;
  }

  void advance_rows(std::int64_t part, std::int64_t parts) {
    const std::int64_t steps = p_.length(order_[part]);
    for (std::int64_t step = 0; step < steps; ++step) {
      const rows own{order_ + part, parts, ceil_div(active(step) - part, parts)};
      pass<typename Cell::first, true>(step, own, 0, 1);
      if constexpr (two) pass<typename Cell::second, false>(step, own, 0, 1);
    }
  }

  place place_of(std::int64_t step, std::int64_t row) const {
    const std::int64_t own = p_.length(row), t = p_.cell->reverse ? own - 1 - step : step;
    float* const y = p_.y + t * p_.y_step + row * p_.y_row;
    return {p_.x + t * p_.x_step + row * p_.x_row,
            step == 0          ? p_.first + row * p_.first_row
            : p_.cell->reverse ? y + p_.y_step
                               : y - p_.y_step,
            y,
            p_.last_cell + row * p_.last_cell_row,
            step + 1 == own ? p_.last + row * p_.last_row : nullptr,
            updates_ + row * p_.hidden,
            resets_ + row * p_.hidden};
  }

  // One part's share of the panels of a pass. Steps alternate the direction: the last panels of a step, which are still
  // in L2, are the first of the next.
  template <class Panels, bool First>
  void pass(std::int64_t step, const rows& those, std::int64_t part, std::int64_t parts) const {
    const std::int64_t panels = Panels::count(p_.hidden), begin = panels * part / parts,
                       end = panels * (part + 1) / parts, size = p_.hidden * Panels::width;
    // A part's share of the weights stays in its core's cache, beside states and inputs, up to three quarters of that.
    // Of a larger one the panels that the step before took last are there, which are the first ones of this step.
    const std::int64_t near = own_cache_bytes() / 4 * 3 / static_cast<std::int64_t>(sizeof(float));
    // which decides the order of summing: it is the same for all panels and steps
    const bool far = (end - begin) * size > near;
    const bool back = step % 2 == 1;
    const float* const packed = p_.recurrence + (First ? 0 : Cell::first::size(p_.hidden));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t panel = back ? end - 1 - (i - begin) : i;
      const float* const b = packed + panel * size;
      const bool left_near = step != 0 && (i + 1 - begin) * size <= near;
      coming_block<float> next;
      if (far && !left_near && i + 1 < end)
        next = {back ? b - size : b + size, Panels::width, p_.hidden, Panels::width};
      block_shares<float> shares(next, ceil_div(those.count, Panels::rows), p_.hidden);
      even_blocks(those.count, Panels::rows).each([&](std::int64_t row0, int count) {
        place places[Panels::rows];
        const float* states[Panels::rows];
        alignas(64) float sums[Panels::rows * Panels::width];
        for (int r = 0; r < count; ++r) {
          places[r] = place_of(step, those[row0 + r]);
          states[r] = First ? places[r].before : places[r].reset;
          fetch<Panels, First>(places[r], panel * Panels::units);
        }
        const fetch_ahead ahead =
            shares.empty() ? fetch_ahead{reinterpret_cast<const char*>(places[0].x), 0} : shares.next();
        Panels::multiply(states, count, p_.hidden, b, sums, those.count <= streamed_rows, far, ahead);
        for (int r = 0; r < count; ++r)
          for (int block = 0; block < Panels::blocks; ++block) {
            const std::int64_t j = panel * Panels::units + block * lanes;
            if (j >= p_.hidden) break;
            const float* const own = sums + r * Panels::width + block * lanes;
            apply_cell<Panels, First>(places[r], own, j,
                                      static_cast<int>(std::min<std::int64_t>(lanes, p_.hidden - j)));
          }
      });
    }
  }

  // Prefetches the inputs of a panel's units, which are read after the product.
  template <class Panels, bool First> KILN_FN void fetch(const place& at, std::int64_t j) const {
    constexpr int begin = First ? 0 : 2, gates = First ? Panels::width / Panels::units : 1;
    for (int gate = begin; gate < begin + gates; ++gate)
      for (int block = 0; block < Panels::blocks; ++block)
        __builtin_prefetch(at.x + gate * p_.hidden + j + block * lanes);
  }

  static KILN_FN V read(const float* from, int n) { return n == lanes ? load<V>(from) : load_n<V>(from, n); }
  static KILN_FN void write(float* to, V v, int n) { n == lanes ? store(to, v) : store_n(to, v, n); }

  // Applies the cell to the sums of `n` units from `j` on; `sums` are the first gate's.
  template <class Panels, bool First>
  KILN_FN void apply_cell(const place& at, const float* sums, std::int64_t j, int n) const {
    const auto sum = [&](int gate) { return load<V>(sums + gate * Panels::units); };
    const auto given = [&](int gate) { return read(at.x + gate * p_.hidden + j, n); };
    const auto offset = [&](int gate) { return read(p_.bias + gate * p_.hidden + j, n); };
    const V one = broadcast<V>(1.0F);
    V made;
    if constexpr (Cell::kind == op::cell_kind::plain) {
      made = functions_.template call<0>(given(0) + offset(0) + sum(0));
    } else if constexpr (Cell::kind == op::cell_kind::lstm) {
      const V old = read(at.cell + j, n);
      const auto peep = [&](int gate, V state) {
        return given(gate) + offset(gate) + sum(gate) + read(p_.peepholes + gate * p_.hidden + j, n) * state;
      };
      const V in = functions_.template call<0>(peep(0, old));
      const V forget = p_.cell->coupled ? one - in : functions_.template call<0>(peep(2, old));
      const V cell = forget * old + in * functions_.template call<1>(given(3) + offset(3) + sum(3));
      made = functions_.template call<0>(peep(1, cell)) * functions_.template call<2>(cell);
      write(at.cell + j, cell, n);
    } else if constexpr (two && First) {
      write(at.update + j, functions_.template call<0>(given(0) + offset(0) + sum(0)), n);
      const V reset = functions_.template call<0>(given(1) + offset(1) + sum(1));
      return write(at.reset + j, reset * read(at.before + j, n), n);
    } else {
      V keep, fresh;
      if constexpr (two) {
        keep = read(at.update + j, n);
        fresh = offset(2) + sum(0);
      } else {
        keep = functions_.template call<0>(given(0) + offset(0) + sum(0));
        fresh = (offset(2) + sum(2)) * functions_.template call<0>(given(1) + offset(1) + sum(1));
      }
      fresh = functions_.template call<1>(fresh + given(2));
      made = (one - keep) * fresh + keep * read(at.before + j, n);
    }
    write(at.y + j, made, n);
    if (at.last) write(at.last + j, made, n);
  }

  const recurrent_problem& p_;
  Functions functions_;
  std::int32_t* order_;
  float *updates_, *resets_;
};

/// Floats that a packed recurrence takes.
inline std::int64_t packed_recurrence_size(const op::recurrent& cell, std::int64_t hidden) {
  return with_passes(cell, [&]<class Cell>() { return Cell::packed_size(hidden); });
}

/// Packs recurrence[hidden, gates * hidden] of any strides and at any address.
inline void pack_recurrence(thread_pool& pool, const op::recurrent& cell, std::int64_t hidden, float* to,
                            const std::byte* from, std::ptrdiff_t row, std::ptrdiff_t col) {
  with_passes(cell, [&]<class Cell>() { Cell::pack(pool, to, from, row, col, hidden); });
}

/// Floats of scratch that `run_recurrent` uses.
inline std::int64_t recurrent_scratch_size(const op::recurrent& cell, std::int64_t batch, std::int64_t hidden) {
  return with_passes(cell, [&]<class Cell>() { return recurrence<Cell, named_functions>::room_size(batch, hidden); });
}

/// Seconds that so many threads are estimated to take for one direction of a recurrent layer.
inline double recurrent_seconds(const op::recurrent& cell, std::int64_t steps, std::int64_t batch, std::int64_t hidden,
                                unsigned threads) {
  if (steps == 0 || batch == 0 || hidden == 0) return 0;
  return with_passes(cell, [&]<class Cell>() {
    return 1e-9 * static_cast<double>(steps) *
           recurrence<Cell, named_functions>::choose(batch, hidden, threads, steps).step;
  });
}

/// Runs one direction of a recurrent layer. Allocates nothing.
inline void run_recurrent(thread_pool& pool, const recurrent_problem& p, float* scratch) {
  with_passes(*p.cell, [&]<class Cell>() {
    using usual = usual_functions<Cell::kind>;
    if (usual::serve(*p.cell))
      recurrence<Cell, usual>(p, scratch).run(pool);
    else
      recurrence<Cell, named_functions>(p, scratch).run(pool);
  });
}

}  // namespace kiln::kernels
