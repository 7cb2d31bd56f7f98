#pragma once

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/pool/byte_problem.hpp"

namespace kiln::kernels {

/// The greatest bytes, signed or not, of windows: an output row of all channels at a time.
template <class T> class byte_pooled_row {
  using V = native_vec<T>;
  static constexpr int lanes = native_lanes<T>;
  static constexpr std::int64_t longest_line = 2048;
  static constexpr T least = std::numeric_limits<T>::lowest();

 public:
  byte_pooled_row(const pooling_problem& p, const byte_pooling& images) : p_(p), i_(images) {}

  void run(std::int64_t image, std::int64_t d, std::int64_t h) const {
    const pool_window wd{p_, 0, d}, wh{p_, 1, h};
    const std::byte* const x = i_.x + image * i_.x_image;
    std::byte* const y = i_.y + image * i_.y_image + d * i_.y_axis[0] + h * i_.y_axis[1];
    if (i_.x_axis[2] == 1 && i_.y_axis[2] == 1 && padded_width() <= longest_line) {
      for (std::int64_t c = 0; c < i_.channels; ++c) {
        T* const to = reinterpret_cast<T*>(y + c * i_.y_channel);
        if (p_.input[2] < lanes)
          line<vec<T, 16>>(x + c * i_.x_channel, wd, wh, to);
        else
          line<V>(x + c * i_.x_channel, wd, wh, to);
      }
      return;
    }
    for (std::int64_t w = 0; w < p_.output[2]; ++w) {
      const pool_window ww{p_, 2, w};
      std::byte* const to = y + w * i_.y_axis[2];
      if (i_.x_channel == 1 && i_.y_channel == 1)
        pixel(x, wd, wh, ww, reinterpret_cast<T*>(to));
      else
        for (std::int64_t c = 0; c < i_.channels; ++c)
          *reinterpret_cast<T*>(to + c * i_.y_channel) = element(x + c * i_.x_channel, wd, wh, ww);
    }
  }

 private:
  template <class F>
  void each(const std::byte* x, const pool_window& wd, const pool_window& wh, const pool_window& ww, F&& f) const {
    for (std::int64_t a = wd.first; a < wd.last; a += wd.step)
      for (std::int64_t b = wh.first; b < wh.last; b += wh.step) {
        const std::byte* const row = x + a * i_.x_axis[0] + b * i_.x_axis[1];
        for (std::int64_t c = ww.first; c < ww.last; c += ww.step)
          f(reinterpret_cast<const T*>(row + c * i_.x_axis[2]));
      }
  }
  // Bytes of a line with its padding, as far as windows reach.
  std::int64_t padded_width() const {
    const std::int64_t reach = (p_.output[2] - 1) * p_.stride[2] + (p_.window[2] - 1) * p_.dilation[2] + 1;
    return std::max(p_.pad_begin[2] + p_.input[2], reach);
  }
  // A line of a plane: the greatest of the lines of its windows, then of each window's elements at once.
  template <class W> void line(const std::byte* x, const pool_window& wd, const pool_window& wh, T* y) const {
    constexpr std::int64_t wide = sizeof(W) / sizeof(T);
    T padded[longest_line + 2 * wide], most[longest_line + wide];
    const std::int64_t width = p_.input[2], all = padded_width(), places = (p_.output[2] - 1) * p_.stride[2] + 1;
    std::fill_n(padded, all + 2 * wide, least);
    T* const inside = padded + p_.pad_begin[2];
    // the last vector overlaps the one before
    for (std::int64_t i = 0; width >= wide && i < width; i += wide) {
      const std::int64_t at = std::min(i, width - wide);
      W of = broadcast<W>(least);
      each_line(x, wd, wh, [&](const T* row) {
        const W one = load<W>(row + at);
        of = of > one ? of : one;
      });
      store(inside + at, of);
    }
    for (std::int64_t i = 0; width < wide && i < width; ++i)
      each_line(x, wd, wh, [&](const T* row) { inside[i] = std::max(inside[i], row[i]); });
    for (std::int64_t i = 0; i < places; i += wide) {
      W of = load<W>(padded + i);
      for (std::int64_t k = 1; k < p_.window[2]; ++k) {
        // elements beyond the line's end belong to no window
        const W next = load<W>(padded + std::min(i + k * p_.dilation[2], all + wide));
        of = of > next ? of : next;
      }
      store(most + i, of);
    }
    if (p_.stride[2] == 1)
      std::copy_n(most, p_.output[2], y);
    else
      for (std::int64_t w = 0; w < p_.output[2]; ++w) y[w] = most[w * p_.stride[2]];
  }
  template <class F> void each_line(const std::byte* x, const pool_window& wd, const pool_window& wh, F&& f) const {
    for (std::int64_t a = wd.first; a < wd.last; a += wd.step)
      for (std::int64_t b = wh.first; b < wh.last; b += wh.step)
        f(reinterpret_cast<const T*>(x + a * i_.x_axis[0] + b * i_.x_axis[1]));
  }
  T element(const std::byte* x, const pool_window& wd, const pool_window& wh, const pool_window& ww) const {
    T most = least;
    each(x, wd, wh, ww, [&](const T* at) { most = std::max(most, *at); });
    return most;
  }
  void pixel(const std::byte* x, const pool_window& wd, const pool_window& wh, const pool_window& ww, T* y) const {
    // the last vector overlaps the one before
    for (std::int64_t c = 0; c < i_.channels; c += lanes) {
      const bool whole = i_.channels >= lanes;
      const std::int64_t from = whole ? std::min(c, i_.channels - lanes) : 0;
      const int count = static_cast<int>(std::min<std::int64_t>(lanes, i_.channels));
      V most = broadcast<V>(least);
      each(x + from, wd, wh, ww, [&](const T* at) {
        const V b = whole ? load<V>(at) : load_n<V>(at, count);
        most = most > b ? most : b;
      });
      if (whole)
        store(y + from, most);
      else
        store_n(y, most, count);
    }
  }

  const pooling_problem& p_;
  const byte_pooling& i_;
};

/// Pools images of bytes; vectors run over channels where these are adjacent.
template <class T> void pool_bytes(thread_pool& pool, const pooling_problem& p, const byte_pooling& images) {
  const std::int64_t rows = images.batch * p.output[0] * p.output[1];
  const std::int64_t work = p.output[2] * p.window[0] * p.window[1] * p.window[2] * images.channels;
  const std::int64_t each = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, work));
  pool.parallel_for(ceil_div(rows, each), [&](std::int64_t task, unsigned) {
    for (std::int64_t row = task * each; row < std::min(rows, (task + 1) * each); ++row)
      byte_pooled_row<T>(p, images).run(row / p.output[1] / p.output[0], row / p.output[1] % p.output[0],
                                        row % p.output[1]);
  });
}

}  // namespace kiln::kernels
