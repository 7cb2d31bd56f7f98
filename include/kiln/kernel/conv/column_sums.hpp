#pragma once

#include <algorithm>

#include "kiln/kernel/conv/column_problem.hpp"
#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// Adds the columns of a transposed convolution row by row of results. What is added to a phase of a row (its columns
/// modulo the stride) lies contiguously: a vector of each phase is summed in a register where few taps reach a row,
/// else stretches of all phases in L1, and the row is written once for all taps.
class column_sums {
  using V = native_vec<float>;
  static constexpr int n = native_lanes<float>;
  static constexpr std::int64_t most = 4096;  // sums of all phases that are kept

 public:
  explicit column_sums(const column_problem& p)
      : p_(p), each_(std::max<std::int64_t>(1, quotient(most, p.stride[2]) / n * n)) {
    for (int d = 0; d < 3; ++d) {
      step_[d] = quotient(p.dilation[d], p.stride[d]);
      rest_[d] = p.dilation[d] - step_[d] * p.stride[d];
    }
    first_ = place_of(2, -p.begin[2]);
    if (p.kernel[2] > most_taps) return;
    for_each_tap([&](std::int64_t k, std::int64_t phase, std::int64_t moved) {
      const std::int64_t length = quotient(p.out[2] - phase + p.stride[2] - 1, p.stride[2]),
                         begin = std::clamp<std::int64_t>(moved, 0, length),
                         end = std::clamp<std::int64_t>(p.in[2] + moved, begin, length);
      if (begin < end)
        taps_[listed_++] = {k * p.step - moved, begin, end, static_cast<int>(k), static_cast<int>(phase)};
    });
  }

  void run() const {
    float* y = p_.y;
    place plane = place_of(0, p_.begin[0]);
    for (std::int64_t a = 0; a < p_.out[0]; ++a, next(0, plane)) {
      place line = place_of(1, p_.begin[1]);
      for (std::int64_t b = 0; b < p_.out[1]; ++b, next(1, line), y += p_.out[2]) row({plane, line}, y);
    }
  }

 private:
  // An index along a dim as a multiple of the stride and what is left.
  struct place {
    std::int64_t element, phase;
  };
  place place_of(int d, std::int64_t at) const {
    const std::int64_t s = p_.stride[d], element = at < 0 ? -ceil_div(-at, s) : s == 1 ? at : quotient(at, s);
    return {element, at - element * s};
  }
  void next(int d, place& at) const {
    if (++at.phase == p_.stride[d]) at = {at.element + 1, 0};
  }
  // The places of a row of results along the first two dims, with the pads.
  struct row_place {
    place plane, line;
  };
  // Calls `each(input element, tap)` for what reaches a result along a dim.
  template <class Each> void for_each_source(int d, place from, Each&& each) const {
    for (std::int64_t tap = 0; tap < p_.kernel[d] && from.element >= 0; ++tap) {
      if (from.phase == 0 && from.element < p_.in[d]) each(from.element, tap);
      from.element -= step_[d], from.phase -= rest_[d];
      if (from.phase < 0) --from.element, from.phase += p_.stride[d];
    }
  }
  // Calls `each(input row, taps before those of the row)` for what reaches a row of results.
  template <class Each> void for_each_row(const row_place& at, Each&& each) const {
    for_each_source(0, at.plane, [&](std::int64_t plane, std::int64_t i) {
      for_each_source(1, at.line, [&](std::int64_t line, std::int64_t j) {
        each(plane * p_.in[1] + line, (i * p_.kernel[1] + j) * p_.kernel[2]);
      });
    });
  }
  // Calls `each(taps before it, phase, moved)` for each tap of a row: input element x reaches element x + moved of the
  // phase.
  template <class Each> void for_each_tap(Each&& each) const {
    place at = first_;
    for (std::int64_t k = 0; k < p_.kernel[2]; ++k) {
      each(k, at.phase, at.element);
      at.element += step_[2], at.phase += rest_[2];
      if (at.phase >= p_.stride[2]) ++at.element, at.phase -= p_.stride[2];
    }
  }

  void row(const row_place& at, float* y) const {
    bool met = false;
    if (p_.row != 0 || p_.rows != p_.in[0] * p_.in[1]) {
      bool meets = false, will_meet = false;
      for_each_row(at, [&](std::int64_t row, std::int64_t) {
        met = met || row < p_.row;
        meets = meets || (row >= p_.row && row < p_.row + p_.rows);
        will_meet = will_meet || row >= p_.row + p_.rows;
      });
      if (!meets) {
        if (p_.row == 0 && !met && !will_meet) std::fill_n(y, p_.out[2], 0.0F);
        return;
      }
    }
    const auto of_stride = [&]<int Stride>() {
      return p_.weights ? in_registers<Stride, true>(at, met, y) : in_registers<Stride, false>(at, met, y);
    };
    switch (p_.stride[2]) {
      case 1:
        if (of_stride.template operator()<1>()) return;
        break;
      case 2:
        if (of_stride.template operator()<2>()) return;
        break;
      case 3:
        if (of_stride.template operator()<3>()) return;
        break;
      case 4:
        if (of_stride.template operator()<4>()) return;
        break;
      default: break;
    }
    in_stretches(at, met, y);
  }

  // What a tap of an input row adds to elements [begin, end) of a phase of a row of results: from[t] to element t.
  struct addend {
    std::ptrdiff_t from;  // in the columns
    std::int64_t begin, end;
    float by;

    template <bool Weighted> KILN_FN V added(V x, V sum) const {
      return Weighted ? multiply_add(x, broadcast<V>(by), sum) : V(sum + x);
    }
    // Sums of the n elements from t on with what it adds.
    template <bool Weighted> KILN_FN V add(const float* columns, std::int64_t t, V sum) const {
      if (t >= begin && t + n <= end) return added<Weighted>(load<V>(columns + from + t), sum);
      const auto low = static_cast<int>(std::max<std::int64_t>(begin - t, 0)),
                 high = static_cast<int>(std::clamp<std::int64_t>(end - t, 0, n));
      if (low >= high) return sum;
      if (!Weighted && low == 0 && from + t >= 0) return sum + load_n<V>(columns + from + t, high);
      V x{};
      if (from + t < 0) {  // not before the columns
        float some[n] = {};
        for (int i = low; i < high; ++i) some[i] = columns[from + t + i];
        x = load<V>(some);
      } else {
        x = load_n<V>(columns + from + t, high);
      }
      rebind_t<V, std::int32_t> lane;
      for (int i = 0; i < n; ++i) lane[i] = i;
      const auto outside = (lane < broadcast<decltype(lane)>(low)) | (lane >= broadcast<decltype(lane)>(high));
      return select(outside, sum, added<Weighted>(x, sum));
    }
  };

  // Writes a row of results, each vector of whose phases is summed in a register. False, and nothing done, where more
  // is added to a phase than is listed.
  template <int Stride, bool Weighted> bool in_registers(const row_place& at, bool adds, float* y) const {
    constexpr std::size_t most_addends = 64 / Stride;
    addend list[Stride][most_addends];
    std::size_t count[Stride] = {};
    bool fits = p_.kernel[2] <= most_taps;
    for_each_row(at, [&](std::int64_t row, std::int64_t tap) {
      if (!fits || row < p_.row || row >= p_.row + p_.rows) return;
      const std::int64_t from = tap * p_.step + (row - p_.row) * p_.in[2];
      for (int k = 0; k < listed_; ++k) {
        const row_tap& of = taps_[k];
        fits = fits && count[of.phase] < most_addends;
        if (fits)
          list[of.phase][count[of.phase]++] = {from + of.from, of.begin, of.end,
                                               Weighted ? p_.weights[tap + of.tap] : 1.0F};
      }
    });
    const std::int64_t length = (p_.out[2] + Stride - 1) / Stride;
    for (std::int64_t t = 0; fits && t < length; t += n) {
      V sum[Stride];
#pragma GCC unroll 4
      for (int phase = 0; phase < Stride; ++phase) {
        sum[phase] = V{};
        for (std::size_t k = 0; k < count[phase]; ++k)
          sum[phase] = list[phase][k].template add<Weighted>(p_.columns, t, sum[phase]);
      }
      write<Stride>(sum, t * Stride, p_.out[2], adds, y);
    }
    return fits;
  }

  // Writes a row of results by way of L1: elements [first, first + count) of all phases at a time.
  void in_stretches(const row_place& at, bool adds, float* y) const {
    const std::int64_t stride = p_.stride[2];
    alignas(64) float sums[most + n];
    for (std::int64_t first = 0; first * stride < p_.out[2]; first += each_) {
      const std::int64_t count = std::min(each_, ceil_div(p_.out[2], stride) - first);
      for (std::int64_t phase = 0; phase < std::min(stride, most); ++phase)
        for (std::int64_t t = 0; t < count; t += n) store(sums + phase * each_ + t, V{});
      for_each_row(at, [&](std::int64_t row, std::int64_t tap) {
        if (row < p_.row || row >= p_.row + p_.rows) return;
        for_each_tap([&](std::int64_t k, std::int64_t phase, std::int64_t moved) {
          add_tap(row - p_.row, tap + k, moved, first, count, sums + phase * each_);
        });
      });
      const std::int64_t begin = first * stride, end = std::min(p_.out[2], begin + count * stride);
      if (stride > 4) {
        for (std::int64_t phase = 0; phase < stride; ++phase)
          for (std::int64_t t = 0, to = begin + phase; to < end; ++t, to += stride)
            y[to] = (adds ? y[to] : 0.0F) + sums[phase * each_ + t];
        continue;
      }
      const auto interleaved = [&]<int Stride>() {
        for (std::int64_t t = 0; t < count; t += n) {
          V sum[Stride];
          for (int phase = 0; phase < Stride; ++phase) sum[phase] = load<V>(sums + phase * each_ + t);
          write<Stride>(sum, begin + t * Stride, end, adds, y);
        }
      };
      switch (stride) {
        case 1: interleaved.template operator()<1>(); break;
        case 2: interleaved.template operator()<2>(); break;
        case 3: interleaved.template operator()<3>(); break;
        default: interleaved.template operator()<4>(); break;
      }
    }
  }

  // Adds what a tap of an input row adds to elements [first, first + count) of its phase.
  void add_tap(std::int64_t row, std::int64_t tap, std::int64_t moved, std::int64_t first, std::int64_t count,
               float* line) const {
    const std::int64_t begin = std::clamp<std::int64_t>(moved - first, 0, count),
                       end = std::clamp<std::int64_t>(p_.in[2] + moved - first, begin, count);
    const float* const from = p_.columns + tap * p_.step + row * p_.in[2] + first - moved;
    std::int64_t t = begin;
    if (!p_.weights) {  // sums past the end (there is room for a vector of them) stay as they are
      for (; t < end; t += n)
        store(line + t, load<V>(line + t) + load_n<V>(from + t, static_cast<int>(std::min<std::int64_t>(n, end - t))));
      return;
    }
    const V by = broadcast<V>(p_.weights[tap]);
    for (; t + n <= end; t += n) store(line + t, multiply_add(load<V>(from + t), by, load<V>(line + t)));
    if (t == end) return;
    const int rest = static_cast<int>(end - t);
    store_n(line + t, multiply_add(load_n<V>(from + t, rest), by, load_n<V>(line + t, rest)), rest);
  }

  // Vector number `Part` of the vectors of all phases with their lanes side by side.
  template <int Part, int Stride, int... Lane>
  static KILN_FN V interleaved(const V (&phases)[Stride], std::integer_sequence<int, Lane...>) {
    if constexpr (Stride == 1) {
      return phases[0];
    } else {
      constexpr auto phase = [](int lane) { return (Part * n + lane) % Stride; };
      constexpr auto element = [](int lane) { return (Part * n + lane) / Stride; };
      V out = __builtin_shufflevector(phases[0], phases[1], (phase(Lane) == 1 ? n + element(Lane) : element(Lane))...);
      if constexpr (Stride > 2)
        out = __builtin_shufflevector(out, phases[2], (phase(Lane) == 2 ? n + element(Lane) : Lane)...);
      if constexpr (Stride > 3)
        out = __builtin_shufflevector(out, phases[3], (phase(Lane) == 3 ? n + element(Lane) : Lane)...);
      return out;
    }
  }
  // Writes a vector of each phase to a row of results from element `to` on, or adds them; none from `end` on.
  template <int Stride>
  static KILN_FN void write(const V (&sum)[Stride], std::int64_t to, std::int64_t end, bool adds, float* y) {
    [&]<int... Part>(std::integer_sequence<int, Part...>) {
      const auto part = [&](V x, std::int64_t at) {
        const int rest = static_cast<int>(std::min<std::int64_t>(n, end - at));
        if (rest > 0) store_n(y + at, adds ? x + load_n<V>(y + at, rest) : x, rest);
      };
      (part(interleaved<Part>(sum, std::make_integer_sequence<int, n>{}), to + Part * n), ...);
    }
    (std::make_integer_sequence<int, Stride>{});
  }

  // A tap of a row that reaches elements [begin, end) of a phase: as an `addend`, `from` counted from the row's
  // columns.
  struct row_tap {
    std::ptrdiff_t from;
    std::int64_t begin, end;
    int tap, phase;
  };
  static constexpr int most_taps = 64;

  const column_problem& p_;
  row_tap taps_[most_taps];
  int listed_ = 0;
  std::int64_t each_;               // sums of a phase that are kept
  std::int64_t step_[3], rest_[3];  // dilations as multiples of strides and what is left
  place first_{};                   // what the first tap of element 0 of a row reaches
};

}  // namespace kiln::kernels
