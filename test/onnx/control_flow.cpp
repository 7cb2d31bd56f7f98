#include <complex>

#include "kiln/graph/builder.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "onnx/run_model.hpp"

// If, Loop and Scan whose conditions, counts and extents are the run's.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using lens = std::vector<std::int64_t>;

const message condition_in = value_info("c", 9, {}), vector_in = value_info("x", 1, {dim("n")});

TEST(import_control, branches_may_differ_in_extents) {
  const message one = graph({{node("Concat", {"x", "x"}, {"a"}, {attr("axis", 0)})}, {}, {}, {value_info("a")}}),
                other = graph({{node("Neg", {"x"}, {"b"})}, {}, {}, {value_info("b")}});
  const auto m =
      model_of({{node("If", {"c"}, {"y"}, {graph_attr("then_branch", one), graph_attr("else_branch", other)}),
                 node("Relu", {"y"}, {"z"})},
                {},
                {condition_in, vector_in},
                {value_info("z")}});
  EXPECT_THAT(floats_of(run_model(m, {truth(true), reals({2}, {1, -2})})[0]), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(floats_of(run_model(m, {truth(false), reals({2}, {1, -2})})[0]), ElementsAre(0, 2));
}

TEST(import_control, a_loop_ends_by_its_count_or_its_condition) {
  // sums 1 + 2 + … while the sum stays below the limit
  const message body = graph({{node("Add", {"sum", "i"}, {"next"}), node("Less", {"next", "limit"}, {"again"}),
                               node("Identity", {"next"}, {"seen"})},
                              {},
                              {value_info("i", 7, {}), value_info("go", 9, {}), value_info("sum", 7, {})},
                              {value_info("again"), value_info("next"), value_info("seen")}});
  const auto m = model_of({{node("Loop", {"count", "", "first"}, {"sum", "all"}, {graph_attr("body", body)})},
                           {integers("first", {}, {0})},
                           {value_info("count", 7, {}), value_info("limit", 7, {})},
                           {value_info("sum"), value_info("all")}});
  auto out = run_model(m, {whole({}, {100}), whole({}, {5})});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(6));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(floats_of(run_model(m, {whole({}, {2}), whole({}, {50})})[1]), ElementsAre(0, 1));
  out = run_model(m, {whole({}, {0}), whole({}, {50})});
  EXPECT_EQ(lens_of(out[1]), lens{0});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(0));
}

TEST(import_control, a_run_gives_memory_of_its_own) {
  const message body = graph({{node("Add", {"h", "h"}, {"next"}), node("Identity", {"go"}, {"again"})},
                              {},
                              {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {2})},
                              {value_info("again"), value_info("next")}});
  const auto m = model_of({{node("Loop", {"count", "", "first"}, {"y"}, {graph_attr("body", body)})},
                           {floats("first", {2}, {1, 2})},
                           {value_info("count", 7, {})},
                           {value_info("y")}});
  const executable e = compile(onnx::parse_model(m.bytes()).graph, eigen_target());
  workspace w;
  std::vector<argument> out(1);
  for (const auto& [count, first] : {std::pair{0, 1.0f}, {3, 8.0f}, {0, 1.0f}}) {
    const argument in[] = {whole({}, {count})};
    e.run(w, in, out);
    EXPECT_THAT(floats_of(out[0]), ElementsAre(first, 2 * first)) << count;
  }
  const argument nothing(shape{dtype::i64, {}}, nullptr);
  EXPECT_THROW(e.run(w, {&nothing, 1}, out), error);
}

// Results are made in the caller's memory, whichever iteration is the last, and never before an input that lies there
// was read.
TEST(import_control, results_are_made_where_the_caller_wants_them) {
  const message body =
      graph({{node("Add", {"h", "x"}, {"next"}), node("ReduceMax", {"next"}, {"most"}, {attr("keepdims", 0)}),
              node("Less", {"most", "limit"}, {"again"}), node("Neg", {"next"}, {"seen"})},
             {},
             {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {2})},
             {value_info("again"), value_info("next"), value_info("seen")}});
  const auto m = model_of({{node("Loop", {"count", "", "x"}, {"y", "all"}, {graph_attr("body", body)})},
                           {},
                           {value_info("count", 7, {}), value_info("limit", 1, {}), value_info("x", 1, {2})},
                           {value_info("y"), value_info("all")}});
  const executable e = compile(onnx::parse_model(m.bytes()).graph, eigen_target());
  workspace w;
  const auto run = [&](std::int64_t count, float limit, std::int64_t pieces, argument y) {
    std::vector<argument> out{y, argument(shape{dtype::f32, {pieces, 2}})};
    const argument in[] = {whole({}, {count}), reals({}, {limit}), reals({2}, {1, 2})};
    e.run(w, in, out);
    EXPECT_EQ(out[0].data(), y.data());
    return std::pair(floats_of(out[0]), floats_of(out[1]));
  };
  const shape pair{dtype::f32, {2}};
  for (const std::int64_t count : {1, 2, 3}) {  // the last iteration that may come is the last one
    const auto [y, all] = run(count, 100, count, argument(pair));
    EXPECT_THAT(y, ElementsAre(count + 1.0F, 2 * count + 2.0F));
    for (std::int64_t k = 0; k < count; ++k) EXPECT_EQ(all[static_cast<std::size_t>(2 * k + 1)], -2.0F * (k + 2.0F));
  }
  for (const std::int64_t count : {7, 8}) {  // it is not
    const auto [y, all] = run(count, 7, 3, argument(pair));
    EXPECT_THAT(y, ElementsAre(4, 8));
    EXPECT_THAT(all, ElementsAre(-2, -4, -3, -6, -4, -8));
  }
  EXPECT_THROW(run(5, 100, 4, argument(pair)), error);  // more pieces than there is room for
  EXPECT_THROW(run(5, 100, 6, argument(pair)), error);

  const argument both = reals({2}, {1, 2});
  std::vector<argument> out{both, argument()};
  const argument in[] = {whole({}, {2}), reals({}, {100}), both};
  e.run(w, in, out);
  EXPECT_THAT(floats_of(out[0]), ElementsAre(3, 6));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(-2, -4, -3, -6));
}

TEST(import_control, many_pieces_are_collected_one_after_the_other) {
  const message body = graph({{node("Add", {"h", "h0"}, {"next"}), node("Less", {"next", "limit"}, {"again"}),
                               node("Expand", {"next", "wide"}, {"seen"})},
                              {integers("wide", {1}, {1 << 20})},
                              {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {1})},
                              {value_info("again"), value_info("next"), value_info("seen")}});
  const auto m = model_of({{node("Loop", {"", "", "h0"}, {"y", "all"}, {graph_attr("body", body)})},
                           {floats("h0", {1}, {1})},
                           {value_info("limit", 1, {1})},
                           {value_info("y"), value_info("all")}});
  const auto out = run_model(m, {reals({1}, {20})});  // beyond the room that there is at first
  EXPECT_EQ(lens_of(out[1]), (lens{19, 1 << 20}));
  const auto all = out[1].as<float>();
  for (std::size_t k = 0; k < 19; ++k)
    for (const std::size_t at : {0, (1 << 20) - 1}) EXPECT_EQ(all[(k << 20) + at], static_cast<float>(k + 2));
}

TEST(import_control, what_a_loop_carries_may_grow) {
  const message body =
      graph({{node("Concat", {"h", "x"}, {"next"}, {attr("axis", 0)}), node("Identity", {"go"}, {"again"})},
             {},
             {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {dim("k")})},
             {value_info("again"), value_info("next")}});
  const auto m =
      model_of({{node("Loop", {"count", "", "x"}, {"y"}, {graph_attr("body", body)}), node("Shape", {"y"}, {"z"})},
                {},
                {value_info("count", 7, {}), vector_in},
                {value_info("y"), value_info("z")}});
  const auto out = run_model(m, {whole({}, {2}), reals({2}, {1, 2})});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(1, 2, 1, 2, 1, 2));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(6));
}

TEST(import_control, bodies_read_values_of_every_graph_around_them) {
  const message deep = graph(
                    {{node("Mul", {"x", "w"}, {"p"}), node("Add", {"p", "h"}, {"q"})}, {}, {}, {value_info("q")}}),
                flat = graph({{node("Identity", {"h"}, {"r"})}, {}, {}, {value_info("r")}});
  const message body =
      graph({{node("If", {"c"}, {"next"}, {graph_attr("then_branch", deep), graph_attr("else_branch", flat)}),
              node("Identity", {"go"}, {"again"})},
             {},
             {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {dim("n")})},
             {value_info("again"), value_info("next")}});
  const auto m = model_of({{node("Loop", {"count", "", "x"}, {"y"}, {graph_attr("body", body)})},
                           {floats("w", {1}, {10})},
                           {value_info("count", 7, {}), condition_in, vector_in},
                           {value_info("y")}});
  EXPECT_THAT(floats_of(run_model(m, {whole({}, {2}), truth(true), reals({2}, {1, 2})})[0]), ElementsAre(21, 42));
  EXPECT_THAT(floats_of(run_model(m, {whole({}, {2}), truth(false), reals({2}, {1, 2})})[0]), ElementsAre(1, 2));
}

TEST(import_control, a_scan_takes_slices_in_either_direction) {
  const message body = graph({{node("Add", {"h", "x_k"}, {"next"}), node("Identity", {"next"}, {"y_k"})},
                              {},
                              {value_info("h", 1, {2}), value_info("x_k", 1, {2})},
                              {value_info("next"), value_info("y_k")}});
  const auto scan = [&](int direction, int out_axis) {
    return model_of({{node("Scan", {"h0", "x"}, {"h", "y"},
                           {graph_attr("body", body), attr("num_scan_inputs", 1),
                            attr("scan_input_directions", std::vector<std::int64_t>{direction}),
                            attr("scan_output_axes", std::vector<std::int64_t>{out_axis})})},
                     {},
                     {value_info("h0", 1, {2}), value_info("x", 1, {dim("n"), 2})},
                     {value_info("h"), value_info("y")}});
  };
  const std::vector<argument> in = {reals({2}, {0, 0}), reals({3, 2}, {1, 2, 3, 4, 5, 6})};
  auto out = run_model(scan(0, 0), in);
  EXPECT_THAT(floats_of(out[0]), ElementsAre(9, 12));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(1, 2, 4, 6, 9, 12));
  out = run_model(scan(1, 1), in);
  EXPECT_EQ(lens_of(out[1]), (lens{2, 3}));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(5, 8, 9, 6, 10, 12));
}

TEST(import_control, the_first_scan_has_a_batch) {
  const message body = graph({{node("Add", {"h", "x_k"}, {"next"}), node("Identity", {"next"}, {"y_k"})},
                              {},
                              {value_info("h", 1, {1}), value_info("x_k", 1, {1})},
                              {value_info("next"), value_info("y_k")}});
  const auto scan = [&](const std::string& lengths) {
    std::vector<message> inputs = {value_info("h0", 1, {2, 1}), value_info("x", 1, {2, 3, 1})};
    if (!lengths.empty()) inputs.push_back(value_info(lengths, 7, {2}));
    return model_of(
        {{node("Scan", {lengths, "h0", "x"}, {"h", "y"}, {graph_attr("body", body), attr("num_scan_inputs", 1)})},
         {},
         inputs,
         {value_info("h"), value_info("y")}},
        8);
  };
  std::vector<argument> in = {reals({2, 1}, {0, 10}), reals({2, 3, 1}, {1, 2, 3, 4, 5, 6})};
  auto out = run_model(scan(""), in);
  EXPECT_THAT(floats_of(out[0]), ElementsAre(6, 25));
  EXPECT_EQ(lens_of(out[1]), (lens{2, 3, 1}));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(1, 3, 6, 14, 19, 25));
  in.push_back(whole({2}, {3, 1}));
  out = run_model(scan("n"), in);
  EXPECT_THAT(floats_of(out[0]), ElementsAre(6, 14));
  EXPECT_THAT(floats_of(out[1]), ElementsAre(1, 3, 6, 14, 0, 0));
}

TEST(import_control, a_body_that_cannot_be_imported_is_named) {
  const message one = graph({{node("Mystery", {"x"}, {"a"})}, {}, {}, {value_info("a")}}),
                other = graph({{node("Neg", {"x"}, {"b"})}, {}, {}, {value_info("b")}});
  const auto m =
      model_of({{node("If", {"c"}, {"y"}, {graph_attr("then_branch", one), graph_attr("else_branch", other)})},
                {},
                {condition_in, vector_in},
                {value_info("y")}});
  EXPECT_THAT(failure(m, {}), HasSubstr("(Mystery)"));
}

// Each loop's body doubles what it carries and holds the next loop.
message nest_of_loops(int levels) {
  message body = graph({{node("Identity", {"go"}, {"again"}), node("Concat", {"h", "h"}, {"next"}, {attr("axis", 0)})},
                        {},
                        {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {dim("k")})},
                        {value_info("again"), value_info("next")}});
  for (int k = 0; k < levels; ++k) {
    const std::string n = std::to_string(k);
    body = graph({{node("Identity", {"go" + n}, {"again" + n}),
                   node("Loop", {"count", "", "h" + n}, {"next" + n}, {graph_attr("body", body)})},
                  {},
                  {value_info("i" + n, 7, {}), value_info("go" + n, 9, {}), value_info("h" + n, 1, {dim("k")})},
                  {value_info("again" + n), value_info("next" + n)}});
  }
  return model_of({{node("Loop", {"count", "", "x"}, {"y"}, {graph_attr("body", body)})},
                   {},
                   {value_info("count", 7, {}), value_info("x", 1, {2})},
                   {value_info("y")}});
}

TEST(import_control, a_nest_of_loops_is_built_level_by_level) {
  const message m = nest_of_loops(30);
  EXPECT_EQ(onnx::parse_model(m.bytes()).graph.modules(), 32u);  // builds that were tried and left are gone
  const auto out = run_model(m, {whole({}, {1}), reals({2}, {1, 2})});
  EXPECT_THAT(floats_of(out[0]), ElementsAre(1, 2, 1, 2));
}

TEST(import_control, bodies_built_again_and_again_meet_a_limit) {
  const auto scan = [](const message& body, const std::string& k) {
    return node("Scan", {"", "h" + k, "x" + k}, {"s" + k, "y" + k},
                {graph_attr("body", body), attr("num_scan_inputs", 1)});
  };
  message body;
  for (int k = 0; k < 3; ++k) {
    const std::string n = std::to_string(k), inner = std::to_string(k - 1);
    std::vector<message> nodes{node("Add", {"h" + n, "x" + n}, {"t" + n}), node("Identity", {"t" + n}, {"u" + n})};
    if (k > 0)
      nodes = {node("Identity", {"h" + n}, {"h" + inner}), node("Identity", {"x" + n}, {"x" + inner}),
               scan(body, inner), node("Identity", {"s" + inner}, {"t" + n}),
               node("Identity", {"y" + inner}, {"u" + n})};
    body = graph({nodes, {}, {value_info("h" + n), value_info("x" + n)}, {value_info("t" + n), value_info("u" + n)}});
  }
  const message m = model_of({{node("Identity", {"h"}, {"h2"}), node("Identity", {"x"}, {"x2"}), scan(body, "2")},
                              {},
                              {value_info("h", 1, {8, 8, 8}), value_info("x", 1, {8, 8, 8, 8, 8, 8})},
                              {value_info("s2"), value_info("y2")}},
                             8);
  onnx::import_options few;
  few.max_nodes = 10;
  try {
    onnx::parse_model(m.bytes(), ".", few);
    FAIL() << "no limit";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::limit) << e.what();
    EXPECT_THAT(e.what(), HasSubstr("imported again and again"));
  }
}

TEST(import_control, types_nested_too_deep_are_not_called_truncated) {
  message type = message().add(1, message().number(1, 1));
  for (int k = 0; k < 400; ++k) type = message().add(5, message().number(1, 7).add(2, type));
  graph_parts parts;
  parts.inputs = {message().text(1, "x").add(2, type)};
  EXPECT_THAT(failure(model_of(parts), {}), HasSubstr("nested deeper than the limit"));
}

TEST(import_control, graphs_nested_too_deep_are_not_called_truncated) {
  message body = graph({{node("Identity", {"c"}, {"z"})}, {}, {}, {value_info("z")}});
  for (int k = 0; k < 200; ++k) {
    const std::string z = "z" + std::to_string(k);
    const message flat = graph({{node("Identity", {"c"}, {"flat" + z})}, {}, {}, {value_info("flat" + z)}});
    body = graph({{node("If", {"c"}, {z}, {graph_attr("then_branch", body), graph_attr("else_branch", flat)})},
                  {},
                  {},
                  {value_info(z)}});
  }
  const message m =
      model_of({{node("If", {"c"}, {"y"}, {graph_attr("then_branch", body), graph_attr("else_branch", body)})},
                {},
                {condition_in},
                {value_info("y")}});
  EXPECT_THAT(failure(m, {}), HasSubstr("nested deeper than the limit"));
}

TEST(import_control, what_nobody_reads_does_not_run) {
  const message body =
      graph({{node("Identity", {"go"}, {"again"}), node("NonZero", {"h"}, {"at"}), node("Relu", {"h"}, {"next"})},
             {},
             {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {dim("n")})},
             {value_info("again"), value_info("next")}});
  const auto m = model_of({{node("NonZero", {"x"}, {"at"}), node("Shape", {"at"}, {"many"}),
                            node("Loop", {"", "", "x"}, {"endless"}, {graph_attr("body", body)}),
                            node("Size", {"endless"}, {"size"}), node("Compress", {"x", "flags"}, {"some"}),
                            node("Mul", {"x", "x"}, {"square"}), node("Identity", {"square"}, {"y"})},
                           {},
                           {vector_in, value_info("flags", 9, {dim("n")})},
                           {value_info("y"), value_info("some"), value_info("many"), value_info("size")}});
  program p = onnx::parse_model(m.bytes()).graph;
  p.main().outputs = {p.main().outputs[0]};
  p.main().output_names = {p.main().output_names[0]};
  const executable e = compile(std::move(p), eigen_target());
  ASSERT_EQ(e.report().steps.size(), 1u);
  EXPECT_THAT(e.report().steps[0].kernel, testing::Not(HasSubstr("host")));
}

// Strings and complex numbers are objects of a run, and tensors all the same.
TEST(import_control, tensors_of_any_type_have_the_rank_of_the_run) {
  const std::vector<std::complex<double>> numbers{{1, 2}, {3, -4}};
  const argument words = texts({2, 1}, {"a", "b"}), pairs = complex_argument(dtype::c64, {2, 1}, numbers);
  for (const argument& x : {words, pairs}) {
    const int type = x.get_shape().type == dtype::string ? 8 : 14;
    const message flat = graph({{node("Squeeze", {"x", "last"}, {"a"})}, {}, {}, {value_info("a")}}),
                  as_is = graph({{node("Identity", {"x"}, {"b"})}, {}, {}, {value_info("b")}});
    const auto chosen =
        model_of({{node("If", {"c"}, {"y"}, {graph_attr("then_branch", flat), graph_attr("else_branch", as_is)})},
                  {integers("last", {1}, {1})},
                  {condition_in, value_info("x", type, {2, 1})},
                  {value_info("y")}});
    EXPECT_EQ(lens_of(run_model(chosen, {truth(true), x})[0]), (lens{2}));
    EXPECT_TRUE(equal_values(run_model(chosen, {truth(false), x})[0], x));
    const message body = graph({{node("Identity", {"go"}, {"again"}), node("Unsqueeze", {"h", "first"}, {"next"})},
                                {},
                                {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h")},
                                {value_info("again"), value_info("next")}});
    const auto taller = model_of({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attr("body", body)})},
                                  {integers("first", {1}, {0})},
                                  {value_info("n", 7, {}), value_info("x", type, {2, 1})},
                                  {value_info("y")}});
    EXPECT_EQ(lens_of(run_model(taller, {whole({}, {2}), x})[0]), (lens{1, 1, 2, 1}));
    EXPECT_TRUE(equal_values(run_model(taller, {whole({}, {0}), x})[0], x));
  }
}

// The second branch fits what later iterations carry, not what the first does.
TEST(import_control, a_branch_that_waits_for_later_iterations_may_not_fit_the_first) {
  const message begin = graph({{node("Concat", {"h", "h"}, {"a"}, {attr("axis", 0)})}, {}, {}, {value_info("a")}}),
                later = graph({{node("MatMul", {"h", "w"}, {"b"})}, {}, {}, {value_info("b")}});
  const auto looped = [&](const message& otherwise) {
    const message body = graph(
        {{node("Identity", {"go"}, {"again"}), node("Equal", {"i", "zero"}, {"first"}),
          node("If", {"first"}, {"next"}, {graph_attr("then_branch", begin), graph_attr("else_branch", otherwise)})},
         {},
         {value_info("i", 7, {}), value_info("go", 9, {}), value_info("h", 1, {dim("k")})},
         {value_info("again"), value_info("next")}});
    return model_of({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attr("body", body)})},
                     {integers("zero", {}, {0}), floats("w", {4, 4}, {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 1, 0, 0, 2})},
                     {value_info("n", 7, {}), value_info("x", 1, {2})},
                     {value_info("y")}});
  };
  const std::vector<argument> in{whole({}, {3}), reals({2}, {1, 2})};
  EXPECT_THAT(floats_of(run_model(looped(later), in)[0]), ElementsAre(12, 8, 4, 8));
  const message never =
      graph({{node("Transpose", {"h"}, {"b"}, {attr("perm", lens{1, 0})}, "turned")}, {}, {}, {value_info("b")}});
  EXPECT_THAT(failure(looped(never), in), HasSubstr("'turned'"));
}

TEST(import_control, a_symbol_has_one_value_in_a_run) {
  const dimension found = dimension::symbol("found");
  builder b;
  const value x = b.input("x", dtype::f32, {3}), y = b.input("y", dtype::f32, {3});
  b.output(b.add(op::nonzero{found}, x) + b.add(op::nonzero{found}, y));
  const executable e = compile(b.finish(), eigen_target());
  const std::vector<argument> fits{reals({3}, {1, 0, 1}), reals({3}, {0, 1, 1})},
      differs{reals({3}, {1, 0, 1}), reals({3}, {0, 0, 1})};
  EXPECT_THAT(floats_of(e.run(fits)[0]), ElementsAre(1, 4));
  EXPECT_THROW(e.run(differs), error);
}

}  // namespace
}  // namespace kiln::test
