#pragma once
#include "onnx/run_model.hpp"

/// Models whose control flow, sizes and lists are the run's, with inputs to run them on.
namespace kiln::test {

struct dynamic_model {
  std::string name;
  message bytes;
  std::vector<std::pair<std::string, argument>> inputs{};
  bool is_peers = true;  ///< ONNX Runtime runs it

  std::vector<argument> values() const {
    std::vector<argument> out;
    for (const auto& [input, value] : inputs) out.push_back(value);
    return out;
  }
};
inline void PrintTo(const dynamic_model& m, std::ostream* out) { *out << m.name; }

inline message truth_tensor(std::string_view name, bool v) { return tensor<std::int8_t>(name, 9, {}, {v}); }
/// A declared output or body parameter of float, i64 or bool whose extents are left open.
inline message open(std::string_view name, int type, int rank) {
  return value_info(name, type, std::vector<dim>(static_cast<std::size_t>(rank), dim(-1)));
}
/// A declaration that says nothing of the rank.
inline message of_any_rank(std::string_view name, int type = 1) {
  return message().text(1, name).add(2, message().add(1, message().number(1, type)));
}
/// What a declaration says: a name, an element type, a rank.
struct declared {
  std::string name;
  int type = 1, rank = 1;
  std::vector<dim> extents{};  ///< instead of a rank
};
inline std::vector<message> declare(const std::vector<declared>& all) {
  std::vector<message> out;
  for (const declared& d : all)
    out.push_back(d.extents.empty() ? open(d.name, d.type, d.rank) : value_info(d.name, d.type, d.extents));
  return out;
}
inline message body_of(const std::vector<message>& nodes, const std::vector<declared>& in,
                       const std::vector<declared>& out, const std::vector<message>& constants = {}) {
  return graph({nodes, constants, declare(in), declare(out)}, "body");
}
inline message network(const std::vector<message>& nodes, const std::vector<declared>& in,
                       const std::vector<declared>& out, const std::vector<message>& constants = {},
                       std::int64_t version = 18) {
  return model(graph({nodes, constants, declare(in), declare(out)}), {opset(version)});
}

std::vector<dynamic_model> loop_models();
std::vector<dynamic_model> branch_models();
std::vector<dynamic_model> scan_models();
std::vector<dynamic_model> selection_models();
std::vector<dynamic_model> list_models();
std::vector<dynamic_model> sized_models();

inline std::vector<dynamic_model> dynamic_models() {
  std::vector<dynamic_model> out;
  for (auto family : {loop_models(), branch_models(), scan_models(), selection_models(), list_models(), sized_models()})
    for (dynamic_model& m : family) out.push_back(std::move(m));
  return out;
}

inline const declared iteration_in{"i", 7, 0}, goes_on_in{"go", 9, 0}, goes_on_out{"again", 9, 0};
inline message pass_on() { return node("Identity", {"go"}, {"again"}); }

inline std::vector<dynamic_model> loop_models() {
  const message add = body_of({pass_on(), node("Add", {"h", "x"}, {"next"}), node("Identity", {"next"}, {"seen"})},
                              {iteration_in, goes_on_in, {"h"}}, {goes_on_out, {"next"}, {"seen"}});
  const message below =
      body_of({node("Add", {"h", "x"}, {"next"}), node("ReduceMax", {"next"}, {"most"}, {attr("keepdims", 0)}),
               node("Less", {"most", "limit"}, {"again"}), node("Concat", {"next", "x"}, {"seen"}, {attr("axis", 0)})},
              {iteration_in, goes_on_in, {"h"}}, {goes_on_out, {"next"}, {"seen"}});
  const auto looped = [](const message& body, const strings& in) {
    return node("Loop", in, {"y", "all"}, {graph_attr("body", body)});
  };
  const std::vector<declared> both{{"y"}, {"all", 1, 2}};
  const auto x = reals({3}, {1, 2, 3});
  std::vector<dynamic_model> out;
  for (const std::int64_t n : {0, 1, 3})
    out.push_back({"count_" + std::to_string(n),
                   network({looped(add, {"n", "", "x"})}, {{"n", 7, 0}, {"x"}}, both),
                   {{"n", whole({}, {n})}, {"x", x}},
                   n > 0});  // of nothing that is collected the peer knows no extents
  for (const bool go : {true, false})
    out.push_back({go ? "begins" : "never_begins",
                   network({looped(add, {"n", "c", "x"})}, {{"n", 7, 0}, {"c", 9, 0}, {"x"}}, both),
                   {{"n", whole({}, {2})}, {"c", truth(go)}, {"x", x}},
                   go});
  out.push_back({"without_count",
                 network({looped(below, {"", "c", "x"})}, {{"c", 9, 0}, {"x"}, {"limit", 1, 0}}, both),
                 {{"c", truth(true)}, {"x", x}, {"limit", reals({}, {11})}}});
  out.push_back({"without_either",
                 network({looped(below, {"", "", "x"})}, {{"x"}, {"limit", 1, 0}}, both),
                 {{"x", x}, {"limit", reals({}, {7})}}});
  out.push_back(
      {"constant_count",
       network({looped(add, {"n", "t", "x"})}, {{"x"}}, both, {integers("n", {}, {3}), truth_tensor("t", true)}),
       {{"x", x}}});
  // each iteration adds a dim
  const message taller = graph({{pass_on(), node("Unsqueeze", {"h", "first"}, {"u"}), node("Neg", {"u"}, {"next"})},
                                {},
                                {open("i", 7, 0), open("go", 9, 0), of_any_rank("h")},
                                {open("again", 9, 0), of_any_rank("next")}},
                               "body");
  for (const std::int64_t n : {0, 1, 3})
    out.push_back({"taller_" + std::to_string(n),
                   model(graph({{node("Loop", {"n", "", "x"}, {"y"}, {graph_attr("body", taller)})},
                                {integers("first", {1}, {0})},
                                declare({{"n", 7, 0}, {"x"}}),
                                {of_any_rank("y")}}),
                         {opset(18)}),
                   {{"n", whole({}, {n})}, {"x", x}}});
  // three graphs deep, each reading all around it
  const message inner = body_of({node("Identity", {"go2"}, {"again2"}), node("Mul", {"h2", "w"}, {"p"}),
                                 node("Add", {"p", "x"}, {"q"}), node("Add", {"q", "h"}, {"next2"})},
                                {{"i2", 7, 0}, {"go2", 9, 0}, {"h2"}}, {{"again2", 9, 0}, {"next2"}});
  const message deep = body_of({node("Loop", {"n", "", "h"}, {"r"}, {graph_attr("body", inner)})}, {}, {{"r"}}),
                flat = body_of({node("Sub", {"h", "x"}, {"s"})}, {}, {{"s"}});
  const message middle =
      body_of({pass_on(), node("Mod", {"i", "two"}, {"odd"}), node("Cast", {"odd"}, {"is_odd"}, {attr("to", 9)}),
               node("If", {"is_odd"}, {"next"}, {graph_attr("then_branch", deep), graph_attr("else_branch", flat)})},
              {iteration_in, goes_on_in, {"h"}}, {goes_on_out, {"next"}});
  out.push_back(
      {"three_deep",
       network({node("Relu", {"v"}, {"w"}), node("Loop", {"n", "", "x"}, {"y"}, {graph_attr("body", middle)})},
               {{"n", 7, 0}, {"x"}, {"v", 1, 1, {1}}}, {{"y"}}, {integers("two", {}, {2})}),
       {{"n", whole({}, {4})}, {"x", x}, {"v", reals({1}, {.5f})}}});
  // grows in one branch, shrinks in the other
  const message longer = body_of({node("Concat", {"h", "x"}, {"a"}, {attr("axis", 0)})}, {}, {{"a"}}),
                shorter = body_of({node("Slice", {"h", "one", "end"}, {"b"})}, {}, {{"b"}},
                                  {integers("one", {1}, {1}), integers("end", {1}, {1000})});
  const message either =
      body_of({pass_on(), node("Gather", {"plan", "i"}, {"grows"}),
               node("If", {"grows"}, {"next"}, {graph_attr("then_branch", longer), graph_attr("else_branch", shorter)}),
               node("Shape", {"next"}, {"seen"})},
              {iteration_in, goes_on_in, {"h"}}, {goes_on_out, {"next"}, {"seen", 7, 1}});
  const bool plan[] = {true, false, false, true};
  out.push_back(
      {"branches_inside",
       network({looped(either, {"n", "", "x"})}, {{"n", 7, 0}, {"x"}, {"plan", 9, 1}}, {{"y"}, {"all", 7, 2}}),
       {{"n", whole({}, {4})}, {"x", x}, {"plan", argument::of<bool>({4}, std::span<const bool>(plan))}}});
  // outputs that are parameters, values of around, or one another
  const message passing =
      body_of({pass_on(), node("Identity", {"h"}, {"seen"}), node("Identity", {"x"}, {"out"})},
              {iteration_in, goes_on_in, {"h"}, {"k"}}, {goes_on_out, {"k"}, {"h"}, {"seen"}, {"out"}});
  out.push_back({"swaps",
                 network({node("Loop", {"n", "", "x", "z"}, {"a", "b", "c", "d"}, {graph_attr("body", passing)})},
                         {{"n", 7, 0}, {"x"}, {"z"}}, {{"a"}, {"b"}, {"c", 1, 2}, {"d", 1, 2}}),
                 {{"n", whole({}, {3})}, {"x", x}, {"z", reals({3}, {7, 8, 9})}}});
  // what is found in an iteration is multiplied with a constant weight
  const message finds = body_of({pass_on(), node("Greater", {"h", "zero"}, {"big"}),
                                 node("Compress", {"h", "big"}, {"kept"}), node("Sub", {"kept", "one"}, {"next"})},
                                {iteration_in, goes_on_in, {"h"}}, {goes_on_out, {"next"}},
                                {floats("zero", {}, {0}), floats("one", {}, {1})});
  out.push_back({"shrinks_to_a_weight",
                 network({node("Loop", {"n", "", "x"}, {"h2"}, {graph_attr("body", finds)}),
                          node("Unsqueeze", {"h2", "axis"}, {"row"}), node("MatMul", {"row", "w"}, {"y"}),
                          node("Concat", {"h2", "b"}, {"z"}, {attr("axis", 0)})},
                         {{"n", 7, 0}, {"x"}}, {{"y", 1, 2}, {"z"}},
                         {integers("axis", {1}, {0}), floats("w", {2, 2}, {1, 2, 3, 4}), floats("b", {1}, {5})}),
                 {{"n", whole({}, {2})}, {"x", reals({4}, {5, .5f, 2, 1})}}});
  return out;
}

inline std::vector<dynamic_model> branch_models() {
  const auto x = reals({2, 1}, {3, -4});
  std::vector<dynamic_model> out;
  const message squeezed = body_of({node("Squeeze", {"x", "last"}, {"a"})}, {}, {{"a", 1, 1}}),
                as_is = body_of({node("Neg", {"x"}, {"b"})}, {}, {{"b", 1, 2}});
  const message chosen =
      node("If", {"c"}, {"y"}, {graph_attr("then_branch", squeezed), graph_attr("else_branch", as_is)});
  for (const bool c : {true, false}) {
    const std::string which = c ? "_then" : "_else";
    const std::vector<std::pair<std::string, argument>> given{{"c", truth(c)}, {"x", x}};
    const std::vector<declared> in{{"c", 9, 0}, {"x", 1, 2}};
    // a declared output says nothing of its rank
    const auto made = [&](const std::vector<message>& nodes, const std::vector<std::string>& results) {
      std::vector<message> outputs;
      for (const auto& r : results) outputs.push_back(of_any_rank(r));
      return model(
          graph({nodes,
                 {integers("last", {1}, {1}), integers("flat", {1}, {-1}), floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})},
                 declare(in),
                 outputs}),
          {opset(18)});
    };
    out.push_back({"ranks_reshaped" + which, made({chosen, node("Reshape", {"y", "flat"}, {"z"})}, {"z"}), given});
    out.push_back(
        {"ranks_reduced" + which,
         made({chosen, node("Relu", {"y"}, {"r"}), node("ReduceSum", {"r"}, {"z"}, {attr("keepdims", 0)})}, {"z"}),
         given});
    out.push_back(
        {"ranks_used_twice" + which,
         made({chosen, node("Shape", {"y"}, {"s"}), node("Expand", {"w1", "s"}, {"e"}), node("Add", {"e", "y"}, {"f"}),
               node("Size", {"f"}, {"n"}), node("Cast", {"n"}, {"m"}, {attr("to", 1)}), node("Relu", {"x"}, {"w1x"}),
               node("ReduceMax", {"w1x"}, {"w1"}, {attr("keepdims", 0)})},
              {"m"}),
         given});
  }
  // outputs have the rank that the run gave them; what hangs on one condition is told apart together
  for (const bool c : {true, false}) {
    std::vector<message> nodes;
    strings all;
    for (int k = 0; k < 12; ++k) {
      all.push_back("y" + std::to_string(k));
      const message flat = graph({{node("Squeeze", {"x", "last"}, {"a"})}, {}, {}, {of_any_rank("a")}}, "flat"),
                    as_is = graph({{node("Neg", {"x"}, {"b"})}, {}, {}, {of_any_rank("b")}}, "as_is");
      nodes.push_back(
          node("If", {"c"}, {all.back()}, {graph_attr("then_branch", flat), graph_attr("else_branch", as_is)}));
    }
    nodes.push_back(node("Sum", all, {"z"}));
    out.push_back({c ? "ranks_given_then" : "ranks_given_else",
                   model(graph({nodes,
                                {integers("last", {1}, {1})},
                                declare({{"c", 9, 0}, {"x", 1, 2}}),
                                {of_any_rank("y0"), of_any_rank("z")}}),
                         {opset(18)}),
                   {{"c", truth(c)}, {"x", x}}});
  }
  for (const std::int64_t n : {1, 2})
    out.push_back({"squeezed_" + std::to_string(n),
                   network({node("Squeeze", {"x"}, {"y"}), node("ReduceSum", {"y"}, {"z"}, {attr("keepdims", 0)})},
                           {{"x", 1, 3, {dim("n"), 1, 2}}}, {{"z", 1, 0}}),
                   {{"x", n == 1 ? reals({1, 1, 2}, {3, 4}) : reals({2, 1, 2}, {3, 4, 5, 6})}}});
  return out;
}

inline std::vector<dynamic_model> scan_models() {
  const message sums =
      body_of({node("Add", {"h", "u"}, {"a"}), node("Mul", {"k", "v"}, {"b"}), node("Add", {"a", "b"}, {"next"}),
               node("Sub", {"k", "u"}, {"next_k"}), node("Identity", {"next"}, {"seen"}),
               node("Concat", {"u", "v"}, {"both"}, {attr("axis", 0)})},
              {{"h"}, {"k"}, {"u"}, {"v"}}, {{"next"}, {"next_k"}, {"seen"}, {"both"}});
  const auto p = reals({2, 3}, {1, 2, 3, 4, 5, 6}), q = reals({3, 2}, {1, -1, 2, -2, 3, -3});
  const auto z = reals({2}, {0, 0}), one = reals({2}, {1, 1});
  std::vector<dynamic_model> out;
  const std::vector<declared> in{{"h0"}, {"k0"}, {"p", 1, 2}, {"q", 1, 2}},
      results{{"h1"}, {"k1"}, {"y", 1, 2}, {"w", 1, 2}};
  for (const std::int64_t turn : {0, 1})
    for (const std::int64_t axis : {0, 1})
      out.push_back({"scan_" + std::to_string(turn) + std::to_string(axis),
                     network({node("Scan", {"h0", "k0", "p", "q"}, {"h1", "k1", "y", "w"},
                                   {graph_attr("body", sums), attr("num_scan_inputs", 2),
                                    attr("scan_input_axes", std::vector<std::int64_t>{1, -2}),
                                    attr("scan_input_directions", std::vector<std::int64_t>{turn, 1 - turn}),
                                    attr("scan_output_axes", std::vector<std::int64_t>{axis, axis - 1}),
                                    attr("scan_output_directions", std::vector<std::int64_t>{1 - turn, turn})})},
                             in, results),
                     {{"h0", z}, {"k0", one}, {"p", p}, {"q", q}}});
  const message step = body_of({node("Add", {"h", "u"}, {"next"}), node("Mul", {"next", "u"}, {"seen"})},
                               {{"h"}, {"u"}}, {{"next"}, {"seen"}});
  const auto batched = reals({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), starts = reals({2, 2}, {0, 1, 2, 3});
  for (const std::int64_t turn : {0, 1})
    out.push_back({"scan_8_" + std::to_string(turn),
                   network({node("Scan", {"lengths", "h0", "x"}, {"h1", "y"},
                                 {graph_attr("body", step), attr("num_scan_inputs", 1),
                                  attr("directions", std::vector<std::int64_t>{turn})})},
                           {{"lengths", 7, 1, {2}}, {"h0", 1, 2, {2, 2}}, {"x", 1, 3, {2, 3, 2}}},
                           {{"h1", 1, 2}, {"y", 1, 3}}, {}, 8),
                   {{"lengths", whole({2}, {3, 2})}, {"h0", starts}, {"x", batched}}});
  return out;
}

inline std::vector<dynamic_model> selection_models() {
  const auto x = reals({2, 3}, {0, 2, -1, 0, 0, 5});
  std::vector<dynamic_model> out;
  out.push_back({"found_and_gathered",
                 network({node("NonZero", {"x"}, {"at"}),
                          node("Transpose", {"at"}, {"rows"}, {attr("perm", std::vector<std::int64_t>{1, 0})}),
                          node("GatherND", {"x", "rows"}, {"v"}), node("ScatterND", {"x", "rows", "u"}, {"s"}),
                          node("Softmax", {"v"}, {"p"}, {attr("axis", 0)}), node("Mul", {"v", "u"}, {"m"})},
                         {{"x", 1, 2}, {"u"}}, {{"v"}, {"s", 1, 2}, {"p"}, {"m"}}),
                 {{"x", x}, {"u", reals({3}, {7, 8, 9})}}});
  out.push_back(
      {"nothing_found",
       network({node("Relu", {"x"}, {"r"}), node("NonZero", {"r"}, {"at"}),
                node("Transpose", {"at"}, {"rows"}, {attr("perm", std::vector<std::int64_t>{1, 0})}),
                node("GatherND", {"r", "rows"}, {"v"}), node("ReduceSum", {"v"}, {"sum"}, {attr("keepdims", 0)})},
               {{"x", 1, 2}}, {{"at", 7, 2}, {"v"}, {"sum", 1, 0}}),
       {{"x", reals({2, 2}, {-1, -2, 0, -3})}}});
  for (const std::int64_t axis : {0, 1, -1, 9}) {
    std::vector<message> attributes;
    if (axis != 9) attributes.push_back(attr("axis", axis));
    out.push_back({"compressed_" + std::to_string(axis + 1),
                   network({node("Greater", {"w", "zero"}, {"c"}), node("Compress", {"x", "c"}, {"y"}, attributes),
                            node("Shape", {"y"}, {"s"})},
                           {{"x", 1, 2}, {"w"}}, {{"y", 1, axis == 9 ? 1 : 2}, {"s", 7, 1}}, {floats("zero", {}, {0})}),
                   {{"x", x}, {"w", axis == 0 ? reals({2}, {-1, 1}) : reals({3}, {1, -1, 1})}}});
  }
  const auto repeats = reals({3, 2}, {2, 1, 0, 3, 2, 1});
  for (const std::int64_t axis : {0, 1, -1, 9})
    for (const std::int64_t sorted : {0, 1}) {
      std::vector<message> attributes{attr("sorted", sorted)};
      if (axis != 9) attributes.push_back(attr("axis", axis));
      out.push_back({"unique_" + std::to_string(axis + 1) + std::to_string(sorted),
                     network({node("Unique", {"x"}, {"y", "first", "inverse", "counts"}, attributes)}, {{"x", 1, 2}},
                             {{"y", 1, axis == 9 ? 1 : 2}, {"first", 7, 1}, {"inverse", 7, 1}, {"counts", 7, 1}}),
                     {{"x", repeats}}});
    }
  const auto boxes = reals({1, 4, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11, 0, 10.1f, 1, 11.1f}),
             scores = reals({1, 2, 4}, {.9f, .75f, .6f, .95f, .5f, .3f, .8f, .1f});
  for (const std::int64_t centred : {0, 1})
    for (const bool least : {false, true}) {
      strings in{"b", "s", "most", "overlap"};
      if (least) in.push_back("score");
      out.push_back({"boxes_" + std::to_string(centred) + std::to_string(least),
                     network({node("NonMaxSuppression", in, {"y"}, {attr("center_point_box", centred)}),
                              node("Slice", {"y", "from", "to", "axis"}, {"z"})},
                             {{"b", 1, 3}, {"s", 1, 3}}, {{"y", 7, 2}, {"z", 7, 2}},
                             {integers("most", {1}, {3}), floats("overlap", {1}, {.5f}), floats("score", {1}, {.4f}),
                              integers("from", {1}, {2}), integers("to", {1}, {3}), integers("axis", {1}, {1})}),
                     {{"b", boxes}, {"s", scores}}});
    }
  return out;
}

inline std::vector<dynamic_model> list_models() {
  std::vector<dynamic_model> out;
  const auto x = reals({5}, {1, 2, 3, 4, 5});
  const auto list = [](std::string_view name) { return holder_info(name, 4, 1, {dim(-1)}); };
  const message grow =
      graph({{pass_on(), node("Unsqueeze", {"i", "axis"}, {"end"}), node("Slice", {"x", "axis", "end"}, {"part"}),
              node("SequenceInsert", {"s", "part"}, {"next"})},
             {},
             {open("i", 7, 0), open("go", 9, 0), list("s")},
             {open("again", 9, 0), list("next")}});
  for (const std::int64_t n : {1, 3})
    out.push_back({"list_in_a_loop_" + std::to_string(n),
                   network({node("SequenceEmpty", {}, {"none"}), node("SequenceInsert", {"none", "x"}, {"begin"}),
                            node("Loop", {"n", "", "begin"}, {"s"}, {graph_attr("body", grow)}),
                            node("SequenceLength", {"s"}, {"count"}), node("SequenceAt", {"s", "n"}, {"last"}),
                            node("ConcatFromSequence", {"s"}, {"whole"}, {attr("axis", 0)}),
                            node("SequenceErase", {"s", "zero"}, {"rest"}),
                            node("ConcatFromSequence", {"rest"}, {"tail"}, {attr("axis", -1)})},
                           {{"n", 7, 0}, {"x"}}, {{"count", 7, 0}, {"last"}, {"whole"}, {"tail"}},
                           {integers("axis", {1}, {0}), integers("zero", {}, {0})}),
                   {{"n", whole({}, {n})}, {"x", x}}});
  out.push_back({"split_by_the_run",
                 network({node("SplitToSequence", {"x", "sizes"}, {"s"}), node("SequenceAt", {"s", "k"}, {"y"}),
                          node("SequenceLength", {"s"}, {"n"}), node("SplitToSequence", {"x", "each"}, {"t"}),
                          node("SequenceAt", {"t", "k"}, {"z"})},
                         {{"x"}, {"sizes", 7, 1}, {"each", 7, 0}, {"k", 7, 0}}, {{"y"}, {"n", 7, 0}, {"z"}}),
                 {{"x", x}, {"sizes", whole({3}, {1, 0, 4})}, {"each", whole({}, {2})}, {"k", whole({}, {-1})}}});
  const message has = graph({{node("OptionalHasElement", {"o"}, {"has"}), node("OptionalGetElement", {"o"}, {"y"})},
                             {},
                             {holder_info("o", 9, 1, {dim(-1)})},
                             {open("has", 9, 0), open("y", 1, 1)}});
  out.push_back({"optional_input", model(has, {opset(18)}), {{"o", optional_argument(x)}}, false});
  return out;
}

inline std::vector<dynamic_model> sized_models() {
  std::vector<dynamic_model> out;
  const auto x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto with = [](const argument& list) {
    return std::vector<declared>{{"x", 1, 2}, {"n", 7, 1, {dim(lens_of(list)[0])}}};
  };
  const auto one = [&](const std::string& name, const std::string& op, const std::vector<message>& attributes,
                       const argument& list, int rank, std::int64_t version = 18, const strings& in = {"x", "n"}) {
    out.push_back({name,
                   network({node(op, in, {"y"}, attributes), node("Shape", {"y"}, {"s"})}, with(list),
                           {{"y", 1, rank}, {"s", 7, 1}}, {integers("two", {1}, {2})}, version),
                   {{"x", x}, {"n", list}}});
  };
  one("reshaped", "Reshape", {}, whole({3}, {0, -1, 1}), 3);
  one("expanded", "Expand", {}, whole({3}, {2, 1, 3}), 3);
  one("tiled", "Tile", {}, whole({2}, {2, 3}), 2);
  one("summed_0", "ReduceSum", {attr("keepdims", 1)}, whole({1}, {0}), 2);
  one("summed_1", "ReduceSum", {attr("keepdims", 1)}, whole({1}, {-1}), 2);
  one("summed_both", "ReduceSum", {attr("keepdims", 1)}, whole({2}, {1, 0}), 2);
  one("summed_away", "ReduceSum", {attr("keepdims", 0)}, whole({1}, {1}), 1);
  one("summed_over_none", "ReduceSum", {attr("keepdims", 1)}, whole({0}, {}), 2);
  one("greatest", "ReduceMax", {attr("keepdims", 0)}, whole({1}, {0}), 1);
  one("mean", "ReduceMean", {attr("keepdims", 1)}, whole({1}, {1}), 2);
  one("widened_0", "Unsqueeze", {}, whole({1}, {0}), 3);
  one("widened_1", "Unsqueeze", {}, whole({1}, {1}), 3);
  one("widened_2", "Unsqueeze", {}, whole({2}, {-1, 0}), 4);
  // one name is bound before what a second one makes is read
  out.push_back({"counted_and_expanded",
                 network({node("Reshape", {"n", "one"}, {"to"}), node("Expand", {"one", "to"}, {"e"}),
                          node("Range", {"none", "n", "step"}, {"r"}), node("Reshape", {"r", "to"}, {"c"}),
                          node("Add", {"e", "c"}, {"y"})},
                         {{"n", 7, 0}}, {{"y", 7, 1}},
                         {integers("one", {1}, {1}), integers("none", {}, {0}), integers("step", {}, {1})}),
                 {{"n", whole({}, {3})}}});
  out.push_back({"narrowed",
                 network({node("Reshape", {"x", "to"}, {"w"}), node("Squeeze", {"w", "n"}, {"y"})},
                         with(whole({1}, {1})), {{"y", 1, 2}}, {integers("to", {3}, {2, 1, 3})}),
                 {{"x", x}, {"n", whole({1}, {1})}}});
  out.push_back({"sliced",
                 network({node("Slice", {"x", "a", "b", "axes", "steps"}, {"y"})},
                         {{"x", 1, 2}, {"a", 7, 1, {1}}, {"b", 7, 1, {1}}, {"axes", 7, 1, {1}}, {"steps", 7, 1, {1}}},
                         {{"y", 1, 2}}),
                 {{"x", x},
                  {"a", whole({1}, {-1})},
                  {"b", whole({1}, {-4})},
                  {"axes", whole({1}, {1})},
                  {"steps", whole({1}, {-1})}}});
  out.push_back({"padded",
                 network({node("Pad", {"x", "n", "", "axes"}, {"y"})},
                         {{"x", 1, 2}, {"n", 7, 1, {2}}, {"axes", 7, 1, {1}}}, {{"y", 1, 2}}, {}, 19),
                 {{"x", x}, {"n", whole({2}, {1, 2})}, {"axes", whole({1}, {1})}}});
  out.push_back({"summed_up",
                 network({node("CumSum", {"x", "n"}, {"y"})}, {{"x", 1, 2}, {"n", 7, 0}}, {{"y", 1, 2}}),
                 {{"x", x}, {"n", whole({}, {1})}}});
  out.push_back({"range",
                 network({node("Range", {"a", "b", "c"}, {"y"}), node("ConstantOfShape", {"n"}, {"z"})},
                         {{"a", 7, 0}, {"b", 7, 0}, {"c", 7, 0}, {"n", 7, 1, {2}}}, {{"y", 7, 1}, {"z", 1, 2}}),
                 {{"a", whole({}, {10})}, {"b", whole({}, {-3})}, {"c", whole({}, {-4})}, {"n", whole({2}, {2, 0})}}});
  out.push_back({"best_of",
                 network({node("TopK", {"x", "n"}, {"y", "at"}), node("OneHot", {"at", "depth", "values"}, {"z"})},
                         {{"x", 1, 2}, {"n", 7, 1}, {"depth", 7, 0}}, {{"y", 1, 2}, {"z", 1, 3}},
                         {floats("values", {2}, {0, 1})}),
                 {{"x", x}, {"n", whole({1}, {2})}, {"depth", whole({}, {3})}}});
  const auto image = reals({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto resized = [&](const std::string& mode, const std::string& where, bool peers_too) {
    const std::vector<message> attributes{attr("mode", mode.c_str()),
                                          attr("coordinate_transformation_mode", where.c_str()),
                                          attr("axes", std::vector<std::int64_t>{2, 3})};
    const auto made = [&](const std::string& name, const strings& in, int type, const argument& list, bool is_peers) {
      out.push_back(
          {name + mode + "_" + where,
           network({node("Resize", in, {"y"}, attributes)}, {{"x", 1, 4}, {"n", type, 1, {2}}}, {{"y", 1, 4}}),
           {{"x", image}, {"n", list}},
           is_peers});
    };
    made("resized_", {"x", "", "", "n"}, 7, whole({2}, {5, 2}), true);
    made("scaled_", {"x", "", "n"}, 1, reals({2}, {1.6f, .7f}), peers_too);
  };
  resized("nearest", "half_pixel", true);
  resized("nearest", "asymmetric", true);
  resized("linear", "pytorch_half_pixel", true);
  resized("linear", "align_corners", false);  // the peer rounds the resized length first, ONNX's own cases do not
  resized("cubic", "half_pixel", true);
  return out;
}

}  // namespace kiln::test
