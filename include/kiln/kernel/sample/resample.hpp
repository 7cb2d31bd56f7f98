#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kiln/kernel/sample/picked_lanes.hpp"
#include "kiln/kernel/sample/resample_problem.hpp"
#include "kiln/kernel/simd/vector.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::kernels {

/// Resamples elements T by sums of C: dim after dim, the outermost first. Each new element of a dim but the last is a
/// slice that is summed into a buffer; the last dim is summed from there to the result. Where nothing is weighted, T
/// are bits of any type of that size. `Slack` is that of `op::resample`, for sums that become integers.
template <class T, class C> class resampler {
 public:
  explicit resampler(const resample_problem& p, double slack = 0) : p_(p), slack_(static_cast<C>(slack)) {
    std::int64_t in = p.inner, out = p.inner;
    for (std::size_t l = p.count; l-- > 0;) {
      in_step_[l] = in, out_step_[l] = out;
      in *= p.axes[l].in, out *= p.axes[l].out;
    }
    in_all_ = in, out_all_ = out;
  }

  /// Elements C of scratch for each worker.
  std::int64_t scratch() const {
    std::int64_t n = 0;
    for (std::size_t l = 0; l + 1 < p_.count; ++l)
      if (p_.axes[l].weights) n += l + 2 == p_.count ? rows_at_once * row_pitch() : in_step_[l];
    return (n + 15) / 16 * 16;
  }

  void run(thread_pool& pool, C* buffers) const {
    const resample_axis& first = p_.axes[0];
    const std::int64_t all = p_.outer * first.out, cost = slice_cost(), some = 65536;
    const std::int64_t fair = (all + 4 * pool.size() - 1) / (4 * pool.size());
    const std::int64_t each = std::clamp<std::int64_t>(some / std::max<std::int64_t>(1, cost), 1, all),
                       grain = all * cost <= some ? all : std::max<std::int64_t>(1, std::min(each, fair));
    const std::int64_t own = scratch();
    pool.parallel_for((all + grain - 1) / grain, [&](std::int64_t task, unsigned worker) {
      for (std::int64_t at = task * grain, end = std::min(all, at + grain); at < end;) {
        const std::int64_t o = at / first.out, from = at % first.out, to = std::min(first.out, from + end - at);
        level(0, static_cast<const T*>(p_.x) + o * in_all_, static_cast<T*>(p_.y) + o * out_all_,
              buffers + worker * own, from, to);
        at += to - from;
      }
    });
  }

 private:
  static constexpr std::int64_t rows_at_once = 8;
  static constexpr bool picks_pairs = native_bytes == 64 && std::is_same_v<T, float> && std::is_same_v<C, float>;

  // Elements from row to row of what is summed of the last dim but one: whole vectors may be read from any element on.
  std::int64_t row_pitch() const {
    constexpr std::int64_t room = 2 * native_lanes<C>;
    return (in_step_[p_.count - 2] + room + 15) / 16 * 16;
  }
  bool is_of_pairs(const resample_axis& a) const {
    return p_.inner == 1 && a.weights && a.taps == 2 && (a.repeats != 2 || !std::is_same_v<T, C>);
  }

  // Elements that are summed for one of the result's first dim; copying them costs less, but for what
  // each row takes by itself.
  std::int64_t slice_cost() const {
    if (!p_.axes[p_.count - 1].weights) return 32 + out_step_[0] * static_cast<std::int64_t>(sizeof(T)) / 4;
    return p_.axes[0].taps * in_step_[0] + 4 * out_step_[0];
  }
  // Elements [first, last) of a dim of the result.
  template <class S>
  [[gnu::noinline]] void level(std::size_t l, const S* x, T* y, C* buffer, std::int64_t first,
                               std::int64_t last) const {
    const resample_axis& a = axes_[l];
    if (l + 1 == p_.count) return last_level(a, x, y, first, last);
    const std::int64_t next = axes_[l + 1].out, out = out_step_[l], in = in_step_[l];
    if constexpr (std::is_arithmetic_v<T>)
      if (a.weights && l + 2 == p_.count) return last_two_levels(a, x, y, buffer, first, last);
    for (std::int64_t o = first; o < last; ++o) {
      T* const to = y + o * out;
      if constexpr (std::is_arithmetic_v<T>)
        if (a.weights) {
          sum_slices(a, o, x, in, buffer);
          level<C>(l + 1, buffer, to, buffer + in, 0, next);
          continue;
        }
      if (a.at && o > first && a.at[o] == a.at[o - 1])
        std::memcpy(to, to - out, static_cast<std::size_t>(out) * sizeof(T));
      else
        level(l + 1, x + (a.at ? a.at[o] : o) * in, to, buffer, 0, next);
    }
  }

  // Slices of the last dim but one, each a row of the last: some are summed, then all of their rows, for which the last
  // dim's tables are looked up once.
  template <class S>
  void last_two_levels(const resample_axis& a, const S* x, T* y, C* buffer, std::int64_t first,
                       std::int64_t last) const {
    const resample_axis& within = axes_[p_.count - 1];
    const std::int64_t in = in_step_[p_.count - 2], out = out_step_[p_.count - 2], pitch = row_pitch();
    for (; first < last; first += rows_at_once) {
      const std::int64_t rows = std::min(rows_at_once, last - first);
      T* const to = y + first * out;
      for (std::int64_t r = 0; r < rows; ++r) sum_slices(a, first + r, x, in, buffer + r * pitch);
      if (is_of_pairs(within)) {
        sum_pairs(within, buffer, pitch, pitch, to, out, rows, 0, within.out);
      } else {
        for (std::int64_t r = 0; r < rows; ++r) last_level(within, buffer + r * pitch, to + r * out, 0, within.out);
      }
    }
  }

  template <class S>
  void last_level(const resample_axis& a, const S* x, T* y, std::int64_t first, std::int64_t last) const {
    const std::int64_t inner = p_.inner;
    if (!a.weights) {
      if constexpr (std::is_same_v<S, T>) pick(a, x, y, first, last);
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (inner == 1) {
        if constexpr (std::is_same_v<S, C> && std::is_same_v<T, C>)
          if (a.taps == 2 && a.repeats == 2) return doubled(a, x, y, first, last);
        switch (a.taps) {
          case 1: return sum_elements<1>(a, x, y, first, last);
          case 2: return sum_pairs(a, x, 0, a.in, y, 0, 1, first, last);
          case 4: return sum_elements<4>(a, x, y, first, last);
          default: return sum_elements<0>(a, x, y, first, last);
        }
      }
      for (std::int64_t o = first; o < last; ++o) sum_slices(a, o, x, inner, y + o * inner);
    }
  }

  void pick(const resample_axis& a, const T* __restrict x, T* __restrict y, std::int64_t first,
            std::int64_t last) const {
    const std::int64_t inner = p_.inner;
    if (inner > 1) {
      for (std::int64_t o = first; o < last; ++o)
        std::memcpy(y + o * inner, x + a.at[o] * inner, static_cast<std::size_t>(inner) * sizeof(T));
      return;
    }
    const auto repeat = [&]<int N>(std::integral_constant<int, N>) {
      std::int64_t o = first;
      for (; o < last && o % N != 0; ++o) y[o] = x[o / N];
      const std::int64_t from = o / N, whole = (last - o) / N;
      T* __restrict to = y + o;
      for (std::int64_t k = 0; k < whole; ++k)
        for (int r = 0; r < N; ++r) to[k * N + r] = x[from + k];
      for (o += whole * N; o < last; ++o) y[o] = x[o / N];
    };
    switch (a.repeats) {
      case 2:
        if constexpr (std::is_arithmetic_v<T>)
          if (first == 0 && last / 2 >= few_lanes) return twice(x, y, last);
        return repeat(std::integral_constant<int, 2>());
      case 3: return repeat(std::integral_constant<int, 3>());
      case 4: return repeat(std::integral_constant<int, 4>());
      default:
        for (std::int64_t o = first; o < last; ++o) y[o] = x[a.at[o]];
    }
  }

  // Each element twice, `n` of them in all, at least `few_lanes` pairs; some pairs again at the end.
  static constexpr std::int64_t few_lanes = 16 / static_cast<std::int64_t>(sizeof(T));
  static void twice(const T* x, T* y, std::int64_t n) {
    using V = vec<T, static_cast<int>(few_lanes)>;
    const std::int64_t pairs = n / 2;
    const auto at = [&](std::int64_t k) __attribute__((always_inline)) {
      const V v = load<V>(x + k);
      [&]<int... L>(std::integer_sequence<int, L...>) __attribute__((always_inline)) {
        store(y + 2 * k, (V)__builtin_shufflevector(v, v, (L / 2)...));
        store(y + 2 * k + few_lanes, (V)__builtin_shufflevector(v, v, (static_cast<int>(few_lanes) / 2 + L / 2)...));
      }
      (std::make_integer_sequence<int, static_cast<int>(few_lanes)>{});
    };
    for (std::int64_t k = 0; k + few_lanes <= pairs; k += few_lanes) at(k);
    at(pairs - few_lanes);
    if (n % 2 != 0) y[n - 1] = x[pairs];
  }

  // A sum as an element of type R.
  template <class R> R rounded(C sum) const {
    if constexpr (std::is_integral_v<R>) {
      constexpr C low = static_cast<C>(std::numeric_limits<R>::min()),
                  high = static_cast<C>(std::numeric_limits<R>::max());
      sum += sum < 0 ? -slack_ : slack_;
      sum = sum < low ? low : sum;
      sum = sum > high ? high : sum;
      return static_cast<R>(static_cast<std::int32_t>(sum));
    } else {
      return static_cast<R>(sum);
    }
  }

  // Two taps of twice as many elements: those of every second element lie side by side, but for the ends.
  void doubled(const resample_axis& a, const C* x, C* y, std::int64_t first, std::int64_t last) const {
    using V = native_vec<C>;
    constexpr std::int64_t lanes = native_lanes<C>;
    const std::int64_t n = a.out;
    const C* const w = static_cast<const C*>(a.weights);
    std::int64_t o = first + (first + 2) % 2 + 2;
    if (first > 0 || last < n || n < 2 * lanes + 4) return sum_pairs(a, x, 0, a.in, y, 0, 1, first, last);
    sum_elements<2>(a, x, y, 0, o);
    const auto taps = [&](std::int64_t at) {
      const V low = load<V>(x + a.at[at]), high = load<V>(x + a.at[n + at]);
      return multiply_add(high, broadcast<V>(w[n + at]), low * w[at]);
    };
    for (; o + 2 * lanes + 2 <= n; o += 2 * lanes) {
      const V even = taps(o), odd = taps(o + 1);
      const auto mixed = [&]<int... L>(std::integer_sequence<int, L...>) {
        store(y + o, (V)__builtin_shufflevector(even, odd, (L % 2 == 0 ? L / 2 : int(lanes) + L / 2)...));
        store(y + o + lanes,
              (V)__builtin_shufflevector(even, odd, (int(lanes) / 2 + (L % 2 == 0 ? L / 2 : int(lanes) + L / 2))...));
      };
      mixed(std::make_integer_sequence<int, int(lanes)>());
    }
    sum_elements<2>(a, x, y, o, n);
  }

  // Two taps of so many rows, of each of which `held` elements may be read. Those of a vector that lie close together
  // are picked from two vectors that hold them, since a gather loads each lane by itself.
  template <class S>
  void sum_pairs(const resample_axis& a, const S* x, std::int64_t x_row, std::int64_t held, T* y, std::int64_t y_row,
                 std::int64_t rows, std::int64_t first, std::int64_t last) const {
    if constexpr (picks_pairs && std::is_same_v<S, float>) {
      using V = native_vec<float>;
      using I = vec<std::int32_t, native_lanes<float>>;
      constexpr int lanes = native_lanes<float>;
      const std::int64_t n = a.out;
      const float* const w = static_cast<const float*>(a.weights);
      for (; first < last; first += lanes) {
        const int count = static_cast<int>(std::min<std::int64_t>(lanes, last - first));
        const std::int32_t base = a.at[first];
        const I used = first_lanes<I>(count);
        const I low = (load_n<I>(a.at + first, count) - base) & used,
                high = (load_n<I>(a.at + n + first, count) - base) & used;
        if (elementary::any(((low | high) & ~(2 * lanes - 1)) != 0)) break;
        const V by_low = load_n<V>(w + first, count), by_high = load_n<V>(w + n + first, count);
        const auto some = [&](std::int64_t from) {
          return static_cast<int>(std::clamp<std::int64_t>(held - from, 0, lanes));
        };
        const int near = some(base), next = some(base + lanes);
        const auto each = [&](auto&& read, auto&& write) __attribute__((always_inline)) {
          const float* from = x + base;
          T* to = y + first;
          for (std::int64_t r = 0; r < rows; ++r, from += x_row, to += y_row) {
            const V here = read(from, near), beyond = read(from + lanes, next);
            write(to, by_low * picked_lanes(here, beyond, low) + by_high * picked_lanes(here, beyond, high));
          }
        };
        if (next == lanes && count == lanes)
          each([](const float* from, int) { return load<V>(from); }, [](float* to, V v) { store(to, v); });
        else
          each([](const float* from, int n) { return load_n<V>(from, n); },
               [count](float* to, V v) { store_n(to, v, count); });
      }
    }
    for (std::int64_t r = 0; first < last && r < rows; ++r)
      sum_elements<2>(a, x + r * x_row, y + r * y_row, first, last);
  }

  // y[o] = sum of weights[k][o] * x[at[k][o]].
  template <int Taps, class S>
  void sum_elements(const resample_axis& a, const S* __restrict x, T* __restrict y, std::int64_t first,
                    std::int64_t last) const {
    const std::int64_t n = a.out;
    const std::int32_t* __restrict at = a.at;
    const C* __restrict w = static_cast<const C*>(a.weights);
    if constexpr (Taps != 0) {
      for (std::int64_t o = first; o < last; ++o) {
        C sum = w[o] * static_cast<C>(x[at[o]]);
        for (int k = 1; k < Taps; ++k) sum += w[k * n + o] * static_cast<C>(x[at[k * n + o]]);
        y[o] = rounded<T>(sum);
      }
    } else {
      constexpr std::int64_t block = 64;
      C sums[block];
      for (std::int64_t from = first; from < last; from += block) {
        const std::int64_t some = std::min(block, last - from);
        for (std::int64_t o = 0; o < some; ++o) sums[o] = 0;
        for (std::int64_t k = 0; k < a.taps; ++k) {
          const std::int32_t* __restrict own_at = at + k * n + from;
          const C* __restrict own_w = w + k * n + from;
          for (std::int64_t o = 0; o < some; ++o) sums[o] += own_w[o] * static_cast<C>(x[own_at[o]]);
        }
        for (std::int64_t o = 0; o < some; ++o) y[from + o] = rounded<T>(sums[o]);
      }
    }
  }

  // y[i] = sum of weights[k][o] * x[at[k][o] * step + i] for i in [0, step).
  template <class S, class R>
  void sum_slices(const resample_axis& a, std::int64_t o, const S* x, std::int64_t step, R* __restrict y) const {
    const std::int64_t n = a.out;
    const C* const w = static_cast<const C*>(a.weights) + o;
    const auto slice = [&](std::int64_t k) { return x + a.at[k * n + o] * step; };
    const auto together = [&]<int Taps>(std::integral_constant<int, Taps>) {
      const S* from[Taps];
      C by[Taps];
      for (int k = 0; k < Taps; ++k) from[k] = slice(k), by[k] = w[k * n];
      if constexpr (std::is_same_v<S, C> && std::is_same_v<R, C>) return sum_vectors<Taps>(from, by, step, y);
      for (std::int64_t i = 0; i < step; ++i) {
        C sum = by[0] * static_cast<C>(from[0][i]);
        for (int k = 1; k < Taps; ++k) sum += by[k] * static_cast<C>(from[k][i]);
        y[i] = rounded<R>(sum);
      }
    };
    switch (a.taps) {
      case 1: return together(std::integral_constant<int, 1>());
      case 2: return together(std::integral_constant<int, 2>());
      case 4: return together(std::integral_constant<int, 4>());
      default: break;
    }
    if constexpr (std::is_same_v<S, C> && std::is_same_v<R, C>) {
      sum_any_vectors(a, o, x, step, y);
    } else {
      sum_blocks(a, o, x, step, y);
    }
  }
  template <int Taps> static void sum_vectors(const C* const* from, const C* by, std::int64_t step, C* y) {
    using V = native_vec<C>;
    constexpr std::int64_t lanes = native_lanes<C>;
    std::int64_t i = 0;
    for (; i + lanes <= step; i += lanes) {
      V sum = load<V>(from[0] + i) * by[0];
      for (int k = 1; k < Taps; ++k) sum = multiply_add(load<V>(from[k] + i), broadcast<V>(by[k]), sum);
      store(y + i, sum);
    }
    if (i == step) return;
    const int rest = static_cast<int>(step - i);
    V sum = load_n<V>(from[0] + i, rest) * by[0];
    for (int k = 1; k < Taps; ++k) sum = multiply_add(load_n<V>(from[k] + i, rest), broadcast<V>(by[k]), sum);
    store_n(y + i, sum, rest);
  }
  // Four vectors of sums at once.
  static void sum_any_vectors(const resample_axis& a, std::int64_t o, const C* x, std::int64_t step, C* y) {
    using V = native_vec<C>;
    constexpr std::int64_t lanes = native_lanes<C>, wide = 4;
    const C* const w = static_cast<const C*>(a.weights) + o;
    for (std::int64_t i = 0; i < step; i += wide * lanes) {
      V sums[wide] = {};
      const std::int64_t some = std::min(wide * lanes, step - i);
      for (std::int64_t k = 0; k < a.taps; ++k) {
        const C* const from = x + a.at[k * a.out + o] * step + i;
        const V by = broadcast<V>(w[k * a.out]);
        if (some == wide * lanes) {
          for (std::int64_t v = 0; v < wide; ++v) sums[v] = multiply_add(load<V>(from + v * lanes), by, sums[v]);
          continue;
        }
        for (std::int64_t v = 0; v * lanes < some; ++v)
          sums[v] = multiply_add(load_n<V>(from + v * lanes, static_cast<int>(std::min(lanes, some - v * lanes))), by,
                                 sums[v]);
      }
      for (std::int64_t v = 0; v * lanes < some; ++v)
        store_n(y + i + v * lanes, sums[v], static_cast<int>(std::min(lanes, some - v * lanes)));
    }
  }
  template <class S, class R>
  void sum_blocks(const resample_axis& a, std::int64_t o, const S* x, std::int64_t step, R* __restrict y) const {
    const std::int64_t n = a.out;
    const C* const w = static_cast<const C*>(a.weights) + o;
    const auto slice = [&](std::int64_t k) { return x + a.at[k * n + o] * step; };
    constexpr std::int64_t block = 512;
    C sums[block];
    for (std::int64_t first = 0; first < step; first += block) {
      const std::int64_t some = std::min(block, step - first);
      for (std::int64_t i = 0; i < some; ++i) sums[i] = 0;
      for (std::int64_t k = 0; k < a.taps; ++k) {
        const S* __restrict from = slice(k) + first;
        const C by = w[k * n];
        for (std::int64_t i = 0; i < some; ++i) sums[i] += by * static_cast<C>(from[i]);
      }
      for (std::int64_t i = 0; i < some; ++i) y[first + i] = rounded<R>(sums[i]);
    }
  }

  const resample_problem& p_;
  const resample_axis* axes_ = p_.axes;
  C slack_;
  std::int64_t in_step_[max_rank + 1], out_step_[max_rank + 1], in_all_, out_all_;
};

}  // namespace kiln::kernels
