#include <fmt/format.h>

#include "json.hpp"
#include "options.hpp"

namespace kiln::driver {

namespace {

void print_page() {
  fmt::print(
      "# TensorFlow\n\n"
      "Written by `kiln ops --tf --markdown`; a test compares it with the importer's table.\n\n"
      "`kiln run`, `perf`, `show`, `export` and the other verbs take a **frozen graph**, a file with one GraphDef in "
      "binary "
      "or text form (`.pb`, `.pbtxt`), or the folder of a\n"
      "**SavedModel**, as they take an ONNX file; so do `kiln.read` of Python, `kiln_program_import` of C, and "
      "`parse_tf` "
      "of the MIGraphX-shaped interfaces. In C++:\n\n"
      "<!-- from examples/tensorflow.cpp [import] -->\n```cpp\n```\n\n"
      "- **Inputs** are the graph's placeholders, in its order; dims that it leaves open are symbols, `NAME.AXIS`, "
      "unless "
      "`--batch N`, `--dim` or `--shape` say what they are.\n"
      "- **Outputs** are what no node reads, or `--output-names NODE NODE:K`. Nodes whose operator holds `NoOp` or "
      "`Assert`, those whose name does and that\n"
      "  no other node reads, and inputs that only order (`^x`) are left out; the compile report says how many. What "
      "they alone read is no output.\n"
      "- **SavedModel**: the graph of tag `serve` (or `--tag`), and of it the signature `serving_default` (or "
      "`--signature`): inputs and outputs have the names of the signature,\n"
      "  by name. `saved_model.pb` and `.pbtxt` are read. An output that has the name of an input gets `:output` after "
      "it.\n"
      "- **Variables** are constants, read from the folder's checkpoint (`variables.index`, "
      "`variables.data-0000n-of-0000m`, checksums compared, slices joined), and only those that\n"
      "  the signature needs. Which tensor is whose is said by the assignments that restore them, by the checkpoint's "
      "objects, or by the variables' names. What writes a variable in a\n"
      "  run is refused, also where only order puts it before what is read, in whatever function. A signature with a "
      "sparse tensor is refused where it is the one\n"
      "  imported. An index with compressed blocks needs libsnappy when kiln is built; TensorFlow writes none.\n"
      "- **Functions** (`PartitionedCall`, `StatefulPartitionedCall`, nodes that name a function) are inlined; one "
      "that "
      "calls itself is refused.\n"
      "- **Control flow** becomes `branch` and `loop`: `If` and `While` of TensorFlow 2, and Switch, Merge, Enter, "
      "Exit, "
      "NextIteration and LoopCond of TensorFlow 1. A branch that is\n"
      "  known leaves no condition. A loop that only counts up to a limit has its number of iterations from that, and "
      "values that it does not change are read where they are, so\n"
      "  that weights stay constants.\n"
      "- **Branches**: `Case` becomes a nest of `branch`, halved each time; a number that no branch has chooses the "
      "last "
      "one, as in TensorFlow.\n"
      "- **Hash tables** with integers as keys and numbers as values are constants, which a lookup compares with: what "
      "the graph's initializers put in (`InitializeTable`,\n"
      "  `LookupTableImport`), in functions, too, where keys and values are constants. Tables of strings, of text "
      "files "
      "and those that a run changes are refused by name.\n"
      "- **Lists** (TensorList, TensorArray) are tensors of their items, which have one shape. A loop that sets one "
      "item "
      "each time, first to last, collects them; else the extents of the\n"
      "  items are known, or what the first item tells.\n"
      "- **Layout** is each node's `data_format`; `--nchw` says what nodes mean that have none. A node of NHWC stands "
      "between two transposes in the program, which layout\n"
      "  assignment takes out again.\n"
      "- **Training forms** (FusedBatchNorm with `is_training`) are refused by name. Operators that have no importer "
      "are "
      "reported all at once, with their nodes.\n\n"
      "Graphs of 171 of these operators, in their attributes, are compared with tfjs "
      "(`test/tensorflow/tfjs_cases.mjs`).\n\n"
      "## {} operators\n\n| operator | notes |\n|---|---|\n",
      tensorflow::operators().size());
  for (const tensorflow::operator_info& o : tensorflow::operators()) fmt::print("| {} | {} |\n", o.name, o.note);
}

void print_tflite_page() {
  fmt::print(R"(# TFLite

Written by `kiln ops --tflite --markdown`; a test compares it with the importer's table.

`kiln run`, `perf`, `show`, `verify`, `export` and the other verbs take a TFLite file (`.tflite`, by its content) as they take an
ONNX file; so do `kiln.read` of Python, `kiln_program_import` of C, and `tensorflow::read_model` of C++. `model.tflite` beside the
digits' ONNX model is one, in int8, which `model_tflite.py` writes:

    kiln run examples/models/digits/model.tflite --batch 1

- **Inputs and outputs** are those of the file's first subgraph, under the names of its tensors; with `--signature NAME`
  (`import_options::signature`) those of a signature, under its names (a tensor with two names is two outputs). Extents that `shape_signature` leaves open are symbols,
  `NAME.AXIS`, unless `--batch N`, `--dim` or `--shape` say what they are.
- **Quantized tensors** (int8, uint8, int16, int4; one scale, or one for each channel) keep their types at inputs and outputs. Within,
  an operator stands between a dequantization and a quantization, which kiln's integer kernels take together; operators that only
  move numbers take them as they are. Biases of int32 and int64, weights of float16 with DEQUANTIZE, and weights that alone are
  quantized are taken too; the latter compute in floats.
- **Activations** that an operator states, subgraphs (IF, WHILE, CALL, CALL_ONCE) and variables that an initializer assigns are
  imported.
- **States** (variable tensors) are of zeros when a run begins; the compile report names them. A variable that a run assigns is refused.
- **Refused by name**: sparse tensors, quantization in blocks, tensors in other files, LSTMs with projections, normalized gates or
  clipping, operators of TensorFlow itself (`Flex...`). Operators that have no importer are reported all at once, with their tensors.
- **Damaged files** are errors that say what is wrong; flatbuffers' verifier reads every file first.

All of these operators but BITCAST, BITWISE_XOR, CALL, Convolution2DTransposeBias and RIGHT_SHIFT are compared with TFLite's own
interpreter, a build for browsers that knows none of those (`test/tensorflow/tflite_cases.mjs`): floats within 2e-5 of the greatest, quantized results within one step.

## {} operators

| operator | notes |
|---|---|
)",
             tensorflow::tflite_operators().size());
  for (const tensorflow::operator_info& o : tensorflow::tflite_operators()) fmt::print("| {} | {} |\n", o.name, o.note);
}

int print_operators(const std::vector<tensorflow::operator_info>& all, listing how, void (*page)()) {
  if (how == listing::markdown) {
    page();
  } else if (how == listing::json) {
    json listed = json::array();
    for (const tensorflow::operator_info& o : all) listed.push_back({{"operator", o.name}, {"note", o.note}});
    print_json({{"operators", listed}});
  } else {
    for (const tensorflow::operator_info& o : all) fmt::print("{}\n", o.name);
    fmt::print("{} operators\n", all.size());
  }
  return 0;
}

}  // namespace

int ops_tensorflow(listing how) { return print_operators(tensorflow::operators(), how, print_page); }
int ops_tflite(listing how) { return print_operators(tensorflow::tflite_operators(), how, print_tflite_page); }

}  // namespace kiln::driver
