#pragma once
#include <limits>

#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// The prologue of a pointwise convolution: clamp(x * scale + shift), by channel of its input. Each part is optional;
/// product and sum are rounded separately, and NaN stays.
template <class T> struct channel_prologue {
  const T* scale = nullptr;
  const T* shift = nullptr;
  bool clamps = false;
  T low = -std::numeric_limits<T>::infinity(), high = std::numeric_limits<T>::infinity();
  std::ptrdiff_t scale_step = 0;  ///< from the factors of an image to those of the next; 0: images have the same

  /// The prologue of one image, whose factors are all images'.
  KILN_FN channel_prologue of_image(std::int64_t image) const {
    channel_prologue out = *this;
    if (scale) out.scale += image * scale_step;
    out.scale_step = 0;
    return out;
  }
  /// Channels [channel, channel + count) of a pixel: x and y are those of the first one.
  KILN_FN void of_pixel(const T* x, T* y, std::int64_t channel, std::int64_t count) const {
    using V = native_vec<T>;
    constexpr std::int64_t n = native_lanes<T>;
    std::int64_t i = 0;
    for (; i + n <= count; i += n) store(y + i, changed<V>(x, channel, i, [](const T* at) { return load<V>(at); }));
    if (const int rest = static_cast<int>(count - i); rest > 0)
      store_n(y + i, changed<V>(x, channel, i, [rest](const T* at) { return load_n<V>(at, rest); }), rest);
  }
  /// `count` pixels of one channel in NCHW.
  KILN_FN void of_plane(const T* x, T* y, std::int64_t channel, std::int64_t count) const {
    using V = native_vec<T>;
    constexpr std::int64_t n = native_lanes<T>;
    const V factor = broadcast<V>(scale ? scale[channel] : T(1)), addend = broadcast<V>(shift ? shift[channel] : T(0));
    const auto change = [&](V v) {
      if (scale) v *= factor;
      if (shift) v += addend;
      return clamped(v);
    };
    std::int64_t i = 0;
    for (; i + n <= count; i += n) store(y + i, change(load<V>(x + i)));
    if (const int rest = static_cast<int>(count - i); rest > 0) store_n(y + i, change(load_n<V>(x + i, rest)), rest);
  }

 private:
  template <class V, class Read> KILN_FN V changed(const T* x, std::int64_t channel, std::int64_t i, Read read) const {
    V v = read(x + i);
    if (scale) v *= read(scale + channel + i);
    if (shift) v += read(shift + channel + i);
    return clamped(v);
  }
  template <class V> KILN_FN V clamped(V v) const {
    // comparisons that NaN fails, so that it stays
    const V least = broadcast<V>(low), most = broadcast<V>(high);
    return clamps ? elementary::native_ops<V>::lesser(most, elementary::native_ops<V>::greater(least, v)) : v;
  }
};

}  // namespace kiln::kernels
