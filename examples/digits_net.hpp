#pragma once
#include <cstdint>
#include <string_view>

#include "kiln/op/nn.hpp"

// A convolutional network that reads handwritten digits, for a builder of either kind: static_digits.cpp makes a static
// program of it.

// [net]
inline constexpr auto digits_net = [](auto& b) {
  using namespace kiln;
  const auto layer = [&](auto x, std::string_view weight, std::string_view bias, std::int64_t from, std::int64_t to) {
    const auto w = b.weight(weight, dtype::f32, {to, from, 3, 3});
    const auto c = b.weight(bias, dtype::f32, {to});
    return x.conv(w, {.pads = {1, 1, 1, 1}}).add_along(1, c).relu();
  };
  const op::pooling halved{.lengths = {2, 2}, .stride = {2, 2}};

  auto x = b.input("image", dtype::f32, {1, 1, 8, 8});
  x = layer(x, "conv1.weight", "conv1.bias", 1, 16);
  x = layer(x, "conv2.weight", "conv2.bias", 16, 32).pool(halved);
  x = layer(x, "conv3.weight", "conv3.bias", 32, 64).pool(halved).flatten();
  x = x.dot(b.weight("hidden.weight", dtype::f32, {256, 64}));
  x = (x + b.weight("hidden.bias", dtype::f32, {64})).relu();
  x = x.dot(b.weight("head.weight", dtype::f32, {64, 10}));
  x = x + b.weight("head.bias", dtype::f32, {10});
  b.output(x.softmax(), "probabilities");
};
// [/net]
