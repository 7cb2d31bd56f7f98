#include "tensorflow/tflite_text.hpp"

#include <random>

#include "kiln/graph/print.hpp"
#include "kiln/runtime/report.hpp"
#include "support/temporary_folder.hpp"

// What a TFLite file says beside its operators, which tflite_cases.mjs compares with TFLite's interpreter.
namespace kiln::tensorflow {
namespace {

// y = x + c
std::string sum_text(const std::string& of_x = {}, const std::string& more = {}) {
  return model_text({"ADD"},
                    subgraph(tensor("x", "FLOAT32", {1, 2}, of_x) + tensor("c", "FLOAT32", {2}, "buffer: 1") +
                                 tensor("y", "FLOAT32", {1, 2}),
                             {0}, {2}, call(0, {0, 1}, {2})),
                    buffer_of(std::vector<float>{10, 20}), more);
}

TEST(tflite, names_are_those_of_tensors) {
  const onnx::imported made = parse(tflite(sum_text()));
  EXPECT_EQ(made.producer, "TensorFlow Lite");
  const executable e = compile(program(made.graph), eigen_target());
  ASSERT_EQ(e.inputs().size(), 1u);
  EXPECT_EQ(e.inputs()[0].name, "x");
  EXPECT_EQ(e.outputs()[0].name, "y");
  EXPECT_THAT(numbers(e.run(std::vector{floats({1, 2}, {1, 2})})[0]), ElementsAre(11, 22));
}

TEST(tflite, signatures_have_names_of_their_own) {
  const std::string text = tflite(sum_text(
      {},
      "signature_defs: [{ signature_key: 'serve', inputs: [{ name: 'image', tensor_index: 0 }], "
      "outputs: [{ name: 'sum', tensor_index: 2 }] }], description: 'adds', metadata: [{ name: 'note', buffer: 1 }]"));
  const onnx::imported plain = parse(text), named = parse(text, {.signature = "serve"});
  EXPECT_EQ(compile(program(plain.graph), eigen_target()).inputs()[0].name, "x");
  const executable e = compile(program(named.graph), eigen_target());
  EXPECT_EQ(e.inputs()[0].name, "image");
  EXPECT_EQ(e.outputs()[0].name, "sum");
  EXPECT_THAT(fault(text, {.signature = "train"}), HasSubstr("has no signature 'train', it has 'serve'"));
  EXPECT_THAT(plain.metadata, ::testing::Contains(std::pair<std::string, std::string>("description", "adds")));
  EXPECT_THAT(plain.metadata,
              ::testing::Contains(std::pair<std::string, std::string>("signature 'serve'", "image -> sum")));
}

TEST(tflite, a_tensor_may_have_several_names) {
  const auto text = [](const std::string& outputs) {
    return tflite(sum_text({},
                           "signature_defs: [{ signature_key: 'serve', inputs: [{ name: 'image', tensor_index: 0 }], "
                           "outputs: [" +
                               outputs + "] }]"));
  };
  const auto named = [](const std::string& name, int tensor) {
    return "{ name: '" + name + "', tensor_index: " + std::to_string(tensor) + " },";
  };
  const executable e =
      compile(parse(text(named("sum", 2) + named("logits", 2) + named("same", 0)), {.signature = "serve"}).graph,
              eigen_target());
  ASSERT_EQ(e.outputs().size(), 3u);
  const auto y = e.run(std::vector{floats({1, 2}, {1, 2})});
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(e.outputs()[k].name, (std::vector{"sum", "logits", "same"}[k]));
    EXPECT_EQ(numbers(y[k]), (k < 2 ? std::vector<double>{11, 22} : std::vector<double>{1, 2}));
  }
  EXPECT_THAT(fault(text(named("sum", 2) + named("sum", 0)), {.signature = "serve"}), HasSubstr("'sum' twice"));
}

TEST(tflite, open_extents_are_symbols_unless_told) {
  const std::string text = tflite(sum_text("shape_signature: [-1, 2]"));
  const executable open = compile(parse(text).graph, eigen_target());
  for (const std::int64_t n : {1, 5})
    EXPECT_EQ(open.run(std::vector{counted({n, 2})})[0].get_shape().lens, (dims{n, 2}));
  EXPECT_EQ(compile(parse(text, {.open_extent = 4}).graph, eigen_target()).inputs()[0].type.lens, (dims{4, 2}));
}

TEST(tflite, files_are_known_by_their_content) {
  const test::temporary_folder folder;
  const std::string path = folder.write("model", tflite(sum_text()));
  EXPECT_TRUE(is_tflite_file(path));
  EXPECT_FALSE(is_graph_file(path));
  EXPECT_EQ(compile(read_any_model(path).graph, eigen_target()).outputs()[0].name, "y");
  ASSERT_EQ(any_model_inputs(path).size(), 1u);
  EXPECT_EQ(any_model_inputs(path)[0].name, "x");
  EXPECT_THAT(message_of([&] { read_any_model(path, {.outputs = {"y"}}); }),
              HasSubstr("a TFLite file states its layout and outputs"));
}

// x of scale 1/2, weights of a scale for each unit: the product is of integers.
TEST(tflite, quantized_products_run_on_integers) {
  const std::string text = tflite(model_text(
      {"FULLY_CONNECTED"},
      subgraph(tensor("x", "INT8", {1, 2}, "quantization: { scale: [0.5], zero_point: [1] }") +
                   tensor("w", "INT8", {2, 2}, "buffer: 1, quantization: { scale: [0.25, 1], zero_point: [0, 0] }") +
                   tensor("b", "INT32", {2}, "buffer: 2, quantization: { scale: [0.125, 0.5], zero_point: [0, 0] }") +
                   tensor("y", "INT8", {1, 2}, "quantization: { scale: [1], zero_point: [-3] }"),
               {0}, {3}, call(0, {0, 1, 2}, {3})),
      buffer_of(std::vector<std::int8_t>{4, 8, 1, -2}) + buffer_of(std::vector<std::int32_t>{8, -6})));
  const executable e = compile(parse(text).graph, eigen_target());
  const std::vector<std::int8_t> x{5, 3};
  const auto y = e.run(std::vector{argument::of<std::int8_t>({1, 2}, std::span<const std::int8_t>(x))});
  // reals 2 and 1: 2 * 1 + 1 * 2 + 1, and 2 * 1 - 1 * 2 - 3
  EXPECT_THAT(numbers(y[0]), ElementsAre(2, -6));
  EXPECT_EQ(y[0].get_shape().type, dtype::i8);
  EXPECT_THAT(plan_text(e.report()), Not(HasSubstr("dequantize")));
}

// Indices and extents are no reason to leave integers.
TEST(tflite, quantized_elements_move_as_they_are) {
  const std::string q = "quantization: { scale: [0.5], zero_point: [1] }";
  const auto made = [&](const std::string& of_y) {
    return parse(tflite(model_text(
        {"RESHAPE", "GATHER"},
        subgraph(tensor("x", "INT8", {2, 2}, q) + tensor("s", "INT32", {1}, "buffer: 1") + tensor("y", "INT8", {4}, q) +
                     tensor("i", "INT32", {2}, "buffer: 2") + tensor("z", "INT8", {2}, of_y),
                 {0}, {4}, call(0, {0, 1}, {2}) + call(1, {2, 3}, {4})),
        buffer_of(std::vector<std::int32_t>{4}) + buffer_of(std::vector<std::int32_t>{3, 0}))));
  };
  const std::vector<std::int8_t> x{5, 3, -7, 9};
  const argument of_x = argument::of<std::int8_t>({2, 2}, std::span<const std::int8_t>(x));
  const auto result = [&](const onnx::imported& m) {
    return numbers(compile(program(m.graph), eigen_target()).run(std::vector{of_x})[0]);
  };
  const onnx::imported moves = made(q), scales = made("quantization: { scale: [1], zero_point: [0] }");
  EXPECT_THAT(print(moves.graph).str(), Not(HasSubstr("quantize")));
  EXPECT_THAT(result(moves), ElementsAre(9, 5));
  EXPECT_THAT(print(scales.graph).str(), HasSubstr("quantize"));
  EXPECT_THAT(result(scales), ElementsAre(4, 2));  // (9 - 1) / 2, (5 - 1) / 2
}

// Two layers that begin with one state.
TEST(tflite, variable_tensors_are_named_once) {
  const std::string tanh = "builtin_options_type: 'RNNOptions', builtin_options: { fused_activation_function: 'TANH' }";
  const std::string text = model_text(
      {"RNN"},
      subgraph(tensor("x", "FLOAT32", {1, 1}) + tensor("w", "FLOAT32", {1, 1}, "buffer: 1") +
                   tensor("b", "FLOAT32", {1}, "buffer: 1") + tensor("h", "FLOAT32", {1, 1}, "is_variable: true") +
                   tensor("y", "FLOAT32", {1, 1}) + tensor("z", "FLOAT32", {1, 1}),
               {0}, {4, 5}, call(0, {0, 1, 1, 2, 3}, {4}, tanh) + call(0, {4, 1, 1, 2, 3}, {5}, tanh)),
      buffer_of(std::vector<float>{2}));
  const auto remarks = parse(tflite(text)).remarks;
  EXPECT_EQ(std::count(remarks.begin(), remarks.end(), "variable tensor 'h' is of zeros when a run begins"), 1);
}

TEST(tflite, operators_of_bits_and_calls) {
  const auto made = [](const std::string& op, const std::string& type, const std::string& of_y, const argument& x) {
    const std::string bytes = buffer_of(std::vector<std::int32_t>{5, 1, 2});
    const bool is_unary = op == "BITCAST";
    return run(tflite(model_text(
                   {op},
                   subgraph(tensor("x", type, {3}) + tensor("c", type, {3}, "buffer: 1") + tensor("y", of_y, {3}), {0},
                            {2}, call(0, is_unary ? std::vector{0} : std::vector{0, 1}, {2})),
                   bytes)),
               {x})[0];
  };
  const std::vector<std::int32_t> n{3, -8, 9};
  const argument x = argument::of<std::int32_t>({3}, std::span<const std::int32_t>(n));
  EXPECT_THAT(numbers(made("BITWISE_XOR", "INT32", "INT32", x)), ElementsAre(6, -7, 11));
  EXPECT_THAT(numbers(made("RIGHT_SHIFT", "INT32", "INT32", x)), ElementsAre(0, -4, 2));
  EXPECT_THAT(numbers(made("BITCAST", "FLOAT32", "INT32", floats({3}, {1, 0, -2}))),
              ElementsAre(0x3f800000, 0, -0x40000000));
  const std::string twice = "builtin_options_type: 'CallOptions', builtin_options: { subgraph: 1 }";
  const std::string tensors = tensor("x", "FLOAT32", {1}) + tensor("m", "FLOAT32", {1}) + tensor("y", "FLOAT32", {1});
  EXPECT_THAT(
      numbers(run(tflite(model_text({"CALL", "ADD"},
                                    subgraph(tensors, {0}, {2}, call(0, {0}, {1}, twice) + call(0, {1}, {2}, twice)) +
                                        subgraph(tensors, {0}, {2}, call(1, {0, 0}, {2})))),
                  {floats({1}, {3})})[0]),
      ElementsAre(12));
}

TEST(tflite, an_initializer_gives_variables_their_values) {
  const std::string handle = "builtin_options_type: 'VarHandleOptions', builtin_options: { shared_name: 'v' }";
  const auto text = [&](const std::string& main) {
    return tflite(model_text({"CALL_ONCE", "VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "MUL"},
                             subgraph(tensor("x", "FLOAT32", {2}) + tensor("h", "RESOURCE", {}) +
                                          tensor("v", "FLOAT32", {2}) + tensor("y", "FLOAT32", {2}),
                                      {0}, {3}, main) +
                                 subgraph(tensor("h", "RESOURCE", {}) + tensor("c", "FLOAT32", {2}, "buffer: 1"), {},
                                          {}, call(1, {}, {0}, handle) + call(2, {0, 1}, {})),
                             buffer_of(std::vector<float>{3, 4})));
  };
  const std::string once =
      call(0, {}, {}, "builtin_options_type: 'CallOnceOptions', builtin_options: { init_subgraph_index: 1 }");
  const std::string rest = call(1, {}, {1}, handle) + call(3, {1}, {2}) + call(4, {0, 2}, {3});
  EXPECT_THAT(numbers(run(text(once + rest), {floats({2}, {1, 2})})[0]), ElementsAre(3, 8));
  EXPECT_THAT(fault(text(rest)), HasSubstr("operator 1 of subgraph 0 (READ_VARIABLE): variable 'v/' has no value yet"));
  EXPECT_THAT(fault(text(once + call(1, {}, {1}, handle) + call(2, {1, 0}, {}) + call(4, {0, 0}, {3}))),
              HasSubstr("changes when the model runs"));
}

TEST(tflite, what_cannot_be_imported_is_named) {
  const auto unary = [](const std::string& op, const std::string& of_x = {}, const std::string& type = "FLOAT32") {
    return fault(tflite(model_text(
        {op}, subgraph(tensor("x", type, {2}, of_x) + tensor("y", type, {2}), {0}, {1}, call(0, {0}, {1})))));
  };
  EXPECT_THAT(unary("LSH_PROJECTION"), HasSubstr("'y' (tflite.LSH_PROJECTION)"));
  EXPECT_THAT(unary("STABLEHLO_SORT"), HasSubstr("'y' (tflite.STABLEHLO_SORT)"));
  EXPECT_THAT(unary("RELU", "quantization: { scale: [1], details_type: 'Blockwise', details: {} }", "INT8"),
              HasSubstr("tensor 'x' is quantized in blocks"));
  EXPECT_THAT(unary("RELU", "quantization: { scale: [-1] }", "INT8"), HasSubstr("tensor 'x': a scale is -1"));
  EXPECT_THAT(unary("RELU", "quantization: { scale: [1], zero_point: [300] }", "INT8"),
              HasSubstr("zero point 300 is no number of its type"));
  EXPECT_THAT(unary("RELU", "quantization: { scale: [1, 2, 3], quantized_dimension: 0 }", "INT8"),
              HasSubstr("3 scales for an extent of 2"));
  const auto sum = [](const std::string& of_c, const std::string& buffers) {
    return fault(tflite(model_text(
        {"ADD"},
        subgraph(tensor("x", "FLOAT32", {2}) + tensor("c", "FLOAT32", {2}, of_c) + tensor("y", "FLOAT32", {2}), {0},
                 {2}, call(0, {0, 1}, {2})),
        buffers)));
  };
  EXPECT_THAT(sum("buffer: 1, sparsity: {}", buffer_of(std::vector<float>{1})), HasSubstr("'c': is sparse"));
  EXPECT_THAT(sum("external_buffer: 1", ""), HasSubstr("'c': is in another file"));
  EXPECT_THAT(sum("buffer: 1", buffer_of(std::vector<float>{1, 2, 3})),
              HasSubstr("tensor 'c': it has 12 bytes, its type and extents need 8"));
  EXPECT_THAT(sum("", ""), HasSubstr("(tflite.ADD) reads 'c', which no node"));
}

TEST(tflite, broken_references_are_named) {
  const auto one = [](const std::string& operators, const std::vector<int>& outputs = {1}) {
    return fault(tflite(model_text({"RELU", "CALL"}, subgraph(tensor("x", "FLOAT32", {2}) + tensor("y", "FLOAT32", {2}),
                                                              {0}, outputs, operators))));
  };
  EXPECT_EQ(one(call(0, {0}, {1})), "no error");
  EXPECT_THAT(one(call(7, {0}, {1})), HasSubstr("operator 0 of subgraph 0: there is no operator code 7"));
  EXPECT_THAT(one(call(0, {5}, {1})), HasSubstr("operator 0 of subgraph 0 (RELU): there is no tensor 5 among 2"));
  EXPECT_THAT(one(call(0, {0}, {0})), HasSubstr("tensor 'x' has a value already"));
  EXPECT_THAT(one(call(0, {0}, {1}), {9}), HasSubstr("subgraph 0: there is no tensor 9"));
  EXPECT_THAT(one(call(1, {0}, {1}, "builtin_options_type: 'CallOptions', builtin_options: { subgraph: 0 }")),
              HasSubstr("subgraphs call each other deeper than 32"));
  EXPECT_THAT(one(call(1, {0}, {1}, "builtin_options_type: 'CallOptions', builtin_options: { subgraph: 4 }")),
              HasSubstr("no subgraph 4"));
  const auto branch = [](const std::string& op, const std::string& options) {
    return fault(tflite(model_text(
        {op, "RELU"}, subgraph(tensor("x", "BOOL", {}) + tensor("y", "FLOAT32", {}) + tensor("z", "FLOAT32", {}),
                               {0, 1}, {2}, call(0, {0}, {}, options) + call(1, {1}, {2})) +
                          subgraph("", {}, {}, ""))));
  };
  EXPECT_THAT(branch("IF",
                     "builtin_options_type: 'IfOptions', builtin_options: { then_subgraph_index: 1, "
                     "else_subgraph_index: 1 }"),
              HasSubstr("ONNX's If has no output"));
  EXPECT_THAT(branch("WHILE",
                     "builtin_options_type: 'WhileOptions', builtin_options: { cond_subgraph_index: 1, "
                     "body_subgraph_index: 1 }"),
              HasSubstr("operator 0 of subgraph 0 (WHILE): it has 1 inputs and 0 outputs"));
  const std::string older = tflite(sum_text());
  EXPECT_THAT(fault(older.substr(0, 40)), HasSubstr("damaged"));
}

// Calls that double at each of 30 levels end at a limit.
TEST(tflite, few_bytes_ask_for_little) {
  std::string graphs;
  const auto down = [](int to) {
    return "builtin_options_type: 'CallOptions', builtin_options: { subgraph: " + std::to_string(to) + " }";
  };
  const std::string tensors = tensor("x", "FLOAT32", {1}) + tensor("m", "FLOAT32", {1}) + tensor("y", "FLOAT32", {1});
  for (int k = 1; k <= 30; ++k)
    graphs += subgraph(tensors, {0}, {2}, call(1, {0}, {1}, down(k)) + call(1, {1}, {2}, down(k)));
  graphs += subgraph(tensors, {0}, {2}, call(0, {0}, {2}));
  import_options few;
  few.common.max_nodes = 1000;
  EXPECT_THAT(fault(tflite(model_text({"RELU", "CALL"}, graphs)), few), HasSubstr("calls of subgraphs add too many"));
  // subgraphs that only call
  graphs.clear();
  for (int k = 1; k <= 32; ++k) {
    const std::string once = call(1, {}, {},
                                  "builtin_options_type: 'CallOnceOptions', builtin_options: { "
                                  "init_subgraph_index: " +
                                      std::to_string(k) + " }");
    graphs += subgraph("", {}, {}, once + once);
  }
  graphs += subgraph("", {}, {}, "");
  EXPECT_THAT(fault(tflite(model_text({"RELU", "CALL_ONCE"}, graphs)), few),
              HasSubstr("calls of subgraphs add too many"));
  // tensors of one name are counted, not tried from the first
  std::string same;
  for (int k = 0; k < 30000; ++k) same += "{ name: 'x' },";
  EXPECT_EQ(fault(tflite(model_text({"RELU"}, subgraph(tensor("x", "FLOAT32", {1}) + tensor("y", "FLOAT32", {1}) + same,
                                                       {0}, {1}, call(0, {0}, {1}))))),
            "no error");
  // a long name that each operator has
  std::string many;
  for (int k = 0; k < 2000; ++k) many += call(0, {}, {});
  EXPECT_THAT(fault(tflite("{ version: 3, operator_codes: [{ builtin_code: 'CUSTOM', custom_code: '" +
                           std::string(100000, 'c') + "' }], buffers: [{}], subgraphs: [" + subgraph("", {}, {}, many) +
                           "] }")),
              HasSubstr("used too often for its size"));
}

// A byte here and there, or an end that is cut: an import, or an error. Run under ASan too.
TEST(tflite, damaged_files_give_errors) {
  std::vector<std::string> files{tflite(sum_text("shape_signature: [-1, 2]", "description: 'a'"))};
  files.push_back(tflite(model_text(
      {"CONV_2D", "RESHAPE", "SOFTMAX"},
      subgraph(
          tensor("x", "INT8", {1, 3, 3, 1}, "quantization: { scale: [0.5], zero_point: [1] }") +
              tensor("w", "INT8", {2, 2, 2, 1}, "buffer: 1, quantization: { scale: [0.25, 1], zero_point: [0, 0] }") +
              tensor("y", "INT8", {1, 2, 2, 2}, "quantization: { scale: [1], zero_point: [-3] }") +
              tensor("s", "INT32", {2}, "buffer: 2") +
              tensor("z", "INT8", {2, 4}, "quantization: { scale: [1], zero_point: [-3] }") +
              tensor("p", "INT8", {2, 4}, "quantization: { scale: [0.00390625], zero_point: [-128] }"),
          {0}, {5},
          call(0, {0, 1}, {2},
               "builtin_options_type: 'Conv2DOptions', builtin_options: { padding: 'VALID', stride_w: 1, stride_h: 1 "
               "}") +
              call(1, {2, 3}, {4}) +
              call(2, {4}, {5}, "builtin_options_type: 'SoftmaxOptions', builtin_options: { beta: 1 }")),
      buffer_of(std::vector<std::int8_t>{1, 2, 3, 4, 5, 6, 7, 8}) + buffer_of(std::vector<std::int32_t>{2, 4}))));
  import_options few;
  few.common.max_nodes = 1000;
  std::mt19937 draw(7);
  int refused = 0, imported = 0;
  for (int k = 0; k < 10000; ++k) {
    std::string bytes = files[draw() % 2];
    const int changes = static_cast<int>(draw() % 3) + 1;
    for (int i = 0; i < changes; ++i) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    if (draw() % 8 == 0) bytes.resize(draw() % bytes.size());
    try {
      parse(bytes, few);
      ++imported;
    } catch (const error& e) {
      ++refused;
      EXPECT_NE(e.code(), errc::internal) << e.what();
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(imported, 100);
}

TEST(tflite, transposed_convolutions_of_mediapipe) {
  const auto model = [](const std::string& options, const std::string& extents) {
    return tflite(
        "{ version: 3, operator_codes: [{ builtin_code: 'CUSTOM', deprecated_builtin_code: 32, "
        "custom_code: 'Convolution2DTransposeBias' }], subgraphs: [" +
        subgraph(tensor("x", "FLOAT32", {1, 1, 2, 1}) + tensor("w", "FLOAT32", {1, 2, 2, 1}, "buffer: 1") +
                     tensor("b", "FLOAT32", {1}, "buffer: 2") + "{ name: 'y', shape: " + extents + " },",
                 {0}, {3}, call(0, {0, 1, 2}, {3}, "custom_options: [" + options + "]")) +
        "], buffers: [{}, " + buffer_of(std::vector<float>{1, 2, 3, 4}) + buffer_of(std::vector<float>{.5f}) + "] }");
  };
  const argument x = floats({1, 1, 2, 1}, {1, 2});
  // SAME, strides of 2: a block of each element
  const argument y =
      compile(parse(model("1,0,0,0, 2,0,0,0, 2,0,0,0", "[1,2,4,1]")).graph, eigen_target()).run(std::vector{x})[0];
  EXPECT_EQ(y.get_shape().lens, (dims{1, 2, 4, 1}));
  EXPECT_EQ(numbers(y), (std::vector<double>{1.5, 2.5, 2.5, 4.5, 3.5, 4.5, 6.5, 8.5}));
  // VALID, strides of 1 along the columns and of 2 along the rows: what overlaps is summed
  const argument z =
      compile(parse(model("2,0,0,0, 1,0,0,0, 2,0,0,0", "[1,2,3,1]")).graph, eigen_target()).run(std::vector{x})[0];
  EXPECT_EQ(numbers(z), (std::vector<double>{1.5, 4.5, 4.5, 3.5, 10.5, 8.5}));
  EXPECT_THAT(fault(model("3,0,0,0, 2,0,0,0, 2,0,0,0", "[1,2,4,1]")), HasSubstr("no padding and two strides"));
  EXPECT_THAT(fault(model("1,0,0,0, 0,0,0,0, 2,0,0,0", "[1,2,4,1]")), HasSubstr("a stride is 0"));
  EXPECT_THAT(fault(model("1,0,0,0", "[1,2,4,1]")), HasSubstr("no padding and two strides"));
  EXPECT_EQ(fault(model("1,0,0,0, 2,0,0,0, 2,0,0,0, 0,0,0,0", "[1,2,4,1]")), "no error");
  EXPECT_THAT(fault(model("1,0,0,0, 2,0,0,0, 2,0,0,0, 1,0,0,0", "[1,2,4,1]")), HasSubstr("number 1 at place 3"));
  EXPECT_THAT(fault(model("1,0,0,0, 2,0,0,0, 2,0", "[1,2,4,1]")), HasSubstr("16 numbers of 32 bits, found 10 bytes"));
}

TEST(tflite, options_that_are_no_map_are_damaged) {
  const std::string text = tflite(
      "{ version: 3, operator_codes: [{ builtin_code: 'CUSTOM', deprecated_builtin_code: 32, "
      "custom_code: 'TFLite_Detection_PostProcess' }], subgraphs: [" +
      subgraph(tensor("x", "FLOAT32", {1, 1, 4}) + "{ name: 'y', shape: [1,1,4] },", {0}, {1},
               call(0, {0}, {1}, "custom_options: [1,0,0,0, 2,0,0,0, 255,255,255,255]")) +
      "], buffers: [{}] }");
  EXPECT_THAT(fault(text), HasSubstr("its options are no flexbuffer"));
}

}  // namespace
}  // namespace kiln::tensorflow
