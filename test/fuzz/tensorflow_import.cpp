// fuzz_tensorflow_import CASES SEED: damages graphs of TensorFlow (binary and text, with functions and control flow)
// and folders of SavedModels (graph, table of variables, their data), and imports them: each is a program or an error
// of kiln's. Tables get checksums that fit again, so that what is behind them is reached. Exits with 1 at the first
// case that ends otherwise, whose damaged file it leaves in the folder of temporary files.
#include "fuzz/damage.hpp"
#include "tensorflow/bundle_writer.hpp"

namespace {

using namespace kiln;
using namespace kiln::tensorflow;
using namespace kiln::fuzz;

// A loop over a list in a function, one of several functions, a table that a function fills, and a condition and a
// frame of TensorFlow 1.
std::string graph_text() {
  const std::string one = "dtype: DT_INT32 tensor_shape {} int_val: 1";
  const auto frame = attribute("frame_name", "s: 'f'");
  const std::string functions =
      function("cond", {"t", "n", "o", "x"}, {{"go", "less:z:0"}}, node("less", "Less", {"t", "n"})) +
      function("body", {"t", "n", "o", "x"},
               {{"t_", "next:z:0"}, {"n_", "n"}, {"o_", "set:output_handle:0"}, {"x_", "x"}},
               constant("one", one) + node("next", "AddV2", {"t", "one:output:0"}) +
                   node("row", "TensorListGetItem", {"x", "t", "t"}) +
                   node("set", "TensorListSetItem", {"o", "t", "row:item:0"})) +
      function("put", {"t", "k", "v"}, {{"d", "done:output:0"}},
               constant("done", one) + node("import", "LookupTableImportV2", {"t", "k", "v"})) +
      function("calls", {"a"}, {{"b", "neg:y:0"}}, node("neg", "Neg", {"a"}));
  const std::string branches = " func { name: 'calls' } func { name: 'calls' } func { name: 'calls' }";
  return placeholder("p", "", "DT_BOOL") + placeholder("x", "3 2") + integers("zero", "0") + integers("n", "3") +
         integers("shape", "-1", "1") +
         node("out", "TensorListReserve", {"shape", "n"}, attribute("element_dtype", "type: DT_FLOAT")) +
         node("loop", "While", {"zero", "n", "out", "x"},
              function_attribute("cond", "cond") + function_attribute("body", "body")) +
         node("s", "Switch", {"x", "p"}) + node("c", "calls", {"s:1"}) + node("m", "Merge", {"s", "c"}) +
         node("e", "Enter", {"x"}, frame) + node("ei", "Enter", {"zero"}, frame) + node("em", "Merge", {"e", "en"}) +
         node("im", "Merge", {"ei", "in"}) + constant("four", "dtype: DT_INT32 tensor_shape {} int_val: 4") +
         node("el", "Less", {"im", "four"}) + node("lc", "LoopCond", {"el"}) + node("es", "Switch", {"em", "lc"}) +
         node("is", "Switch", {"im", "lc"}) + constant("step", one) + node("i2", "AddV2", {"is:1", "step"}) +
         node("in", "NextIteration", {"i2"}) + node("en", "NextIteration", {"es:1"}) + node("ex", "Exit", {"es"}) +
         node("y", "AddV2", {"m", "ex"}) + placeholder("q", "", "DT_INT32") + integers("keys", "4, 2", "2") +
         node("case", "Case", {"q", "y"}, attribute("branches", "list {" + branches + " }")) +
         node("table", "HashTableV2", {},
              attribute("key_dtype", "type: DT_INT32") + attribute("value_dtype", "type: DT_INT32")) +
         node("fill", "StatefulPartitionedCall", {"table", "keys", "keys"}, function_attribute("f", "put")) +
         node("found", "LookupTableFindV2", {"table", "q", "zero"}) + node("z", "AddV2", {"loop:2", "y"}) +
         library(functions);
}

class fuzzer {
 public:
  fuzzer() : text_(graph_text()), binary_(binary_of_text(text_)) {
    const std::string graphs = meta_graph("serve", dense_graph(), dense_signature());
    saved_ = saved_model_bytes(graphs);
    saved_text_ = saved_model_text(graphs);
    variables_.write(folder_.path());
    folder_.write("saved_model.pb", saved_);
    parse_model(std::as_bytes(std::span(binary_)));
    read_model(folder_.path().string());
  }

  bool run(std::size_t cases, std::uint64_t seed) {
    return run_cases(cases, seed,
                     [&](std::size_t i, generator& random, std::string& last) { import(i % 6, random, last); });
  }

 private:
  void import(std::size_t kind, generator& random, std::string& last) {
    import_options how;
    how.common.max_nodes = 512;
    how.common.max_nesting = 16;
    how.common.max_bytes = 1 << 24;
    const std::string* const whole[] = {&binary_, &text_, &saved_text_};
    if (kind < 3) {
      last = damaged(*whole[kind], random);
      parse_model(std::as_bytes(std::span(last)), how);
      return;
    }
    bundle_writer variables = variables_;
    std::string graph = saved_;
    if (kind == 3) last = graph = damaged(saved_, random);
    if (kind == 4)
      for (auto& [name, entry] : variables.entries)
        if (below(random, 2)) entry = damaged(entry, random);
    if (kind == 4) last = table_of(variables.entries);
    variables.write(folder_.path());
    folder_.write("saved_model.pb", graph);
    if (kind == 5) {
      const std::string index = table_of(variables.entries, below(random, 2) == 1, 1 + below(random, 4));
      folder_.write("variables/variables.index", last = damaged(index, random));
    }
    read_model(folder_.path().string(), how);
  }

  test::temporary_folder folder_;
  bundle_writer variables_ = dense_variables();
  std::string text_, binary_, saved_, saved_text_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print("usage: fuzz_tensorflow_import CASES SEED\n");
    return 2;
  }
  return fuzzer().run(std::stoull(argv[1]), std::stoull(argv[2])) ? 0 : 1;
}
