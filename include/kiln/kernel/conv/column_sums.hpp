#pragma once

#include <algorithm>

#include "kiln/kernel/conv/column_problem.hpp"
#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// Adds the columns of a transposed convolution: each row of results is summed phase by phase (column modulo stride) in
/// L1, where all that is added to one lies contiguously, and written once for all taps.
class column_sums {
  using V = native_vec<float>;
  static constexpr int n = native_lanes<float>;
  static constexpr std::int64_t most = 4096;  // sums of all phases that are kept

 public:
  explicit column_sums(const column_problem& p)
      : p_(p), each_(std::max<std::int64_t>(1, quotient(most, p.stride[2]) / n * n)) {}

  void run() const {
    float* y = p_.y;
    for (std::int64_t a = 0; a < p_.out[0]; ++a)
      for (std::int64_t b = 0; b < p_.out[1]; ++b, y += p_.out[2]) row(a, b, y);
  }

 private:
  // The input element of a dim whose tap reaches output `at`; -1: none.
  std::int64_t source(int d, std::int64_t at, std::int64_t tap) const {
    const std::int64_t from = at + p_.begin[d] - tap * p_.dilation[d];
    if (from < 0) return -1;
    const std::int64_t element = p_.stride[d] == 1 ? from : quotient(from, p_.stride[d]);
    return element * p_.stride[d] == from && element < p_.in[d] ? element : -1;
  }
  // Calls `each(input row, taps before those of the row)` for what reaches output row (a, b).
  template <class Each> void for_each_row(std::int64_t a, std::int64_t b, Each&& each) const {
    for (std::int64_t i = 0; i < p_.kernel[0]; ++i) {
      const std::int64_t plane = source(0, a, i);
      for (std::int64_t j = 0; plane >= 0 && j < p_.kernel[1]; ++j)
        if (const std::int64_t line = source(1, b, j); line >= 0)
          each(plane * p_.in[1] + line, (i * p_.kernel[1] + j) * p_.kernel[2]);
    }
  }

  void row(std::int64_t a, std::int64_t b, float* y) const {
    bool met = false, meets = false, will_meet = false;
    for_each_row(a, b, [&](std::int64_t row, std::int64_t) {
      met = met || row < p_.row;
      meets = meets || (row >= p_.row && row < p_.row + p_.rows);
      will_meet = will_meet || row >= p_.row + p_.rows;
    });
    if (!meets) {
      if (p_.row == 0 && !met && !will_meet) std::fill_n(y, p_.out[2], 0.0F);
      return;
    }
    const std::int64_t stride = p_.stride[2];
    if (stride == 1 && !p_.weights && in_registers(a, b, met, y)) return;
    alignas(64) float sums[most + n];
    // elements [first, first + count) of each phase
    for (std::int64_t first = 0; first * stride < p_.out[2]; first += each_) {
      const std::int64_t count = std::min(each_, ceil_div(p_.out[2], stride) - first);
      for (std::int64_t phase = 0; phase < std::min(stride, most); ++phase) {
        float* const line = sums + phase * each_;
        for (std::int64_t t = 0; t < count; t += n) store(line + t, V{});
        for_each_row(a, b, [&](std::int64_t row, std::int64_t tap) {
          if (row >= p_.row && row < p_.row + p_.rows) add_taps(row - p_.row, tap, phase, first, count, line);
        });
      }
      write(sums, first, count, met, y);
    }
  }

  // What a tap of an input row adds to elements [begin, end) of a row of results: from[t] to element t.
  struct addend {
    std::ptrdiff_t from;  // in the columns
    std::int64_t begin, end;

    // What it adds to the n elements from t on.
    KILN_FN V at(const float* columns, std::int64_t t) const {
      if (t >= begin && t + n <= end) return load<V>(columns + from + t);
      const auto low = static_cast<int>(std::max<std::int64_t>(begin - t, 0)),
                 high = static_cast<int>(std::clamp<std::int64_t>(end - t, 0, n));
      if (low >= high) return V{};
      if (from + t < 0) {  // not before the columns
        float some[n] = {};
        for (int i = low; i < high; ++i) some[i] = columns[from + t + i];
        return load<V>(some);
      }
      rebind_t<V, std::int32_t> lane;
      for (int i = 0; i < n; ++i) lane[i] = i;
      return select(lane < broadcast<decltype(lane)>(low), V{}, load_n<V>(columns + from + t, high));
    }
  };
  // Writes a row of results of stride 1, each vector of which is summed in a register. False, and nothing done, where
  // more is added than is listed.
  bool in_registers(std::int64_t a, std::int64_t b, bool adds, float* y) const {
    constexpr std::size_t most_addends = 64;
    addend list[most_addends];
    std::size_t count = 0;
    bool fits = true;
    for_each_row(a, b, [&](std::int64_t row, std::int64_t tap) {
      if (row < p_.row || row >= p_.row + p_.rows) return;
      for (std::int64_t k = 0; k < p_.kernel[2]; ++k, ++tap) {
        const std::int64_t moved = p_.reached(2, 0, k), begin = std::clamp<std::int64_t>(moved, 0, p_.out[2]),
                           end = std::clamp<std::int64_t>(p_.in[2] + moved, begin, p_.out[2]);
        if (begin == end) continue;
        fits = fits && count < most_addends;
        if (fits) list[count++] = {tap * p_.step + (row - p_.row) * p_.in[2] - moved, begin, end};
      }
    });
    for (std::int64_t t = 0; fits && t < p_.out[2]; t += n) {
      const int rest = static_cast<int>(std::min<std::int64_t>(n, p_.out[2] - t));
      V sum{};
      for (std::size_t k = 0; k < count; ++k) sum += list[k].at(p_.columns, t);
      store_n(y + t, adds ? sum + load_n<V>(y + t, rest) : sum, rest);
    }
    return fits;
  }

  // Adds what the taps of an input row, those from `tap` on, add to elements [first, first + count) of a phase.
  void add_taps(std::int64_t row, std::int64_t tap, std::int64_t phase, std::int64_t first, std::int64_t count,
                float* line) const {
    for (std::int64_t k = 0; k < p_.kernel[2]; ++k, ++tap) {
      const std::int64_t shift = p_.reached(2, 0, k) - phase, stride = p_.stride[2];
      const std::int64_t moved = shift < 0 ? -ceil_div(-shift, stride) : quotient(shift, stride);
      if (moved * stride != shift) continue;
      // input element x reaches element x + moved
      const std::int64_t begin = std::clamp<std::int64_t>(moved - first, 0, count),
                         end = std::clamp<std::int64_t>(p_.in[2] + moved - first, begin, count);
      const float* const from = p_.columns + tap * p_.step + row * p_.in[2] + first - moved;
      std::int64_t t = begin;
      if (!p_.weights) {  // sums past the end (there is room for a vector of them) stay as they are
        for (; t < end; t += n)
          store(line + t,
                load<V>(line + t) + load_n<V>(from + t, static_cast<int>(std::min<std::int64_t>(n, end - t))));
        continue;
      }
      const V by = broadcast<V>(p_.weights[tap]);
      for (; t + n <= end; t += n) store(line + t, multiply_add(load<V>(from + t), by, load<V>(line + t)));
      if (t == end) continue;
      const int rest = static_cast<int>(end - t);
      store_n(line + t, multiply_add(load_n<V>(from + t, rest), by, load_n<V>(line + t, rest)), rest);
    }
  }

  template <int... Lane> static V interleaved(V even, V odd, int half, std::integer_sequence<int, Lane...>) {
    return half == 0 ? V(__builtin_shufflevector(even, odd, (Lane / 2 + Lane % 2 * n)...))
                     : V(__builtin_shufflevector(even, odd, (n / 2 + Lane / 2 + Lane % 2 * n)...));
  }

  // Writes elements [first, first + count) of all phases, or adds them.
  void write(const float* sums, std::int64_t first, std::int64_t count, bool adds, float* y) const {
    const std::int64_t stride = p_.stride[2], begin = first * stride, end = std::min(p_.out[2], begin + count * stride);
    if (stride > 2) {
      for (std::int64_t phase = 0; phase < stride; ++phase)
        for (std::int64_t t = 0, to = begin + phase; to < end; ++t, to += stride)
          y[to] = (adds ? y[to] : 0.0F) + sums[phase * each_ + t];
      return;
    }
    for (std::int64_t to = begin; to < end; to += n) {
      const int rest = static_cast<int>(std::min<std::int64_t>(n, end - to));
      V sum;
      if (stride == 1) {
        sum = load<V>(sums + to - begin);
      } else {
        const std::int64_t half = (to - begin) / n, t = half / 2 * n;
        sum = interleaved(load<V>(sums + t), load<V>(sums + each_ + t), static_cast<int>(half % 2),
                          std::make_integer_sequence<int, n>{});
      }
      store_n(y + to, adds ? sum + load_n<V>(y + to, rest) : sum, rest);
    }
  }

  const column_problem& p_;
  std::int64_t each_;  // sums of a phase that are kept
};

}  // namespace kiln::kernels
