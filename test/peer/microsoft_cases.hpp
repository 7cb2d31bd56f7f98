#pragma once
#include "peer/one_node.hpp"

/// Operators that no backend case of ONNX covers, and attributes that none of them sets.
namespace kiln::peer {

using operands = std::vector<operand>;
inline operands with(operands first, const operands& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// Four query heads over two of keys and values, 16 wide; inputs are all behind the operator's name.
inline one_node group_query(const std::string& name, const operands& inputs, std::vector<message> more = {}) {
  more.insert(more.begin(), {attr("num_heads", 4), attr("kv_num_heads", 2)});
  return {name, "GroupQueryAttention", microsoft, 20, inputs, std::move(more), {f32, f32, f32}};
}
// `now` queries and keys of each batch, of which length - 1 is told, `kept` ones before them, `total` in all.
inline operands keys(std::int64_t now, const operand& past, const std::vector<std::int64_t>& lengths,
                     std::int64_t total) {
  const auto batch = static_cast<std::int64_t>(lengths.size());
  const operand k{f32, {batch, now, 32}};
  return {{f32, {batch, now, 64}}, k, k, past, past, {i32, {batch}, 0, 0, lengths}, {i32, {}, 0, 0, {total}}};
}
inline operands behind(std::int64_t kept, const std::vector<std::int64_t>& lengths) {
  return keys(1, {f32, {static_cast<std::int64_t>(lengths.size()), 2, kept, 16}}, lengths, kept + 1);
}

// A step over past keys and values in bytes, which the scales make floats.
inline one_node over_bytes(const std::string& name, const char* kind, const operand& scale) {
  const operands step = keys(1, {i8, {1, 2, 6, 16}, -127, 127}, {6}, 7);
  one_node n = group_query(name, with(step, {none, none, none, none, none, scale, scale}),
                           {attr("k_quant_type", kind), attr("v_quant_type", kind), attr("kv_cache_bit_width", 8)});
  n.outputs = {f32, i8, i8};
  return n;
}

inline std::vector<one_node> attention_cases() {
  const operand x{f32, {2, 5, 24}}, w{f32, {24, 72}}, b{f32, {72}}, table{f32, {16, 3}};
  const auto heads = attr("num_heads", 4);
  const operand past{f32, {2, 4, 3, 6}}, angles{f32, {16, 8}};
  const operands fresh = keys(5, none, {4, 4}, 5);
  return {
      {"attention", "Attention", microsoft, 20, {x, w, b}, {heads}},
      {"attention_causal", "Attention", microsoft, 20, {x, w, b}, {heads, attr("unidirectional", 1)}},
      {"attention_lengths", "Attention", microsoft, 20, {x, w, b, {i32, {2}, 0, 0, {3, 5}}}, {heads}},
      {"attention_flags",
       "Attention",
       microsoft,
       20,
       {x, w, b, {i32, {2, 5}, 0, 0, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1}}},
       {heads}},
      {"attention_past",
       "Attention",
       microsoft,
       20,
       {x, w, b, none, {f32, {2, 2, 4, 3, 6}}},
       {heads, attr("unidirectional", 1)},
       {f32, f32}},
      {"multi_head", "MultiHeadAttention", microsoft, 20, {x, x, x, b}, {heads}},
      {"multi_head_bias",
       "MultiHeadAttention",
       microsoft,
       20,
       {x, x, x, none, none, {f32, {1, 4, 5, 5}}},
       {heads, attr("scale", .3f)}},
      {"multi_head_past",
       "MultiHeadAttention",
       microsoft,
       20,
       {x, x, x, none, none, none, past, past},
       {heads},
       {f32, f32, f32}},
      group_query("group_query", fresh),
      group_query("group_query_rotary", with(fresh, {angles, angles}),
                  {attr("do_rotary", 1), attr("local_window_size", 3)}),
      group_query("group_query_sinks", with(fresh, {none, none, none, none, {f32, {4}}})),
      group_query("group_query_smooth", fresh, {attr("smooth_softmax", 1)}),
      group_query("group_query_past", with(behind(6, {6}), {angles, angles}), {attr("do_rotary", 1)}),
      group_query("group_query_pasts_of_several_lengths", with(behind(6, {6, 3}), {angles, angles}),
                  {attr("do_rotary", 1)}),
      over_bytes("group_query_bytes", "PER_TENSOR", {f32, {1}, .007, .009}),
      over_bytes("group_query_bytes_by_channel", "PER_CHANNEL", {f32, {1, 2, 1, 16}, .007, .02}),
      {"attention_ends_and_starts", "Attention", microsoft, 20, {x, w, b, {i32, {4}, 0, 0, {5, 4, 0, 1}}}, {heads}},
      {"attention_soft_mask",
       "Attention",
       microsoft,
       20,
       {x, w, b, {i32, {2, 5}, 0, 0, {1, 1, 1, 1, 0, 0, 1, 1, 1, 1}}},
       {heads, attr("mask_filter_value", -5.0f)}},
      {"attention_rows_that_see_nothing",
       "Attention",
       microsoft,
       20,
       {x, w, b, {i32, {2, 5, 5}, 0, 0, {1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1,
                                         1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}}},
       {heads}},
      {"rotary", "RotaryEmbedding", microsoft, 20, {x, {i64, {1}, 0, 0, {2}}, table, table}, {}},
      {"rotary_interleaved",
       "RotaryEmbedding",
       microsoft,
       20,
       {x, {i64, {2, 5}, 0, 10}, table, table},
       {attr("interleaved", 1)}},
  };
}

inline std::vector<one_node> layer_cases() {
  const operand x{f32, {2, 6, 32}}, v{f32, {32}};
  return {
      {"skip_layer_norm", "SkipLayerNormalization", microsoft, 20, {x, x, v, v, v}, {}},
      {"skip_simplified", "SkipSimplifiedLayerNormalization", microsoft, 20, {x, x, v, v}, {}},
      {"embed",
       "EmbedLayerNormalization",
       microsoft,
       20,
       {{i32, {2, 6}, 0, 10},
        {i32, {2, 6}, 0, 2},
        {f32, {10, 32}},
        {f32, {8, 32}},
        {f32, {2, 32}},
        v,
        v,
        {i32, {2, 6}, 0, 2}},
       {},
       {f32, i32}},
      {"bias_gelu", "BiasGelu", microsoft, 20, {x, v}, {}},
      {"fast_gelu", "FastGelu", microsoft, 20, {x, v}, {}},
      {"quick_gelu", "QuickGelu", microsoft, 20, {x}, {}},
      {"fused_matmul_batch",
       "FusedMatMul",
       microsoft,
       20,
       {{f32, {4, 2, 3}}, {f32, {5, 2, 4}}},
       {attr("transA", 1), attr("transB", 1), attr("transBatchA", 1), attr("transBatchB", 1)}},
      {"reduce_log_sum_over_none", "ReduceLogSum", "", 20, {{f32, {3, 4}, .1, 2}}, {attr("noop_with_empty_axes", 1)}},
      {"fused_matmul",
       "FusedMatMul",
       microsoft,
       20,
       {{f32, {2, 5, 7}}, {f32, {2, 9, 5}}},
       {attr("transA", 1), attr("transB", 1), attr("alpha", .5f)}},
      {"lstm_peepholes",
       "LSTM",
       "",
       14,
       {{f32, {7, 3, 4}},
        {f32, {2, 20, 4}},
        {f32, {2, 20, 5}},
        {f32, {2, 40}},
        {i32, {3}, 0, 0, {7, 2, 5}},
        {f32, {2, 3, 5}},
        {f32, {2, 3, 5}},
        {f32, {2, 15}}},
       {attr("hidden_size", 5), attr("direction", "bidirectional"), attr("clip", 1.5f)},
       {f32, f32, f32}},
      {"lstm_activations",
       "LSTM",
       "",
       14,
       {{f32, {4, 2, 3}}, {f32, {1, 12, 3}}, {f32, {1, 12, 3}}},
       {attr("hidden_size", 3), attr_texts("activations", {"HardSigmoid", "Softsign", "Elu"}),
        attr_floats("activation_alpha", {.25f, .5f}), attr_floats("activation_beta", {.4f})},
       {f32, f32, f32}},
      {"gru_linear_reset",
       "GRU",
       "",
       14,
       {{f32, {6, 3, 4}}, {f32, {1, 15, 4}}, {f32, {1, 15, 5}}, {f32, {1, 30}}, {i32, {3}, 0, 0, {6, 1, 4}}},
       {attr("hidden_size", 5), attr("direction", "reverse"), attr("linear_before_reset", 1)},
       {f32, f32}},
      {"gru_reset",
       "GRU",
       "",
       14,
       {{f32, {6, 3, 4}}, {f32, {2, 15, 4}}, {f32, {2, 15, 5}}, {f32, {2, 30}}, none, {f32, {2, 3, 5}}},
       {attr("hidden_size", 5), attr("direction", "bidirectional")},
       {f32, f32}},
      {"rnn_relu",
       "RNN",
       "",
       14,
       {{f32, {6, 3, 4}}, {f32, {2, 5, 4}}, {f32, {2, 5, 5}}, {f32, {2, 10}}, {i32, {3}, 0, 0, {6, 1, 4}}},
       {attr("hidden_size", 5), attr("direction", "bidirectional"), attr_texts("activations", {"Relu", "Tanh"})},
       {f32, f32}},
      {"dft_length", "DFT", "", 17, {{f32, {2, 12, 1}}, {i64, {}, 0, 0, {8}}}, {attr("onesided", 1)}},
      {"dft_inverse", "DFT", "", 17, {{f32, {3, 15, 2}}}, {attr("inverse", 1)}},
      {"dft_prime", "DFT", "", 17, {{f32, {2, 97, 1}}}, {attr("axis", 1)}},
      {"dft_axis", "DFT", "", 17, {{f32, {20, 6, 2}}}, {attr("axis", 0)}},
      {"inverse", "Inverse", "com.microsoft", 1, {{f32, {2, 3, 3}}}, {}},
      {"stft_window",
       "STFT",
       "",
       17,
       {{f32, {2, 64, 1}}, {i64, {}, 0, 0, {8}}, {f32, {16}}, {i64, {}, 0, 0, {16}}},
       {attr("onesided", 1)}},
      {"grid_cubic_border",
       "GridSample",
       "",
       16,
       {{f32, {2, 3, 6, 5}}, {f32, {2, 4, 4, 2}, -1.2, 1.2}},
       {attr("mode", "bicubic"), attr("padding_mode", "border")}},
      {"grid_linear_reflection",
       "GridSample",
       "",
       16,
       {{f32, {2, 3, 6, 5}}, {f32, {2, 4, 4, 2}, -2, 2}},
       {attr("padding_mode", "reflection"), attr("align_corners", 1)}},
      {"roi_align",
       "RoiAlign",
       "",
       16,
       {{f32, {2, 3, 12, 12}}, {f32, {3, 4}, 1, 11}, {i64, {3}, 0, 0, {0, 1, 1}}},
       {attr("output_height", 3), attr("output_width", 4), attr("sampling_ratio", 2), attr("spatial_scale", .5f)}},
      {"max_roi_pool",
       "MaxRoiPool",
       "",
       20,
       {{f32, {2, 3, 12, 12}}, {f32, {3, 5}, 0, 0, {0, 1, 2, 9, 10, 1, 0, 0, 3, 23, 1, 8, 8, 7, 7}}},
       {attr("pooled_shape", lens{3, 2}), attr("spatial_scale", .5f)}},
      {"max_pool_indices",
       "MaxPool",
       "",
       12,
       {{f32, {2, 3, 9, 8}}},
       {attr("kernel_shape", lens{3, 2}), attr("strides", lens{2, 2}), attr("pads", lens{1, 0, 1, 1}),
        attr("storage_order", 1)},
       {f32, i64}},
      {"col_to_im",
       "Col2Im",
       "",
       18,
       {{f32, {2, 12, 16}}, {i64, {2}, 0, 0, {5, 6}}, {i64, {2}, 0, 0, {2, 2}}},
       {attr("dilations", lens{1, 2})}},
      {"det", "Det", "", 11, {{f32, {3, 4, 4}}}, {}},
  };
}

// Results that have the same bits: infinities, and the least number where windows are masked.
inline std::vector<one_node> exact_cases() {
  const auto blocked = [](const std::string& name, std::int64_t n, std::int64_t length) {
    return one_node{
        "ngrams_" + name,       "NGramRepeatBlock", microsoft, 20, {{i64, {3, length}, 0, 3}, {f32, {3, 6}}},
        {attr("ngram_size", n)}};
  };
  const auto masked = [](const std::string& name, const lens& x, const lens& mask, std::vector<message> more) {
    return one_node{"masked_" + name, "MaxpoolWithMask", microsoft, 20, {{f32, x}, {i32, mask, 0, 2}}, std::move(more)};
  };
  return {
      blocked("of_two", 2, 9),
      blocked("of_three", 3, 24),
      blocked("of_one", 1, 4),
      blocked("as_long", 4, 4),
      blocked("longer", 5, 3),
      masked("rows", {2, 3, 12}, {1, 1, 12}, {attr("kernel_shape", lens{3}), attr("pads", lens{1, 1})}),
      masked("images", {2, 3, 7, 8}, {1, 1, 7, 8},
             {attr("kernel_shape", lens{3, 2}), attr("strides", lens{2, 2}), attr("pads", lens{1, 1, 1, 0})}),
      masked("images_of_several", {2, 4, 5, 5}, {2, 3, 5, 5}, {attr("kernel_shape", lens{2, 3})}),
      masked("same", {1, 2, 6, 6}, {1, 1, 6, 6},
             {attr("kernel_shape", lens{3, 3}), attr("strides", lens{2, 2}), attr("auto_pad", "SAME_LOWER")}),
      masked("volumes", {2, 2, 4, 3, 5}, {1, 1, 4, 3, 5},
             {attr("kernel_shape", lens{2, 2, 3}), attr("strides", lens{1, 1, 2})}),
  };
}

// Operators that are sums of others.
inline std::vector<one_node> composed_cases() {
  const operand image{f32, {2, 4, 7, 6}}, kernel{f32, {8, 2, 3, 3}}, bias{f32, {8}};
  const message group = attr("group", 2), pads = attr("pads", lens{1, 1, 1, 1});
  const auto conv = [&](const std::string& name, const operands& inputs, std::vector<message> more) {
    more.insert(more.begin(), {group, pads});
    return one_node{"fused_conv_" + name, "FusedConv", microsoft, 20, inputs, std::move(more)};
  };
  const operand a{f32, {5, 7}}, b{f32, {7, 9}}, c{f32, {9}};
  const auto gemm = [&](const std::string& name, const operands& inputs, std::vector<message> more) {
    more.push_back(attr("activation", name.c_str()));
    return one_node{"fused_gemm_" + name, "FusedGemm", microsoft, 20, inputs, std::move(more)};
  };
  // some positions are outside of the image, and one region is upside down
  const auto crop = [](const std::string& name, const operand& size, std::vector<message> more) {
    return one_node{"crop_" + name,
                    "CropAndResize",
                    microsoft,
                    20,
                    {{f32, {2, 3, 8, 9}}, {f32, {5, 4}, -.2, 1.2}, {i32, {5}, 0, 0, {0, 1, 1, 0, 1}}, size},
                    std::move(more)};
  };
  const auto mel = [](const std::string& name, const operand& mels, const operand& length, const operand& rate) {
    return one_node{
        "mel_" + name, "MelWeightMatrix", "", 20, {mels, length, rate, {f32, {}, 20, 60}, {f32, {}, 3000, 3900}}, {}};
  };
  return {
      gemm("Relu", {a, b, c}, {attr("alpha", .5f), attr("beta", 2.0f)}),
      gemm("LeakyRelu", {{f32, {7, 5}}, {f32, {9, 7}}},
           {attr("transA", 1), attr("transB", 1), attr("activation_alpha", .3f)}),
      gemm("HardSigmoid", {a, b, c}, {attr("activation_alpha", .3f), attr("activation_beta", .4f)}),
      gemm("Selu", {a, b, c}, {attr("activation_alpha", 1.5f), attr("activation_gamma", .7f)}),
      conv("residual_relu", {image, kernel, bias, {f32, {2, 8, 7, 6}}}, {attr("activation", "Relu")}),
      conv("residual_alone", {image, kernel, none, {f32, {2, 8, 7, 6}}}, {}),
      conv("clip", {image, kernel, bias}, {attr("activation", "Clip"), attr_floats("activation_params", {-.4f, .9f})}),
      conv("leaky", {image, kernel, bias}, {attr("activation", "LeakyRelu"), attr_floats("activation_params", {.2f})}),
      conv("hard", {image, kernel, bias},
           {attr("activation", "HardSigmoid"), attr_floats("activation_params", {.3f, .4f})}),
      {"trilu", "Trilu", microsoft, 20, {{f32, {2, 5, 6}}}, {}},
      {"trilu_lower", "Trilu", microsoft, 20, {{i64, {5, 6}, -9, 9}, {i64, {}, 0, 0, {-2}}}, {attr("upper", 0)}, {i64}},
      {"expand_dims", "ExpandDims", microsoft, 20, {{f32, {2, 5, 6}}, {i32, {}, 0, 0, {1}}}, {}},
      {"expand_dims_last", "ExpandDims", microsoft, 20, {{f32, {2, 5, 6}}, {i32, {}, 0, 0, {-1}}}, {}},
      {"expand_dims_of_the_run", "ExpandDims", microsoft, 20, {{f32, {2, 5, 6}}, {i32, {}, 2, 2}}, {}},
      {"unfold", "UnfoldTensor", microsoft, 20, {{f32, {3, 11}}}, {attr("size", 4), attr("step", 3)}},
      {"unfold_middle",
       "UnfoldTensor",
       microsoft,
       20,
       {{i64, {2, 9, 3}, -9, 9}},
       {attr("dim", 1), attr("size", 3), attr("step", 2)},
       {i64}},
      {"unfold_first", "UnfoldTensor", microsoft, 20, {{f32, {5, 2, 3}}}, {attr("dim", -3), attr("size", 5)}},
      mel("of_the_run", {i64, {}, 8, 8}, {i64, {}, 256, 256}, {i64, {}, 16000, 16000}),
      mel("of_few_bins", {i64, {}, 20, 20}, {i64, {}, 33, 33}, {i64, {}, 0, 0, {8000}}),
      crop("linear", operand{i32, {2}, 0, 0, {4, 3}}, {}),
      crop("linear_of_one", operand{i32, {2}, 0, 0, {1, 5}}, {attr("extrapolation_value", 2.5f)}),
      crop("nearest", operand{i32, {2}, 0, 0, {6, 7}}, {attr("mode", "nearest"), attr("extrapolation_value", -3.0f)}),
      crop("size_of_the_run", operand{i32, {2}, 3, 3}, {}),
      crop("one_of_the_run", operand{i32, {2}, 1, 1}, {}),
  };
}

}  // namespace kiln::peer
