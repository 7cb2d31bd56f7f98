#include "peer/edge_cases.hpp"

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

template <class T> bool alike(T x, T y, double apart) {
  if (x == y) return true;
  if constexpr (std::is_floating_point_v<T>) return (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= apart;
  return false;
}
template <class T> void expect_alike(const argument& found, const argument& expected, double tolerance) {
  const auto x = found.to<T>(), y = expected.to<T>();
  double greatest = 0;
  if constexpr (std::is_floating_point_v<T>)
    for (const T v : y)
      if (std::isfinite(v)) greatest = std::max(greatest, std::fabs(static_cast<double>(v)));
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(alike(x[i], y[i], tolerance * greatest)) << "element " << i << ": " << x[i] << " and " << y[i];
}
void expect_alike(const std::vector<argument>& found, const std::vector<argument>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    SCOPED_TRACE("output " + std::to_string(k));
    const dtype type = expected[k].get_shape().type;
    ASSERT_EQ(found[k].get_shape().type, type);
    ASSERT_EQ(found[k].get_shape().lens, expected[k].get_shape().lens)
        << to_string(found[k].get_shape()) << " and " << to_string(expected[k].get_shape());
    if (is_float(type))
      expect_alike<double>(found[k], expected[k], tolerance);
    else
      expect_alike<std::int64_t>(found[k], expected[k], 0);
  }
}

// One case of ctest for each list: most of a case's time would be a process and ONNX Runtime's start.
void check(const std::vector<edge_case>& all, std::span<const form> of = forms) {
  const auto path = library();
  if (!path) GTEST_SKIP() << "ONNX Runtime is not in build/peer (cmake/peer.sh)";
  std::size_t compared = 0;
  for (const edge_case& c : all)
    for (const form& how : of) {
      SCOPED_TRACE(c.op + " " + c.detail + ", " + how.name);
      std::map<std::string, argument> given;
      const message m = model_of(c, how, given);
      std::vector<argument> expected, found;
      try {
        expected = session(*path, m.bytes()).run(given);
      } catch (const std::runtime_error&) {
        continue;  // it has no such kernel, or no such form
      }
      try {
        found = compile(onnx::parse_model(m.bytes(), ".").graph, eigen_target()).run(given);
      } catch (const error& e) {
        // what only extents decide
        EXPECT_TRUE(!how.is_sized && (e.code() == errc::unsupported || e.code() == errc::shape_mismatch)) << e.what();
        continue;
      }
      expect_alike(found, expected, c.tolerance);
      ++compared;
    }
  EXPECT_GT(3 * compared, 2 * of.size() * all.size());
}

TEST(edges, views) { check(view_edges()); }
TEST(edges, numbers) { check(number_edges()); }
TEST(edges, sums) { check(sum_edges()); }
TEST(edges, large) { check(large_edges(), std::span(forms).first(1)); }
TEST(edges, layers) { check(layer_edges()); }

}  // namespace
}  // namespace kiln::peer
