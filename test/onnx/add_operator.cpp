#include "kiln/onnx/add_operator.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::onnx {
namespace {

node named(std::string type) {
  node n;
  n.op_type = std::move(type);
  n.outputs = {"y"};
  return n;
}

TEST(add_operator, adds_what_the_importer_would) {
  builder b;
  const value x = b.input("x", dtype::f32, {4});
  node n = named("LeakyRelu");
  attribute alpha;
  alpha.name = "alpha";
  alpha.kind = attribute_kind::real;
  alpha.real = .5f;
  n.attributes.push_back(alpha);
  b.output(add_operator(b, n, 16, {x})[0]);
  // symbols are named after the label
  b.label = text("found");
  const value places = add_operator(b, named("NonZero"), 13, {x})[0];
  EXPECT_TRUE(to_string(places.dim(1)).starts_with("found."));
  b.output(places);
  const executable exe = compile(b.finish(), reference_target());
  const float values[] = {-2, 0, 3, 4};
  const auto out = exe.run(std::map<std::string, argument>{{"x", argument::of<float>({4}, values)}});
  EXPECT_THAT(out[0].to<float>(), testing::ElementsAre(-1, 0, 3, 4));
  EXPECT_THAT(out[1].to<std::int64_t>(), testing::ElementsAre(0, 2, 3));
}

TEST(add_operator, refuses_what_is_no_operator_by_itself) {
  builder b;
  const value x = b.input("x", dtype::f32, {2}), c = b.input("c", dtype::boolean, {});
  EXPECT_THROW(add_operator(b, named("NoSuchOperator"), 13, {x}), error);
  node branch = named("If");
  for (const char* const name : {"then_branch", "else_branch"}) {
    attribute body;
    body.name = name;
    body.kind = attribute_kind::graph;
    body.graphs.emplace_back();
    branch.attributes.push_back(body);
  }
  EXPECT_THROW(add_operator(b, branch, 13, {c}), error);
  EXPECT_THROW(add_operator(b, named("SequenceConstruct"), 11, {x}), error);
}

}  // namespace
}  // namespace kiln::onnx
