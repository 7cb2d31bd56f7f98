#pragma once

#include <vector>

#include "kiln/kernel/conv/depthwise_3x3.hpp"
#include "kiln/kernel/conv/problem.hpp"

namespace kiln::kernels {

/// a * b + c in the masked lanes, c in the others.
template <class T>
KILN_FN native_vec<T> multiply_add_masked(native_vec<T> a, native_vec<T> b, native_vec<T> c, unsigned mask) {
  if constexpr (std::is_same_v<T, float>)
    return (native_vec<T>)_mm512_mask3_fmadd_ps(a, b, c, static_cast<unsigned short>(mask));
  else
    return (native_vec<T>)_mm512_mask3_fmadd_pd(a, b, c, static_cast<unsigned char>(mask));
}

/// 3x3 convolution of one input channel per group for small images. At stride 1 with padding 1, a channel is one run of
/// elements, whatever its width: a vector of outputs reads three vectors, a row apart, and each shifted by one lane
/// either way, masked at the ends of rows. At stride 2 a vector is an output row.
template <class T> class small_plane_3x3 {
  using V = native_vec<T>;
  static constexpr int n = native_lanes<T>;

 public:
  static bool serves(const conv_problem& p) {
    constexpr std::int64_t most = 24 * 1024 / static_cast<std::int64_t>(sizeof(T));
    using extents = conv_problem::extents;
    if (!has_masked_loads || p.input_pixels() + p.output_pixels() > most) return false;
    if (p.kernel != extents{1, 3, 3} || p.dilation != extents{1, 1, 1} || p.output_pixels() == 0) return false;
    if (p.stride == extents{1, 2, 2}) return p.pad_begin[1] <= 1 && p.pad_begin[2] <= 1 && p.output(2) <= n;
    constexpr extents border{0, 1, 1};
    return p.stride == extents{1, 1, 1} && p.pad_begin == border && p.pad_end == border;
  }

  explicit small_plane_3x3(const conv_problem& p)
      : stride_(p.stride[2]),
        height_(p.input[1]),
        width_(p.input[2]),
        out_height_(p.output(1)),
        out_width_(p.output(2)),
        pad_top_(p.pad_begin[1]),
        pad_left_(p.pad_begin[2]) {
    if (stride_ == 2) {
      low_ = inside_lanes<T>(-pad_left_, width_);
      high_ = inside_lanes<T>(n - pad_left_, width_);
      third_ = 2 * n - pad_left_ < width_;
      return;
    }
    const std::int64_t all = height_ * width_;
    for (std::int64_t i = -n; i < all + n; i += n) {
      step s{};
      for (int r = 0; r < 3; ++r) s.row[r] = static_cast<std::uint16_t>(inside_lanes<T>(i + (r - 1) * width_, all));
      for (int lane = 0; lane < n && i >= 0; ++lane) {
        const std::int64_t x = (i + lane) % width_;
        s.left = static_cast<std::uint16_t>(s.left | (x > 0 ? 1U : 0U) << lane);
        s.right = static_cast<std::uint16_t>(s.right | (x + 1 < width_ ? 1U : 0U) << lane);
      }
      steps_.push_back(s);
    }
  }

  /// One plane; `epilogue`, where it is not null, is that of its first element.
  void run(const T* in, const T* weight, T* out, const tile_epilogue<T>* epilogue) const {
    const tile_epilogue<T> none;
    const tile_epilogue<T>& f = epilogue ? *epilogue : none;
    V w[9];
#pragma GCC unroll 9
    for (int i = 0; i < 9; ++i) w[i] = broadcast<V>(weight[i]);
    const V offset = broadcast<V>(f.row_bias ? f.offset + f.row_bias[0] : f.offset);
    if (stride_ == 1)
      run_whole(in, w, offset, out, f);
    else
      run_rows(in, w, offset, out, f);
  }

 private:
  // For the vector at element i: the lanes whose elements one row above, in the row and one row below are inside the
  // channel, and the lanes whose left and right neighbors are in the same row.
  struct step {
    std::uint16_t row[3], left, right;
  };

  KILN_FN static void apply_and_store(V sum, T* out, std::int64_t at, std::int64_t left, const tile_epilogue<T>& f) {
    const int count = static_cast<int>(std::min<std::int64_t>(n, left));
    if (f.addend) sum += load_n<V>(f.addend + at, count);
    if (f.clamps)
      sum = elementary::native_ops<V>::lesser(broadcast<V>(f.high),
                                              elementary::native_ops<V>::greater(broadcast<V>(f.low), sum));
    if (count == n)
      store(out + at, sum);
    else
      store_n(out + at, sum, count);
  }

  KILN_FN void run_whole(const T* in, const V (&w)[9], V offset, T* out, const tile_epilogue<T>& f) const {
    const std::int64_t all = height_ * width_;
    const step* s = steps_.data();
    const T* const from[3] = {in - width_, in, in + width_};
    V before[3], here[3];
#pragma GCC unroll 3
    for (int r = 0; r < 3; ++r) {
      before[r] = load_masked(from[r] - n, s[0].row[r]);
      here[r] = load_masked(from[r], s[1].row[r]);
    }
    for (std::int64_t i = 0; i < all; i += n) {
      ++s;
      V sum[3] = {offset, V{}, V{}};
#pragma GCC unroll 3
      for (int r = 0; r < 3; ++r) {
        const V after = load_masked(from[r] + i + n, s[1].row[r]);
        [&]<int... Lane>(std::integer_sequence<int, Lane...>) __attribute__((always_inline)) {
          const V left = (V)__builtin_shufflevector(before[r], here[r], (n - 1 + Lane)...);
          const V right = (V)__builtin_shufflevector(here[r], after, (1 + Lane)...);
          sum[r] = multiply_add_masked<T>(left, w[3 * r], sum[r], s->left);
          sum[r] = multiply_add(here[r], w[3 * r + 1], sum[r]);
          sum[r] = multiply_add_masked<T>(right, w[3 * r + 2], sum[r], s->right);
        }
        (std::make_integer_sequence<int, n>{});
        before[r] = here[r];
        here[r] = after;
      }
      apply_and_store((sum[0] + sum[1]) + sum[2], out, i, all - i, f);
    }
  }

  // The elements that the three taps of a row read, zero outside the plane.
  KILN_FN void read(const T* in, std::int64_t y, V (&tap)[3]) const {
    if (y < 0 || y >= height_) {
      tap[0] = tap[1] = tap[2] = V{};
      return;
    }
    const T* const from = in + y * width_ - pad_left_;
    const V low = load_masked(from, low_), high = load_masked(from + n, high_);
    const V third = third_ ? broadcast<V>(from[2 * n]) : V{};
    [&]<int... Lane>(std::integer_sequence<int, Lane...>) __attribute__((always_inline)) {
      tap[0] = (V)__builtin_shufflevector(low, high, (2 * Lane)...);
      tap[1] = (V)__builtin_shufflevector(low, high, (2 * Lane + 1)...);
      tap[2] = (V)__builtin_shufflevector(tap[0], third, (Lane + 1)...);
    }
    (std::make_integer_sequence<int, n>{});
  }

  KILN_FN void run_rows(const T* in, const V (&w)[9], V offset, T* out, const tile_epilogue<T>& f) const {
    V row[3][3];
    read(in, -pad_top_, row[2]);
    for (std::int64_t y = 0; y < out_height_; ++y) {
      V sum[3] = {offset, V{}, V{}};
#pragma GCC unroll 3
      for (int x = 0; x < 3; ++x) row[0][x] = row[2][x];
      read(in, 2 * y - pad_top_ + 1, row[1]);
      read(in, 2 * y - pad_top_ + 2, row[2]);
#pragma GCC unroll 3
      for (int x = 0; x < 3; ++x)
#pragma GCC unroll 3
        for (int r = 0; r < 3; ++r) sum[r] = multiply_add(row[r][x], w[3 * r + x], sum[r]);
      apply_and_store((sum[0] + sum[1]) + sum[2], out, y * out_width_, out_width_, f);
    }
  }

  std::int64_t stride_, height_, width_, out_height_, out_width_, pad_top_, pad_left_;
  std::vector<step> steps_;  // stride 1: of each vector of the channel, of the one before and the one after it
  unsigned low_ = 0, high_ = 0;
  bool third_ = false;  // stride 2: lanes that a row's two vectors read, and whether the element after them is read
};

}  // namespace kiln::kernels
