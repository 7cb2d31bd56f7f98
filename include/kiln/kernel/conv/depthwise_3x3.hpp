#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kiln/kernel/gemm/tile.hpp"

namespace kiln::kernels {

/// Whether masked loads leave masked-out memory untouched, as the direct 3x3 kernel needs.
inline constexpr bool has_masked_loads = native_bytes == 64;

/// Bit mask of the lanes of a vector at column `first` that are inside a row of `extent` columns.
template <class T> KILN_FN unsigned inside_lanes(std::int64_t first, std::int64_t extent) {
  constexpr std::int64_t n = native_lanes<T>;
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, n);
  const std::int64_t end = std::clamp<std::int64_t>(extent - first, begin, n);
  return ((1U << end) - 1) & ~((1U << begin) - 1);
}

/// The masked lanes at `from`, the others zero; `from` may point outside its array there.
template <class T> KILN_FN native_vec<T> load_masked(const T* from, unsigned mask) {
  if constexpr (std::is_same_v<T, float>)
    return (native_vec<T>)_mm512_maskz_loadu_ps(static_cast<unsigned short>(mask), from);
  else
    return (native_vec<T>)_mm512_maskz_loadu_pd(static_cast<unsigned char>(mask), from);
}

/// The masked lanes at `from`, and those of `other` elsewhere; `from` may point outside its array there.
template <class T> KILN_FN native_vec<T> load_masked_or(const T* from, unsigned mask, native_vec<T> other) {
  if constexpr (std::is_same_v<T, float>)
    return (native_vec<T>)_mm512_mask_loadu_ps(other, static_cast<unsigned short>(mask), from);
  else
    return (native_vec<T>)_mm512_mask_loadu_pd(other, static_cast<unsigned char>(mask), from);
}

/// `x`, with its origin hidden from the compiler: otherwise it reloads a tap from memory for each product that uses it,
/// and most such loads cross a cache line.
template <class V> KILN_FN V in_register(V x) {
#if KILN_HAS_MXCSR
  asm("" : "+v"(x));
#endif
  return x;
}

/// 3x3 convolution of one input channel per group at stride 1 or 2, planned for its sizes; input is read in place.
template <class T> class plane_3x3 {
  using V = native_vec<T>;
  static constexpr int n = native_lanes<T>;

 public:
  /// Output rows computed at a time.
  static constexpr int rows = 4;

  plane_3x3(std::int64_t stride, std::int64_t height, std::int64_t width, std::int64_t pad_top, std::int64_t pad_left,
            std::int64_t out_width)
      : stride_(stride), height_(height), width_(width), pad_top_(pad_top), pad_left_(pad_left), out_width_(out_width) {
    const unsigned all = inside_lanes<T>(0, n);
    for (std::int64_t x = 0; x < out_width; x += n) {
      const std::int64_t first = x * stride - pad_left;
      if (stride == 1)
        edges_.push_back(
            {inside_lanes<T>(first, width), inside_lanes<T>(first + 1, width), inside_lanes<T>(first + 2, width)});
      else
        edges_.push_back({inside_lanes<T>(first, width) & 1, inside_lanes<T>(first + 1, width),
                          inside_lanes<T>(first + 1 + n, width)});
      const edge& e = edges_.back();
      const bool inner =
          x + n <= out_width && e.part[0] == (stride == 1 ? all : 1) && e.part[1] == all && e.part[2] == all;
      if (inner) inner_ = inner_end_ == 0 ? x : inner_, inner_end_ = x + n;
    }
  }

  /// Output rows [begin, end) of a plane. `zeros` are as many zeros as its padded rows have columns, up to the end of
  /// the last vector of outputs; `epilogue`, where it is not null, is that of the first element of row `begin`.
  void run(const T* in, const T* weight, const T* zeros, std::int64_t begin, std::int64_t end, T* out,
           const tile_epilogue<T>* epilogue) const {
    stride_ == 1 ? run_rows<1>(in, weight, zeros, begin, end, out, epilogue)
                 : run_rows<2>(in, weight, zeros, begin, end, out, epilogue);
  }

 private:
  // Lanes inside the row. Stride 1: of each tap's vector; stride 2: of the first element, of the next vector and of the
  // one after that.
  struct edge {
    unsigned part[3];
  };

  // The elements that the three taps of one row read for a vector of outputs.
  template <int Stride, bool Inner> KILN_FN static void read(const T* row, const edge& e, V (&tap)[3]) {
    const auto at = [&](const T* from, int i) __attribute__((always_inline)) {
      return Inner ? load<V>(from) : load_masked(from, e.part[i]);
    };
    if constexpr (Stride == 1) {
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) tap[i] = in_register(at(row + i, i));
    } else {
      const V low = at(row + 1, 1), high = at(row + 1 + n, 2);
      tap[1] = every_second_lane(low, high);
      [&]<int... Lane>(std::integer_sequence<int, Lane...>) __attribute__((always_inline)) {
        tap[2] = (V)__builtin_shufflevector(low, high, (2 * Lane + 1)...);
        // the first tap reads the last tap's elements one lane later, and a new first one
        const V first = Inner || e.part[0] ? broadcast<V>(*row) : V{};
        tap[0] = (V)__builtin_shufflevector(first, tap[2], (Lane == 0 ? 0 : n + Lane - 1)...);
      }
      (std::make_integer_sequence<int, n>{});
    }
  }

  template <int Stride, int Rows, bool Inner>
  KILN_FN void block(const T* const* row, const V (&w)[9], std::int64_t x, T* out, const tile_epilogue<T>& epilogue,
                     const T* addend) const {
    constexpr int in_rows = (Rows - 1) * Stride + 3;
    const edge& e = edges_[static_cast<std::size_t>(x / n)];
    const int count = Inner ? n : static_cast<int>(std::min<std::int64_t>(n, out_width_ - x));
    V sum[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) sum[r] = broadcast<V>(epilogue.offset);
#pragma GCC unroll 9
    for (int i = 0; i < in_rows; ++i) {
      V tap[3];
      read<Stride, Inner>(row[i] + x * Stride, e, tap);
#pragma GCC unroll 3
      for (int kx = 0; kx < 3; ++kx)
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const int ky = i - r * Stride;
          if (ky >= 0 && ky < 3) sum[r] = multiply_add(tap[kx], w[ky * 3 + kx], sum[r]);
        }
    }
    // Prefetches the rows that the next block reads and writes.
#pragma GCC unroll 8
    for (int r = 0; r < Rows * Stride; ++r) __builtin_prefetch(row[in_rows - 1] + (r + 1) * width_ + x * Stride);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) __builtin_prefetch(out + (Rows + r) * out_width_ + x, 1);
    const V low = broadcast<V>(epilogue.low), high = broadcast<V>(epilogue.high);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const std::int64_t at = r * out_width_ + x;
      if (addend) sum[r] += Inner ? load<V>(addend + at) : load_n<V>(addend + at, count);
      if (epilogue.clamps)
        sum[r] = elementary::native_ops<V>::lesser(high, elementary::native_ops<V>::greater(low, sum[r]));
      if (Inner)
        store(out + at, sum[r]);
      else
        store_n(out + at, sum[r], count);
    }
  }

  template <int Stride, int Rows>
  KILN_FN void rows_at(std::int64_t y, const T* in, const V (&w)[9], const T* zeros, T* out,
                       const tile_epilogue<T>& epilogue, const T* addend) const {
    constexpr int in_rows = (Rows - 1) * Stride + 3;
    const T* row[in_rows];
#pragma GCC unroll 9
    for (int i = 0; i < in_rows; ++i) {
      const std::int64_t iy = y * Stride - pad_top_ + i;
      row[i] = iy < 0 || iy >= height_ ? zeros : in + iy * width_ - pad_left_;
    }
    V own[9];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) own[i] = in_register(w[i]);
    std::int64_t x = 0;
    for (; x < inner_; x += n) block<Stride, Rows, false>(row, own, x, out, epilogue, addend);
    for (; x < inner_end_; x += n) block<Stride, Rows, true>(row, own, x, out, epilogue, addend);
    for (; x < out_width_; x += n) block<Stride, Rows, false>(row, own, x, out, epilogue, addend);
  }

  template <int Stride>
  void run_rows(const T* in, const T* weight, const T* zeros, std::int64_t begin, std::int64_t end, T* out,
                const tile_epilogue<T>* epilogue) const {
    tile_epilogue<T> whole = epilogue ? *epilogue : tile_epilogue<T>{};
    if (whole.row_bias) whole.offset += whole.row_bias[0];
    V w[9];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) w[i] = broadcast<V>(weight[i]);
    const auto at = [&]<int Rows>(std::int64_t y) {
      const std::int64_t done = (y - begin) * out_width_;
      rows_at<Stride, Rows>(y, in, w, zeros, out + done, whole, whole.addend ? whole.addend + done : nullptr);
    };
    std::int64_t y = begin;
    for (; y + rows <= end; y += rows) at.template operator()<rows>(y);
    if (end - y == 3)
      at.template operator()<3>(y);
    else if (end - y == 2)
      at.template operator()<2>(y);
    else if (end - y == 1)
      at.template operator()<1>(y);
  }

  std::int64_t stride_, height_, width_, pad_top_, pad_left_, out_width_;
  std::int64_t inner_ = 0, inner_end_ = 0;  // first output columns of the vectors that read no padding
  std::vector<edge> edges_;                 // of each vector of outputs
};

}  // namespace kiln::kernels
