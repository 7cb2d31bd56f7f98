#include <random>

#include "kiln/core/wire_format.hpp"
#include "kiln/tensorflow/impl/file/tensor_message.hpp"
#include "support/temporary_folder.hpp"
#include "tensorflow/bundle_writer.hpp"
#include "tensorflow/graph_text.hpp"

namespace kiln::tensorflow {
namespace {

TEST(tensorflow_import, constants_of_all_types_and_forms) {
  const auto value = [](const std::string& tensor) {
    const auto out = run(placeholder("x", "1") + constant("c", tensor), {floats({1}, {0})}, {.outputs = {"c"}});
    return std::pair(out[0].get_shape().type, numbers(out[0]));
  };
  const std::string two = " tensor_shape { dim { size: 2 } } ";
  using result = std::pair<dtype, std::vector<double>>;
  EXPECT_EQ(value("dtype: DT_UINT8" + two + "int_val: 200 int_val: 7"), (result{dtype::u8, {200, 7}}));
  EXPECT_EQ(value("dtype: DT_INT8" + two + "int_val: -3 int_val: 7"), (result{dtype::i8, {-3, 7}}));
  EXPECT_EQ(value("dtype: DT_INT64" + two + "int64_val: -9000000000 int64_val: 7"),
            (result{dtype::i64, {-9000000000, 7}}));
  EXPECT_EQ(value("dtype: DT_UINT64" + two + "uint64_val: [9000000000, 7]"), (result{dtype::u64, {9000000000, 7}}));
  EXPECT_EQ(value("dtype: DT_HALF" + two + "half_val: [0x3e00, 48128]"), (result{dtype::f16, {1.5, -1}}));
  EXPECT_EQ(value("dtype: DT_BFLOAT16" + two + "half_val: [0x3fc0, 0xbf80]"), (result{dtype::bf16, {1.5, -1}}));
  EXPECT_EQ(value("dtype: DT_DOUBLE" + two + "double_val: .25 double_val: 1e300"), (result{dtype::f64, {.25, 1e300}}));
  EXPECT_EQ(value("dtype: DT_BOOL" + two + "bool_val: true bool_val: false"), (result{dtype::boolean, {1, 0}}));
  EXPECT_EQ(value("dtype: DT_FLOAT" + two + "tensor_content: \"\\000\\000\\200?\\000\\000\\000@\""),
            (result{dtype::f32, {1, 2}}));
  // the last number stands for the rest, and 0 for all where there is none
  EXPECT_EQ(value("dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: 1 float_val: 2"),
            (result{dtype::f32, {1, 2, 2, 2}}));
  EXPECT_EQ(value("dtype: DT_INT32" + two), (result{dtype::i32, {0, 0}}));
}

TEST(tensorflow_import, damaged_text_names_its_line) {
  EXPECT_THAT(fault("node {\n  name: 'x'\n  op: \"Placeholder\n}"), HasSubstr("line 3"));
  EXPECT_THAT(fault("node { name: 'x' op: 'Y' "), HasSubstr("it ends too soon"));
  EXPECT_THAT(fault("node { name: 'x' op: 'C' attr { key: 'dtype' value { type: DT_FLOTA } } }"),
              HasSubstr("'DT_FLOTA' is no element type"));
  EXPECT_THAT(fault(std::string("node { unknown { a: [1, 2] b < c: 'd' > } name: 'x' op: 'Mystery' }")),
              HasSubstr("Mystery"));
}

// A GraphDef in binary form, field by field.
struct binary_graph {
  std::string bytes;
  static std::string field(std::uint64_t number, std::string_view content) {
    std::string out;
    append_field(out, number, content);
    return out;
  }
  static std::string field(std::uint64_t number, std::uint64_t v) {
    std::string out;
    append_field(out, number, v);
    return out;
  }
  void node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
            const std::map<std::string, std::string>& attrs) {
    std::string n = field(1, name) + field(2, op);
    for (const std::string& i : inputs) n += field(3, i);
    for (const auto& [key, value] : attrs) n += field(5, field(1, key) + field(2, value));
    bytes += field(1, n);
  }
};
std::string binary_example() {
  using b = binary_graph;
  binary_graph g;
  const std::string extents = b::field(2, b::field(1, std::uint64_t(2)));
  g.node("x", "Placeholder", {}, {{"dtype", b::field(6, std::uint64_t(1))}, {"shape", b::field(7, extents)}});
  const float weights[] = {3, 4};
  const std::string content(reinterpret_cast<const char*>(weights), sizeof weights);
  g.node("w", "Const", {},
         {{"value", b::field(8, b::field(1, std::uint64_t(1)) + b::field(2, extents) + b::field(4, content))}});
  g.node("y", "Mul", {"x", "w", "^x"}, {});
  return g.bytes;
}

TEST(tensorflow_import, binary_form) {
  const std::string bytes = binary_example();
  EXPECT_THAT(numbers(run(bytes, {floats({2}, {5, 6})})[0]), ElementsAre(15, 24));
  const test::temporary_folder folder;
  const std::string file = folder.write("frozen_graph.pb", bytes);
  EXPECT_TRUE(is_graph_file(file));
  EXPECT_THAT(numbers(compile(read_model(file).graph, eigen_target()).run(std::vector{floats({2}, {5, 6})})[0]),
              ElementsAre(15, 24));
  EXPECT_FALSE(is_graph_file(KILN_SOURCE_DIR "/examples/models/digits/model.onnx"));
  EXPECT_THAT(message_of([&] { read_model(folder.path().string()); }), HasSubstr("the folder has no saved_model.pb"));
  EXPECT_THAT(message_of([&] { read_model(file + "x"); }), HasSubstr("frozen_graph.pbx"));
}

TEST(tensorflow_import, damaged_files_give_errors) {
  const std::string whole = binary_example();
  int faults = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      parse(bytes);
    } catch (const error&) {
      ++faults;
    }
  };
  for (std::size_t n = 0; n < whole.size(); ++n) attempt(whole.substr(0, n));
  EXPECT_GT(faults, static_cast<int>(whole.size()) / 2);
  std::mt19937 draw(7);
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = whole;
    for (unsigned k = 0; k <= draw() % 3; ++k) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    attempt(bytes);
  }
  const std::string text = placeholder("x", "-1 3") +
                           constant("c", "dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1") +
                           node("y", "Reshape", {"x", "c"});
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = text;
    for (unsigned k = 0; k <= draw() % 3; ++k) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    attempt(bytes);
  }
  EXPECT_GT(faults, 1000);
}

TEST(tensorflow_import, lists_of_all_types) {
  using b = binary_graph;
  const auto raw = [](std::uint64_t type, std::uint64_t count, const std::string& lists) {
    binary_graph g;
    const std::string extents = b::field(2, b::field(1, count));
    g.node("c", "Const", {}, {{"value", b::field(8, b::field(1, type) + b::field(2, extents) + lists)}});
    g.node("x", "Placeholder", {}, {{"dtype", b::field(6, std::uint64_t(1))}, {"shape", b::field(7, extents)}});
    return g.bytes;
  };
  const auto bytes = [&](std::uint64_t type, std::uint64_t count, const std::string& lists) {
    const argument out =
        run(raw(type, count, lists), {counted({static_cast<std::int64_t>(count)})}, {.outputs = {"c"}})[0];
    return std::string(reinterpret_cast<const char*>(out.data()),
                       static_cast<std::size_t>(out.elements()) * size_of(out.get_shape().type));
  };
  const auto of = [](auto... v) {
    std::string out;
    (out.append(reinterpret_cast<const char*>(&v), sizeof v), ...);
    return out;
  };
  const auto one = [](std::uint64_t number, float v) {  // not packed
    std::string out;
    append_varint(out, number << 3 | static_cast<std::uint64_t>(wire_encoding::four_bytes));
    return out.append(reinterpret_cast<const char*>(&v), sizeof v);
  };
  EXPECT_EQ(bytes(25, 2, b::field(18, "8@")), "8@");
  EXPECT_EQ(bytes(10, 2, b::field(11, std::uint64_t(256)) + b::field(11, std::uint64_t(0))), std::string("\1\0", 2));
  EXPECT_EQ(bytes(1, 2, one(5, 1) + one(5, 2)), of(1.f, 2.f));
  for (const std::uint64_t complex : {8u, 18u})
    EXPECT_THAT(fault(raw(complex, 1, one(9, 1)), {.outputs = {"c"}}), HasSubstr("constants of a program do not hold"));
  EXPECT_THAT(fault(raw(1, 1, b::field(7, std::uint64_t(3)))),
              HasSubstr("node 'c' (Const), attribute 'value': its val"));
  EXPECT_THAT(fault(raw(3, 2, one(5, 1))), HasSubstr("field 5"));
}

TEST(tensorflow_import, numbers_and_bools_of_text) {
  const auto value = [](const std::string& tensor) {
    return numbers(run(placeholder("x", "1") + constant("c", tensor), {floats({1}, {0})}, {.outputs = {"c"}})[0]);
  };
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(value("dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: [1e400, -1e39, 1e-400, -inf]"),
              ElementsAre(infinite, -infinite, 0, -infinite));
  EXPECT_THAT(
      value("dtype: DT_DOUBLE tensor_shape { dim { size: 3 } } double_val: [0.1e99999999999, 1e-99999999999, 1" +
            std::string(400, '0') + "]"),
      ElementsAre(infinite, 0, infinite));
  EXPECT_THAT(value("dtype: DT_BOOL tensor_shape { dim { size: 3 } } bool_val: [True, False, t]"),
              ElementsAre(1, 0, 1));
}

TEST(tensorflow_import, few_bytes_ask_for_little) {
  for (const char* const end : {"", "node { name: 'x' op: 'Y' }"}) {
    const std::string deep(1000000, '[');
    EXPECT_THAT(fault("unknown: " + deep + end), HasSubstr("nested deeper"));
    EXPECT_THAT(fault("node { name: 'x' unknown: " + deep + end), HasSubstr("nested deeper"));
  }
  fill_budget budget(16);
  budget.take(std::int64_t{1} << 29, "node 'a'");
  budget.take(std::int64_t{1} << 29, "node 'b'");
  EXPECT_THAT(message_of([&] { budget.take(2000, "node 'c'"); }), HasSubstr("node 'c'"));
  const std::string huge = "dtype: DT_FLOAT tensor_shape { dim { size: 400000000 } } float_val: 1";
  EXPECT_THAT(fault(constant("c", huge) + node("y", "Neg", {"c"})), HasSubstr("node 'c'"));
  // a tensor that is no constant's value is not read
  const std::string x = placeholder("x", "2");
  EXPECT_EQ(fault(x + node("y", "Neg", {"x"}, attribute("note", "tensor { " + huge + " }"))), "no error");
}

TEST(tensorflow_import, other_files_are_told_apart) {
  using b = binary_graph;
  EXPECT_THAT(fault(binary_example() + b::field(7, "ir")), HasSubstr("field 7 is none of a GraphDef"));
  const test::temporary_folder folder;
  const std::string file =
      folder.write("saved_model.pb", b::field(1, std::uint64_t(1)) + b::field(2, b::field(2, binary_example())));
  EXPECT_FALSE(is_graph_file(file));
  for (const std::string& path : {file, folder.path().string()}) {
    EXPECT_THAT(message_of([&] { read_any_model(path); }), HasSubstr("which signature to import is not said"));
    EXPECT_THAT(message_of([&] { any_model_inputs(path); }), HasSubstr("which signature to import is not said"));
  }
  const import_options signature{.signature = "x"};
  EXPECT_THAT(fault(binary_example(), signature), HasSubstr("are for a SavedModel"));
}

}  // namespace
}  // namespace kiln::tensorflow
