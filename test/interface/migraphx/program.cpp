#include <filesystem>
#include <fstream>
#include <thread>

#include "interface/migraphx/line.hpp"
#include "kiln/interface/migraphx/custom_op.hpp"
#include "kiln/interface/migraphx/onnx.hpp"
#include "kiln/interface/migraphx/save.hpp"
#include "kiln/interface/migraphx/tensorflow.hpp"
#include "onnx/model_writer.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::migraphx {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::string digits = KILN_SOURCE_DIR "/examples/models/digits/model.onnx";

TEST(program, compiles_in_place_and_only_once) {
  program p = line(three), q = line(three);
  EXPECT_TRUE(p == q);
  EXPECT_FALSE(p == line(shape(type_t::float_type, {4})));
  EXPECT_EQ(of(p.run({{"x", floats({3}, {1, 2, 3})}}).at(0)), numbers({3, 5, 7}));
  EXPECT_FALSE(p.is_compiled());
  p.compile(target("cpu"));
  EXPECT_TRUE(p.is_compiled());
  EXPECT_FALSE(p == q);
  EXPECT_EQ(of(p.run({{"x", floats({3}, {1, 2, 3})}}).at(0)), numbers({3, 5, 7}));
  EXPECT_EQ(p.output_shapes(), std::vector<shape>{three});
  EXPECT_EQ(p.parameter_shapes().at("x"), three);
  EXPECT_THAT(message([&] { p.compile(target("ref")); }), HasSubstr("compiled once"));
  EXPECT_THAT(message([] { target("tpu"); }), HasSubstr("a target is ref, cpu or gpu: found 'tpu'"));
  q.compile(target("ref"), {false, true, true});
  EXPECT_EQ(of(q.run({{"x", floats({3}, {1, 2, 3})}}).at(0)), numbers({3, 5, 7}));
}

TEST(program, runs_again_after_a_change) {
  program p;
  const auto x = p.main_module().add_parameter("x", three);
  EXPECT_EQ(of(p.run({{"x", floats({3}, {1, 2, 3})}}).at(0)), numbers({1, 2, 3}));
  p.main_module().add_instruction(operation("neg"), {x});
  EXPECT_EQ(of(p.run({{"x", floats({3}, {1, 2, 3})}}).at(0)), numbers({-1, -2, -3}));
}

TEST(program, takes_what_it_is_given_as_it_is) {
  program p = line(shape(type_t::float_type, {2, 2}));
  float memory[] = {1, 2, 3, 4};
  const argument transposed(shape(type_t::float_type, {2, 2}, {1, 2}), memory);
  for (const bool compiled : {false, true}) {
    if (compiled) p.compile(target("cpu"));
    EXPECT_EQ(of(p.run({{"x", transposed}, {"more", transposed}}).at(0)), numbers({3, 7, 5, 9}));
    EXPECT_THAT(message([&] { p.run({}); }), HasSubstr("'x' is missing"));
    EXPECT_THAT(message([&] { p.run({{"x", floats({3}, {1, 2, 3})}}); }), HasSubstr("'x' is float_type, {2, 2}"));
    EXPECT_THAT(message([&] {
                  p.run({{"x", integers({2, 2}, {1, 2, 3, 4})}});
                }),
                HasSubstr("has type float_type: found int64_type"));
  }
}

TEST(program, has_extents_that_a_run_binds) {
  const shape s(type_t::float_type, std::vector<dynamic_dimension>{{1, 4, {2}}, {3, 3, {}}});
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", s), y = m.add_parameter("y", s);
  m.add_return({m.add_instruction(operation("add"), {x, y})});
  EXPECT_TRUE(p.output_shapes().at(0).dynamic());
  EXPECT_EQ(p.output_shapes().at(0).dyn_dims()[0].max, 4u);
  p.compile(target("cpu"));
  for (const std::size_t n : {1u, 2u, 4u}) {
    const argument a = fill_argument(shape(type_t::float_type, {n, 3}), 2);
    const argument made = p.run({{"x", a}, {"y", a}}).at(0);
    EXPECT_EQ(made.get_shape().lens(), (std::vector<std::size_t>{n, 3}));
    EXPECT_EQ(of(made), numbers(3 * n, 4));
  }
  const argument big = fill_argument(shape(type_t::float_type, {5, 3}), 2);
  EXPECT_THAT(message([&] { p.run({{"x", big}, {"y", big}}); }), HasSubstr("[1, 4]"));
}

TEST(program, runs_one_of_two_modules) {
  program p;
  module &m = p.main_module(), &add = p.create_module("then"), &mul = p.create_module("else");
  const auto c = m.add_parameter("c", shape(type_t::bool_type));
  const auto x = m.add_parameter("x", three);
  const auto two = m.add_literal(floats({3}, {2, 2, 2}));
  add.add_return({add.add_instruction(operation("add"), {x, two})});
  mul.add_return({mul.add_instruction(operation("mul"), {x, x})});
  const auto made = m.add_instruction(operation("if"), {c}, {&add, &mul});
  m.add_return({m.add_instruction(operation("get_tuple_elem"), {made})});
  p.sort();
  program copy = p.clone();
  EXPECT_TRUE(copy == p);
  for (const bool compiled : {false, true}) {
    if (compiled) p.compile(target("cpu"));
    for (const program* q : {&p, &copy}) {
      const argument in = floats({3}, {1, 2, 3});
      EXPECT_EQ(of(q->run({{"c", scalar(type_t::bool_type, 1)}, {"x", in}}).at(0)), numbers({3, 4, 5}));
      EXPECT_EQ(of(q->run({{"c", scalar(type_t::bool_type, 0)}, {"x", in}}).at(0)), numbers({1, 4, 9}));
    }
  }
  EXPECT_THAT(message([&] { m.add_instruction(operation("if"), {c}, {&add}); }), HasSubstr("module arguments"));
  EXPECT_THAT(message([&] { p.create_module("then"); }), HasSubstr("'then'"));
}

TEST(program, has_modules_that_give_what_stands_around_them) {
  for (const bool compiled : {false, true}) {
    program p;
    module &m = p.main_module(), &add = p.create_module("then"), &other = p.create_module("else");
    const auto c = m.add_parameter("c", shape(type_t::bool_type)), x = m.add_parameter("x", three);
    const auto y = m.add_literal(floats({3}, {4, 5, 6}));
    add.add_return({y, x});
    other.add_return({x, y});
    const auto made = m.add_instruction(operation("if"), {c}, {&add, &other});
    m.add_return({m.add_instruction(operation("get_tuple_elem", {{"index", 0}}), {made}),
                  m.add_instruction(operation("get_tuple_elem", {{"index", 1}}), {made})});
    program again = load_buffer(save_buffer(p));
    for (program* q : {&p, &again}) {
      if (compiled) q->compile(target("cpu"));
      const argument in = floats({3}, {1, 2, 3});
      for (const int truth : {1, 0}) {
        const auto out = q->run({{"c", scalar(type_t::bool_type, truth)}, {"x", in}});
        EXPECT_EQ(of(out.at(truth ? 0 : 1)), numbers({4, 5, 6}));
        EXPECT_EQ(of(out.at(truth ? 1 : 0)), numbers({1, 2, 3}));
      }
    }
  }
}

TEST(program, runs_a_module_again_and_again) {
  program p;
  module &m = p.main_module(), &body = p.create_module("body");
  const auto iteration = body.add_parameter("i", shape(type_t::int64_type));
  const auto condition = body.add_parameter("c", shape(type_t::bool_type));
  const auto sum = body.add_parameter("s", shape(type_t::int64_type, {1}));
  const auto next = body.add_instruction(operation("add"), {sum, iteration});
  body.add_return({condition, next, next});
  const auto most = m.add_parameter("n", shape(type_t::int64_type));
  const auto go = m.add_literal(scalar(type_t::bool_type, 1)), start = m.add_literal(integers({1}, {10}));
  const auto made = m.add_instruction(operation("loop", {{"max_iterations", 5}}), {most, go, start}, {&body});
  m.add_return({m.add_instruction(operation("get_tuple_elem", {{"index", 0}}), {made}),
                m.add_instruction(operation("get_tuple_elem", {{"index", 1}}), {made})});
  const auto out = p.run({{"n", scalar(type_t::int64_type, 4)}});
  EXPECT_EQ(of(out.at(0)), numbers({16}));
  EXPECT_EQ(out.at(1).get_shape().lens(), (std::vector<std::size_t>{5, 1}));
  EXPECT_EQ(of(out.at(1)), numbers({10, 11, 13, 16, 0}));
  EXPECT_EQ(of(p.run({{"n", scalar(type_t::int64_type, 9)}}).at(0)), numbers({20}));  // not above max_iterations
}

TEST(program, modules_are_edited) {
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", three);
  const auto y = m.add_instruction(operation("neg"), {x});
  m.add_return({y});
  const auto z = m.insert_instruction(y, operation("abs"), {x});
  m.replace_return({z, y});
  EXPECT_EQ(std::next(m.instructions().begin())->op.name(), "abs");
  const auto out = p.run({{"x", floats({3}, {-1, 2, 3})}});
  EXPECT_EQ(of(out.at(0)), numbers({1, 2, 3}));
  EXPECT_EQ(of(out.at(1)), numbers({1, -2, -3}));
  EXPECT_THAT(p.text_of(), HasSubstr("main:@1 = abs(main:@0) -> float_type, {3}, {1}"));
  EXPECT_THAT(message([&] { m.add_parameter("x", three); }), HasSubstr("second 'x'"));
  EXPECT_THAT(message([&] { m.add_instruction(operation("neg"), {nullptr}); }), HasSubstr("operand"));
  EXPECT_THAT(message([] { program().run({}); }), HasSubstr("'main' has instructions: found none"));
}

TEST(program, tells_of_each_step) {
  program p = line(three);
  p.compile(target("ref"));
  std::vector<trace_info> told;
  p.run_trace({{"x", floats({3}, {1, 2, 3})}}, [&](const trace_info& t) {
    told.push_back({t.index, t.name, {}});
    EXPECT_EQ(t.result.get_shape().lens().size(), 1u);
  });
  ASSERT_FALSE(told.empty());
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].index, i);
  EXPECT_FALSE(told[0].name.empty());
  EXPECT_EQ(p.get_context().queue(), nullptr);
  p.get_context().finish();
}

TEST(program, is_read_from_a_model) {
  onnx_options four;
  four.default_dim_value = 4;
  EXPECT_EQ(parse_onnx(digits, four).parameter_shapes().begin()->second.lens()[0], 4u);
  EXPECT_EQ(parse_onnx(digits).parameter_shapes().begin()->second.lens()[0], 1u);
  onnx_options any;
  any.default_dyn_dim_value = {1, 8, {}};
  program p = parse_onnx(digits, any);
  const auto [name, s] = *p.parameter_shapes().begin();
  EXPECT_EQ(s.dyn_dims()[0].max, 8u);
  p.compile(target("cpu"));
  const argument x = generate_argument(shape(type_t::float_type, {3, 1, 8, 8}), 1);
  const argument out = p.run({{name, x}}).at(0);
  EXPECT_EQ(out.get_shape().lens(), (std::vector<std::size_t>{3, 10}));
  onnx_options mostly;
  mostly.default_dyn_dim_value = {1, 8, {2, 4}};
  EXPECT_EQ(parse_onnx(digits, mostly).parameter_shapes().at(name).dyn_dims()[0], mostly.default_dyn_dim_value);
  onnx_options stated, both;
  stated.map_input_dims[name] = {2, 1, 8, 8};
  EXPECT_EQ(parse_onnx(digits, stated).parameter_shapes().at(name).lens()[0], 2u);
  both = stated;
  both.map_dyn_input_dims[name] = {{1, 2, {}}, {1, 1, {}}, {8, 8, {}}, {8, 8, {}}};
  EXPECT_THAT(message([&] { parse_onnx(digits, both); }), HasSubstr("not both"));
  onnx_options misspelled, mistaken, defaults = four;
  misspelled.map_input_dims["imagse"] = {1};
  mistaken.map_dyn_input_dims["imagse"] = {{1, 2, {}}};
  for (const onnx_options& o : {misspelled, mistaken})
    EXPECT_THAT(message([&] { parse_onnx(digits, o); }), HasSubstr("no input 'imagse': its inputs are '" + name + "'"));
  defaults.default_dyn_dim_value = {1, 2, {}};
  EXPECT_THAT(message([&] { parse_onnx(digits, defaults); }), HasSubstr("found both"));
  EXPECT_THAT(message([] { parse_onnx("/no/such.onnx"); }), HasSubstr("/no/such.onnx"));
  EXPECT_THAT(message([] { parse_onnx_buffer(std::as_bytes(std::span("none"))); }), HasSubstr("ONNX"));
  EXPECT_THAT(onnx_operators(), testing::Contains("Conv"));
  EXPECT_THAT(message([] { parse_tf("/no/graph.pb"); }), HasSubstr("/no/graph.pb"));
  const std::string graph =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape "
      "{ dim { size: -1 } dim { size: 3 } } } } } node { name: 'y' op: 'Neg' input: 'x' }";
  tf_options how;
  EXPECT_EQ(parse_tf_buffer(std::as_bytes(std::span(graph)), how).parameter_shapes().at("x").lens(),
            (std::vector<std::size_t>{1, 3}));
  how.map_input_dims["x"] = {5, 2};
  EXPECT_EQ(parse_tf_buffer(std::as_bytes(std::span(graph)), how).parameter_shapes().at("x").lens(),
            (std::vector<std::size_t>{5, 2}));
  // as a module, with kiln's ops by their names
  std::vector<std::string> names;
  const program q = parse_onnx(digits);
  for (const instruction& i : q.main_module().instructions()) names.push_back(i.op.name());
  EXPECT_THAT(names, testing::IsSupersetOf({"@param", "@literal", "@return", "convolution", "dot"}));
}

TEST(program, of_a_model_has_the_extents_that_it_is_given) {
  namespace t = kiln::test;
  const t::message m =
      t::model(t::graph({{t::node("Neg", {"x"}, {"y"})}, {}, {t::value_info("x", 1, {1, 3})}, {t::value_info("y")}}));
  onnx_options other;  // whatever the model declares
  other.map_input_dims["x"] = {2, 5, 7};
  program p = parse_onnx_buffer(m.bytes(), other);
  EXPECT_EQ(p.parameter_shapes().at("x").lens(), other.map_input_dims["x"]);
  p.compile(target("cpu"));
  const argument out = p.run({{"x", fill_argument(shape(type_t::float_type, {2, 5, 7}), 1)}}).at(0);
  EXPECT_EQ(out.get_shape().lens(), other.map_input_dims["x"]);
  EXPECT_EQ(of(out), numbers(70, -1));
}

TEST(program, is_saved_and_loaded) {
  const kiln::test::temporary_folder folder;
  const std::string file = folder / "saved.mxr";
  for (const bool compiled : {false, true}) {
    program p = line(three);
    if (compiled) p.compile(target("cpu"));
    save(p, file);
    const program q = load(file);
    EXPECT_TRUE(q == p);
    EXPECT_EQ(q.is_compiled(), compiled);
    EXPECT_EQ(of(q.run({{"x", floats({3}, {1, 2, 3})}}).at(0)), numbers({3, 5, 7}));
    EXPECT_TRUE(load_buffer(save_buffer(p)) == p);
  }
  EXPECT_THAT(message([&] { save(line(three), file, {"json"}); }), HasSubstr("json"));
  EXPECT_THAT(message([&] { save(line(three), file, {"xml"}); }), HasSubstr("xml"));
  std::ofstream(file, std::ios::binary) << "\x86\xa7version\x08";
  EXPECT_THAT(message([&] { load(file); }), HasSubstr("MIGraphX compiled"));
  std::ofstream(file, std::ios::binary) << "nothing";
  EXPECT_NE(message([&] { load(file); }), "");
  const argument a = generate_argument(shape(type_t::half_type, {2, 3}), 5);
  save_argument(a, file);
  EXPECT_TRUE(load_argument(file) == a);
  EXPECT_FALSE(load_argument(file) == generate_argument(shape(type_t::half_type, {2, 3}), 6));
  std::filesystem::resize_file(file, 20);
  EXPECT_NE(message([&] { load_argument(file); }), "");
  std::filesystem::remove(file);
}

TEST(program, has_ops_of_the_callers_own) {
  custom_op own;
  own.name = "halve";
  own.compute_shape = [](const std::vector<shape>& in) { return in.at(0); };
  own.compute = [](const shape&, const std::vector<argument>& in) {
    auto* const v = reinterpret_cast<float*>(in.at(0).data());
    for (std::size_t i = 0; i < in[0].get_shape().elements(); ++i) v[i] /= 2;
    return in[0];
  };
  own.output_alias = [](const std::vector<shape>&) { return std::vector<std::size_t>{0}; };
  own.runs_on_offload_target = false;
  register_custom_op(own);
  EXPECT_NE(message([&] { register_custom_op(own); }), "");
  own.name = "add";
  EXPECT_THAT(message([&] { register_custom_op(own); }), HasSubstr("'add' is an operator"));
  program p;
  module& m = p.main_module();
  const auto x = m.add_parameter("x", three);
  m.add_return({m.add_instruction(operation("halve"), {x}), x});
  p.compile(target("cpu"));
  const argument in = floats({3}, {2, 4, 6});
  const auto out = p.run({{"x", in}});
  EXPECT_EQ(of(out.at(0)), numbers({1, 2, 3}));
  EXPECT_EQ(of(out.at(1)), numbers({2, 4, 6}));
  EXPECT_EQ(of(in), numbers({2, 4, 6}));
}

TEST(program, serves_several_threads) {
  program p = line(three);
  p.compile(target("cpu"));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 50; ++k) {
        const double v = t * 100 + k;
        if (of(p.run({{"x", floats({3}, {v, v, v})}}).at(0)) != numbers(3, 2 * v + 1)) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(program, for_a_gpu_says_when_there_is_none) {
  program p = line(three);
  const std::string why = message([&] { p.compile(target("gpu")); });
  if (why.empty()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_FALSE(p.is_compiled());
}

}  // namespace
}  // namespace kiln::migraphx
