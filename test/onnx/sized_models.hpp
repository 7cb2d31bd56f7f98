#pragma once
#include "onnx/dynamic_model.hpp"

/// Models whose nodes take sizes, axes and steps as inputs of the run.
namespace kiln::test {

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
