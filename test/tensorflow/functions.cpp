#include "tensorflow/graph_text.hpp"

namespace kiln::tensorflow {
namespace {

TEST(tensorflow_functions, calls_are_inlined_with_what_they_capture) {
  const std::string one = "dtype: DT_FLOAT tensor_shape {} float_val: 1";
  const std::string functions =
      function("inner", {"a", "b"}, {{"sum", "sum:z:0"}, {"twice", "twice:z:0"}},
               node("sum", "AddV2", {"a", "b"}) + node("twice", "AddV2", {"a", "a"})) +
      function("outer", {"x", "w"}, {{"y", "call:output:1"}, {"z", "shifted:z:0"}},
               constant("one", one) + node("scaled", "Mul", {"x", "w"}) +
                   node("call", "StatefulPartitionedCall", {"scaled:z:0", "x"}, function_attribute("f", "inner")) +
                   node("shifted", "AddV2", {"call:output:0", "one:output:0"}));
  const std::string text = placeholder("x", "2") + constant("w", "dtype: DT_FLOAT tensor_shape {} float_val: 3") +
                           node("call", "PartitionedCall", {"x", "w"}, function_attribute("f", "outer")) +
                           node("y", "Neg", {"call"}) + node("z", "Neg", {"call:1"}) +
                           node("named", "inner", {"y", "z"}) + node("last", "Abs", {"named:1"}) + library(functions);
  const auto out = run(text, {floats({2}, {1, 2})}, {.outputs = {"y", "z", "last", "call:1", "named"}});
  EXPECT_THAT(numbers(out[0]), ElementsAre(-6, -12));
  EXPECT_THAT(numbers(out[1]), ElementsAre(-5, -9));
  EXPECT_THAT(numbers(out[2]), ElementsAre(12, 24));
  EXPECT_THAT(numbers(out[3]), ElementsAre(5, 9));
  EXPECT_THAT(numbers(out[4]), ElementsAre(-11, -21));
}

TEST(tensorflow_functions, outputs_with_names_are_numbered) {
  const std::string body = integers("k", "2") + node("top", "TopKV2", {"x", "k:output:0"}) + integers("axis", "0") +
                           node("parts", "Split", {"axis:output:0", "x"}, attribute("num_split", "i: 2")) +
                           node("sum", "AddV2", {"parts:output:1", "top:values:0"});
  const std::string text = placeholder("x", "4") + node("call", "f", {"x"}) +
                           library(function("f", {"x"}, {{"i", "top:indices:0"}, {"s", "sum:z:0"}}, body));
  const auto out = run(text, {floats({4}, {5, 8, 7, 6})}, {.outputs = {"call", "call:1"}});
  EXPECT_THAT(numbers(out[0]), ElementsAre(1, 2));
  EXPECT_THAT(numbers(out[1]), ElementsAre(15, 13));
}

TEST(tensorflow_functions, attributes_come_from_the_call_or_are_defaults) {
  const std::string with = function("leaky", {"x"}, {{"y", "y:activations:0"}},
                                    node("y", "LeakyRelu", {"x"}, attribute("alpha", "placeholder: 'slope'")));
  const std::string signature = "signature { name: 'leaky'";
  std::string defaulted = with;
  defaulted.insert(defaulted.find(signature) + signature.size(),
                   " attr { name: 'slope' type: 'float' default_value { f: 0.5 } }");
  const auto made = [&](const std::string& functions, const std::string& attributes) {
    const std::string text = placeholder("x", "1") + node("y", "leaky", {"x"}, attributes) + library(functions);
    return numbers(run(text, {floats({1}, {-4})})[0])[0];
  };
  EXPECT_EQ(made(defaulted, ""), -2);
  EXPECT_EQ(made(defaulted, attribute("slope", "f: .25")), -1);
  EXPECT_FLOAT_EQ(static_cast<float>(made(with, "")), -.8f);  // LeakyRelu's own
}

TEST(tensorflow_functions, what_cannot_be_called_is_refused_by_name) {
  const std::string x = placeholder("x", "2");
  const auto call = [](const std::string& f, const std::vector<std::string>& inputs = {"x"}) {
    return node("call", "PartitionedCall", inputs, function_attribute("f", f));
  };
  const std::string self = function("f", {"a"}, {{"b", "c:out:0"}}, node("c", "g", {"a"})) +
                           function("g", {"a"}, {{"out", "c:b:0"}}, node("c", "f", {"a"}));
  EXPECT_THAT(fault(x + call("f") + library(self)), HasSubstr("node 'c' (f): function 'f' calls itself"));
  EXPECT_THAT(fault(x + call("h") + library(self)),
              HasSubstr("node 'call' (PartitionedCall): the graph has no function 'h'"));
  EXPECT_THAT(fault(x + node("call", "PartitionedCall", {"x"}) + library(self)),
              HasSubstr("attribute 'f' names no function"));
  const std::string good = function("f", {"a"}, {{"b", "c:y:0"}}, node("c", "Neg", {"a"}));
  EXPECT_THAT(fault(x + call("f", {"x", "x"}) + library(good)), HasSubstr("function 'f' takes 1 inputs, found 2"));
  EXPECT_THAT(fault(x + call("f") + node("y", "Neg", {"call:1"}) + library(good)),
              HasSubstr("gives 1 values, number 1 is read"));
  EXPECT_THAT(fault(x + call("f") + library(good + good)), HasSubstr("function 'f': another one has this name"));
  EXPECT_THAT(fault(x + call("f") + library(function("f", {"a"}, {{"b", "c:y:0"}}, node("c", "Neg", {"z"})))),
              HasSubstr("function 'f', node 'c' (Neg): no node gives its input 'z'"));
  EXPECT_THAT(fault(x + call("f") + library(function("f", {"a"}, {{"b", "c:y:0"}}, node("c", "Mystery", {"a"})))),
              HasSubstr("node 'c' (tensorflow.Mystery)"));
  std::string missing = good;
  missing.replace(missing.find("ret { key: 'b'"), 14, "ret { key: 'c'");
  EXPECT_THAT(fault(x + call("f") + library(missing)), HasSubstr("no node gives its output 'b'"));
  const std::string writes = function("f", {"a"}, {{"b", "c:y:0"}},
                                      node("c", "Neg", {"a"}) + node("store", "AssignVariableOp", {"a", "c:y:0"}),
                                      "control_ret { key: 'store' value: 'store' }\n");
  EXPECT_THAT(fault(x + call("f") + library(writes)),
              HasSubstr("node 'store' (AssignVariableOp) of function 'f': writes a variable"));
}

// A write that only order puts before what is read is no less one, in whatever function it is.
TEST(tensorflow_functions, writes_are_refused_wherever_they_run) {
  const std::string x = placeholder("x", "2") + node("y", "f", {"x"});
  const auto ordered = [&](const std::string& op, const std::string& attributes, const std::string& more) {
    const std::string nodes = node("store", op, {"a"}, attributes) + node("c", "Neg", {"a", "^store"});
    return fault(x + library(function("f", {"a"}, {{"b", "c:y:0"}}, nodes) + more));
  };
  for (const std::string op : {"ResourceStridedSliceAssign", "ResourceSparseApplyAdagrad", "ResourceCountUpTo",
                               "ScatterNdUpdate", "ScatterAdd", "ApplyAdam", "SparseApplyFtrl", "StridedSliceAssign",
                               "CountUpTo", "AssignAdd", "ResourceScatterUpdate"})
    EXPECT_THAT(ordered(op, "", ""), HasSubstr("node 'store' (" + op + ") of function 'f': writes a variable"));
  for (const std::string op : {"ScatterNd", "TensorScatterUpdate", "ReadVariableOp"})
    EXPECT_EQ(ordered(op, "", ""), "no error");
  const std::string writer = function("g", {"a"}, {{"b", "a"}}, node("w", "AssignSubVariableOp", {"a", "a"}),
                                      "control_ret { key: 'w' value: 'w' }\n"),
                    between = function("h", {"a"}, {{"b", "k:b:0"}}, node("k", "g", {"a"}));
  const std::string found = "node 'w' (AssignSubVariableOp) of function 'g': writes a variable";
  EXPECT_THAT(ordered("StatefulPartitionedCall", function_attribute("f", "h"), writer + between), HasSubstr(found));
  EXPECT_THAT(ordered("h", "", writer + between), HasSubstr(found));
  EXPECT_THAT(
      ordered("If", function_attribute("then_branch", "h") + function_attribute("else_branch", "h"), writer + between),
      HasSubstr(found));
  const std::string pure = function("g", {"a"}, {{"b", "n:y:0"}}, node("n", "Neg", {"a"}));
  EXPECT_EQ(ordered("h", "", pure + between), "no error");
}

TEST(tensorflow_functions, outputs_that_an_operator_does_not_have_are_refused) {
  const auto reading = [](const std::string& value) {
    const std::string body = integers("k", "2") + node("top", "TopKV2", {"x", "k:output:0"}) +
                             node("inner", "g", {"x"}) + node("y", "Neg", {value});
    return fault(placeholder("x", "4") + node("call", "f", {"x"}) +
                 library(function("f", {"x"}, {{"y", "y:y:0"}}, body) +
                         function("g", {"x"}, {{"r", "n:y:0"}}, node("n", "Neg", {"x"}))));
  };
  EXPECT_EQ(reading("top:values:0"), "no error");
  EXPECT_EQ(reading("inner:r:0"), "no error");
  EXPECT_THAT(reading("top:typo:0"), HasSubstr("function 'f' reads output 'typo' of node 'top' (TopKV2)"));
  EXPECT_THAT(reading("inner:typo:0"), HasSubstr("function 'f' reads output 'typo' of node 'inner' (g)"));
}

TEST(tensorflow_functions, a_branch_is_chosen_by_the_run) {
  const std::string functions = function("twice", {"a", "w"}, {{"b", "c:z:0"}}, node("c", "Mul", {"a", "w"})) +
                                function("less", {"a", "w"}, {{"b", "c:z:0"}}, node("c", "Sub", {"a", "w"}));
  const std::string chosen = function_attribute("then_branch", "twice") + function_attribute("else_branch", "less");
  for (const std::string op : {"If", "StatelessIf"}) {
    const std::string text = placeholder("p", "", "DT_BOOL") + placeholder("x", "-1") +
                             constant("w", "dtype: DT_FLOAT tensor_shape {} float_val: 3") +
                             node("y", op, {"p", "x", "w"}, chosen) + library(functions);
    const executable e = compile(parse(text).graph, eigen_target());
    const auto made = [&](bool p) {
      const bool list[] = {p};
      return numbers(e.run(std::vector{argument::of<bool>({}, std::span<const bool>(list)), floats({2}, {1, 2})})[0]);
    };
    EXPECT_THAT(made(true), ElementsAre(3, 6));
    EXPECT_THAT(made(false), ElementsAre(-2, -1));
  }
  // a number is a condition, and one that is known leaves one branch
  const std::string known = placeholder("x", "2") + integers("p", "7") +
                            constant("w", "dtype: DT_FLOAT tensor_shape {} float_val: 3") +
                            node("y", "If", {"p", "x", "w"}, chosen) + library(functions);
  EXPECT_EQ(parse(known).graph.modules(), 1u);
  EXPECT_THAT(numbers(run(known, {floats({2}, {1, 2})})[0]), ElementsAre(3, 6));
}

// As TensorFlow does, the last branch is that of all numbers that no branch has.
TEST(tensorflow_functions, one_of_several_branches_is_chosen_by_the_run) {
  std::string functions, branches;
  for (const std::string k : {"0", "1", "2", "3", "4"}) {
    functions += function("add" + k, {"a", "w"}, {{"b", "c:z:0"}, {"d", "k:output:0"}},
                          constant("k", "dtype: DT_FLOAT tensor_shape {} float_val: " + k) +
                              node("p", "Mul", {"a", "w"}) + node("c", "AddV2", {"p:z:0", "k:output:0"}));
    branches += " func { name: 'add" + k + "' }";
  }
  const std::string chosen = attribute("branches", "list {" + branches + " }"), w = "dtype: DT_FLOAT tensor_shape {} ";
  for (const std::string op : {"Case", "StatelessCase"}) {
    const std::string text = placeholder("i", "", "DT_INT32") + placeholder("x", "2") +
                             constant("w", w + "float_val: 3") + node("y", op, {"i", "x", "w"}, chosen) +
                             node("n", "Neg", {"y:1"}) + library(functions);
    const executable e = compile(parse(text, {.outputs = {"y", "n"}}).graph, eigen_target());
    const std::int32_t most = std::numeric_limits<std::int32_t>::max();
    for (const auto& [index, branch] : {std::pair<std::int32_t, double>{0, 0},
                                        {1, 1},
                                        {2, 2},
                                        {3, 3},
                                        {4, 4},
                                        {5, 4},
                                        {-1, 4},
                                        {most, 4},
                                        {-most - 1, 4}}) {
      const std::int32_t list[] = {index};
      const auto out = e.run(std::vector{argument::of<std::int32_t>({}, std::span(list)), floats({2}, {1, 2})});
      EXPECT_THAT(numbers(out[0]), ElementsAre(3 + branch, 6 + branch)) << index;
      EXPECT_THAT(numbers(out[1]), ElementsAre(-branch)) << index;
    }
  }
  // a known index leaves one branch
  const auto known = [&](const std::string& index) {
    return placeholder("x", "2") + integers("i", index) + constant("w", w + "float_val: 3") +
           node("y", "Case", {"i", "x", "w"}, chosen) + library(functions);
  };
  EXPECT_EQ(parse(known("1")).graph.modules(), 1u);
  EXPECT_THAT(numbers(run(known("1"), {floats({2}, {1, 2})})[0]), ElementsAre(4, 7));
  EXPECT_THAT(numbers(run(known("-1"), {floats({2}, {1, 2})})[0]), ElementsAre(7, 10));
  EXPECT_THAT(numbers(run(known("5"), {floats({2}, {1, 2})})[0]), ElementsAre(7, 10));
  // faults
  const auto with = [&](const std::string& attributes, const std::vector<std::string>& inputs) {
    return fault(placeholder("x", "2") + placeholder("i", "", "DT_INT32") + node("y", "Case", inputs, attributes) +
                 library(functions));
  };
  EXPECT_THAT(with("", {"i", "x", "x"}), HasSubstr("node 'y' (Case): attribute 'branches' names no functions"));
  EXPECT_THAT(with(chosen, {}), HasSubstr("node 'y' (Case): it has no index of a branch"));
  EXPECT_THAT(with(chosen, {"i", "x"}), HasSubstr("function 'add0' takes 2 inputs, found 1"));
  EXPECT_THAT(with(chosen, {"x", "x", "x"}), HasSubstr("the index of its branch is no integer scalar"));
  EXPECT_THAT(with(attribute("branches", "list { func { name: 'none' } }"), {"i", "x", "x"}),
              HasSubstr("node 'y' (Case): the graph has no function 'none'"));
}

}  // namespace
}  // namespace kiln::tensorflow
