#include <cstring>

#include "kiln/quantize/int4.hpp"
#include "kiln/quantize/weight_blocks.hpp"
#include "onnx/run_model.hpp"
#include "runtime/compare.hpp"

// Files of quantized networks that are read and written again keep their nodes, and every form computes the same.
namespace kiln::test {
namespace {

constexpr const char* microsoft = "com.microsoft";
using onnx::quantized_form;

// How often a file has an operator: the field op_type of its nodes.
std::size_t count_of(const std::string& file, const std::string& op) {
  const std::string field = std::string("\x22") + static_cast<char>(op.size()) + op;
  std::size_t count = 0;
  for (std::size_t at = file.find(field); at != std::string::npos; at = file.find(field, at + 1)) ++count;
  return count;
}
onnx::imported read(const std::string& file) {
  return onnx::parse_model(std::as_bytes(std::span(file.data(), file.size())));
}
std::string written(const program& p, quantized_form form = quantized_form::usual) {
  return onnx::export_model(p, {.form = form});
}
std::vector<argument> random_inputs_of(const program& p) {
  std::vector<argument> out;
  unsigned seed = 2;
  for (const value_id v : p.main().parameters()) {
    const bool bytes = is_integer(p.main().shape_of(v).type);
    out.push_back(testing::random_argument(p.main().shape_of(v), ++seed, bytes ? 0 : -1, bytes ? 100 : 1));
  }
  return out;
}
void expect_same_results(const program& p, const std::string& file, const std::vector<argument>& given) {
  const auto expected = compile(p, eigen_target()).run(given),
             found = compile(read(file).graph, eigen_target()).run(given);
  for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_TRUE(equal_values(found[k], expected[k])) << k;
}

struct one_operator {
  std::string op, domain;
  std::vector<message> inputs, initializers;
  strings operands;
  std::vector<message> attributes{};
  int result = 1;
};
message model_of(const one_operator& o) {
  graph_parts parts;
  parts.inputs = o.inputs;
  parts.initializers = o.initializers;
  parts.nodes = {node(o.op, o.operands, {"y"}, o.attributes, "", o.domain)};
  parts.outputs = {message().text(1, "y").add(2, message().add(1, message().number(1, o.result)))};
  return model(graph(parts), {opset(21), opset(1, microsoft)});
}
// It stays what it is, in the form that has it.
void expect_kept(const one_operator& o, quantized_form form = quantized_form::usual) {
  SCOPED_TRACE(o.op);
  const program p = onnx::parse_model(model_of(o).bytes()).graph;
  const std::string file = written(p, form);
  EXPECT_EQ(count_of(file, o.op), 1u);
  const std::string again = written(read(file).graph, form);
  EXPECT_EQ(count_of(again, o.op), 1u);
  EXPECT_EQ(again.size(), file.size());
  expect_same_results(p, file, random_inputs_of(p));
}

const message x = value_info("x", 1, {2, 3, 4}), q = value_info("q", 2, {2, 3, 4}), s = floats("s", {}, {.02F}),
              channels = floats("c", {3}, {.02F, .03F, .01F}), z = tensor<std::uint8_t>("z", 2, {}, {100});

TEST(quantized_files, quantization_stays_what_it_is) {
  expect_kept({"QuantizeLinear", "", {x}, {s, z}, {"x", "s", "z"}, {}, 2});
  expect_kept({"QuantizeLinear", "", {x}, {channels}, {"x", "c"}, {attr("axis", 1)}, 2});
  expect_kept({"QuantizeLinear", "", {x}, {s, tensor<std::uint16_t>("w", 4, {}, {300})}, {"x", "s", "w"}, {}, 4});
  expect_kept({"DequantizeLinear", "", {q}, {s, z}, {"q", "s", "z"}});
  expect_kept({"DequantizeLinear", "", {value_info("i", 6, {3})}, {channels}, {"i", "c"}, {attr("axis", 0)}});
  for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {  // of 16 bits, as before ai.onnx 21
    const bool from = op[0] == 'D';
    expect_kept({op,
                 microsoft,
                 {from ? value_info("v", 4, {2, 3}) : value_info("v", 1, {2, 3})},
                 {s, tensor<std::uint16_t>("w", 4, {}, {30000})},
                 {"v", "s", "w"},
                 {},
                 from ? 1 : 4});
  }
  expect_kept({"DynamicQuantizeLinear", "", {x}, {}, {"x"}, {}, 2});
}

TEST(quantized_files, products_of_bytes_stay_what_they_are) {
  const message a = value_info("a", 2, {2, 3, 8}), m = value_info("m", 2, {3, 8}),
                b = tensor<std::int8_t>("b", 3, {8, 5}, std::vector<std::int8_t>(40, -7)),
                columns = floats("c", {5}, {.02F, .03F, .01F, .02F, .04F}), none = tensor<std::int8_t>("n", 3, {}, {0}),
                nones = tensor<std::int8_t>("nn", 3, {5}, {0, 0, 0, 0, 0}),
                bias = tensor<std::int32_t>("i", 6, {5}, {7, -900, 0, 44, 5});
  expect_kept({"MatMulInteger", "", {a}, {b, z}, {"a", "b", "z"}, {}, 6});
  const auto operators = quantized_form::qoperator;
  expect_kept({"QLinearMatMul", "", {a}, {s, z, b, columns, nones}, {"a", "s", "z", "b", "c", "nn", "s", "z"}, {}, 2},
              operators);
  expect_kept({"QGemm", microsoft, {m}, {s, z, b, none, bias}, {"m", "s", "z", "b", "s", "n", "i", "s", "z"}, {}, 2},
              operators);
  expect_kept({"MatMulIntegerToFloat", microsoft, {a}, {b, s, columns, z, nones}, {"a", "b", "s", "c", "z", "nn"}},
              operators);
  const message image = value_info("image", 2, {1, 4, 5, 5}),
                filters = tensor<std::int8_t>("f", 3, {6, 2, 3, 3}, std::vector<std::int8_t>(108, 3));
  const std::vector<message> around{attr("pads", std::vector<std::int64_t>{1, 0, 1, 0}), attr("group", 2)};
  expect_kept({"ConvInteger", "", {image}, {filters, z}, {"image", "f", "z"}, around, 6});
  expect_kept(
      {"QLinearConv", "", {image}, {filters, s, z, none}, {"image", "s", "z", "f", "s", "n", "s", "z"}, around, 2},
      operators);
}

TEST(quantized_files, operators_on_bytes_stay_what_they_are) {
  const auto expect = [&](const char* op, strings operands, std::vector<message> attributes = {},
                          std::vector<message> inputs = {}) {
    if (inputs.empty()) inputs = {value_info("q", 2, {1, 2, 4, 4})};
    expect_kept({op, microsoft, std::move(inputs), {s, z}, std::move(operands), std::move(attributes), 2},
                quantized_form::qoperator);
  };
  expect("QLinearAdd", {"q", "s", "z", "q", "s", "z", "s", "z"});
  expect("QLinearMul", {"q", "s", "z", "q", "s", "z", "s", "z"});
  expect("QLinearSigmoid", {"q", "s", "z", "s", "z"});
  expect("QLinearLeakyRelu", {"q", "s", "z", "s", "z"}, {attr("alpha", .2F)});
  expect("QLinearConcat", {"s", "z", "q", "s", "z", "q", "s", "z"}, {attr("axis", 1)});
  expect("QLinearAveragePool", {"q", "s", "z", "s", "z"}, {attr("kernel_shape", std::vector<std::int64_t>{2, 2})});
  expect("QLinearGlobalAveragePool", {"q", "s", "z", "s", "z"});
  expect("QLinearSoftmax", {"q", "s", "z", "s", "z"}, {attr("axis", 1), attr("opset", 13)});
  expect("QLinearWhere", {"k", "q", "s", "z", "q", "s", "z", "s", "z"}, {},
         {value_info("q", 2, {1, 2, 4, 4}), value_info("k", 9, {4, 1})});
}

// What is only moved is moved as bytes.
TEST(quantized_files, views_and_windows_read_bytes) {
  builder b;
  const value scale = b.scalar(dtype::f32, .1F), zero = b.scalar(dtype::u8, 7),
              in = b.input("q", dtype::u8, {1, 2, 4, 4});
  const value real = b.add(op::dequantize_linear{0}, in, scale, zero);
  const value moved = real.transpose({0, 1, 3, 2}).pool({.lengths = {2, 2}, .stride = {1, 1}}).reshape({2, 9});
  const value padded = b.add(op::pad{.pads = {0, 1, 0, 2}}, moved);
  b.output(b.add(op::quantize_linear{dtype::u8, 0},
                 padded.gather(b.constant<int>(dtype::i64, {3}, std::vector{1, 0, 1}), 0), scale, zero),
           "y");
  b.output(b.add(op::arg_max{1}, moved), "best");
  const program p = b.finish();
  const std::string file = written(p, quantized_form::qoperator);
  EXPECT_EQ(count_of(file, "DequantizeLinear"), 0u);
  EXPECT_EQ(count_of(file, "QuantizeLinear"), 0u);
  for (const char* op : {"Transpose", "MaxPool", "Pad", "Gather", "ArgMax"}) EXPECT_EQ(count_of(file, op), 1u) << op;
  expect_same_results(p, file, random_inputs_of(p));
}

program stored_network(const quantize::int4_options& options, std::int64_t depth = 168) {
  builder b;
  const auto weights = [&](const dims& lens, unsigned seed) {
    return b.constant(testing::random_argument({dtype::f32, lens}, seed).to_literal());
  };
  const value y = b.input("x", dtype::f32, {3, depth}).dot(weights({depth, 96}, 1)).relu();
  b.output(y.dot(weights({96, 112}, 2)), "y");
  return quantize::to_int4(quantize::prepared(b.finish()), options).graph;
}

TEST(quantized_files, weights_in_blocks_stay_in_blocks) {
  for (const std::int64_t bits : {2, 4, 8})
    for (const bool symmetric : {true, false}) {
      SCOPED_TRACE(::testing::Message() << bits << symmetric);
      const program p = stored_network({.format = {bits, 16, symmetric}});
      const std::string once = written(p), twice = written(quantize::prepared(read(once).graph));
      EXPECT_EQ(count_of(once, "MatMulNBits"), 2u);
      EXPECT_EQ(count_of(twice, "MatMulNBits"), 2u);
      expect_same_results(p, twice, random_inputs_of(p));
    }
}

TEST(quantized_files, weights_in_blocks_are_dequantized_in_qdq) {
  for (const std::int64_t bits : {2, 4, 8})
    for (const std::int64_t block : {16, 64, 512})
      for (const bool symmetric : {true, false}) {
        SCOPED_TRACE(::testing::Message() << bits << ' ' << block << ' ' << symmetric);
        const program p = stored_network({.format = {bits, block, symmetric}});
        const std::string once = written(p, quantized_form::qdq),
                          twice = written(read(once).graph, quantized_form::qdq);
        for (const std::string& file : {once, twice}) {
          EXPECT_EQ(count_of(file, "DequantizeLinear"), 2u);
          EXPECT_EQ(count_of(file, "MatMulNBits") + count_of(file, "Transpose"), 0u);
        }
        const auto given = random_inputs_of(p);
        const auto expected = compile(p, eigen_target()).run(given),
                   found = compile(read(twice).graph, eigen_target()).run(given);
        testing::expect_close(found[0], expected[0], {1e-5, 1e-5});
      }
}

// Bytes as ONNX Runtime's quantizer writes them: [depth, columns] with the first of two numbers low, signed ones less
// 8, and scales and zero points for each block of the depth.
TEST(quantized_files, the_bytes_of_qdq_are_those_of_the_blocks) {
  constexpr std::int64_t depth = 40, columns = 6, block = 16, blocks = 3;
  for (const bool symmetric : {true, false}) {
    const literal matrix = testing::random_argument({dtype::f32, {depth, columns}}, 9).to_literal();
    std::vector<float> turned;
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = 0; k < depth; ++k)
        turned.push_back(matrix.at<float>(static_cast<std::size_t>(k * columns + j)));
    thread_pool pool(1);
    const auto blocked =
        quantize::in_blocks(turned, columns, {4, block, symmetric}, quantize::weight_method::rtn, pool);
    std::string numbers(depth * columns / 2, '\0'), zeros((blocks * columns + 1) / 2, '\0'), scales;
    const auto put = [](std::string& into, std::int64_t at, int field) {
      char& byte = into[static_cast<std::size_t>(at / 2)];
      byte = static_cast<char>(static_cast<unsigned char>(byte) | field << at % 2 * 4);
    };
    const auto field_of = [](const std::vector<std::uint8_t>& from, std::int64_t row_bytes, std::int64_t row,
                             std::int64_t k) {
      return from[static_cast<std::size_t>(row * row_bytes + k / 2)] >> k % 2 * 4 & 15;
    };
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t j = 0; j < columns; ++j)
        put(numbers, k * columns + j, (field_of(blocked.data, blocks * block / 2, j, k) - (symmetric ? 8 : 0)) & 15);
    for (std::int64_t k = 0; k < blocks; ++k)
      for (std::int64_t j = 0; j < columns; ++j) {
        const float scale = blocked.scales[static_cast<std::size_t>(j * blocks + k)];
        scales.append(reinterpret_cast<const char*>(&scale), sizeof scale);
        if (!symmetric) put(zeros, k * columns + j, field_of(blocked.zeros, (blocks + 1) / 2, j, k));
      }
    const auto elements = matrix.to<float>();
    const std::vector<float> reals(elements.begin(), elements.end());
    graph_parts parts;
    parts.inputs = {value_info("x", 1, {2, depth})};
    parts.initializers = {floats("W", {depth, columns}, reals)};
    parts.nodes = {node("MatMul", {"x", "W"}, {"y"})};
    parts.outputs = {value_info("y")};
    const program p = onnx::parse_model(model(graph(parts), {opset(20)}).bytes()).graph;
    const std::string file =
        written(quantize::to_int4(quantize::prepared(p), {.format = {4, block, symmetric}}).graph, quantized_form::qdq);
    EXPECT_NE(file.find(numbers), std::string::npos);
    EXPECT_NE(file.find(scales), std::string::npos);
    EXPECT_TRUE(symmetric || file.find(zeros) != std::string::npos);
    EXPECT_EQ(file.find("_DQ_zero_points") != std::string::npos, !symmetric);
    for (const char* name : {"W_DQ_Q4", "W_DQ_scales"}) EXPECT_NE(file.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace kiln::test
