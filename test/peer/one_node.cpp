#include "onnx/model_writer.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

// Models of one node: operators that no backend case of ONNX covers, and attributes that none of them sets.
namespace kiln::peer {
namespace {

using test::attr;
using test::message;
using lens = std::vector<std::int64_t>;
constexpr int f32 = 1, u8 = 2, i8 = 3, i32 = 6, i64 = 7;

message attr_floats(std::string_view name, const std::vector<float>& v) {
  message m = test::attribute(name, 6);
  for (const float x : v) m.real(7, x);
  return m;
}
message attr_texts(std::string_view name, const std::vector<std::string>& v) {
  message m = test::attribute(name, 8);
  for (const std::string& x : v) m.text(9, x);
  return m;
}

// One input; an omitted one has type 0. `values` make it a constant.
struct operand {
  int type = f32;
  lens extents{};
  double low = -1, high = 1;
  std::vector<std::int64_t> values{};
};
const operand none{0};

struct one_node {
  std::string name, op, domain;
  std::int64_t version = 20;
  std::vector<operand> inputs;
  std::vector<message> attributes;
  std::vector<int> outputs = {f32};  ///< element types; 0: omitted
  double tolerance = 2e-5;
};
void PrintTo(const one_node& n, std::ostream* out) { *out << n.name; }

const std::string microsoft = "com.microsoft", learned = "ai.onnx.ml";

std::vector<one_node> attention_cases() {
  const operand x{f32, {2, 5, 24}}, w{f32, {24, 72}}, b{f32, {72}}, table{f32, {16, 3}};
  const auto heads = attr("num_heads", 4);
  const operand past{f32, {2, 4, 3, 6}};
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
      {"group_query",
       "GroupQueryAttention",
       microsoft,
       20,
       {{f32, {2, 5, 64}},
        {f32, {2, 5, 32}},
        {f32, {2, 5, 32}},
        none,
        none,
        {i32, {2}, 0, 0, {4, 4}},
        {i32, {}, 0, 0, {5}}},
       {heads, attr("kv_num_heads", 2)},
       {f32, f32, f32}},
      {"group_query_rotary",
       "GroupQueryAttention",
       microsoft,
       20,
       {{f32, {2, 5, 64}},
        {f32, {2, 5, 32}},
        {f32, {2, 5, 32}},
        none,
        none,
        {i32, {2}, 0, 0, {4, 4}},
        {i32, {}, 0, 0, {5}},
        {f32, {16, 8}},
        {f32, {16, 8}}},
       {heads, attr("kv_num_heads", 2), attr("do_rotary", 1), attr("local_window_size", 3)},
       {f32, f32, f32}},
      {"rotary", "RotaryEmbedding", microsoft, 20, {x, {i64, {1}, 0, 0, {2}}, table, table}, {}},
      {"rotary_interleaved",
       "RotaryEmbedding",
       microsoft,
       20,
       {x, {i64, {2, 5}, 0, 10}, table, table},
       {attr("interleaved", 1)}},
  };
}

std::vector<one_node> quantised_cases() {
  const operand q{u8, {2, 4, 9, 7}, 0, 255}, scale{f32, {}, .01, .05}, zero{u8, {}, 0, 0, {120}};
  const operand row{u8, {3, 16}, 0, 255}, matrix{i8, {16, 5}, -128, 127};
  const auto pads = std::vector<message>{attr("kernel_shape", lens{3, 3}), attr("strides", lens{2, 2}),
                                         attr("pads", lens{1, 1, 1, 1})};
  std::vector<one_node> all = {
      {"qlinear_add", "QLinearAdd", microsoft, 20, {q, scale, zero, q, scale, zero, scale, zero}, {}, {u8}},
      {"qlinear_mul", "QLinearMul", microsoft, 20, {q, scale, zero, q, scale, zero, scale, zero}, {}, {u8}},
      {"qlinear_average", "QLinearAveragePool", microsoft, 20, {q, scale, zero, scale, zero}, pads, {u8}},
      {"qlinear_global", "QLinearGlobalAveragePool", microsoft, 20, {q, scale, zero, scale, zero}, {}, {u8}},
      {"qlinear_concat",
       "QLinearConcat",
       microsoft,
       20,
       {scale, zero, q, scale, zero, q, scale, zero},
       {attr("axis", 1)},
       {u8}},
      {"qlinear_leaky", "QLinearLeakyRelu", microsoft, 20, {q, scale, zero, scale, zero}, {attr("alpha", .2f)}, {u8}},
      {"qlinear_sigmoid", "QLinearSigmoid", microsoft, 20, {q, scale, zero, scale, zero}, {}, {u8}},
      {"matmul_integer_to_float",
       "MatMulIntegerToFloat",
       microsoft,
       20,
       {row, matrix, scale, {f32, {5}, .01, .05}, zero, {i8, {5}, -4, 4}, {f32, {5}}},
       {}},
      {"dynamic_quantise_matmul",
       "DynamicQuantizeMatMul",
       microsoft,
       20,
       {{f32, {3, 16}}, matrix, scale, {i8, {}, 0, 0, {3}}, {f32, {5}}},
       {}},
      {"matmul_4_bits",
       "MatMulNBits",
       microsoft,
       20,
       {{f32, {3, 40}}, {u8, {6, 2, 16}, 0, 255}, {f32, {12}}},
       {attr("K", 40), attr("N", 6), attr("bits", 4), attr("block_size", 32)},
       {f32},
       2e-2},
      {"matmul_4_bits_zero",
       "MatMulNBits",
       microsoft,
       20,
       {{f32, {3, 40}}, {u8, {6, 2, 16}, 0, 255}, {f32, {12}}, {u8, {6}, 0, 255}},
       {attr("K", 40), attr("N", 6), attr("bits", 4), attr("block_size", 32)},
       {f32},
       2e-2},
  };
  // a step of the quantised result is 1
  for (one_node& n : all)
    if (n.outputs[0] == u8) n.tolerance = 1.01 / 255;
  return all;
}

std::vector<one_node> layer_cases() {
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

std::vector<one_node> learned_cases() {
  const operand x{f32, {9, 3}, -2, 2};
  const std::vector<message> nodes = {
      attr("nodes_treeids", lens{0, 0, 0, 0, 0, 1, 1, 1}),
      attr("nodes_nodeids", lens{0, 1, 2, 3, 4, 0, 1, 2}),
      attr("nodes_featureids", lens{0, 1, 0, 0, 0, 2, 0, 0}),
      attr_floats("nodes_values", {.1f, -.3f, 0, 0, 0, .2f, 0, 0}),
      attr("nodes_truenodeids", lens{1, 3, 0, 0, 0, 1, 0, 0}),
      attr("nodes_falsenodeids", lens{2, 4, 0, 0, 0, 2, 0, 0}),
      attr_texts("nodes_modes", {"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"})};
  const auto with = [&](std::vector<message> more) {
    more.insert(more.begin(), nodes.begin(), nodes.end());
    return more;
  };
  const lens trees{0, 0, 0, 1, 1}, leaves{2, 3, 4, 1, 2};
  const std::vector<float> weights{.5f, 1, -1, .25f, 2};
  const std::vector<float> vectors{.1f, .2f, .3f, -.4f, .5f, -.6f, 1, .8f, -.2f, .9f, -.9f, .3f};
  return {
      {"tree_regressor",
       "TreeEnsembleRegressor",
       learned,
       20,
       {x},
       with({attr("n_targets", 2), attr("target_treeids", trees), attr("target_nodeids", leaves),
             attr("target_ids", lens{0, 1, 0, 1, 0}), attr_floats("target_weights", weights)})},
      {"tree_regressor_max",
       "TreeEnsembleRegressor",
       learned,
       20,
       {x},
       with({attr("n_targets", 1), attr("aggregate_function", "MAX"), attr("target_treeids", trees),
             attr("target_nodeids", leaves), attr("target_ids", lens{0, 0, 0, 0, 0}),
             attr_floats("target_weights", weights)})},
      {"tree_classifier",
       "TreeEnsembleClassifier",
       learned,
       20,
       {x},
       with({attr("classlabels_int64s", lens{4, 7, 9}), attr("class_treeids", trees), attr("class_nodeids", leaves),
             attr("class_ids", lens{0, 1, 2, 1, 0}), attr_floats("class_weights", weights),
             attr("post_transform", "SOFTMAX")}),
       {i64, f32}},
      {"tree_classifier_binary",
       "TreeEnsembleClassifier",
       learned,
       20,
       {x},
       with({attr("classlabels_int64s", lens{0, 1}), attr("class_treeids", trees), attr("class_nodeids", leaves),
             attr("class_ids", lens{0, 0, 0, 0, 0}), attr_floats("class_weights", weights),
             attr("post_transform", "LOGISTIC")}),
       {i64, f32}},
      {"linear_regressor",
       "LinearRegressor",
       learned,
       20,
       {x},
       {attr("targets", 2), attr_floats("coefficients", {.1f, .2f, .3f, -.4f, .5f, -.6f}),
        attr_floats("intercepts", {1, -1})}},
      {"linear_classifier",
       "LinearClassifier",
       learned,
       20,
       {x},
       {attr("classlabels_ints", lens{3, 5}), attr_floats("coefficients", {.1f, .2f, .3f, -.4f, .5f, -.6f}),
        attr_floats("intercepts", {.2f, -.1f}), attr("post_transform", "SOFTMAX")},
       {i64, f32}},
      {"svm_regressor",
       "SVMRegressor",
       learned,
       20,
       {x},
       {attr("kernel_type", "RBF"), attr_floats("kernel_params", {.4f, 0, 3}), attr("n_supports", 4),
        attr_floats("support_vectors", vectors), attr_floats("coefficients", {1, -1, .5f, -.5f}),
        attr_floats("rho", {.3f})}},
      {"svm_classifier",
       "SVMClassifier",
       learned,
       20,
       {x},
       {attr("kernel_type", "POLY"), attr_floats("kernel_params", {.4f, 1, 2}),
        attr("vectors_per_class", lens{2, 1, 1}), attr("classlabels_ints", lens{10, 20, 30}),
        attr_floats("support_vectors", vectors), attr_floats("coefficients", {1, -1, .5f, -.5f, .2f, .7f, -.9f, .4f}),
        attr_floats("rho", {.3f, -.1f, .2f})},
       {i64, f32}},
      {"scaler", "Scaler", learned, 20, {x}, {attr_floats("offset", {1, 2, 3}), attr_floats("scale", {.5f, 2, 1})}},
      {"normalizer_l2", "Normalizer", learned, 20, {x}, {attr("norm", "L2")}},
      {"normalizer_l1", "Normalizer", learned, 20, {x}, {attr("norm", "L1")}},
      {"normalizer_max", "Normalizer", learned, 20, {x}, {attr("norm", "MAX")}},
      {"features", "ArrayFeatureExtractor", learned, 20, {x, {i64, {2}, 0, 0, {2, 0}}}, {}},
      {"imputer",
       "Imputer",
       learned,
       20,
       {{i64, {4, 3}, 0, 3}},
       {attr("imputed_value_int64s", lens{7, 8, 9}), attr("replaced_value_int64", 1)},
       {i64}},
      {"label_encoder",
       "LabelEncoder",
       learned,
       20,
       {{i64, {4, 3}, 0, 4}},
       {attr("keys_int64s", lens{3, 1, 0}), attr_floats("values_floats", {.5f, 1.5f, 2.5f}),
        attr("default_float", -1.0f)}},
  };
}

class one_node_models : public ::testing::TestWithParam<one_node> {};

TEST_P(one_node_models, equal_to_onnx_runtime) {
  const one_node& n = GetParam();
  test::graph_parts parts;
  test::strings names, results;
  std::map<std::string, argument> given;
  unsigned seed = 5;
  for (const operand& o : n.inputs) {
    names.push_back(o.type == 0 ? "" : "in" + std::to_string(names.size()));
    if (o.type == 0) continue;
    shape s{*onnx::to_dtype(static_cast<onnx::element>(o.type)), {}};
    for (const std::int64_t k : o.extents) s.lens.push_back(k);
    if (!o.values.empty()) {
      const argument a(literal::of<std::int64_t>(s, o.values));
      message t;
      t.numbers(1, o.extents).number(2, o.type).text(8, names.back());
      parts.initializers.push_back(t.text(
          9, {reinterpret_cast<const char*>(a.data()), static_cast<std::size_t>(a.elements()) * size_of(s.type)}));
      continue;
    }
    parts.inputs.push_back(test::value_info(names.back(), o.type, {o.extents.begin(), o.extents.end()}));
    given.emplace(names.back(), testing::random_argument(s, ++seed, o.low, o.high));
  }
  for (const int type : n.outputs) {
    results.push_back("out" + std::to_string(results.size()));
    parts.outputs.push_back(
        test::message().text(1, results.back()).add(2, message().add(1, message().number(1, type))));
  }
  parts.nodes.push_back(test::node(n.op, names, results, n.attributes, "", n.domain));
  std::vector<message> opsets = {test::opset(n.version)};
  if (!n.domain.empty()) opsets.push_back(test::opset(n.domain == learned ? 3 : 1, n.domain));
  compare_with_peer(test::model(test::graph(parts), opsets).bytes(), ".", {given}, n.tolerance);
}

std::string name_of(const ::testing::TestParamInfo<one_node>& i) { return i.param.name; }
INSTANTIATE_TEST_SUITE_P(attention, one_node_models, ::testing::ValuesIn(attention_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(quantised, one_node_models, ::testing::ValuesIn(quantised_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(layers, one_node_models, ::testing::ValuesIn(layer_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(learned, one_node_models, ::testing::ValuesIn(learned_cases()), name_of);

}  // namespace
}  // namespace kiln::peer
