#pragma once
#include "onnx/dynamic_model.hpp"

/// Models of If, Loop and Scan.
namespace kiln::test {

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
                                {of_any_extents("i", 7, 0), of_any_extents("go", 9, 0), of_any_rank("h")},
                                {of_any_extents("again", 9, 0), of_any_rank("next")}},
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
  for (const std::int64_t turn : {0, 1})
    out.push_back({"scan_8_of_open_batch_" + std::to_string(turn),
                   network({node("Scan", {"", "h0", "x"}, {"h1", "y"},
                                 {graph_attr("body", step), attr("num_scan_inputs", 1),
                                  attr("directions", std::vector<std::int64_t>{turn})})},
                           {{"h0", 1, 2, {dim("n"), 2}}, {"x", 1, 3, {dim("n"), dim("t"), 2}}},
                           {{"h1", 1, 2}, {"y", 1, 3}}, {}, 8),
                   {{"h0", starts}, {"x", batched}}});
  return out;
}

}  // namespace kiln::test
