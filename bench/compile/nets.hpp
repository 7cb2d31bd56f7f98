#pragma once
#include <cstdint>
#include <string_view>

#include "kiln/core/inline_string.hpp"
#include "kiln/graph/builder.hpp"

/// True-size networks over any builder, weights by name: what static programs of the usual sizes cost to compile.
namespace nets {

using kiln::dtype;

/// Names a net's weights one after the other: "w0", "w1", ...
struct names {
  std::int64_t next = 0;
  constexpr kiln::inline_string<15> operator()() {
    kiln::inline_string<15> name("w");
    name.append(next++);
    return name;
  }
};

/// 64-64-64-10 (He et al.'s residual blocks are below; this one has none).
inline constexpr auto perceptron = [](auto& b) {
  names name;
  auto x = b.input("x", dtype::f32, {1, 64});
  for (const std::int64_t to : {64, 64}) {
    const auto w = b.weight(name(), dtype::f32, {64, to});
    x = x.dot(w);
    x = (x + b.weight(name(), dtype::f32, {to})).relu();
  }
  x = x.dot(b.weight(name(), dtype::f32, {64, 10}));
  b.output(x + b.weight(name(), dtype::f32, {10}));
};

/// Convolution and bias, which is what an inference network has left of batch norm.
template <class Builder, class Value>
constexpr Value convolve(Builder& b, names& name, Value x, std::int64_t from, std::int64_t to, std::int64_t kernel,
                         std::int64_t stride) {
  const std::int64_t pad = kernel / 2;
  const auto w = b.weight(name(), dtype::f32, {to, from, kernel, kernel});
  const auto bias = b.weight(name(), dtype::f32, {to});
  return x.conv(w, {.stride = {stride, stride}, .pads = {pad, pad, pad, pad}}).add_along(1, bias);
}

template <class Builder, class Value> constexpr Value residual_stem(Builder& b, names& name, Value x) {
  x = convolve(b, name, x, 3, 64, 7, 2).relu();
  return x.pool({.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}});
}

template <class Builder, class Value>
constexpr void residual_head(Builder& b, names& name, Value x, std::int64_t from) {
  x = x.reduce_mean({2, 3}).flatten().dot(b.weight(name(), dtype::f32, {from, 1000}));
  b.output(x + b.weight(name(), dtype::f32, {1000}));
}

/// He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition" (2015): 18 layers.
inline constexpr auto resnet18 = [](auto& b) {
  names name;
  auto x = residual_stem(b, name, b.input("x", dtype::f32, {1, 3, 224, 224}));
  std::int64_t from = 64;
  for (const std::int64_t to : {64, 128, 256, 512})
    for (int block = 0; block < 2; ++block) {
      const std::int64_t stride = block == 0 && to != 64 ? 2 : 1;
      auto y = convolve(b, name, x, from, to, 3, stride).relu();
      y = convolve(b, name, y, to, to, 3, 1);
      if (from != to) x = convolve(b, name, x, from, to, 1, stride);
      x = (y + x).relu();
      from = to;
    }
  residual_head(b, name, x, from);
};

/// The same paper's 50 layers, with the stride in the 3x3 convolution.
inline constexpr auto resnet50 = [](auto& b) {
  names name;
  auto x = residual_stem(b, name, b.input("x", dtype::f32, {1, 3, 224, 224}));
  std::int64_t from = 64;
  constexpr std::int64_t widths[] = {64, 128, 256, 512}, blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::int64_t inner = widths[stage], to = 4 * inner, stride = block == 0 && stage != 0 ? 2 : 1;
      auto y = convolve(b, name, x, from, inner, 1, 1).relu();
      y = convolve(b, name, y, inner, inner, 3, stride).relu();
      y = convolve(b, name, y, inner, to, 1, 1);
      if (block == 0) x = convolve(b, name, x, from, to, 1, stride);
      x = (y + x).relu();
      from = to;
    }
  residual_head(b, name, x, from);
};

/// Howard et al., "MobileNets" (2017), at its full width: convolutions of one channel each, and 1x1 ones.
inline constexpr auto mobilenet = [](auto& b) {
  names name;
  auto x = convolve(b, name, b.input("x", dtype::f32, {1, 3, 224, 224}), 3, 32, 3, 2).relu();
  std::int64_t from = 32;
  struct block {
    std::int64_t to, stride;
  };
  for (const block next : {block{64, 1},
                           {128, 2},
                           {128, 1},
                           {256, 2},
                           {256, 1},
                           {512, 2},
                           {512, 1},
                           {512, 1},
                           {512, 1},
                           {512, 1},
                           {512, 1},
                           {1024, 2},
                           {1024, 1}}) {
    const auto w = b.weight(name(), dtype::f32, {from, 1, 3, 3});
    const auto bias = b.weight(name(), dtype::f32, {from});
    x = x.conv(w, {.stride = {next.stride, next.stride}, .pads = {1, 1, 1, 1}, .group = from})
            .add_along(1, bias)
            .relu();
    x = convolve(b, name, x, from, next.to, 1, 1).relu();
    from = next.to;
  }
  residual_head(b, name, x, from);
};

/// A pre-norm transformer encoder (Vaswani et al. 2017; GPT-2's place of the norms): 4 layers, 4 heads of 32, 64
/// tokens.
inline constexpr auto transformer = [](auto& b) {
  names name;
  constexpr std::int64_t tokens = 64, width = 128, heads = 4, depth = width / heads;
  const auto dense = [&](auto x, std::int64_t from, std::int64_t to) {
    x = x.dot(b.weight(name(), dtype::f32, {from, to}));
    return x + b.weight(name(), dtype::f32, {to});
  };
  const auto norm = [&](auto x) {
    x = x.normalize({-1}) * b.weight(name(), dtype::f32, {width});
    return x + b.weight(name(), dtype::f32, {width});
  };
  const auto by_head = [&](auto x) { return x.reshape({1, tokens, heads, depth}).transpose({0, 2, 1, 3}); };
  auto x = b.input("x", dtype::f32, {1, tokens, width});
  for (int layer = 0; layer < 4; ++layer) {
    const auto n = norm(x);
    const auto q = by_head(dense(n, width, width)), k = by_head(dense(n, width, width)),
               v = by_head(dense(n, width, width));
    auto y = (q.dot(k.transpose({0, 1, 3, 2})) * 0.1767767).softmax().dot(v);
    x = x + dense(y.transpose({0, 2, 1, 3}).reshape({1, tokens, width}), width, width);
    x = x + dense(dense(norm(x), width, 4 * width).gelu(), 4 * width, width);
  }
  b.output(norm(x));
};

}  // namespace nets
