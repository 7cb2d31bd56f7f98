#pragma once
#include <cmath>

#include "hip_kernels/on_device.hpp"
#include "kiln/op/dynamic/bind_dims.hpp"
#include "kiln/op/dynamic/progression.hpp"
#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"

/// Programs of families of kernels: convolutions of few channels a group, short products, sampling, long windows,
/// ranges, mel filters. What a device makes of them is compared with the ops' own computations, and each is compiled
/// without one.
namespace kiln::testing {

using programs = std::vector<std::function<void(builder&)>>;

inline value family_weights(builder& b, dtype t, const dims& lens) {
  return b.constant(literal(shape(t, lens), constant_bytes(shape(t, lens))));
}

inline programs few_channels_a_group(dtype t) {
  programs all;
  for (const bool last : {false, true})
    all.push_back([=](builder& b) {
      const auto image = [&](const char* name, std::int64_t channels, std::int64_t height, std::int64_t width) {
        return last ? b.input(name, t, {2, height, width, channels}).transpose({0, 3, 1, 2})
                    : b.input(name, t, {2, channels, height, width});
      };
      const value bias = b.input("bias", t, {32, 1, 1});
      // filters that share channels, and several channels each
      b.output(image("a", 16, 9, 11).conv(family_weights(b, t, {32, 1, 3, 3}), {.pads = {1, 1, 1, 1}, .group = 16}) +
               bias);
      b.output((image("b", 24, 9, 11).conv(family_weights(b, t, {32, 3, 3, 2}), {.stride = {2, 1}, .group = 8}) + bias)
                   .relu());
      // rows of a window that are held in parts, and taps far apart
      b.output(image("c", 8, 5, 70).conv(family_weights(b, t, {8, 1, 3, 31}), {.pads = {1, 15, 1, 15}, .group = 8}));
      b.output(image("d", 8, 5, 70)
                   .conv(family_weights(b, t, {8, 1, 1, 4}), {.stride = {1, 3}, .dilation = {1, 17}, .group = 8}));
      b.output(b.add(op::deconvolution{.stride = {2, 2}, .pads = {1, 1, 1, 1}, .group = 16}, image("e", 16, 7, 9),
                     family_weights(b, t, {16, 1, 4, 4})));
      b.output(b.add(
          op::deconvolution{
              .stride = {3, 2}, .dilation = {1, 3}, .output_padding = {1, 0}, .pads = {0, 2, 1, 1}, .group = 8},
          image("f", 24, 7, 9), family_weights(b, t, {24, 2, 2, 3})));
    });
  all.push_back([=](builder& b) {
    const value x = b.input("x", t, {2, 16, 5, 6, 7});
    b.output((x.conv(family_weights(b, t, {16, 1, 3, 3, 3}), {.pads = {1, 1, 1, 1, 1, 1}, .group = 16}) +
              b.input("bias", t, {16, 1, 1, 1})));
    b.output(b.add(op::deconvolution{.stride = {2, 1, 2}, .group = 16}, x, family_weights(b, t, {16, 1, 2, 3, 3})));
    const value line = b.input("line", t, {3, 12, 90});
    b.output(line.conv(family_weights(b, t, {12, 1, 31}), {.pads = {15, 15}, .group = 12}));
    b.output(line.conv(b.input("taps", t, {12, 1, 4}), {.pads = {3, 0}, .group = 12}));
    b.output(b.add(op::deconvolution{.stride = {5}, .group = 12}, line, family_weights(b, t, {12, 1, 10})));
  });
  return all;
}

// Sums so short that a thread makes a run of results; batches of one and of two dims, rows and columns contiguous.
inline programs short_products(dtype t) {
  programs all;
  all.push_back([=](builder& b) {
    const value many = b.input("many", t, {3001, 7, 9}), right = b.input("right", t, {3001, 9, 11});
    b.output(many.dot(right) + b.input("r", t, {3001, 7, 11}));
    b.output(b.input("theta", t, {5, 2, 3}).dot(b.input("base", t, {1, 3, 10000})).transpose({0, 2, 1}));
    b.output(b.input("x", t, {3, 50, 4, 8}).dot(b.input("w", t, {3, 50, 8, 16})).relu());
    // few rows of either factor, whose depth or rows are contiguous
    const value wide = b.input("wide", t, {512, 640}), few = b.input("few", t, {5, 512}),
                some = b.input("some", t, {640, 3});
    b.output((few.dot(wide) + b.input("bias", t, {640})).relu());
    b.output(wide.dot(some));
    b.output(wide.transpose({1, 0}).dot(few.transpose({1, 0})));
    b.output(some.transpose({1, 0}).dot(wide.transpose({1, 0})));
    b.output(b.input("rows", t, {3, 1, 256}).dot(b.input("columns", t, {3, 256, 300})));
    b.output(b.input("turned", t, {40, 4, 8}).transpose({0, 2, 1}).dot(b.input("v", t, {40, 4, 1})));
  });
  return all;
}

inline programs resampling(dtype t) {
  programs all;
  const auto tables = [](builder& b, op::resample o, const value& x, std::int64_t taps, const dims& extents) {
    small_vector<value> in{x};
    for (std::size_t k = 0; k < o.axes.size(); ++k) {
      const std::int64_t from = x.dim(o.axes[k]).value(), to = extents[k].value();
      std::vector<std::int64_t> at;
      std::vector<float> weight;
      for (std::int64_t i = 0; i < taps * to; ++i)
        at.push_back(i * 5 % (2 * from) - from), weight.push_back(static_cast<float>(i % 7) / 8);
      in.push_back(b.constant(literal::of<std::int64_t>({dtype::i64, {taps, to}}, at)));
      if (o.weighted) in.push_back(b.constant(literal::of<float>({dtype::f32, {taps, to}}, weight)));
    }
    return b.add(o, in);
  };
  all.push_back([=](builder& b) {
    const value x = b.input("x", t, {2, 8, 9, 11}), last = b.input("last", t, {2, 9, 11, 8});
    for (const bool weighted : {false, true})
      for (const std::int64_t taps : weighted ? std::vector<std::int64_t>{2, 4, 9} : std::vector<std::int64_t>{1}) {
        b.output(tables(b, {{2, 3}, weighted}, x, taps, {13, 20}));
        b.output(tables(b, {{1, 2}, weighted}, last, taps, {5, 30}));
        b.output(tables(b, {{2, 3}, weighted}, last.transpose({0, 3, 1, 2}), taps, {18, 22}).transpose({0, 2, 3, 1}));
        b.output(tables(b, {{0, 1, 3}, weighted}, x, taps, {1, 3, 7}));
      }
    b.output(tables(b, {{2, 3}, true}, b.input("much", t, {4, 64, 40, 40}), 2, {80, 80}));
    b.output(tables(b, {{2, 3}, false}, b.input("many", t, {4, 64, 40, 40}), 1, {80, 80}));
  });
  all.push_back([=](builder& b) {
    for (const dtype bytes : {dtype::u8, dtype::i8})
      b.output(tables(b, {{1}, true}, b.input("b" + std::string(to_string(bytes)), bytes, {3, 30, 4}), 2, {50}));
  });
  return all;
}

// Positions within +-`most`: of f32 any, of 16 bits multiples of a 127th of the next power of two, which they hold
// exactly, so that the device and the op's own computation find the same elements.
inline value positions(builder& b, const char* name, dtype t, const dims& lens, float most) {
  if (t == dtype::f32) return b.input(name, t, lens) * b.scalar(t, most);
  const float step = std::exp2(std::ceil(std::log2(most))) / 128;
  const auto steps = static_cast<std::int64_t>(most / step);
  std::vector<float> at;
  for (std::int64_t i = 0; i < product(lens).value(); ++i)
    at.push_back(static_cast<float>((i * 37 + 11) % (2 * steps + 1) - steps) * step);
  return b.constant<float>(t, lens, at);
}

inline programs samples_and_regions(dtype t) {
  programs all;
  for (const op::sampling_mode mode : {op::sampling_mode::nearest, op::sampling_mode::linear, op::sampling_mode::cubic})
    for (const op::sampling_padding padding :
         {op::sampling_padding::zeros, op::sampling_padding::border, op::sampling_padding::reflection})
      for (const bool corners : {false, true})
        all.push_back([=](builder& b) {
          op::grid_sample g{.mode = mode, .padding = padding, .align_corners = corners};
          const value x = b.input("x", t, {2, 11, 9, 7}), volume = b.input("volume", t, {1, 3, 4, 5, 6});
          b.output(b.add(g, x, positions(b, "grid", t, {2, 5, 13, 2}, 1.3f)));
          b.output(b.add(g, volume, positions(b, "points", t, {1, 77, 3}, 1.3f)));
          g.normalized = false;
          b.output(b.add(g, x, positions(b, "pixels", t, {2, 31, 2}, 12.f)));
          // images without an element: nothing but padding
          b.output(b.add(g, b.input("empty", t, {2, 3, 0, 4}), positions(b, "anywhere", t, {2, 5, 2}, 1.3f)));
        });
  all.push_back([=](builder& b) {
    const value x = b.input("x", t, {2, 21, 20, 18});
    const value low = positions(b, "low", t, {40, 2}, 9.f) + b.scalar(t, 5.f),
                size = positions(b, "size", t, {40, 2}, 15.f).relu();
    const value corners = low.concat(low + size, 1);
    std::vector<std::int64_t> which(40);
    for (std::size_t k = 0; k < which.size(); ++k) which[k] = static_cast<std::int64_t>(k % 3) - 1;
    const value images = b.constant(literal::of<std::int64_t>({dtype::i64, {40}}, which));
    for (const std::int64_t samples : {0, 2})
      for (const bool greatest : {false, true})
        b.output(b.add(op::roi_align{7, 5, samples, .5f, true, greatest}, x, corners, images));
    b.output(b.add(op::roi_align{7, 5, -1, .5f, true, true}, x, corners, images));
  });
  return all;
}

// Windows of many taps, along one dim after the other.
inline programs long_windows(dtype t) {
  programs all;
  all.push_back([=](builder& b) {
    const op::pooling square{.lengths = {13, 13}, .stride = {1, 1}, .pads = {6, 6, 6, 6}},
        uneven{.lengths = {7, 9}, .stride = {2, 3}, .dilation = {1, 2}, .pads = {3, 4, 2, 0}};
    const value x = b.input("x", t, {3, 24, 20, 33}),
                last = b.input("last", t, {2, 20, 33, 24}).transpose({0, 3, 1, 2}),
                w = family_weights(b, t, {8, 24, 1, 1});
    for (const op::pooling& p : {square, uneven}) {
      b.output(b.add(p, x));
      b.output(b.add(p, last + b.scalar(t, 1.f)).transpose({0, 2, 3, 1}));
      b.output(b.add(p, x).conv(w, {}));
    }
    b.output(b.add(op::pooling{.lengths = {4, 5, 3}, .stride = {1, 2, 1}, .pads = {1, 2, 0, 1, 2, 2}},
                   b.input("volume", t, {2, 3, 9, 10, 11})));
    // one tap that skips planes, of which there are as many then as before
    b.output(b.add(op::pooling{.lengths = {1, 6, 6}, .stride = {2, 1, 1}, .pads = {1, 0, 0, 1, 0, 0}},
                   b.input("planes", t, {1, 1, 3, 8, 8})));
  });
  return all;
}

inline programs ranges(dtype own) {
  programs all;
  const auto number = [](builder& b, dtype t, double x) {
    return b.constant(literal::of<double>({t, {}}, std::span<const double>(&x, 1)));
  };
  for (const dtype t : {dtype::f32, dtype::f64, dtype::i64, dtype::i32, dtype::u8, own})
    all.push_back([=](builder& b) {
      const value given = b.input("given", t, {});
      int n = 0;
      for (const auto& [start, limit, delta] :
           {std::array{3., 100., 7.}, {5., 4., 1.}, {0., 200., 1.}, {120., 3., is_integer(t) ? -3. : -2.5}})
        if (t != dtype::u8 || delta > 0)
          b.output(b.add(op::progression{dimension::symbol("count" + std::to_string(n++))}, given + number(b, t, start),
                         number(b, t, limit), number(b, t, delta)));
    });
  return all;
}

inline programs mel_weights(dtype own) {
  programs all;
  for (const dtype t : {dtype::f32, dtype::f64, own})
    for (const bool run_sizes : {false, true})
      all.push_back([=](builder& b) {
        // exact in every type: filters turn at whole bins, so that rounding could move one by a bin
        const value rate = b.input("rate", dtype::i64, {}) + b.scalar(dtype::i64, 16000),
                    lowest = b.input("lowest", t, {1}).abs() * b.scalar(t, 64.), highest = b.scalar(t, 7000.);
        for (const auto& [mels, length] : {std::pair{80, 1024}, {128, 401}, {3, 4099}, {1, 1}})
          if (!run_sizes) b.output(b.add(op::mel_weights{mels, length}, rate, lowest, highest));
        if (!run_sizes) return;
        // the numbers of filters and samples are data
        op::bind_dims named;
        named.names = {dimension::symbol("mels", 1), dimension::symbol("length", 1)};
        const std::int64_t most[] = {80, 1024};
        b.add(named,
              b.input("sizes", dtype::i64, {2}) + b.constant(literal::of<std::int64_t>({dtype::i64, {2}}, most)));
        b.output(b.add(op::mel_weights{named.names[0], named.names[1]}, rate, lowest, highest));
      });
  return all;
}

}  // namespace kiln::testing
