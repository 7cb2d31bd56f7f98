#include "peer/edge_cases.hpp"

#include <algorithm>

namespace kiln::peer {
namespace {

argument argument_of(const tensor_of& t) {
  shape s{*onnx::to_dtype(static_cast<onnx::element>(t.type)), {}};
  for (const std::int64_t k : t.extents) s.lens.push_back(k);
  argument a(s);
  EXPECT_EQ(static_cast<std::size_t>(a.elements()), t.reals.size() + t.whole.size());
  if (a.elements() == 0) return a;
  if (is_float(s.type))
    encode(s.type, t.reals.data(), a.data(), a.elements());
  else
    encode(s.type, t.whole.data(), a.data(), a.elements());
  return a;
}

// Which inputs are constants, and whether the others' extents are known.
struct form {
  const char* name;
  bool constant_first, constant_rest, is_sized;
};
constexpr form forms[] = {
    {"run", false, false, true}, {"unsized_data", false, true, false}, {"constants", true, true, true}};

message model_of(const edge_case& c, const form& how, std::map<std::string, argument>& given) {
  test::graph_parts parts;
  test::strings names, results;
  for (const tensor_of& t : c.inputs) {
    const bool constant = names.empty() ? how.constant_first : how.constant_rest;
    names.push_back(t.type == 0 ? "" : "in" + std::to_string(names.size()));
    if (t.type == 0) continue;
    const argument a = argument_of(t);
    if (constant) {
      message m;
      m.numbers(1, t.extents).number(2, t.type).text(8, names.back());
      parts.initializers.push_back(m.text(9, {reinterpret_cast<const char*>(a.data()),
                                              static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type)}));
      continue;
    }
    std::vector<test::dim> lens(t.extents.begin(), t.extents.end());
    if (!how.is_sized) lens.assign(lens.size(), test::dim(-1));
    parts.inputs.push_back(test::value_info(names.back(), t.type, lens));
    given.emplace(names.back(), a);
  }
  for (const int type : c.outputs) {
    results.push_back(type == 0 ? "" : "out" + std::to_string(results.size()));
    if (type == 0) continue;
    parts.outputs.push_back(
        test::message().text(1, results.back()).add(2, message().add(1, message().number(1, type))));
  }
  parts.nodes.push_back(test::node(c.op, names, results, c.attributes));
  return test::model(test::graph(parts), {test::opset(c.version)});
}

template <class T> bool alike(T x, T y, const edge_case& c) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (x == 0 && y == 0) return std::signbit(x) == std::signbit(y) || c.zeros_have_any_sign;
    return x == y || std::fabs(x - y) <= c.tolerance * std::max(std::fabs(y), 1.0);
  }
  return x == y;
}
template <class T> void expect_alike(const argument& found, const argument& expected, const edge_case& c) {
  const auto x = found.to<T>(), y = expected.to<T>();
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(alike(x[i], y[i], c)) << "element " << i << ": " << x[i] << " and " << y[i];
}
void expect_alike(const std::vector<argument>& found, const std::vector<argument>& expected, const edge_case& c) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    SCOPED_TRACE("output " + std::to_string(k));
    const dtype type = expected[k].get_shape().type;
    ASSERT_EQ(found[k].get_shape().type, type);
    ASSERT_EQ(found[k].get_shape().lens, expected[k].get_shape().lens)
        << to_string(found[k].get_shape()) << " and " << to_string(expected[k].get_shape());
    if (is_float(type))
      expect_alike<double>(found[k], expected[k], c);
    else
      expect_alike<std::int64_t>(found[k], expected[k], c);
  }
}

// What ONNX Runtime has no kernel of, or refuses.
constexpr std::string_view not_in_peer[] = {"Acos f64",          "Acosh f64",
                                            "Asin f64",          "Asinh f64",
                                            "Atan f64",          "Atanh f64",
                                            "Celu f16",          "Celu f64",
                                            "Cosh f64",          "Einsum ellipsis",
                                            "Elu f64",           "Erf f64",
                                            "HardSigmoid f64",   "HardSwish f64",
                                            "LRN even",          "LeakyRelu f64",
                                            "Mish f64",          "Relu type2",
                                            "Relu type7",        "Reshape copied",
                                            "Selu f64",          "Sinh f64",
                                            "Softplus f64",      "Softsign f64",
                                            "Split uneven_more", "ThresholdedRelu f64",
                                            "Where type3",       "Where type9"};
// What kiln refuses where a run brings the extents, which decide what the node means: ranks, pads, broadcasts of a
// symbol that turns out to be 1, a choice among no elements.
constexpr std::string_view not_unsized[] = {"AveragePool same",
                                            "BitwiseXor i32",
                                            "ConstantOfShape empty",
                                            "ConstantOfShape i64",
                                            "ConstantOfShape scalar",
                                            "Conv same_lower",
                                            "Conv same_upper",
                                            "ConvTranspose output_shape",
                                            "ConvTranspose output_shape_lower",
                                            "Einsum broadcast_one",
                                            "Equal bools",
                                            "Equal columns",
                                            "Expand both",
                                            "Expand to_empty",
                                            "Greater columns",
                                            "GreaterOrEqual columns",
                                            "Hardmax empty",
                                            "Less columns",
                                            "LessOrEqual columns",
                                            "MatMul broadcast",
                                            "Max i64",
                                            "MaxPool same_upper_strides",
                                            "Min u64",
                                            "Squeeze all",
                                            "Squeeze to_scalar",
                                            "Where broadcast",
                                            "Where empty",
                                            "Xor columns"};
bool is_among(std::span<const std::string_view> names, const edge_case& c) {
  std::string name = c.op + " " + c.detail;
  constexpr std::string_view large = "_large";
  if (name.ends_with(large)) name.resize(name.size() - large.size());
  return std::find(names.begin(), names.end(), name) != names.end();
}

// One case of ctest for each list: most of a case's time would be a process and ONNX Runtime's start.
void check(const std::vector<edge_case>& all, std::span<const form> of = forms) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  for (const edge_case& c : all)
    for (const form& how : of) {
      SCOPED_TRACE(c.op + " " + c.detail + ", " + how.name);
      std::map<std::string, argument> given;
      const message m = model_of(c, how, given);
      std::vector<argument> expected, found;
      try {
        expected = session(*path, m.bytes()).run(given);
      } catch (const std::runtime_error& e) {
        EXPECT_TRUE(is_among(not_in_peer, c)) << e.what();
        continue;
      }
      const bool refused = !how.is_sized && is_among(not_unsized, c);
      try {
        found = compile(onnx::parse_model(m.bytes(), ".").graph, eigen_target()).run(given);
      } catch (const error& e) {
        EXPECT_TRUE(refused && (e.code() == errc::unsupported || e.code() == errc::shape_mismatch)) << e.what();
        continue;
      }
      EXPECT_FALSE(refused) << "kiln runs it: it is to be compared";
      expect_alike(found, expected, c);
    }
}

TEST(edges, views) { check(view_edges()); }
TEST(edges, numbers) { check(number_edges()); }
TEST(edges, sums) { check(sum_edges()); }
TEST(edges, large) { check(large_edges(), std::span(forms).first(1)); }
TEST(edges, layers) { check(layer_edges()); }

}  // namespace
}  // namespace kiln::peer
