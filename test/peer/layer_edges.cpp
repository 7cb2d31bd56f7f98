#include "peer/edge_cases.hpp"

namespace kiln::peer {

std::vector<edge_case> layer_edges() {
  const tensor_of image = some({1, 2, 5, 6}), filters = some({3, 2, 3, 3}), wave = some({2, 4, 9}),
                  taps = some({3, 4, 3});
  std::vector<edge_case> all;
  const auto add = [&](edge_case c) { all.push_back(std::move(c)); };
  const std::vector<message> no{};
  add({"Conv", "plain", 11, {image, filters}});
  add({"Conv", "same_lower", 11, {image, filters}, {attr("auto_pad", "SAME_LOWER"), attr("strides", lens{2, 2})}});
  add({"Conv",
       "same_upper",
       11,
       {image, some({3, 2, 2, 4})},
       {attr("auto_pad", "SAME_UPPER"), attr("strides", lens{1, 2})}});
  add({"Conv", "valid", 11, {image, filters, some({3})}, {attr("auto_pad", "VALID"), attr("dilations", lens{2, 1})}});
  add({"Conv", "uneven_pads", 11, {image, filters}, {attr("pads", lens{0, 2, 3, 1})}});
  add({"Conv", "signal", 11, {wave, taps, some({3})}, {attr("dilations", lens{2}), attr("pads", lens{3, 0})}});
  add({"Conv", "volume", 11, {some({1, 2, 3, 4, 5}), some({2, 2, 2, 2, 2})}, {attr("strides", lens{1, 2, 3})}});
  add({"Conv", "no_batch", 11, {some({0, 2, 5, 6}), filters}});
  add({"Conv", "larger_than_image", 11, {some({1, 2, 2, 2}), filters}, {attr("pads", lens{1, 1, 1, 1})}});
  add({"Conv",
       "nan",
       11,
       {f({1, 1, 2, 2}, {nan, 1, inf, 2}), f({1, 1, 2, 2}, {1, 0, 0, 1})},
       {attr("pads", lens{1, 1, 0, 0})}});
  add({"Conv",
       "groups",
       11,
       {some({2, 4, 5, 5}), some({6, 2, 3, 3}), some({6})},
       {attr("group", 2), attr("strides", lens{2, 1})}});
  add({"Conv",
       "depthwise",
       11,
       {some({2, 4, 5, 5}), some({8, 1, 3, 3})},
       {attr("group", 4), attr("pads", lens{1, 0, 0, 1})}});
  add({"Conv", "long_stride", 11, {image, some({3, 2, 1, 1})}, {attr("strides", lens{7, 9})}});
  add({"ConvTranspose", "plain", 11, {image, some({2, 3, 3, 3})}});
  add({"ConvTranspose",
       "output_shape",
       11,
       {image, some({2, 3, 3, 3})},
       {attr("output_shape", lens{11, 14}), attr("strides", lens{2, 2})}});
  add({"ConvTranspose",
       "output_shape_lower",
       11,
       {image, some({2, 3, 3, 3})},
       {attr("output_shape", lens{10, 13}), attr("strides", lens{2, 2}), attr("auto_pad", "SAME_LOWER")}});
  add({"ConvTranspose",
       "same_upper",
       11,
       {image, some({2, 3, 3, 3})},
       {attr("strides", lens{2, 3}), attr("auto_pad", "SAME_UPPER")}});
  add({"ConvTranspose",
       "output_padding",
       11,
       {image, some({2, 3, 3, 3}), some({3})},
       {attr("strides", lens{3, 2}), attr("output_padding", lens{2, 1}), attr("pads", lens{1, 0, 2, 1})}});
  add({"ConvTranspose", "dilated", 11, {image, some({2, 3, 2, 3})}, {attr("dilations", lens{3, 2})}});
  add({"ConvTranspose",
       "groups",
       11,
       {some({1, 4, 3, 3}), some({4, 2, 2, 2})},
       {attr("group", 2), attr("strides", lens{2, 2})}});
  add({"ConvTranspose", "signal", 11, {wave, some({4, 2, 3})}, {attr("strides", lens{2})}});
  add({"MaxPool",
       "ceil",
       12,
       {image},
       {attr("kernel_shape", lens{2, 2}), attr("strides", lens{2, 2}), attr("ceil_mode", 1)}});
  add({"MaxPool",
       "ceil_pads",
       12,
       {image},
       {attr("kernel_shape", lens{3, 3}), attr("strides", lens{3, 3}), attr("pads", lens{1, 1, 1, 1}),
        attr("ceil_mode", 1)}});
  add({"MaxPool",
       "ceil_beyond",
       12,
       {some({1, 1, 4})},
       {attr("kernel_shape", lens{1}), attr("strides", lens{3}), attr("pads", lens{0, 0}), attr("ceil_mode", 1)}});
  add({"MaxPool",
       "indices",
       12,
       {image},
       {attr("kernel_shape", lens{2, 3}), attr("pads", lens{1, 0, 0, 2})},
       {f32, i64}});
  add({"MaxPool",
       "column_indices",
       12,
       {image},
       {attr("kernel_shape", lens{2, 3}), attr("storage_order", 1)},
       {f32, i64}});
  add({"MaxPool", "dilated", 12, {image}, {attr("kernel_shape", lens{2, 2}), attr("dilations", lens{2, 3})}});
  add({"MaxPool",
       "negative",
       12,
       {f({1, 1, 4}, {-1e30, -1e30, -1e30, 1})},
       {attr("kernel_shape", lens{2}), attr("pads", lens{1, 1})}});
  add({"MaxPool",
       "bytes",
       12,
       {some({1, 1, 4, 4}, u8)},
       {attr("kernel_shape", lens{3, 3}), attr("pads", lens{1, 1, 1, 1})},
       {u8}});
  add({"MaxPool",
       "signed_bytes",
       12,
       {n({1, 1, 4}, {-128, -100, -3, -128}, i8)},
       {attr("kernel_shape", lens{2}), attr("pads", lens{1, 1})},
       {i8}});
  add({"MaxPool", "same_lower", 12, {image}, {attr("kernel_shape", lens{2, 2}), attr("auto_pad", "SAME_LOWER")}});
  add({"MaxPool",
       "same_upper_strides",
       12,
       {image},
       {attr("kernel_shape", lens{3, 2}), attr("strides", lens{2, 2}), attr("auto_pad", "SAME_UPPER")}});
  add({"MaxPool",
       "volume",
       12,
       {some({1, 1, 3, 4, 5})},
       {attr("kernel_shape", lens{2, 2, 2}), attr("strides", lens{1, 2, 2})}});
  add({"MaxPool", "no_batch", 12, {some({0, 2, 5, 6})}, {attr("kernel_shape", lens{2, 2})}});
  add({"AveragePool",
       "ceil",
       19,
       {image},
       {attr("kernel_shape", lens{2, 2}), attr("strides", lens{2, 2}), attr("ceil_mode", 1)}});
  add({"AveragePool",
       "ceil_counted",
       19,
       {image},
       {attr("kernel_shape", lens{3, 3}), attr("strides", lens{2, 2}), attr("pads", lens{1, 1, 1, 1}),
        attr("ceil_mode", 1), attr("count_include_pad", 1)}});
  add({"AveragePool",
       "ceil_counted_old",
       11,
       {image},
       {attr("kernel_shape", lens{3, 3}), attr("strides", lens{2, 2}), attr("pads", lens{1, 1, 1, 1}),
        attr("ceil_mode", 1), attr("count_include_pad", 1)}});
  add({"AveragePool", "pads", 11, {image}, {attr("kernel_shape", lens{3, 3}), attr("pads", lens{1, 0, 2, 1})}});
  add({"AveragePool",
       "counted",
       7,
       {image},
       {attr("kernel_shape", lens{3, 3}), attr("pads", lens{1, 0, 2, 1}), attr("count_include_pad", 1)}});
  add({"AveragePool", "dilated", 19, {image}, {attr("kernel_shape", lens{2, 2}), attr("dilations", lens{2, 2})}});
  add({"AveragePool",
       "same",
       11,
       {image},
       {attr("kernel_shape", lens{2, 3}), attr("auto_pad", "SAME_UPPER"), attr("strides", lens{2, 2})}});
  add({"AveragePool",
       "same_lower_counted",
       11,
       {image},
       {attr("kernel_shape", lens{2, 3}), attr("auto_pad", "SAME_LOWER"), attr("count_include_pad", 1)}});
  add({"LpPool",
       "three",
       18,
       {image},
       {attr("kernel_shape", lens{2, 2}), attr("p", 3), attr("pads", lens{1, 1, 0, 0})}});
  add({"LpPool", "one", 11, {image}, {attr("kernel_shape", lens{2, 2}), attr("p", 1), attr("strides", lens{2, 1})}});
  add({"GlobalMaxPool", "signal", 1, {wave}});
  add({"GlobalAveragePool", "volume", 1, {some({2, 3, 2, 2, 2})}});
  add({"GlobalLpPool", "three", 2, {image}, {attr("p", 3)}});
  add({"GlobalMaxPool", "infinite", 1, {f({1, 2, 2}, {5, 1, 2, -inf})}});
  const tensor_of two = some({2}), variances = f({2}, {.5, 2});
  for (const std::int64_t v : {7, 9, 14, 15})
    add({"BatchNormalization", "v" + std::to_string(v), v, {image, two, two, two, variances}, {attr("epsilon", 0.1f)}});
  add({"BatchNormalization", "matrix", 15, {some({3, 2}), two, two, two, variances}});
  add({"BatchNormalization", "no_batch", 15, {some({0, 2, 3}), two, two, two, variances}});
  add({"InstanceNormalization", "signal", 6, {some({2, 2, 5}), two, two}});
  add({"InstanceNormalization", "constant", 6, {f({1, 2, 2}, {5, 5, 1, 1}), two, two}});
  add({"GroupNormalization", "v21", 21, {some({2, 4, 3}), some({4}), some({4})}, {attr("num_groups", 2)}});
  add({"LRN",
       "even",
       13,
       {some({1, 5, 2, 2})},
       {attr("size", 4), attr("alpha", 0.5f), attr("beta", 0.75f), attr("bias", 2.0f)}});
  const auto resize = [&](std::string detail, std::vector<std::int64_t> sizes, std::vector<message> attributes,
                          tensor_of x = some({1, 1, 3, 4})) {
    const auto rank = static_cast<std::int64_t>(sizes.size());
    add({"Resize",
         std::move(detail),
         19,
         {std::move(x), absent, absent, n({rank}, std::move(sizes))},
         std::move(attributes)});
  };
  const auto scaled = [&](std::string detail, std::vector<double> scales, std::vector<message> attributes) {
    const auto rank = static_cast<std::int64_t>(scales.size());
    add({"Resize",
         std::move(detail),
         13,
         {some({1, 1, 5, 7}), absent, f({rank}, std::move(scales))},
         std::move(attributes)});
  };
  for (const char* where : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"})
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      const std::string name = std::string(mode) + "_" + where;
      resize(name + "_up", {1, 1, 7, 9}, {attr("mode", mode), attr("coordinate_transformation_mode", where)});
      resize(name + "_down", {1, 1, 1, 2}, {attr("mode", mode), attr("coordinate_transformation_mode", where)});
      if (std::string_view(where) != "align_corners")
        scaled(name + "_scaled", {1, 1, .6, 1.7}, {attr("mode", mode), attr("coordinate_transformation_mode", where)});
    }
  for (const char* rule : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    resize(std::string("nearest_") + rule, {1, 1, 6, 2}, {attr("nearest_mode", rule)});
  resize("half_pixel_symmetric", {1, 1, 7, 2},
         {attr("mode", "linear"), attr("coordinate_transformation_mode", "half_pixel_symmetric")});
  scaled("half_pixel_symmetric_scaled", {1, 1, .7, 1.3},
         {attr("mode", "linear"), attr("coordinate_transformation_mode", "half_pixel_symmetric")});
  resize("cubic_outside", {1, 1, 5, 7},
         {attr("mode", "cubic"), attr("exclude_outside", 1), attr("cubic_coeff_a", -0.5f)});
  resize("antialias_linear", {1, 1, 2, 2}, {attr("mode", "linear"), attr("antialias", 1)});
  resize("antialias_cubic", {1, 1, 2, 3}, {attr("mode", "cubic"), attr("antialias", 1)});
  add({"Resize",
       "crop",
       13,
       {some({1, 1, 4, 4}), f({8}, {0, 0, .4, -.2, 1, 1, 1.2, .8}), absent, n({4}, {1, 1, 3, 5})},
       {attr("mode", "linear"), attr("coordinate_transformation_mode", "tf_crop_and_resize"),
        attr("extrapolation_value", 9.0f)}});
  add({"Resize",
       "axes",
       19,
       {some({3, 4, 1}), absent, absent, n({2}, {5, 2})},
       {attr("axes", lens{1, 0}), attr("mode", "linear")}});
  add({"Resize",
       "not_larger",
       19,
       {some({1, 1, 3, 6}), absent, absent, n({2}, {6, 6})},
       {attr("axes", lens{2, 3}), attr("keep_aspect_ratio_policy", "not_larger"), attr("mode", "linear")}});
  add({"Resize",
       "not_smaller",
       19,
       {some({1, 1, 3, 6}), absent, absent, n({2}, {5, 7})},
       {attr("axes", lens{2, 3}), attr("keep_aspect_ratio_policy", "not_smaller"), attr("mode", "nearest")}});
  add({"Resize", "bytes", 13, {some({1, 1, 3, 4}, u8), absent, f({4}, {1, 1, 2, 2})}, {attr("mode", "linear")}, {u8}});
  add({"Resize", "v10", 10, {some({1, 1, 3, 4}), f({4}, {1, 1, 2, .5})}, {attr("mode", "linear")}});
  add({"Resize", "v10_nearest", 10, {some({1, 1, 3, 4}), f({4}, {1, 1, 1.5, .5})}});
  add({"Resize", "volume", 13, {some({1, 1, 2, 3, 2}), absent, f({5}, {1, 1, 2, 1.5, .5})}, {attr("mode", "linear")}});
  add({"Upsample", "v9", 9, {some({1, 1, 3, 4}), f({4}, {1, 1, 2, 1.5})}, {attr("mode", "linear")}});
  add({"Upsample",
       "v7",
       7,
       {some({1, 1, 3, 4})},
       {test::attribute("scales", 6).real(7, 1).real(7, 1).real(7, 2).real(7, 3)}});
  const auto direction = [](const char* d) { return attr("direction", d); };
  const tensor_of steps = some({4, 2, 3});
  for (const auto& [op, gates] : {std::pair<const char*, std::int64_t>{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const std::vector<int> made = gates == 4 ? std::vector<int>{f32, f32, f32} : std::vector<int>{f32, f32};
    add({op, "plain", 14, {steps, some({1, 2 * gates, 3}), some({1, 2 * gates, 2})}, {attr("hidden_size", 2)}, made});
    add({op,
         "lengths",
         14,
         {steps, some({1, 2 * gates, 3}), some({1, 2 * gates, 2}), some({1, 4 * gates}), n({2}, {4, 2}, i32)},
         {attr("hidden_size", 2)},
         made});
    add({op,
         "reverse",
         14,
         {steps, some({1, 2 * gates, 3}), some({1, 2 * gates, 2}), absent, n({2}, {1, 3}, i32)},
         {attr("hidden_size", 2), direction("reverse")},
         made});
    add({op,
         "both",
         14,
         {steps, some({2, 2 * gates, 3}), some({2, 2 * gates, 2}), some({2, 4 * gates}), n({2}, {3, 4}, i32),
          some({2, 2, 2})},
         {attr("hidden_size", 2), direction("bidirectional"), attr("clip", 0.5f)},
         made});
    add({op,
         "last_alone",
         14,
         {steps, some({1, 2 * gates, 3}), some({1, 2 * gates, 2})},
         {attr("hidden_size", 2)},
         {0, f32}});
    add({op,
         "given_state",
         14,
         {steps, some({1, 2 * gates, 3}), some({1, 2 * gates, 2}), absent, n({2}, {1, 3}, i32), some({1, 2, 2})},
         {attr("hidden_size", 2)},
         made});
  }
  add({"GRU",
       "before_reset",
       14,
       {steps, some({1, 6, 3}), some({1, 6, 2}), some({1, 12})},
       {attr("hidden_size", 2), attr("linear_before_reset", 1)},
       {f32, f32}});
  add({"LSTM",
       "peepholes",
       14,
       {steps, some({1, 8, 3}), some({1, 8, 2}), some({1, 16}), absent, some({1, 2, 2}), some({1, 2, 2}), some({1, 6})},
       {attr("hidden_size", 2)},
       {f32, f32, f32}});
  add({"RNN",
       "affine",
       14,
       {steps, some({1, 2, 3}), some({1, 2, 2})},
       {attr("hidden_size", 2), attr_texts("activations", {"LeakyRelu"}), attr_floats("activation_alpha", {.3f})},
       {f32, f32}});
  add({"GridSample",
       "border",
       16,
       {some({1, 2, 3, 4}), f({1, 2, 2, 2}, {-2, .3, nan, 1, .9, -.9, 0, 7})},
       {attr("padding_mode", "border")}});
  add({"GridSample",
       "zeros",
       16,
       {some({1, 2, 3, 4}), f({1, 2, 2, 2}, {-2, .3, .1, 1, .9, -.9, 0, 7})},
       {attr("align_corners", 1)}});
  add({"GridSample",
       "reflection",
       16,
       {some({1, 1, 3, 4}), f({1, 1, 4, 2}, {-2.4, .3, 1.7, 1, .9, -3.9, 0, 7})},
       {attr("padding_mode", "reflection"), attr("mode", "bicubic")}});
  add({"GridSample",
       "nearest",
       16,
       {some({1, 1, 3, 4}), f({1, 1, 4, 2}, {-1, -1, 1, 1, .25, -.5, .5, .5})},
       {attr("mode", "nearest")},
       {f32},
       1e-5,
       true});
  add({"RoiAlign",
       "half",
       16,
       {some({2, 1, 4, 5}), f({2, 4}, {0, 0, 3, 3, -1, 2, 9, 9}), n({2}, {1, 0})},
       {attr("output_height", 2), attr("output_width", 2), attr("sampling_ratio", 2)}});
  add({"RoiAlign",
       "adaptive",
       10,
       {some({2, 1, 4, 5}), f({2, 4}, {0, 0, 3, 3, 1, 2, 1, 2}), n({2}, {1, 0})},
       {attr("output_height", 2), attr("output_width", 2), attr("mode", "avg")}});
  add({"RoiAlign", "none", 16, {some({2, 1, 4, 5}), f({0, 4}, {}), n({0}, {})}, {attr("output_height", 2)}});
  add({"MaxRoiPool",
       "two",
       1,
       {some({1, 1, 4, 5}), f({2, 5}, {0, 0, 0, 3, 3, 0, 1, 2, 4, 3})},
       {attr("pooled_shape", lens{2, 2})}});
  const tensor_of boxes = f({1, 4, 4}, {0, 0, 1, 1, 0, 0, 1, .9, 2, 2, 1, 1, 0, 3, 1, 4}),
                  scores = f({1, 1, 4}, {.5, .9, .5, .1});
  add({"NonMaxSuppression", "all", 11, {boxes, scores, n({}, {10}), f({}, {.5}), f({}, {.2})}, no, {i64}});
  add({"NonMaxSuppression", "default_none", 11, {boxes, scores}, no, {i64}});
  add({"NonMaxSuppression",
       "centers",
       11,
       {boxes, scores, n({1}, {3}), f({1}, {0})},
       {attr("center_point_box", 1)},
       {i64}});
  add({"NonMaxSuppression", "no_boxes", 11, {some({1, 0, 4}), some({1, 1, 0}), n({}, {3})}, no, {i64}});
  add({"ConvInteger",
       "padded",
       10,
       {some({1, 1, 4, 4}, u8), some({1, 1, 2, 2}, u8), n({}, {9}, u8), n({}, {3}, u8)},
       {attr("pads", lens{1, 0, 0, 1})},
       {i32}});
  add({"QLinearConv",
       "channels",
       10,
       {some({1, 1, 4, 4}, u8), f({}, {.1}), n({}, {9}, u8), some({2, 1, 2, 2}, i8), f({2}, {.2, .4}),
        n({2}, {0, 0}, i8), f({}, {.3}), n({}, {100}, u8), n({2}, {100, -70}, i32)},
       {attr("pads", lens{1, 1, 1, 1})},
       {u8}});
  add({"Dropout", "mask", 13, {some({2, 3})}, no, {f32, boolean}});
  add({"Dropout", "untrained", 13, {some({2, 3}), f({}, {.5}), n({}, {0}, boolean)}, no, {f32, boolean}});
  add({"Dropout", "no_ratio", 13, {some({2, 3}), f({}, {0}), n({}, {1}, boolean)}, no, {f32, boolean}});
  return all;
}

}  // namespace kiln::peer
