#pragma once
#include <array>
#include <limits>

#include "onnx/dynamic_model.hpp"

/// Models at the borders of what sizes, positions and lists of the run may be.
namespace kiln::test {

inline std::vector<dynamic_model> edge_models() {
  std::vector<dynamic_model> out;
  const auto x = reals({2, 3}, {1, 2, 3, 4, 5, 6}), row = reals({5}, {1, 2, 3, 4, 5});
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                         least = std::numeric_limits<std::int64_t>::min();
  struct given {
    std::string name;
    argument value;
    int type = 7;
  };
  // one node over x and what the run says
  const auto one = [&](const std::string& name, const std::string& op, const std::vector<message>& attributes,
                       const argument& data, const strings& in, const std::vector<given>& more, int rank,
                       std::int64_t version = 18, int type = 1) {
    std::vector<declared> inputs{{"x", 1, static_cast<int>(lens_of(data).size())}};
    std::vector<std::pair<std::string, argument>> values{{"x", data}};
    for (const given& g : more) {
      std::vector<dim> lens;
      for (const std::int64_t d : lens_of(g.value)) lens.emplace_back(d);
      inputs.push_back({g.name, g.type, static_cast<int>(lens.size()), lens});
      values.emplace_back(g.name, g.value);
    }
    out.push_back({name, network({node(op, in, {"y"}, attributes)}, inputs, {{"y", type, rank}}, {}, version), values});
  };
  const auto slice = [&](const std::string& name, std::int64_t from, std::int64_t to, std::int64_t step) {
    one("slice_" + name, "Slice", {}, row, {"x", "a", "b", "axes", "s"},
        {{"a", whole({1}, {from})}, {"b", whole({1}, {to})}, {"axes", whole({1}, {0})}, {"s", whole({1}, {step})}}, 1);
  };
  slice("to_the_end", 1, most, 1);
  slice("backwards_to_the_begin", most, least, -2);
  slice("of_nothing", 4, 2, 1);
  slice("beyond_both_ends", -100, 100, 3);
  slice("by_a_huge_step", 1, most, most);
  for (const char* mode : {"reflect", "edge", "wrap"})
    one("pad_" + std::string(mode), "Pad", {attr("mode", mode)}, x, {"x", "p"}, {{"p", whole({4}, {1, 2, 0, 1})}}, 2,
        19);
  one("pad_crops", "Pad", {}, x, {"x", "p"}, {{"p", whole({4}, {-1, 1, 0, -2})}}, 2);
  one("expand_of_fewer_dims", "Expand", {}, x, {"x", "n"}, {{"n", whole({1}, {1})}}, 2);
  one("tile_of_nothing", "Tile", {}, x, {"x", "n"}, {{"n", whole({2}, {2, 0})}}, 2);
  one("reshape_with_zeros", "Reshape", {attr("allowzero", 1)}, reals({0, 3}, {}), {"x", "n"},
      {{"n", whole({2}, {3, 0})}}, 2);
  for (const std::int64_t k : {0, 1})
    out.push_back({k ? "top_least" : "top_none",
                   network({node("TopK", {"x", "k"}, {"y", "at"}, {attr("largest", 0), attr("axis", 0)})},
                           {{"x", 1, 2}, {"k", 7, 1, {1}}}, {{"y", 1, 2}, {"at", 7, 2}}),
                   {{"x", x}, {"k", whole({1}, {k})}}});
  one("compress_shorter", "Compress", {attr("axis", 1)}, x, {"x", "c"},
      {{"c", argument::of<bool>({2}, std::span<const bool>(std::array{false, true})), 9}}, 2);
  // of rank 0 there are no places, unlike numpy's and the peer's one
  one("nonzero_of_one", "NonZero", {}, reals({}, {3}), {"x"}, {}, 2, 18, 7);
  out.back().is_peers = false;
  one("resize_keeps_the_ratio", "Resize",
      {attr("mode", "nearest"), attr("keep_aspect_ratio_policy", "not_larger"),
       attr("axes", std::vector<std::int64_t>{0, 1})},
      x, {"x", "", "", "n"}, {{"n", whole({2}, {4, 4})}}, 2);
  out.push_back({"split_by_numbers",
                 network({node("Split", {"x", "n"}, {"y", "z"}, {attr("axis", 1)})}, {{"x", 1, 2}, {"n", 7, 1, {2}}},
                         {{"y", 1, 2}, {"z", 1, 2}}),
                 {{"x", x}, {"n", whole({2}, {0, 3})}}});
  out.push_back({"range_of_fractions",
                 network({node("Range", {"a", "b", "c"}, {"y"}), node("Range", {"b", "a", "c"}, {"z"})},
                         {{"a", 1, 0}, {"b", 1, 0}, {"c", 1, 0}}, {{"y"}, {"z"}}),
                 {{"a", reals({}, {1})}, {"b", reals({}, {2.05f})}, {"c", reals({}, {.35f})}}});
  out.push_back({"depth_of_the_run",
                 network({node("OneHot", {"n", "d", "v"}, {"y"}, {attr("axis", 0)})},
                         {{"n", 7, 1}, {"d", 7, 0}, {"v", 1, 1, {2}}}, {{"y", 1, 2}}),
                 {{"n", whole({3}, {-1, 1, 5})}, {"d", whole({}, {3})}, {"v", reals({2}, {-1, 2})}}});
  out.push_back({"pieces_without_their_dim",
                 network({node("SplitToSequence", {"x"}, {"s"}, {attr("axis", 1), attr("keepdims", 0)}),
                          node("ConcatFromSequence", {"s"}, {"y"}, {attr("axis", 1), attr("new_axis", 1)}),
                          node("SequenceAt", {"s", "k"}, {"z"}), node("SequenceInsert", {"s", "z", "k"}, {"t"}),
                          node("ConcatFromSequence", {"t"}, {"w"}, {attr("axis", -1), attr("new_axis", 1)})},
                         {{"x", 1, 2}, {"k", 7, 0}}, {{"y", 1, 2}, {"z"}, {"w", 1, 2}}),
                 {{"x", x}, {"k", whole({}, {-2})}}});
  // a body that ends its loop at once, and one that counts in a loop inside
  const message once =
      body_of({node("Less", {"h", "h"}, {"again"}), node("Neg", {"h"}, {"next"}), node("Identity", {"i"}, {"seen"})},
              {iteration_in, goes_on_in, {"h", 1, 0}}, {goes_on_out, {"next", 1, 0}, {"seen", 7, 0}});
  const message counts = body_of({node("Identity", {"go2"}, {"again2"}), node("Add", {"i2", "i"}, {"place"})},
                                 {{"i2", 7, 0}, {"go2", 9, 0}}, {{"again2", 9, 0}, {"place", 7, 0}});
  const message outer =
      body_of({pass_on(), node("Loop", {"n", ""}, {"places"}, {graph_attr("body", counts)}),
               node("ReduceSum", {"places"}, {"sum"}, {attr("keepdims", 0)}), node("Add", {"h", "sum"}, {"next"})},
              {iteration_in, goes_on_in, {"h", 7, 0}}, {goes_on_out, {"next", 7, 0}, {"places", 7, 1}});
  out.push_back({"loop_once",
                 network({node("Loop", {"n", "", "x"}, {"y", "all"}, {graph_attr("body", once)})},
                         {{"n", 7, 0}, {"x", 1, 0}}, {{"y", 1, 0}, {"all", 7, 1}}),
                 {{"n", whole({}, {9})}, {"x", reals({}, {2})}}});
  out.push_back({"loop_in_a_loop",
                 network({node("Loop", {"n", "", "h"}, {"y", "all"}, {graph_attr("body", outer)})},
                         {{"n", 7, 0}, {"h", 7, 0}}, {{"y", 7, 0}, {"all", 7, 2}}),
                 {{"n", whole({}, {3})}, {"h", whole({}, {100})}}});
  // sizes that a branch chooses
  const message wide = body_of({node("Mul", {"n", "two"}, {"a"})}, {}, {{"a", 7, 1}}),
                narrow = body_of({node("Identity", {"n"}, {"b"})}, {}, {{"b", 7, 1}});
  for (const bool c : {true, false})
    out.push_back(
        {c ? "size_of_a_branch_then" : "size_of_a_branch_else",
         network({node("If", {"c"}, {"k"}, {graph_attr("then_branch", wide), graph_attr("else_branch", narrow)}),
                  node("Expand", {"x", "k"}, {"y"}), node("Reshape", {"y", "all"}, {"z"})},
                 {{"c", 9, 0}, {"n", 7, 1, {1}}, {"x", 1, 1, {1}}}, {{"y"}, {"z", 1, 2}},
                 {integers("two", {1}, {2}), integers("all", {2}, {-1, 1})}),
         {{"c", truth(c)}, {"n", whole({1}, {2})}, {"x", reals({1}, {7})}}});
  return out;
}

}  // namespace kiln::test
