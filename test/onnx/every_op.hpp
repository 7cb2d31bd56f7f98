#pragma once
#include <functional>
#include <map>

#include "kiln/op/linear/mel_weights.hpp"
#include "kiln/op/more.hpp"
#include "kiln/op/ops.hpp"
#include "runtime/compare.hpp"

/// A program for every op of kiln's, and for those that stand alone in each dtype they compute in.
namespace kiln::testing {

struct op_program {
  std::string op, name;
  std::function<void(builder&)> make;
  dtype type = dtype::f32;
  double low = -3, high = 3;
};
inline void PrintTo(const op_program& p, std::ostream* out) { *out << p.name; }

namespace detail {

template <class Op> void add_simple(std::vector<op_program>& all) {
  static constexpr op_info info = info_of<Op>();
  if constexpr (info.kind == op_kind::pointwise || info.kind == op_kind::reduction)
    for (std::size_t k = 0; k < dtype_count; ++k) {
      const auto t = static_cast<dtype>(k);
      if (!info.types.contains(t)) continue;
      const auto make = [t](builder& b) {
        Op op{};
        if constexpr (info.kind == op_kind::reduction) op.axes = {1};
        small_vector<value> in;
        for (int i = 0; i < info.inputs; ++i)
          in.push_back(b.input("x" + std::to_string(i), i < info.conditions ? dtype::boolean : t, {3, 4}));
        b.output(b.add(op, in), "y");
      };
      const std::string name(info.name);
      all.push_back(
          {name, name + "_" + std::string(to_string(t)), make, t, is_float(t) ? -3.0 : 1.0, is_float(t) ? 3.0 : 7.0});
    }
}

inline value whole(builder& b, const dims& lens, const std::vector<std::int64_t>& values) {
  return b.constant(literal::of<std::int64_t>({dtype::i64, lens}, values));
}

}  // namespace detail

inline std::vector<op_program> every_op_program() {
  std::vector<op_program> all;
  [&]<class... Ops>(type_list<Ops...>) { (detail::add_simple<Ops>(all), ...); }(default_registry::types{});
  const auto add = [&](const char* op, const std::string& variant, std::function<value(builder&)> make) {
    all.push_back({op, op + variant, [make = std::move(make)](builder& b) { b.output(make(b), "y"); }});
  };
  const auto x = [](builder& b, const dims& lens, const char* name = "x") { return b.input(name, dtype::f32, lens); };
  using detail::whole;
  // views
  add("broadcast", "", [=](builder& b) { return x(b, {3}) | op::broadcast{1, {2, 3, 4}}; });
  add("expect_dims", "", [=](builder& b) { return x(b, {2, 3}) | op::expect_dims{{2, 3}}; });
  add("flatten", "", [=](builder& b) { return x(b, {2, 3, 4}) | op::flatten{2}; });
  add("multibroadcast", "", [=](builder& b) { return x(b, {3, 1}) | op::multibroadcast{{2, 3, 4}}; });
  add("reshape", "", [=](builder& b) { return x(b, {2, 6}) | op::reshape{{3, 4}}; });
  add("reverse", "", [=](builder& b) { return x(b, {2, 6}) | op::reverse{{1}}; });
  add("slice", "", [=](builder& b) { return x(b, {4, 9}) | op::slice{{1}, {1}, {8}, {3}}; });
  add("squeeze", "", [=](builder& b) { return x(b, {4, 1, 2}) | op::squeeze{{1}}; });
  add("transpose", "", [=](builder& b) { return x(b, {4, 1, 2}) | op::transpose{{2, 0, 1}}; });
  add("unsqueeze", "", [=](builder& b) { return x(b, {4, 2}) | op::unsqueeze{{1}}; });
  // products and windows
  add("convolution", "", [=](builder& b) {
    const op::convolution o{.stride = {2, 1}, .dilation = {1, 2}, .pads = {1, 2, 0, 1}, .group = 2};
    return b.add(o, x(b, {2, 4, 9, 8}), x(b, {6, 2, 3, 3}, "w"));
  });
  all.push_back(
      {"convolution", "convolution_i32",
       [](builder& b) {
         const op::convolution o{.stride = {2, 1}, .dilation = {1, 2}, .pads = {1, 2, 0, 1}, .group = 2};
         b.output(b.add(o, b.input("x", dtype::i32, {2, 4, 9, 8}), b.input("w", dtype::i32, {6, 2, 3, 3})), "y");
       },
       dtype::i32, -100, 100});
  all.push_back({"mel_weights", "mel_weights",
                 [](builder& b) {
                   const value rate = b.scalar(dtype::i64, 8000), highest = b.scalar(dtype::f32, 3900.0F);
                   b.output(b.add(op::mel_weights{8, 64}, rate, b.input("lowest", dtype::f32, {}), highest), "y");
                 },
                 dtype::f32, 0, 90});
  all.push_back({"mel_weights", "mel_weights_of_other_types",
                 [](builder& b) {
                   const value rate = b.scalar(dtype::f32, 8000.0F), lowest = b.scalar(dtype::i64, 31);
                   b.output(b.add(op::mel_weights{8, 64}, rate, lowest, b.input("highest", dtype::f32, {})), "y");
                 },
                 dtype::f32, 3000, 3900});
  add("deconvolution", "", [=](builder& b) {
    const op::deconvolution o{.stride = {2, 3}, .output_padding = {1, 0}, .pads = {1, 0, 1, 2}, .group = 2};
    return b.add(o, x(b, {2, 4, 4, 3}), x(b, {4, 2, 3, 3}, "w"));
  });
  add("dot", "", [=](builder& b) { return b.add(op::dot{}, x(b, {2, 3, 4}), x(b, {2, 4, 5}, "w")); });
  for (const bool causal : {false, true})
    add("attention", causal ? "_causal" : "", [=](builder& b) {
      const value k = x(b, {2, 2, 7, 8}, "k");
      return b.add(op::attention{.3f, causal}, x(b, {2, 4, 5, 8}), k, x(b, {2, 2, 7, 6}, "v"));
    });
  add("lrn", "", [=](builder& b) { return x(b, {2, 7, 3, 2}) | op::lrn{.size = 5, .alpha = .1f}; });
  for (const auto mode : {op::pooling_mode::max, op::pooling_mode::average, op::pooling_mode::lp})
    add("pooling", std::to_string(static_cast<int>(mode)).c_str(), [=](builder& b) {
      return x(b, {2, 3, 9, 8}) | op::pooling{.mode = mode, .lengths = {3, 2}, .stride = {2, 2}, .pads = {1, 0, 1, 1}};
    });
  // indices
  add("arg_max", "", [=](builder& b) { return x(b, {3, 5}) | op::arg_max{1}; });
  add("arg_min", "", [=](builder& b) { return x(b, {3, 5}) | op::arg_min{0}; });
  add("concat", "", [=](builder& b) { return b.add(op::concat{1}, x(b, {3, 5}), x(b, {3, 2}, "z")); });
  add("contiguous", "", [=](builder& b) { return x(b, {3, 5}) | op::contiguous{}; });
  for (const bool other : {false, true}) {
    add("cumsum", other ? "_back" : "", [=](builder& b) { return x(b, {3, 5}) | op::cumsum{1, other, other}; });
    add("cumprod", other ? "_back" : "", [=](builder& b) { return x(b, {3, 5, 2}) | op::cumprod{1, other, other}; });
  }
  add("fill", "", [=](builder& b) { return x(b, {3, 2}) + b.add(op::fill{{3, 2}, 1.5, dtype::f32}); });
  add("gather", "", [=](builder& b) { return b.add(op::gather{1}, x(b, {3, 5}), whole(b, {2, 2}, {0, -1, 4, 2})); });
  add("gather_elements", "", [=](builder& b) {
    return b.add(op::gather_elements{1}, x(b, {2, 5}), whole(b, {2, 2}, {0, -1, 4, 2}));
  });
  add("gather_nd", "", [=](builder& b) {
    return b.add(op::gather_nd{}, x(b, {2, 5}), whole(b, {2, 2}, {0, -1, 1, 2}));
  });
  add("iota", "", [=](builder& b) { return x(b, {2, 5}) + b.add(op::iota{{2, 5}, 1, dtype::f32}); });
  add("one_hot", "", [=](builder& b) { return b.add(op::one_hot{4, 1}, whole(b, {3}, {0, -1, 2}), x(b, {2})); });
  add("pad", "", [=](builder& b) {
    op::pad o;
    for (const std::int64_t n : {1, 0, 2, 3}) o.pads.push_back(n);
    return b.add(o, x(b, {2, 3}));
  });
  add("scatter_elements", "", [=](builder& b) {
    return b.add(op::scatter_elements{1, op::scatter_mode::add}, x(b, {2, 5}), whole(b, {2, 2}, {0, -1, 4, 4}),
                 x(b, {2, 2}, "u"));
  });
  add("scatter_nd", "", [=](builder& b) {
    return b.add(op::scatter_nd{op::scatter_mode::max}, x(b, {4, 2}), whole(b, {2, 1}, {3, 0}), x(b, {2, 2}, "u"));
  });
  add("topk", "", [=](builder& b) { return b.add(op::topk{3, 1}, x(b, {4, 6})); });
  add("tri", "", [=](builder& b) { return x(b, {4, 6}) | op::tri{false, 1}; });
  // beside the registry
  add("bit_cast", "", [=](builder& b) { return x(b, {3, 5}) | op::bit_cast{dtype::i32}; });
  for (const std::int64_t bits : {4, 8})
    add("block_dequantize", bits == 4 ? "_packed" : "", [=](builder& b) {
      const value data = b.constant(literal::of<std::int64_t>(
          {dtype::u8, {2, 4}}, small_vector<std::int64_t>{1, 35, 69, 103, 137, 171, 205, 255}));
      return b.add(op::block_dequantize{.bits = bits, .block = bits == 4 ? 4 : 2, .zero = 3}, data, x(b, {2, 2}));
    });
  add("det", "", [=](builder& b) { return x(b, {2, 3, 3}) | op::det{}; });
  add("inverse", "", [=](builder& b) { return x(b, {2, 3, 3}) | op::inverse{}; });
  for (const bool inverse : {false, true}) {
    add("dft", inverse ? "_back" : "", [=](builder& b) { return x(b, {2, 5, 3, 2}) | op::dft{1, inverse}; });
    add("dft", inverse ? "_half_back" : "_half", [=](builder& b) {
      return x(b, {2, 3, 6, inverse ? 2 : 1}) | op::dft{.inverse = inverse, .one_sided = true, .length = 8};
    });
  }
  for (const bool corrects : {false, true})
    all.push_back({"linear_attention", corrects ? "linear_attention_delta" : "linear_attention", [=](builder& b) {
                     const value k = x(b, {2, 3, 2, 4}, "k"), v = x(b, {2, 3, 2, 5}, "v");
                     const value y = b.add(op::linear_attention{.5f, corrects}, x(b, {2, 3, 4, 4}), k, v,
                                           x(b, {2, 2, 4, 5}, "s"), x(b, {2, 3, 2, 4}, "d"), x(b, {2, 3, 2}, "beta"));
                     b.output(y, "y");
                     b.output(y.result(1), "state");
                   }});
  for (const dtype t : {dtype::u8, dtype::i8, dtype::i16, dtype::u4}) {
    const std::string suffix = "_" + std::string(to_string(t));
    // ONNX Runtime's outputs of four bits are packed
    if (bits_of(t) != 4)
      add("quantize_linear", suffix, [=](builder& b) {
        return b.add(op::quantize_linear{t, 1}, x(b, {2, 3, 4}), b.scalar(dtype::f32, .25));
      });
    add("dequantize_linear", suffix, [=](builder& b) {
      const value scale = b.constant<float>(dtype::f32, {3}, std::vector<float>{.5F, 1, 2}),
                  zero = b.constant<int>(t, {3}, std::vector<int>{0, 1, 2});
      return b.add(op::dequantize_linear{1}, b.add(op::quantize_linear{t, 1}, x(b, {2, 3, 4}), scale, zero), scale,
                   zero);
    });
  }
  for (const bool weighted : {false, true})
    for (const dtype t : {dtype::f32, dtype::u8}) {
      const std::string suffix = (weighted ? "_sums_" : "_picks_") + std::string(to_string(t));
      add("resample", suffix, [=](builder& b) {
        const std::int64_t taps = weighted ? 2 : 1;
        const auto at = [&](std::vector<std::int64_t> list) {
          list.resize(static_cast<std::size_t>(3 * taps));
          return b.constant<std::int64_t>(dtype::i64, {taps, 3}, list);
        };
        const value image = t == dtype::f32 ? x(b, {1, 2, 4, 5}) : (x(b, {1, 2, 4, 5}) * 9.0F + 100.0F).convert(t);
        small_vector<value> in{image, at({1, 0, 3, 0, -1, 2})};
        if (weighted)
          in.push_back(b.constant<float>(dtype::f32, {2, 3}, std::vector<float>{.5F, 1, .25F, .5F, 0, .75F}));
        in.push_back(at({4, -2, 0, 1, 1, 2}));
        if (weighted)
          in.push_back(b.constant<float>(dtype::f32, {2, 3}, std::vector<float>{1, .5F, .75F, 0, .5F, .25F}));
        return b.add(op::resample{{2, 3}, weighted}, in);
      });
    }
  for (const op::sampling_mode mode : {op::sampling_mode::nearest, op::sampling_mode::linear, op::sampling_mode::cubic})
    for (const op::sampling_padding padding :
         {op::sampling_padding::zeros, op::sampling_padding::border, op::sampling_padding::reflection})
      for (const bool corners : {false, true})
        add("grid_sample",
            "_" + std::string(to_string(mode)) + "_" + std::string(to_string(padding)) + (corners ? "_corners" : ""),
            [=](builder& b) {
              return b.add(op::grid_sample{mode, padding, corners, mode != op::sampling_mode::cubic},
                           x(b, {2, 3, 4, 5}), x(b, {2, 3, 2, 2}, "grid") * 1.3F);
            });
  for (const std::int64_t samples : {0, -1})
    add("roi_align", samples < 0 ? "whole pixels" : "", [=](builder& b) {
      op::roi_align o;
      o.height = 2, o.width = 3, o.samples = samples, o.greatest = samples < 0;
      const value rois = b.constant(literal::of<float>({dtype::f32, {1, 4}}, small_vector<float>{1, 1, 6, 5}));
      return b.add(o, x(b, {1, 2, 8, 8}), rois, whole(b, {1}, {0}));
    });
  return all;
}

inline std::map<std::string, argument> inputs_of(const program& p, const op_program& o) {
  std::map<std::string, argument> given;
  unsigned seed = 3;
  for (const value_id v : p.main().parameters())
    given.emplace(std::string(std::string_view(p.main().producer(v).name)),
                  random_argument(p.main().shape_of(v), ++seed, o.low, o.high));
  return given;
}

}  // namespace kiln::testing
