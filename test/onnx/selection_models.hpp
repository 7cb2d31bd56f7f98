#pragma once
#include "onnx/dynamic_model.hpp"

/// Models that select and collect: what they find, and lists, have the length that the run gives them.
namespace kiln::test {

inline std::vector<dynamic_model> selection_models() {
  const auto x = reals({2, 3}, {0, 200, -100, 0, 0, 5});  // softmax is exact
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
  for (const std::int64_t centered : {0, 1})
    for (const bool least : {false, true}) {
      strings in{"b", "s", "most", "overlap"};
      if (least) in.push_back("score");
      out.push_back({"boxes_" + std::to_string(centered) + std::to_string(least),
                     network({node("NonMaxSuppression", in, {"y"}, {attr("center_point_box", centered)}),
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
             {of_any_extents("i", 7, 0), of_any_extents("go", 9, 0), list("s")},
             {of_any_extents("again", 9, 0), list("next")}});
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
                             {of_any_extents("has", 9, 0), of_any_extents("y", 1, 1)}});
  out.push_back({"optional_input", model(has, {opset(18)}), {{"o", optional_argument(x)}}, false});
  return out;
}

}  // namespace kiln::test
