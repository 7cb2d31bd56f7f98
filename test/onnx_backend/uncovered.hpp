#pragma once
#include "peer/microsoft_cases.hpp"
#include "peer/ml_cases.hpp"
#include "peer/quantized_cases.hpp"

/// Models of one node for operators that neither ONNX's cases nor the comparisons with ONNX Runtime have.
namespace kiln::peer {

inline std::vector<one_node> uncovered_cases() {
  const operand x{f32, {2, 3, 8, 8}}, row{f32, {4, 6}}, v{f32, {6}}, nhwc{f32, {2, 4, 4, 8}}, channels{f32, {8}};
  const operand scale{f32, {}, .01, .05}, q{u8, {4, 6}, 0, 255}, zero{u8, {}, 0, 0, {7}};
  const auto shaped = attr("shape", lens{2, 3});
  const auto groups = std::vector<message>{attr("groups", 2), attr("activation", 1), attr("channels_last", 1)};
  return {
      {"affine", "Affine", "", 6, {row}, {}},
      {"bitwise_or", "BitwiseOr", "", 20, {{i32, {4}}, {i32, {4}}}, {}, {i32}},
      {"constant_fill", "ConstantFill", "", 6, {row}, {}},
      {"crop", "Crop", "", 6, {x}, {attr("border", lens{1, 1, 1, 1})}},
      {"dynamic_slice", "DynamicSlice", "", 6, {row, {i64, {1}, 0, 0, {1}}, {i64, {1}, 0, 0, {2}}}, {}},
      {"given_tensor_fill",
       "GivenTensorFill",
       "",
       6,
       {},
       {attr("shape", lens{2}), test::attribute("values", 6).real(7, 1).real(7, 2)}},
      {"image_scaler", "ImageScaler", "", 6, {x}, {}},
      {"parametric_softplus", "ParametricSoftplus", "", 6, {row}, {}},
      {"scale", "Scale", "", 6, {row}, {}},
      {"scaled_tanh", "ScaledTanh", "", 6, {row}, {}},
      {"global_lp_pool", "GlobalLpPool", "", 20, {x}, {}},
      {"multinomial", "Multinomial", "", 20, {row}, {}, {i32}},
      {"random_normal", "RandomNormal", "", 20, {}, {shaped}},
      {"random_normal_like", "RandomNormalLike", "", 20, {row}, {}},
      {"random_uniform", "RandomUniform", "", 20, {}, {shaped}},
      {"random_uniform_like", "RandomUniformLike", "", 20, {row}, {}},
      {"simplified_layer_normalization", "SimplifiedLayerNormalization", "", 20, {row, v}, {}},
      {"swish", "Swish", "", 24, {row}, {}},
      {"category_mapper",
       "CategoryMapper",
       ai_onnx_ml,
       20,
       {{i64, {4}, 0, 3}},
       {attr_texts("cats_strings", {"a", "b"}), attr("cats_int64s", lens{1, 2})},
       {8}},
      {"feature_vectorizer", "FeatureVectorizer", ai_onnx_ml, 20, {row, row}, {attr("inputdimensions", lens{6, 6})}},
      {"one_hot_encoder", "OneHotEncoder", ai_onnx_ml, 20, {{i64, {4}, 0, 3}}, {attr("cats_int64s", lens{1, 2})}},
      {"binarizer", "Binarizer", ai_onnx_ml, 20, {row}, {}},
      {"zip_map", "ZipMap", ai_onnx_ml, 20, {row}, {attr("classlabels_int64s", lens{0, 1, 2, 3, 4, 5})}, {0}},
      {"bias_add", "BiasAdd", microsoft, 20, {{f32, {2, 3, 8}}, channels, {f32, {2, 3, 8}}}, {}},
      {"bias_softmax", "BiasSoftmax", microsoft, 20, {row, row}, {attr("axis", 1), attr("is_inner_broadcast", 0)}},
      {"bias_split_gelu", "BiasSplitGelu", microsoft, 20, {{f32, {2, 3, 8}}, channels}, {}},
      {"quantize", "QuantizeLinear", microsoft, 20, {row, scale, zero}, {}, {u8}},
      {"dequantize", "DequantizeLinear", microsoft, 20, {q, scale, zero}, {}},
      {"gather_blocks",
       "GatherBlockQuantized",
       microsoft,
       20,
       {{u8, {6, 16}, 0, 255}, {i64, {3}, 0, 5}, {f32, {6, 2}, .01, .1}},
       {attr("bits", 8), attr("block_size", 8), attr("gather_axis", 0), attr("quantize_axis", 1)}},
      {"gelu", "Gelu", microsoft, 20, {row}, {}},
      {"qlinear_reduce_mean",
       "QLinearReduceMean",
       microsoft,
       20,
       {q, scale, zero, scale, zero},
       {attr("axes", lens{1}), attr("keepdims", 1)},
       {u8}},
      {"grid_sample", "GridSample", microsoft, 20, {x, {f32, {2, 4, 4, 2}}}, {}},
      {"group_norm", "GroupNorm", microsoft, 20, {nhwc, channels, channels}, groups},
      {"skip_group_norm", "SkipGroupNorm", microsoft, 20, {nhwc, channels, channels, nhwc}, groups},
      {"nhwc_conv", "NhwcConv", microsoft, 20, {nhwc, {f32, {5, 8, 3, 3}}}, {}},
      {"transpose_matmul", "TransposeMatMul", microsoft, 20, {row, row}, {attr("transB", 1)}},
  };
}

}  // namespace kiln::peer
