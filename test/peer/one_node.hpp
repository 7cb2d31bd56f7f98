#pragma once
#include "onnx/model_writer.hpp"
#include "peer/compare.hpp"
#include "runtime/compare.hpp"

/// Models of one node, which kiln and ONNX Runtime run alike.
namespace kiln::peer {

using test::attr;
using test::message;
using lens = std::vector<std::int64_t>;
constexpr int f32 = 1, u8 = 2, i8 = 3, i32 = 6, i64 = 7, boolean = 9;

inline message attr_floats(std::string_view name, const std::vector<float>& v) {
  message m = test::attribute(name, 6);
  for (const float x : v) m.real(7, x);
  return m;
}
inline message attr_texts(std::string_view name, const std::vector<std::string>& v) {
  message m = test::attribute(name, 8);
  for (const std::string& x : v) m.text(9, x);
  return m;
}

// One input; an omitted one has type 0. `values` make it a constant.
struct operand {
  int type = f32;
  lens extents{};
  double low = -1, high = 1;
  std::vector<std::int64_t> values{};
};
inline const operand none{0};

struct one_node {
  std::string name, op, domain;
  std::int64_t version = 20;
  std::vector<operand> inputs;
  std::vector<message> attributes;
  std::vector<int> outputs = {f32};  ///< element types; 0: omitted
  double tolerance = 2e-5;
};
inline void PrintTo(const one_node& n, std::ostream* out) { *out << n.name; }

inline const std::string microsoft = "com.microsoft", ai_onnx_ml = "ai.onnx.ml";

/// The model of the node; `given` gets values for its inputs. The extents of the first are perhaps unknown.
inline message model_of(const one_node& n, std::map<std::string, argument>& given, bool is_sized = true) {
  test::graph_parts parts;
  test::strings names, results;
  unsigned seed = 5;
  for (const operand& o : n.inputs) {
    names.push_back(o.type == 0 ? "" : "in" + std::to_string(names.size()));
    if (o.type == 0) continue;
    shape s{*onnx::to_dtype(static_cast<onnx::element>(o.type)), {}};
    for (const std::int64_t k : o.extents) s.lens.push_back(k);
    if (!o.values.empty()) {
      const argument a(literal::of<std::int64_t>(s, o.values));
      message t;
      t.numbers(1, o.extents).number(2, o.type).text(8, names.back());
      parts.initializers.push_back(t.text(
          9, {reinterpret_cast<const char*>(a.data()), static_cast<std::size_t>(a.elements()) * size_of(s.type)}));
      continue;
    }
    std::vector<test::dim> lens(o.extents.begin(), o.extents.end());
    if (!is_sized && &o == &n.inputs[0]) lens.assign(lens.size(), test::dim(-1));
    parts.inputs.push_back(test::value_info(names.back(), o.type, lens));
    given.emplace(names.back(), testing::random_argument(s, ++seed, o.low, o.high));
  }
  for (const int type : n.outputs) {
    results.push_back("out" + std::to_string(results.size()));
    parts.outputs.push_back(
        test::message().text(1, results.back()).add(2, message().add(1, message().number(1, type))));
  }
  parts.nodes.push_back(test::node(n.op, names, results, n.attributes, "", n.domain));
  std::vector<message> opsets = {test::opset(n.version)};
  if (!n.domain.empty()) opsets.push_back(test::opset(n.domain == ai_onnx_ml ? 3 : 1, n.domain));
  return test::model(test::graph(parts), opsets);
}

inline void expect_alike(const one_node& n) {
  std::map<std::string, argument> given;
  const message m = model_of(n, given);
  compare_with_peer(m.bytes(), ".", {given}, n.tolerance);
}

inline std::string name_of(const ::testing::TestParamInfo<one_node>& i) { return i.param.name; }

}  // namespace kiln::peer
