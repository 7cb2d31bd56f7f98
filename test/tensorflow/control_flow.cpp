#include "tensorflow/graph_text.hpp"

// The control flow of TensorFlow 1, as frozen graphs have it.
namespace kiln::tensorflow {
namespace {

argument flag(bool v) {
  const bool list[] = {v};
  return argument::of<bool>({}, std::span<const bool>(list));
}
std::string frame(const std::string& name, bool stays = false) {
  return attribute("frame_name", "s: '" + name + "'") + attribute("is_constant", stays ? "b: true" : "b: false");
}
std::string real(const std::string& name, const std::string& v) {
  return constant(name, "dtype: DT_FLOAT tensor_shape {} float_val: " + v);
}

// if p: x * 3 else: 7 - x, with the pivots that TensorFlow writes
const std::string condition = placeholder("p", "", "DT_BOOL") + placeholder("x", "2") +
                              node("c/Switch", "Switch", {"p", "p"}) + node("c/switch_t", "Identity", {"c/Switch:1"}) +
                              node("c/switch_f", "Identity", {"c/Switch"}) + node("c/pred_id", "Identity", {"p"}) +
                              node("c/x", "Switch", {"x", "c/pred_id"}) +
                              node("c/three", "Const", {"^c/switch_t"},
                                   attribute("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 }")) +
                              node("c/seven", "Const", {"^c/switch_f"},
                                   attribute("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 7 }")) +
                              node("c/mul", "Mul", {"c/x:1", "c/three"}) + node("c/sub", "Sub", {"c/seven", "c/x"});

std::vector<double> chosen(const std::string& text, bool p, const import_options& how = {}) {
  return numbers(run(text, {flag(p), floats({2}, {1, 2})}, how)[0]);
}

TEST(tensorflow_control_flow, a_merge_is_a_condition) {
  const std::string text = condition + node("c/Merge", "Merge", {"c/sub", "c/mul"}) + node("y", "Neg", {"c/Merge"});
  EXPECT_THAT(chosen(text, true), ElementsAre(-3, -6));
  EXPECT_THAT(chosen(text, false), ElementsAre(-6, -5));
  EXPECT_EQ(parse(text).graph.main().outputs.size(), 1u);
  // values the other way around, and which one it was
  const std::string swapped = condition + node("m", "Merge", {"c/mul", "c/sub"});
  EXPECT_THAT(chosen(swapped, true), ElementsAre(3, 6));
  EXPECT_THAT(chosen(swapped, false), ElementsAre(6, 5));
  const std::string index = swapped + node("i", "Identity", {"m:1"});
  EXPECT_THAT(chosen(index, true, {.outputs = {"i"}}), ElementsAre(0));
  EXPECT_THAT(chosen(index, false, {.outputs = {"i"}}), ElementsAre(1));
}

TEST(tensorflow_control_flow, branches_may_be_constants_or_hold_conditions) {
  const std::string constants = condition + node("y", "Merge", {"c/seven", "c/three"});
  EXPECT_THAT(chosen(constants, true), ElementsAre(3));
  EXPECT_THAT(chosen(constants, false), ElementsAre(7));
  // if p: (if sum(x) < 10: 3 x, else: 3 x - 7) else: 7 - x
  const std::string inner =
      condition + integers("axes", "0", "1") + node("c/sum", "Sum", {"c/mul", "axes"}) + real("ten", "10") +
      node("c/less", "Less", {"c/sum", "ten"}) + node("c/d/Switch", "Switch", {"c/mul", "c/less"}) +
      node("c/d/seven", "Switch", {"c/seven_t", "c/less"}) +
      node("c/seven_t", "Const", {"^c/switch_t"},
           attribute("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 7 }")) +
      node("c/d/sub", "Sub", {"c/d/Switch", "c/d/seven"}) + node("c/d/same", "Identity", {"c/d/Switch:1"}) +
      node("c/d/Merge", "Merge", {"c/d/sub", "c/d/same"}) + node("y", "Merge", {"c/sub", "c/d/Merge"});
  EXPECT_THAT(chosen(inner, true), ElementsAre(3, 6));
  EXPECT_THAT(chosen(inner, false), ElementsAre(6, 5));
  const executable e = compile(parse(inner).graph, eigen_target());
  EXPECT_THAT(numbers(e.run(std::vector{flag(true), floats({2}, {4, 5})})[0]), ElementsAre(5, 8));
  // one after the other
  const std::string after = condition + node("m", "Merge", {"c/sub", "c/mul"}) + node("e/x", "Switch", {"m", "p"}) +
                            node("e/abs", "Square", {"e/x:1"}) + node("e/neg", "Neg", {"e/x"}) +
                            node("y", "Merge", {"e/neg", "e/abs"});
  EXPECT_THAT(chosen(after, true), ElementsAre(9, 36));
  EXPECT_THAT(chosen(after, false), ElementsAre(-6, -5));
}

// i = 0, x: while i < 4: x = x * w + i, i = i + 1
const std::string counting =
    placeholder("x", "2") + integers("zero", "0") + integers("four", "4") + real("w", "2") +
    node("l/i", "Enter", {"zero"}, frame("l")) + node("l/x", "Enter", {"x"}, frame("l")) +
    node("l/n", "Enter", {"four"}, frame("l", true)) + node("l/w", "Enter", {"w"}, frame("l", true)) +
    node("l/mi", "Merge", {"l/i", "l/ni"}) + node("l/mx", "Merge", {"l/x", "l/nx"}) +
    node("l/less", "Less", {"l/mi", "l/n"}) + node("l/cond", "LoopCond", {"l/less"}) +
    node("l/si", "Switch", {"l/mi", "l/cond"}) + node("l/sx", "Switch", {"l/mx", "l/cond"}) +
    node("l/bi", "Identity", {"l/si:1"}) + node("l/bx", "Identity", {"l/sx:1"}) +
    node("l/one", "Const", {"^l/bi"}, attribute("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }")) +
    node("l/next", "AddV2", {"l/bi", "l/one"}) + node("l/mul", "Mul", {"l/bx", "l/w"}) +
    node("l/real", "Cast", {"l/bi"}, attribute("DstT", "type: DT_FLOAT")) +
    node("l/sum", "AddV2", {"l/mul", "l/real"}) + node("l/ni", "NextIteration", {"l/next"}) +
    node("l/nx", "NextIteration", {"l/sum"}) + node("l/ei", "Exit", {"l/si"}) + node("l/ex", "Exit", {"l/sx"});

TEST(tensorflow_control_flow, a_frame_is_a_loop) {
  const auto out = run(counting, {floats({2}, {1, 3})}, {.outputs = {"l/ex", "l/ei"}});
  EXPECT_THAT(numbers(out[0]),
              ElementsAre(((1 * 2 + 0) * 2 + 1) * 4 + 2 * 2 + 3, ((3 * 2 + 0) * 2 + 1) * 4 + 2 * 2 + 3));
  EXPECT_THAT(numbers(out[1]), ElementsAre(4));
  const onnx::imported made = parse(counting + node("y", "Neg", {"l/ex"}));
  EXPECT_EQ(made.graph.main().outputs.size(), 2u);  // y and the counter, nothing of the frame
}

TEST(tensorflow_control_flow, loops_and_conditions_in_loops) {
  // a loop whose body runs the loop above on its value: j = 0: while j < 2: x = inner(x), j = j + 1
  std::string inner = counting;
  const auto replace = [&](const std::string& from, const std::string& to) {
    inner.replace(inner.find(from), from.size(), to);
  };
  replace("name: 'l/x' op: 'Enter' input: 'x'", "name: 'l/x' op: 'Enter' input: 'o/bx'");
  replace("name: 'l/i' op: 'Enter' input: 'zero'", "name: 'l/i' op: 'Enter' input: 'o/zero'");
  replace("name: 'l/n' op: 'Enter' input: 'four'", "name: 'l/n' op: 'Enter' input: 'o/four'");
  replace("name: 'l/w' op: 'Enter' input: 'w'", "name: 'l/w' op: 'Enter' input: 'o/w'");
  const std::string outer =
      integers("two", "2") + node("o/j", "Enter", {"zero"}, frame("o")) + node("o/x", "Enter", {"x"}, frame("o")) +
      node("o/zero", "Enter", {"zero"}, frame("o", true)) + node("o/four", "Enter", {"four"}, frame("o", true)) +
      node("o/w", "Enter", {"w"}, frame("o", true)) + node("o/two", "Enter", {"two"}, frame("o", true)) +
      node("o/mj", "Merge", {"o/j", "o/nj"}) + node("o/mx", "Merge", {"o/x", "o/nx"}) +
      node("o/less", "Less", {"o/mj", "o/two"}) + node("o/cond", "LoopCond", {"o/less"}) +
      node("o/sj", "Switch", {"o/mj", "o/cond"}) + node("o/sx", "Switch", {"o/mx", "o/cond"}) +
      node("o/bj", "Identity", {"o/sj:1"}) + node("o/bx", "Identity", {"o/sx:1"}) +
      node("o/one", "Const", {"^o/bj"}, attribute("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }")) +
      node("o/next", "AddV2", {"o/bj", "o/one"}) + node("o/nj", "NextIteration", {"o/next"}) +
      node("o/nx", "NextIteration", {"l/ex"}) + node("o/ex", "Exit", {"o/sx"});
  const auto once = [](double x) { return ((x * 2 + 0) * 2 + 1) * 4 + 2 * 2 + 3; };
  EXPECT_THAT(numbers(run(inner + outer, {floats({2}, {1, 3})}, {.outputs = {"o/ex"}})[0]),
              ElementsAre(once(once(1)), once(once(3))));
  // a condition in the body: x * w in even iterations, x - 1 in others
  std::string mixed = counting;
  const std::string sum = "name: 'l/nx' op: 'NextIteration' input: 'l/sum'";
  mixed.replace(mixed.find(sum), sum.size(), "name: 'l/nx' op: 'NextIteration' input: 'l/c/Merge'");
  mixed +=
      node("l/two", "Const", {"^l/bi"}, attribute("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 2 }")) +
      node("l/rest", "FloorMod", {"l/bi", "l/two"}) +
      node("l/odd", "Cast", {"l/rest"}, attribute("DstT", "type: DT_BOOL")) +
      node("l/c/x", "Switch", {"l/bx", "l/odd"}) + node("l/c/w", "Switch", {"l/w", "l/odd"}) +
      node("l/c/one", "Switch", {"l/w", "l/odd"}) + node("l/c/mul", "Mul", {"l/c/x", "l/c/w"}) +
      node("l/c/sub", "Sub", {"l/c/x:1", "l/c/one:1"}) + node("l/c/Merge", "Merge", {"l/c/mul", "l/c/sub"});
  EXPECT_THAT(numbers(run(mixed, {floats({2}, {1, 3})}, {.outputs = {"l/ex"}})[0]),
              ElementsAre((1 * 2 - 2) * 2 - 2, (3 * 2 - 2) * 2 - 2));
}

// dynamic_rnn: arrays of steps, h = h * row, all h.
TEST(tensorflow_control_flow, arrays_of_a_loop) {
  const std::string array = attribute("dtype", "type: DT_FLOAT");
  const std::string text =
      placeholder("x", "3 2") + integers("zero", "0") + integers("n", "3") + integers("range", "0, 1, 2", "3") +
      constant("h0", "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1") +
      node("in", "TensorArrayV3", {"n"}, array) + node("fill", "TensorArrayScatterV3", {"in", "range", "x", "in:1"}) +
      node("out", "TensorArrayV3", {"n"}, array) + node("t", "Enter", {"zero"}, frame("f")) +
      node("h", "Enter", {"h0"}, frame("f")) + node("o", "Enter", {"out:1"}, frame("f")) +
      node("fn", "Enter", {"n"}, frame("f", true)) + node("fin", "Enter", {"in"}, frame("f", true)) +
      node("ffill", "Enter", {"fill"}, frame("f", true)) + node("fout", "Enter", {"out"}, frame("f", true)) +
      node("mt", "Merge", {"t", "nt"}) + node("mh", "Merge", {"h", "nh"}) + node("mo", "Merge", {"o", "no"}) +
      node("less", "Less", {"mt", "fn"}) + node("go", "LoopCond", {"less"}) + node("st", "Switch", {"mt", "go"}) +
      node("sh", "Switch", {"mh", "go"}) + node("so", "Switch", {"mo", "go"}) + node("bt", "Identity", {"st:1"}) +
      node("bh", "Identity", {"sh:1"}) + node("bo", "Identity", {"so:1"}) +
      node("row", "TensorArrayReadV3", {"fin", "bt", "ffill"}) + node("h2", "Mul", {"bh", "row"}) +
      node("write", "TensorArrayWriteV3", {"fout", "bt", "h2", "bo"}) +
      node("one", "Const", {"^bt"}, attribute("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }")) +
      node("t2", "AddV2", {"bt", "one"}) + node("nt", "NextIteration", {"t2"}) + node("nh", "NextIteration", {"h2"}) +
      node("no", "NextIteration", {"write"}) + node("xo", "Exit", {"so"}) + node("xh", "Exit", {"sh"}) +
      node("size", "TensorArraySizeV3", {"out", "xo"}) + node("y", "TensorArrayGatherV3", {"out", "range", "xo"});
  const auto made = run(text, {floats({3, 2}, {1, 2, 3, 4, 5, 6})}, {.outputs = {"y", "xh", "size"}});
  EXPECT_THAT(numbers(made[0]), ElementsAre(1, 2, 3, 8, 15, 48));
  EXPECT_THAT(numbers(made[1]), ElementsAre(15, 48));
  EXPECT_THAT(numbers(made[2]), ElementsAre(3));
}

TEST(tensorflow_control_flow, other_forms_are_refused_by_name) {
  const std::string x = placeholder("x", "2");
  EXPECT_THAT(fault(x + node("m", "Merge", {"x", "x"})),
              HasSubstr("node 'm' (Merge): no Switch tells its two values apart"));
  EXPECT_THAT(fault(x + node("e", "Enter", {"x"})), HasSubstr("node 'e' (Enter): attribute 'frame_name' is missing"));
  std::string open = counting;
  open.replace(open.find("op: 'LoopCond'"), 14, "op: 'Identity'");
  EXPECT_THAT(fault(open), HasSubstr("loop 'l' has no LoopCond"));
  const std::string odd = library(function("f", {"a"}, {{"b", "m:output:0"}}, node("m", "Merge", {"a", "a"})));
  EXPECT_EQ(fault(x + node("y", "Neg", {"x"}) + odd), "no error");
  EXPECT_THAT(fault(x + node("y", "f", {"x"}) + odd), HasSubstr("function 'f' cannot be called: node 'm' (Merge)"));
  EXPECT_THAT(fault(condition + node("m", "Merge", {"m", "c/mul"})),
              HasSubstr("node 'm' (Merge): a condition is in itself"));
}

TEST(tensorflow_control_flow, few_bytes_ask_for_little) {
  // conditions in conditions, the outermost first
  std::string deep = placeholder("x", "2");
  constexpr int n = 30000;
  for (int i = 0; i < n; ++i) {
    const std::string inner = i + 1 < n ? "m" + std::to_string(i + 1) : "x";
    deep += node("m" + std::to_string(i), "Merge", {inner, "x"});
  }
  EXPECT_THAT(fault(deep), HasSubstr("conditions are nested deeper than 256"));
  // each function is within what a graph may ask for, but not all of them
  std::string functions;
  for (const std::string f : {"f0", "f1", "f2", "f3"}) {
    std::string nodes = node("s", "Switch", {"x", "p"}) + node("a0", "Neg", {"s:output_true:0"});
    for (int i = 1; i < 1000; ++i)
      nodes += node("a" + std::to_string(i), "Neg", {"a" + std::to_string(i - 1) + ":y:0"});
    for (int i = 0; i < 100; ++i) nodes += node("m" + std::to_string(i), "Merge", {"s:output_false:0", "a999:y:0"});
    functions += function(f, {"x", "p"}, {{"y", "m0:output:0"}}, nodes);
  }
  const std::string x = placeholder("x", "2") + placeholder("p", "", "DT_BOOL");
  EXPECT_THAT(fault(x + node("y", "f0", {"x", "p"}) + node("z", "f3", {"x", "p"}) + library(functions)),
              HasSubstr("function 'f3' cannot be called: the control flow of the graph needs more steps"));
}

}  // namespace
}  // namespace kiln::tensorflow
