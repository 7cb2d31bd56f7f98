#pragma once
#include <cmath>
#include <vector>

#include "kiln/graph/builder.hpp"

// Networks of the sizes that are timed everywhere, with seeded weights.
namespace kiln::bench {

/// Weights of one network: each drawn from a sequence that `seed` begins, scaled so that values keep their size.
class weights {
 public:
  weights(builder& to, dtype type, std::uint64_t seed) : to_(to), type_(type), state_(seed) {}
  /// Uniform in ±sqrt(3 / inputs): products with `inputs` summands of unit variance have unit variance.
  value operator()(const dims& lens, double inputs) {
    std::vector<float> values(static_cast<std::size_t>(shape(type_, lens).elements().value()));
    const double scale = std::sqrt(3 / inputs);
    for (float& v : values) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      v = static_cast<float>((static_cast<double>(state_ >> 40) / (1 << 23) - 1) * scale);
    }
    const shape s(type_, lens);
    buffer bytes = buffer::allocate(static_cast<std::size_t>(s.bytes().value()));
    encode(type_, values.data(), bytes.data(), static_cast<std::int64_t>(values.size()));
    return to_.constant(literal(s, std::move(bytes)));
  }

 private:
  builder& to_;
  dtype type_;
  std::uint64_t state_;
};

/// ResNet-50 (He et al. 2016, strides in the 3 x 3 convolutions) of 224 x 224 images, its norms already in the weights.
inline void resnet50(builder& b, dtype t, std::int64_t batch) {
  weights w(b, t, 50);
  const auto layer = [&](value x, std::int64_t from, std::int64_t to, std::int64_t taps, std::int64_t stride) {
    const std::int64_t pad = taps / 2;
    const value y = x.conv(w({to, from, taps, taps}, static_cast<double>(from * taps * taps)),
                           {.stride = {stride, stride}, .pads = {pad, pad, pad, pad}});
    return y.add_along(1, w({to}, 100));
  };
  value x = layer(b.input("image", t, {batch, 3, 224, 224}), 3, 64, 7, 2).relu();
  x = x.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
  std::int64_t channels = 64, width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      const std::int64_t stride = i == 0 && width != 64 ? 2 : 1;
      const value shortcut = i == 0 ? layer(x, channels, 4 * width, 1, stride) : x;
      value y = layer(x, channels, width, 1, 1).relu();
      y = layer(y, width, width, 3, stride).relu();
      x = (layer(y, width, 4 * width, 1, 1) + shortcut).relu();
      channels = 4 * width;
    }
    width *= 2;
  }
  x = x.reduce_mean({2, 3}).flatten();
  b.output(x.dot(w({2048, 1000}, 2048)) + w({1000}, 100));
}

/// BERT-base (Devlin et al. 2019) without its pooler: token numbers to the last layer's states.
inline void bert_base(builder& b, dtype t, std::int64_t batch, std::int64_t tokens) {
  constexpr std::int64_t width = 768, heads = 12, depth = width / heads, inner = 3072;
  weights w(b, t, 12);
  const auto norm = [&](value x) { return x.normalize({-1}, 1e-12) * w({width}, 3) + w({width}, 100); };
  const auto dense = [&](value x, std::int64_t from, std::int64_t to) {
    return x.dot(w({from, to}, static_cast<double>(from))) + w({to}, 100);
  };
  const value ids = b.input("ids", dtype::i64, {batch, tokens});
  value x = b.add(op::gather{.axis = 0}, w({30522, width}, 3), ids) + w({1, tokens, width}, 3) + w({width}, 3);
  x = norm(x);
  for (int layer = 0; layer < 12; ++layer) {
    const auto head = [&] {
      return dense(x, width, width).reshape({batch, tokens, heads, depth}).transpose({0, 2, 1, 3});
    };
    const value q = head(), k = head(), v = head();
    const value mixed = q.attention(k, v, {.scale = 0.125f}).transpose({0, 2, 1, 3}).reshape({batch, tokens, width});
    x = norm(x + dense(mixed, width, width));
    x = norm(x + dense(dense(x, width, inner).gelu(), inner, width));
  }
  b.output(x);
}

}  // namespace kiln::bench
