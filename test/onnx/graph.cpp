#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kiln/onnx/import.hpp"
#include "kiln/onnx/op_importer.hpp"
#include "onnx/evaluate.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::test {
namespace {

argument values(const dims& lens, const std::vector<float>& v) { return argument::of<float>(lens, v); }
small_vector<float> run(const program& p, const small_vector<argument>& in, std::size_t output = 0) {
  return evaluate(p, in)[output].to<float>();
}
program import(const message& m, const onnx::import_options& options = {}, const std::string& directory = ".") {
  return onnx::parse_model(m.bytes(), directory, options).graph;
}
std::string refusal(const message& m, const onnx::import_options& options = {}) {
  try {
    onnx::parse_model(m.bytes(), ".", options);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "the model was imported";
  return {};
}
bool has(const std::string& all, std::string_view words) {
  if (all.find(words) != std::string::npos) return true;
  ADD_FAILURE() << "'" << words << "' is not in: " << all;
  return false;
}

const auto x_in = value_info("x", 1, {2});
const auto y_out = value_info("y");

TEST(import_graph, nodes_may_stand_in_any_order) {
  const auto m =
      model(graph({{node("Add", {"b", "x"}, {"y"}), node("Mul", {"a", "a"}, {"b"}), node("Neg", {"x"}, {"a"})},
                   {},
                   {x_in},
                   {y_out}}));
  EXPECT_EQ(run(import(m), {values({2}, {2, 3})}), (small_vector<float>{6, 12}));
}

TEST(import_graph, inputs_and_outputs_keep_names_and_order) {
  const auto m = model(graph({{node("Add", {"x", "z"}, {"y"}), node("Sub", {"x", "z"}, {"d"})},
                              {},
                              {x_in, value_info("unused", 7, {"n"}), value_info("z", 1, {2})},
                              {value_info("d"), y_out, value_info("x")}}));
  const program p = import(m);
  const auto parameters = p.main().parameters();
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(p.main().producer(parameters[1]).name.view(), "unused");
  EXPECT_EQ(p.main().shape_of(parameters[1]), shape(dtype::i64, {dimension::symbol("n", 0)}));
  ASSERT_EQ(p.main().output_names.size(), 3u);
  EXPECT_EQ(p.main().output_names[0].view(), "d");
  EXPECT_EQ(p.main().output_names[2].view(), "x");
  EXPECT_EQ(p.main().outputs[2], parameters[0]);
}

TEST(import_graph, instructions_carry_their_nodes_names) {
  const auto m = model(
      graph({{node("Relu", {"x"}, {"a"}, {}, "first"), node("Neg", {"a"}, {"b"}), node("MatMul", {"b", "w"}, {"y"})},
             {floats("w", {2, 2}, {1, 2, 3, 4})},
             {value_info("x", 1, {1, 2})},
             {y_out}}));
  const program p = import(m);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < p.main().size(); ++i) names.push_back(p.main()[i].name.str());
  EXPECT_EQ(names, (std::vector<std::string>{"x", "first", "Neg_1", "w", "MatMul_2"}));
}

TEST(import_graph, initializers_under_an_inputs_name_are_constants) {
  const auto m = model(graph(
      {{node("Add", {"x", "w"}, {"y"})}, {floats("w", {2}, {10, 20})}, {x_in, value_info("w", 1, {2})}, {y_out}}));
  const program p = import(m);
  EXPECT_EQ(p.main().parameters().size(), 1u);
  EXPECT_EQ(run(p, {values({2}, {1, 2})}), (small_vector<float>{11, 22}));
}

TEST(import_graph, a_default_can_be_overridden) {
  const auto m = model(graph({{node("Add", {"x", "w"}, {"y"})},
                              {floats("w", {2}, {10, 20})},
                              {value_info("x", 1, {"n"}), value_info("w", 1, {"n"})},
                              {y_out}}));
  onnx::import_options options;
  options.overrides = {"w"};
  const program p = import(m, options);
  EXPECT_EQ(p.main().parameters().size(), 2u);
  EXPECT_EQ(run(p, {values({2}, {1, 2}), values({2}, {5, 6})}), (small_vector<float>{6, 8}));
  options = {};
  options.shapes = {{"w", {3}}};
  const program longer = import(m, options);
  EXPECT_EQ(run(longer, {values({3}, {1, 2, 3}), values({3}, {5, 6, 7})}), (small_vector<float>{6, 8, 10}));
  options = {};
  const float known[] = {7, 8};
  options.values = {{"w", literal::of<float>({dtype::f32, {2}}, known)}};
  EXPECT_EQ(run(import(m, options), {values({2}, {1, 2}), values({2}, {0, 0})}), (small_vector<float>{8, 10}));
  options = {};
  options.dimensions = {{"n", 3}};  // the default has another extent
  EXPECT_EQ(import(m, options).main().parameters().size(), 2u);
  options.dimensions = {{"n", 2}};
  EXPECT_EQ(import(m, options).main().parameters().size(), 1u);
}

TEST(import_graph, declared_shapes_of_results_are_not_trusted) {
  const auto m = model(graph({{node("Relu", {"x"}, {"y"})}, {}, {x_in}, {value_info("y", 7, {5, 5})}}));
  const program p = import(m);
  EXPECT_EQ(p.main().shape_of(p.main().outputs[0]), shape(dtype::f32, {2}));
}

TEST(import_graph, every_node_without_importer_is_listed) {
  const auto m =
      model(graph({{node("Mystery", {"x"}, {"a"}, {}, "m1"), node("Riddle", {"a", "x"}, {"b"}, {}, "", "puzzle"),
                    node("Relu", {"b"}, {"c"}), node("Enigma", {"c"}, {"y"}, {}, "m3"), node("Unused", {"x"}, {"u"})},
                   {},
                   {x_in},
                   {y_out}}),
            {opset(17), opset(3, "puzzle")});
  const std::string all = refusal(m);
  EXPECT_TRUE(has(all, "3 parts"));
  EXPECT_TRUE(has(all, "'m1' (Mystery) of ai.onnx 17 over f32[2]: no importer"));
  EXPECT_TRUE(has(all, "(puzzle.Riddle) of puzzle 3 over -, f32[2]"));
  EXPECT_TRUE(has(all, "'m3' (Enigma)"));
  EXPECT_EQ(all.find("Unused"), std::string::npos);
  EXPECT_EQ(all.find("Relu"), std::string::npos);
}

TEST(import_graph, versions_older_than_an_importer_are_refused) {
  const auto m = model(graph({{node("SequenceMap", {"x"}, {"y"})}, {}, {x_in}, {y_out}}), {opset(16)});
  EXPECT_TRUE(has(refusal(m), "versions from 17 on"));
}

TEST(import_graph, inputs_kiln_cannot_hold_are_listed) {
  const auto sequence = message().text(1, "s").add(2, message().add(4, message()));
  const auto map = message().text(1, "m").add(2, message().add(5, message()));
  const auto sparse = message().text(1, "p").add(2, message().add(8, message()));
  const auto m = model(graph({{node("Relu", {"x"}, {"y"})}, {}, {x_in, sequence, map, sparse}, {y_out}}));
  const std::string all = refusal(m);
  EXPECT_TRUE(has(all, "input 's': has elements of type undefined"));
  EXPECT_TRUE(has(all, "input 'm': has elements of type undefined"));
  EXPECT_TRUE(has(all, "input 'p': is a sparse tensor, not a tensor"));
}

TEST(import_graph, domains_have_versions_of_their_own) {
  // Gelu of com.microsoft exists at ai.onnx 12, which has none of its own
  const auto m = model(graph({{node("Gelu", {"x"}, {"y"}, {}, "", "com.microsoft")}, {}, {x_in}, {y_out}}),
                       {opset(12), opset(1, "com.microsoft")});
  EXPECT_NEAR(run(import(m), {values({2}, {1, -1})})[0], 0.8413447f, 1e-6);
  const auto old = model(graph({{node("Gelu", {"x"}, {"y"})}, {}, {x_in}, {y_out}}), {opset(12)});
  EXPECT_TRUE(has(refusal(old), "from 20 on"));
}

message scaled_function() {
  // scaled(a) = LeakyRelu(a, alpha) + a, alpha given by the call
  message f;
  f.text(1, "scaled").text(4, "a").text(4, "b").text(5, "c").text(6, "slope");
  f.add(7, node("Add", {"t", "a"}, {"c"}));
  f.add(7, node("LeakyRelu", {"a"}, {"t"}, {reference("alpha", "slope", 1)}));
  return f.add(9, opset(17)).text(10, "own");
}

TEST(import_graph, functions_are_inlined_with_their_attributes) {
  const auto g = graph(
      {{node("scaled", {"x"}, {"h"}, {attr("slope", 0.5f)}, "", "own"), node("scaled", {"h"}, {"y"}, {}, "", "own")},
       {},
       {x_in},
       {y_out}});
  const program p = import(model(g, {opset(17), opset(1, "own")}, {scaled_function()}));
  // first call: -2 -> -1 - 2 = -3; the second leaves alpha at its default of 0.01
  const auto out = run(p, {values({2}, {4, -2})});
  EXPECT_FLOAT_EQ(out[0], 16);
  EXPECT_FLOAT_EQ(out[1], -3.03f);
}

TEST(import_graph, newer_files_give_function_attributes_defaults) {
  message f = scaled_function();
  f.add(11, attr("slope", 0.25f));
  const auto g = graph({{node("scaled", {"x"}, {"y"}, {}, "", "own")}, {}, {x_in}, {y_out}});
  EXPECT_EQ(run(import(model(g, {opset(17), opset(1, "own")}, {f})), {values({2}, {4, -2})}),
            (small_vector<float>{8, -2.5f}));
}

TEST(import_graph, a_call_names_the_overload_of_its_function) {
  const auto one = [](const char* overload, const char* op) {
    message f;
    f.text(1, "f").text(4, "a").text(5, "c").add(7, node(op, {"a"}, {"c"})).add(9, opset(17)).text(10, "own");
    return f.text(13, overload);
  };
  const auto call = [](const char* overload, const char* in, const char* out) {
    return node("f", {in}, {out}, {}, "", "own").text(8, overload);
  };
  const auto with = [&](const char* second) {
    return model(graph({{call("first", "x", "h"), call(second, "h", "y")}, {}, {x_in}, {y_out}}),
                 {opset(17), opset(1, "own")}, {one("first", "Abs"), one("second", "Neg")});
  };
  EXPECT_EQ(run(import(with("second")), {values({2}, {4, -2})}), (small_vector<float>{-4, -2}));
  EXPECT_TRUE(has(refusal(with("third")), "(own.f)"));
}

TEST(import_graph, unsupported_nodes_inside_functions_are_listed) {
  message f;
  f.text(1, "f").text(4, "a").text(5, "c").add(7, node("Mystery", {"a"}, {"c"}, {}, "inner"));
  f.add(9, opset(17)).text(10, "own");
  const auto g = graph({{node("f", {"x"}, {"y"}, {}, "", "own")}, {}, {x_in}, {y_out}});
  EXPECT_TRUE(has(refusal(model(g, {opset(17), opset(1, "own")}, {f})), "'inner' (Mystery)"));
}

TEST(import_graph, a_known_condition_picks_its_branch) {
  const auto branch = [](const char* op) { return graph({{node(op, {"h"}, {"out"})}, {}, {}, {value_info("out")}}); };
  const auto with = [&](const message& condition) {
    return model(graph({{node("If", {"c"}, {"y"},
                              {graph_attr("then_branch", branch("Neg")), graph_attr("else_branch", branch("Mystery"))}),
                         node("Relu", {"x"}, {"h"})},
                        {condition},
                        {x_in},
                        {y_out}}));
  };
  EXPECT_EQ(run(import(with(tensor<std::uint8_t>("c", 9, {}, {1}))), {values({2}, {4, -2})}),
            (small_vector<float>{-4, 0}));
  const std::string other = refusal(with(tensor<std::uint8_t>("c", 9, {}, {0})));
  EXPECT_TRUE(has(other, "(Mystery)") && has(other, "1 part "));
}

TEST(import_graph, dims_and_shapes_can_be_given) {
  const auto m = model(graph({{node("Relu", {"x"}, {"y"})}, {}, {value_info("x", 1, {"n", dim(-1), 3})}, {y_out}}));
  const auto dims_of = [&](const onnx::import_options& options) {
    const program p = import(m, options);
    return p.main().shape_of(p.main().outputs[0]).lens;
  };
  EXPECT_EQ(dims_of({}), (dims{dimension::symbol("n", 0), dimension::symbol("x.1", 0), 3}));
  onnx::import_options options;
  options.dimensions = {{"n", 4}, {"x.1", 0}};
  EXPECT_EQ(dims_of(options), (dims{4, 0, 3}));
  options = {};
  options.shapes = {{"x", {1, 2, 3}}};
  EXPECT_EQ(dims_of(options), (dims{1, 2, 3}));
}

TEST(import_graph, a_given_shape_agrees_with_what_the_model_declares) {
  const auto m = model(graph(
      {{node("Add", {"x", "z"}, {"y"})}, {}, {value_info("x", 1, {"n", 3}), value_info("z", 1, {"n", 3})}, {y_out}}));
  const auto failure = [&](const onnx::import_options& options) -> std::string {
    try {
      import(m, options);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::shape_mismatch) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "the model was imported";
    return {};
  };
  onnx::import_options options;
  options.shapes = {{"x", {2, 5}}};
  std::string why = failure(options);
  EXPECT_TRUE(has(why, "'x'") && has(why, "axis 1: expected 3, found 5"));
  options.shapes = {{"x", {2, 3}}, {"z", {4, 3}}};
  why = failure(options);
  EXPECT_TRUE(has(why, "'z'") && has(why, "dim 'n': expected 2 as given by input 'x', found 4"));
  options.shapes = {{"z", {4, 3}}};
  options.dimensions = {{"n", 2}};
  EXPECT_TRUE(has(failure(options), "expected 2 as given by its own size, found 4"));
  // one input's shape says what a dim is in all of them
  options.dimensions = {};
  const program p = import(m, options);
  EXPECT_EQ(p.main().shape_of(p.main().parameters()[0]).lens, (dims{4, 3}));
}

TEST(import_graph, a_given_shape_may_replace_what_the_model_declares) {
  const auto m = model(graph(
      {{node("Add", {"x", "z"}, {"y"})}, {}, {value_info("x", 1, {"n", 3}), value_info("z", 1, {"n", 3})}, {y_out}}));
  onnx::import_options options;
  options.shapes_replace_declared = true;
  options.shapes = {{"x", {2, 4, 5}}, {"z", {1, 5}}};
  const program p = import(m, options);
  EXPECT_EQ(p.main().shape_of(p.main().parameters()[1]).lens, (dims{1, 5}));
  EXPECT_EQ(p.main().shape_of(p.main().outputs[0]).lens, (dims{2, 4, 5}));
  options.shapes = {{"x", {2, -1}}};
  EXPECT_THROW(import(m, options), error);
}

TEST(import_graph, a_newer_operator_set_is_remarked_on) {
  const auto of = [](std::int64_t version) {
    const auto m = model(graph({{node("Relu", {"x"}, {"y"})}, {}, {x_in}, {y_out}}), {opset(version)});
    return onnx::parse_model(m.bytes()).remarks;
  };
  EXPECT_TRUE(of(onnx::newest_opset).empty());
  const auto remarks = of(onnx::newest_opset + 1);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_TRUE(has(remarks[0], "operator set " + std::to_string(onnx::newest_opset + 1)));
}

TEST(import_graph, a_given_value_resolves_shapes) {
  const auto m = model(graph({{node("Expand", {"x", "shape"}, {"y"})},
                              {},
                              {value_info("x", 1, {2, 1}), value_info("shape", 7, {2})},
                              {y_out}}));
  const program p = import(m);
  EXPECT_FALSE(p.main().shape_of(p.main().outputs[0]).is_constant());
  onnx::import_options options;
  const std::int64_t lens[] = {2, 3};
  options.values = {{"shape", literal::of<std::int64_t>({dtype::i64, {2}}, lens)}};
  const program known = import(m, options);
  EXPECT_EQ(known.main().parameters().size(), 2u);
  EXPECT_EQ(known.main().shape_of(known.main().outputs[0]).lens, (dims{2, 3}));
}

class external_data : public testing::Test {
 protected:
  void SetUp() override {
    const float data[] = {9, 9, 10, 20};
    folder_.write("weights/w.bin", {reinterpret_cast<const char*>(data), sizeof data});
  }
  message with(const std::string& location, const char* offset, const char* length) {
    message w;
    w.number(1, 2).number(2, 1).text(8, "w");
    w.add(13, message().text(1, "location").text(2, location)).add(13, message().text(1, "offset").text(2, offset));
    w.add(13, message().text(1, "length").text(2, length)).number(14, 1);
    return model(graph({{node("Add", {"x", "w"}, {"y"})}, {w}, {x_in}, {y_out}}));
  }
  error failure(const std::string& location, const char* offset = "8", const char* length = "8") {
    try {
      import(with(location, offset, length), {}, folder_.path().string());
    } catch (const error& e) {
      return e;
    }
    ADD_FAILURE() << "the model was imported";
    return {errc::internal, ""};
  }
  temporary_folder folder_;
};

TEST_F(external_data, is_mapped_by_offset_and_length) {
  const program p = import(with("weights/w.bin", "8", "8"), {}, folder_.path().string());
  EXPECT_EQ(run(p, {values({2}, {1, 2})}), (small_vector<float>{11, 22}));
  // an offset that does not suit the dtype is copied
  const program odd = import(with("weights/w.bin", "7", "8"), {}, folder_.path().string());
  EXPECT_EQ(run(odd, {values({2}, {0, 0})}).size(), 2u);
}

TEST_F(external_data, faults_name_the_tensor_and_the_file) {
  EXPECT_EQ(failure("absent.bin").code(), errc::not_found);
  EXPECT_TRUE(has(failure("absent.bin").what(), "'w'") && has(failure("absent.bin").what(), "absent.bin"));
  EXPECT_EQ(failure("weights/w.bin", "12").code(), errc::malformed);
  EXPECT_EQ(failure("weights/w.bin", "9000000000").code(), errc::malformed);
  EXPECT_EQ(failure("weights/w.bin", "-8").code(), errc::malformed);
  EXPECT_EQ(failure("weights/w.bin", "0", "4").code(), errc::malformed);
  EXPECT_EQ(failure("weights").code(), errc::io);
  for (const char* outside : {"/etc/passwd", "../w.bin", "weights/../../w.bin"}) {
    EXPECT_EQ(failure(outside).code(), errc::malformed) << outside;
  }
}

/// A user's op with an attribute of its own.
struct tripled_plus {
  float bias = 1;
  template <class T> constexpr T operator()(T x) const { return x * splat<T>(3) + splat<T>(bias); }
};

TEST(import_graph, a_users_op_imports_by_one_row) {
  const auto m =
      model(graph({{node("Tripled", {"x"}, {"h"}, {attr("bias", 2.0f)}, "", "my.domain"), node("Relu", {"h"}, {"y"})},
                   {},
                   {x_in},
                   {y_out}}),
            {opset(17), opset(1, "my.domain")});
  onnx::import_options options;
  options.op_importers.push_back(onnx::op_importer_of<tripled_plus>("my.domain", "Tripled"));
  EXPECT_EQ(run(import(m, options), {values({2}, {1, -4})}), (small_vector<float>{5, 0}));
  EXPECT_TRUE(has(refusal(m), "my.domain.Tripled"));
}

}  // namespace
}  // namespace kiln::test
