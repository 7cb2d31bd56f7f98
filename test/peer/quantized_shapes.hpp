#pragma once
#include "peer/one_node.hpp"

/// Operators on bytes over types, attributes and odd shapes.
namespace kiln::peer {

class quantized_shapes {
 public:
  std::vector<one_node> all;

  quantized_shapes() {
    for (const bool is_signed : {false, true}) {
      byte_ = is_signed ? i8 : u8;
      zero_ = {byte_, {}, 0, 0, {is_signed ? -3 : 131}};
      suffix_ = is_signed ? "_i8" : "_u8";
      add_sums();
      add_windows();
      add_rows();
      add_products();
    }
    add_stored_weights();
  }

 private:
  operand bytes(const lens& extents) const {
    return byte_ == i8 ? operand{i8, extents, -128, 128} : operand{u8, extents, 0, 256};
  }
  void add(const std::string& name, const std::string& op, const std::vector<std::vector<operand>>& operands,
           std::vector<message> attributes = {}, const std::string& domain = microsoft, double tolerance = 1.01 / 128) {
    one_node n{name + suffix_, op, domain, 20, {}, std::move(attributes), {byte_}, tolerance};
    for (const auto& part : operands) n.inputs.insert(n.inputs.end(), part.begin(), part.end());
    all.push_back(std::move(n));
  }
  // A tensor with its scale and zero point, and those of a result.
  std::vector<operand> real(const lens& extents, double scale = .03) const {
    return {bytes(extents), {f32, {}, scale, scale * 1.5}, zero_};
  }
  std::vector<operand> result(double scale = .05) const { return {{f32, {}, scale, scale * 1.2}, zero_}; }

  void add_sums() {
    for (const char* op : {"QLinearAdd", "QLinearMul"}) {
      add(std::string(op) + "_row", op, {real({2, 3, 5, 7}), real({7}), result(.2)});
      add(std::string(op) + "_channels", op, {real({3, 1, 1}), real({2, 3, 5, 7}), result(.2)});
      add(std::string(op) + "_both", op, {real({2, 1, 9}), real({5, 1}), result(.2)});
    }
    add("where_repeated", "QLinearWhere", {{{boolean, {5, 1}, 0, 1}}, real({9}), real({2, 1, 9}), result()});
    add("concat_last", "QLinearConcat", {result(), real({3, 2}), real({3, 5}, .01), real({3, 1})}, {attr("axis", -1)});
    add("sigmoid_of_one", "QLinearSigmoid", {real({1}), result(.004)});
    add("leaky_odd", "QLinearLeakyRelu", {real({3, 67}), result()}, {attr("alpha", .3F)});
  }
  void add_windows() {
    for (const lens& image : {lens{2, 3, 11}, lens{1, 5, 7, 9}, lens{1, 2, 5, 6, 7}}) {
      const auto axes = image.size() - 2;
      const std::string of = std::to_string(axes);
      const auto of_axes = [&](std::int64_t v, std::size_t n = 1) { return lens(n * axes, v); };
      for (const int counted : {0, 1})
        add("average_" + of + "_" + std::to_string(counted), "QLinearAveragePool", {real(image), result()},
            {attr("kernel_shape", of_axes(3)), attr("strides", of_axes(2)), attr("pads", of_axes(1, 2)),
             attr("count_include_pad", counted), attr("ceil_mode", counted && axes < 3)});
      add("global_" + of, "QLinearGlobalAveragePool", {real(image), result()});
      lens filter{6, image[1], 3};
      filter.resize(axes + 2, 3);
      const operand none_of_6{i8, {6}, 0, 0, lens(6, 0)}, scales{f32, {6}, .01, .02};
      add("conv_" + of, "QLinearConv",
          {real(image), {{i8, filter, -128, 128}, scales, none_of_6}, result(.5), {{i32, {6}, -90, 90}}},
          {attr("pads", of_axes(1, 2)), attr("strides", of_axes(2))}, "");
    }
    const operand none_of_8{i8, {8}, 0, 0, lens(8, 0)};
    add("conv_grouped", "QLinearConv",
        {real({1, 4, 9, 8}), {{i8, {8, 2, 3, 3}, -128, 128}, {f32, {8}, .01, .02}, none_of_8}, result(.5)},
        {attr("group", 2), attr("dilations", lens{2, 1})}, "");
    add("conv_depthwise", "QLinearConv",
        {real({2, 8, 9, 8}), {{i8, {8, 1, 3, 3}, -128, 128}, {f32, {}, .01, .02}, {i8, {}, 0, 0, {0}}}, result(.3)},
        {attr("group", 8), attr("auto_pad", "SAME_UPPER")}, "");
    add("average_channels_last", "QLinearAveragePool", {real({1, 7, 9, 5}), result()},
        {attr("kernel_shape", lens{2, 3}), attr("channels_last", 1)});
    add("global_channels_last", "QLinearGlobalAveragePool", {real({2, 7, 9, 5}), result()}, {attr("channels_last", 1)});
  }
  void add_rows() {
    for (const int opset : {11, 13})
      for (const int axis : {0, 1, -1})
        add("softmax_" + std::to_string(opset) + "_" + (axis < 0 ? "last" : std::to_string(axis)), "QLinearSoftmax",
            {real({3, 5, 7}), {{f32, {}, .0039, .004}, {byte_, {}, 0, 0, {byte_ == i8 ? -128 : 0}}}},
            {attr("axis", axis), attr("opset", opset)}, microsoft, 1.01 / 64);  // no result reaches 128
  }
  void add_products() {
    const operand matrix{i8, {17, 5}, -128, 128}, columns{f32, {5}, .01, .02}, zeros{i8, {5}, 0, 0, lens(5, 0)};
    const operand one{f32, {}, .01, .02}, none_of_1{i8, {}, 0, 0, {0}}, some{i8, {}, 0, 0, {7}};
    for (const lens& rows : {lens{3, 17}, lens{2, 3, 17}, lens{1, 17}}) {
      const std::string of = std::to_string(rows.size()) + "_" + std::to_string(rows[rows.size() - 2]);
      add("product_" + of, "QLinearMatMul", {real(rows), {matrix, one, some}, result(.6)}, {}, "");
      add("product_by_column_" + of, "QLinearMatMul", {real(rows), {matrix, columns, zeros}, result(.6)}, {}, "");
    }
    add("product_of_batches", "QLinearMatMul",
        {real({2, 3, 4}), {{i8, {2, 4, 6}, -128, 128}, one, none_of_1}, result(.3)}, {}, "");
    add("gemm_plain", "QGemm", {real({3, 17}), {matrix, one, none_of_1, none}, result(.6)});
    add("gemm_bias", "QGemm", {real({3, 17}), {matrix, columns, zeros, {i32, {5}, -900, 900}}, result(.6)});
    add("gemm_of_rows", "QGemm", {real({3, 17}), {matrix, one, some, {i32, {3, 5}, -900, 900}}, result(.6)},
        {attr("alpha", .5F)});
    add("gemm_turned", "QGemm",
        {real({17, 3}), {{i8, {5, 17}, -128, 128}, columns, zeros, {i32, {1, 5}, -900, 900}}, result(.6)},
        {attr("transA", 1), attr("transB", 1)});
  }
  void add_stored_weights() {
    for (const std::int64_t bits : {2, 4, 8}) {
      const std::int64_t depth = 40, block = 16, blocks = 3;
      const std::vector<message> attributes{attr("K", depth), attr("N", 6), attr("bits", bits),
                                            attr("block_size", block)};
      const operand data{u8, {6, blocks, block * bits / 8}, 0, 256}, scale{f32, {6 * blocks}, .01, .1},
          zeros{u8, {6 * ((blocks * bits + 7) / 8)}, 0, 256};
      const auto put = [&](const std::string& name, const lens& left, std::vector<operand> more) {
        more.insert(more.begin(), {{f32, left}, data, scale});
        all.push_back({name + std::to_string(bits), "MatMulNBits", microsoft, 20, more, attributes, {f32}, 2e-4});
      };
      put("stored_vector_", {depth}, {});
      put("stored_batch_", {2, 1, depth}, {zeros});
      put("stored_bias_", {3, depth}, {none, none, {f32, {6}}});
    }
  }

  int byte_ = u8;
  operand zero_;
  std::string suffix_;
};

inline std::vector<one_node> quantized_shape_cases() { return quantized_shapes().all; }

}  // namespace kiln::peer
