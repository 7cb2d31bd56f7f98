// fuzz_tensorflow_import CASES SEED: damages graphs of TensorFlow (binary and text, with functions and control flow)
// and folders of SavedModels (graph, table of variables, their data), and imports them: each is a program or an error
// of kiln's. Tables get checksums that fit again, so that what is behind them is reached. Exits with 1 at the first
// case that ends otherwise, whose damaged file it leaves in the folder of temporary files.
#include <fmt/format.h>
#include <unistd.h>

#include <random>

#include "tensorflow/bundle_writer.hpp"

namespace {

using namespace kiln;
using namespace kiln::tensorflow;
using generator = std::mt19937_64;

std::size_t below(generator& random, std::size_t n) { return n ? static_cast<std::size_t>(random() % n) : 0; }

std::string damaged(std::string bytes, generator& random) {
  constexpr unsigned char telling[] = {0, 1, 2, 3, 4, 7, 8, 10, 18, 26, 34, 42, 63, 64, 127, 128, 192, 255};
  if (below(random, 8) == 0) return bytes.substr(0, below(random, bytes.size()));
  for (std::size_t n = 1 + below(random, 4); n != 0 && !bytes.empty(); --n) {
    const std::size_t at = below(random, bytes.size());
    switch (below(random, 6)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8))); break;
      case 2: bytes.erase(at, 1 + below(random, 8)); break;
      case 3: bytes.insert(at, bytes.substr(below(random, bytes.size()), 1 + below(random, 32))); break;
      default: bytes[at] = static_cast<char>(telling[below(random, sizeof telling)]);
    }
  }
  return bytes;
}

// A loop over a list in a function, and a condition and a frame of TensorFlow 1.
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
      function("calls", {"a"}, {{"b", "neg:y:0"}}, node("neg", "Neg", {"a"}));
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
         node("y", "AddV2", {"m", "ex"}) + node("z", "AddV2", {"loop:2", "y"}) + library(functions);
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
    std::map<std::string, std::size_t> counts;
    for (std::size_t i = 0; i < cases; ++i) {
      generator random(seed * 1'000'003 + i);
      const std::string outcome = run_case(i % 6, random);
      ++counts[outcome];
      if (outcome != "a program" && outcome != "an error") {
        const std::string path = (std::filesystem::temp_directory_path() / fmt::format("kiln_fuzz_{}_{}", seed, i));
        std::ofstream(path, std::ios::binary) << last_;
        fmt::print("FAILED case {} of seed {}, in {}: {}\n", i, seed, path, outcome);
        return false;
      }
    }
    for (const auto& [what, count] : counts) fmt::print("{:7} {}\n", count, what);
    return true;
  }

 private:
  std::string run_case(std::size_t kind, generator& random) {
    import_options how;
    how.common.max_nodes = 512;
    how.common.max_nesting = 16;
    how.common.max_bytes = 1 << 24;
    try {
      if (kind == 0) parse_model(std::as_bytes(std::span(last_ = damaged(binary_, random))), how);
      if (kind == 1) parse_model(std::as_bytes(std::span(last_ = damaged(text_, random))), how);
      if (kind == 2) parse_model(std::as_bytes(std::span(last_ = damaged(saved_text_, random))), how);
      if (kind < 3) return "a program";
      bundle_writer variables = variables_;
      std::string graph = saved_;
      if (kind == 3) last_ = graph = damaged(saved_, random);
      if (kind == 4)
        for (auto& [name, entry] : variables.entries)
          if (below(random, 2)) entry = damaged(entry, random);
      if (kind == 4) last_ = table_of(variables.entries);
      variables.write(folder_.path());
      folder_.write("saved_model.pb", graph);
      if (kind == 5) {
        const std::string index = table_of(variables.entries, below(random, 2) == 1, 1 + below(random, 4));
        folder_.write("variables/variables.index", last_ = damaged(index, random));
      }
      read_model(folder_.path().string(), how);
      return "a program";
    } catch (const error& e) {
      return e.code() == errc::internal ? std::string("an internal error: ") + e.what() : "an error";
    } catch (const std::exception& e) {
      return std::string("an exception that is not kiln's: ") + e.what();
    }
  }

  test::temporary_folder folder_;
  bundle_writer variables_ = dense_variables();
  std::string text_, binary_, saved_, saved_text_, last_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print("usage: fuzz_tensorflow_import CASES SEED\n");
    return 2;
  }
  return fuzzer().run(std::stoull(argv[1]), std::stoull(argv[2])) ? 0 : 1;
}
