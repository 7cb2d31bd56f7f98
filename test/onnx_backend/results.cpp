#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/hip/compile.hpp"
#include "kiln/backend/hip/hip_target.hpp"
#include "kiln/onnx/impl/file/read_model.hpp"
#include "kiln/onnx/impl/import/importer.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/runtime/executable.hpp"
#include "onnx_backend/uncovered.hpp"

// docs/onnx_results.tsv, which the page of operators and `kiln ops --onnx` tell, is what is measured here. ctest runs
// each case and fails where one does otherwise than excluded.tsv says, so that list says which of them pass.
namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using operator_name = std::pair<std::string, std::string>;  // domain, name

// A model, what its import must be told, and the number of its nodes; whether it was made to ask for types.
struct sample {
  onnx::model source;
  onnx::import_options options;
  std::size_t nodes = 0;
  bool asks_types = false;
};

struct operator_results {
  std::size_t cases = 0, passed = 0, measured = 0, on_eigen = 0, on_hip = 0;
  std::set<dtype> types;
  std::vector<std::shared_ptr<const sample>> samples;
};

void collect(const std::vector<onnx::node>& nodes, std::set<operator_name>& names, std::size_t& count) {
  count += nodes.size();
  for (const onnx::node& n : nodes) {
    names.emplace(n.domain.empty() ? "ai.onnx" : n.domain, n.op_type);
    for (const onnx::attribute& a : n.attributes)
      for (const onnx::graph& body : a.graphs) collect(body.nodes, names, count);
  }
}

std::set<operator_name> operators_of(sample& s) {
  std::set<operator_name> names;
  collect(s.source.main.nodes, names, s.nodes);
  for (const onnx::function& f : s.source.functions) collect(f.nodes, names, s.nodes);
  return names;
}

std::set<std::string> excluded_cases() {
  std::set<std::string> names;
  std::ifstream in(KILN_SOURCE_DIR "/test/onnx/excluded.tsv");
  for (std::string line; std::getline(in, line);) names.insert(line.substr(0, line.find('\t')));
  return names;
}

// Makes no kernels, but counts which instructions the target has none for.
class asking_target final : public target {
 public:
  explicit asking_target(const target& asked) : asked_(asked) {}
  std::string_view name() const override { return asked_.name(); }
  target_passes passes() const override { return asked_.passes(); }
  std::unique_ptr<kernel> make_kernel(const kernel_request& request) const override {
    refused += !asked_.make_kernel(request);
    return nullptr;
  }
  mutable std::size_t refused = 0;

 private:
  const target& asked_;
};

program import(const onnx::model& m, const onnx::import_options& options) {
  return onnx::importer(m, options, "").run();
}

bool imports(const onnx::model& m, const onnx::import_options& options) {
  try {
    import(m, options);
    return true;
  } catch (const error&) {
    return false;
  }
}

// Gives the case's scalars and lists, where it needs them to be imported.
void add_values(sample& s, const fs::path& folder) {
  if (imports(s.source, s.options)) return;
  for (std::size_t k = 0; k < s.source.main.inputs.size(); ++k) {
    const onnx::value_info& i = s.source.main.inputs[k];
    const auto file = folder / "test_data_set_0" / fmt::format("input_{}.pb", k);
    if (i.kind == onnx::value_kind::tensor && i.type != onnx::element::string && i.dims.size() < 2)
      s.options.values.emplace_back(i.name, onnx::read_value(file, dtype::i64).value.to_literal());
  }
}

// Whether the target has a kernel for everything in the program; of a device, whether nothing is left to the host.
bool serves(const target& asked, const program& p) {
  const asking_target asking(asked);
  const executable made = compile(p, asking);
  const auto& steps = made.report().steps;
  const auto on_host = [](const step_info& s) { return s.kernel.ends_with("(host)"); };
  return asking.refused == 0 && !(asked.has_device() && std::any_of(steps.begin(), steps.end(), on_host));
}

// The input that an operator's data are: the first of a node's that is no scalar, no condition and no list of indices
// beside others.
std::size_t data_input(const sample& s) {
  const auto& inputs = s.source.main.inputs;
  const auto place = [&](std::string_view name) {
    const auto named = [&](const onnx::value_info& i) { return i.name == name; };
    return static_cast<std::size_t>(std::find_if(inputs.begin(), inputs.end(), named) - inputs.begin());
  };
  if (s.asks_types) return place("x");
  const auto indices = [](onnx::element t) { return t == onnx::element::i64 || t == onnx::element::i32; };
  const auto others = [&](onnx::element t) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const onnx::value_info& i) {
      return i.kind == onnx::value_kind::tensor && i.type != t && i.type != onnx::element::boolean;
    });
  };
  std::vector<std::size_t> order;
  if (s.nodes == 1)
    for (const std::string& name : s.source.main.nodes[0].inputs) order.push_back(place(name));
  for (std::size_t k = 0; k < inputs.size(); ++k) order.push_back(k);
  std::erase_if(order, [&](std::size_t k) { return k >= inputs.size() || inputs[k].kind != onnx::value_kind::tensor; });
  for (const std::size_t k : order)
    if (const onnx::value_info& i = inputs[k];
        (!i.has_rank || !i.dims.empty()) && i.type != onnx::element::boolean && !(indices(i.type) && others(i.type)))
      return k;
  return order.empty() ? inputs.size() : order[0];
}

// Element types with which the model imports when they replace the data's: that input's alone, or those of all inputs
// of its type.
std::set<dtype> types_of(const sample& s) {
  std::set<dtype> accepted;
  const std::size_t data = data_input(s);
  onnx::model m = s.source;
  if (data == m.main.inputs.size()) return accepted;
  const auto declared = m.main.inputs;
  for (std::size_t t = 0; t < all_dtypes; ++t) {
    const onnx::element tried = onnx::to_element(static_cast<dtype>(t));
    if (tried == onnx::element::undefined) continue;
    for (auto& i : m.main.inputs)
      if (i.type == declared[data].type) i.type = tried;
    bool works = imports(m, s.options);
    m.main.inputs = declared;
    m.main.inputs[data].type = tried;
    works = works || imports(m, s.options);
    m.main.inputs = declared;
    if (works) accepted.insert(static_cast<dtype>(t));
  }
  return accepted;
}

std::unique_ptr<const target> absent_gpu() {
  const auto where = hip::architecture::named("gfx90a");
  return hip::why_not_compiled(where).empty() ? std::make_unique<hip_target>(hip_options{.architecture = "gfx90a"})
                                              : nullptr;
}

void measure(operator_results& r, const target* gpu) {
  constexpr std::size_t enough = 8;
  std::stable_sort(r.samples.begin(), r.samples.end(), [](const auto& a, const auto& b) {
    return std::pair(!a->asks_types, a->nodes) < std::pair(!b->asks_types, b->nodes);
  });
  r.samples.resize(std::min(r.samples.size(), enough));
  const eigen_target eigen;
  for (const auto& s : r.samples) {
    try {
      const program p = import(s->source, s->options);
      if (s->nodes == 1 || s->asks_types || r.samples[0]->nodes > 1) r.types.merge(types_of(*s));
      ++r.measured;
      r.on_eigen += serves(eigen, p);
      r.on_hip += gpu && serves(*gpu, p);
    } catch (const error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

std::string share(std::size_t some, std::size_t all) {
  return all == 0 ? "-" : some == all ? "all" : some ? "some" : "none";
}

// Operators whose data are inputs of no node alone: bodies over a tensor x, and what an optional holds.
void add_bodies(std::map<operator_name, operator_results>& found) {
  const message keep = test::node("Identity", {"x"}, {"kept"}), kept = test::value_info("kept");
  const message body = test::graph({{keep}, {}, {}, {kept}});
  const message step =
      test::graph({{test::node("Identity", {"on"}, {"still"}), test::node("Identity", {"v"}, {"kept"})},
                   {},
                   {test::value_info("i", 7, {}), test::value_info("on", 9, {}), test::value_info("v")},
                   {test::value_info("still"), kept}});
  const message x = test::value_info("x", 1, {2, 3}), y = test::value_info("y");
  const auto add = [&](const std::string& op, const std::vector<message>& nodes, std::vector<message> inputs) {
    inputs.push_back(x);
    const message m = test::model(test::graph({nodes, {}, inputs, {y}}), {test::opset(20)});
    auto s = std::make_shared<sample>();
    s->source = onnx::read_messages(m.bytes(), ".", {});
    operators_of(*s);
    s->asks_types = true;
    found[{"ai.onnx", op}].samples.push_back(s);
  };
  add("If",
      {test::node("If", {"c"}, {"y"}, {test::graph_attr("then_branch", body), test::graph_attr("else_branch", body)})},
      {test::value_info("c", 9, {})});
  add("Loop", {test::node("Loop", {"n", "c", "x"}, {"y"}, {test::graph_attr("body", step)})},
      {test::value_info("n", 7, {}), test::value_info("c", 9, {})});
  const message wrap = test::node("Optional", {"x"}, {"o"});
  add("Optional", {wrap, test::node("OptionalGetElement", {"o"}, {"y"})}, {});
  add("OptionalGetElement", {wrap, test::node("OptionalGetElement", {"o"}, {"y"})}, {});
  add("OptionalHasElement", {wrap, test::node("OptionalHasElement", {"o"}, {"y"})}, {});
  add("SequenceAt",
      {test::node("SequenceConstruct", {"x"}, {"s"}), test::node("Size", {"x"}, {"n"}),
       test::node("Sub", {"n", "n"}, {"i"}), test::node("SequenceAt", {"s", "i"}, {"y"})},
      {});
}

std::map<operator_name, operator_results> all_results(const target* gpu) {
  std::map<operator_name, operator_results> found;
  const auto excluded = excluded_cases();
  const std::pair<std::string, std::string> places[] = {{"1.12", "/usr/share/libonnx-testdata/data/node"},
                                                        {"1.12", "/usr/share/libonnx-testdata/data/simple"},
                                                        {"1.12", "/usr/share/libonnx-testdata/data/pytorch-converted"},
                                                        {"1.12", "/usr/share/libonnx-testdata/data/pytorch-operator"},
                                                        {"1.23", KILN_BINARY_DIR "/onnx-1.23/node"}};
  for (const auto& [version, place] : places) {
    std::vector<fs::path> folders;
    for (const auto& f : fs::directory_iterator(place))
      if (fs::exists(f.path() / "model.onnx")) folders.push_back(f.path());
    std::sort(folders.begin(), folders.end());
    for (const fs::path& folder : folders) {
      const std::string bytes = peer::read_bytes(folder / "model.onnx"), name = folder.filename();
      auto s = std::make_shared<sample>();
      s->source = onnx::read_messages(std::as_bytes(std::span(bytes)), folder, {});
      const bool passes = !excluded.contains(name) && !excluded.contains(version + "/" + name);
      add_values(*s, folder);
      const bool known = passes || imports(s->source, s->options);
      for (const operator_name& o : operators_of(*s)) {
        operator_results& r = found[o];
        ++r.cases;
        r.passed += passes;
        if (known) r.samples.push_back(s);
      }
    }
  }
  for (const auto& table :
       {peer::attention_cases(), peer::quantized_cases(), peer::expert_cases(), peer::layer_cases(),
        peer::composed_cases(), peer::exact_cases(), peer::ml_cases(), peer::uncovered_cases(), peer::language_cases()})
    for (const peer::one_node& n : table) {
      std::map<std::string, argument> given;
      const message m = peer::model_of(n, given);
      auto s = std::make_shared<sample>();
      s->source = onnx::read_messages(m.bytes(), ".", {});
      for (const operator_name& o : operators_of(*s)) found[o].samples.push_back(s);
    }
  add_bodies(found);
  for (auto& [name, r] : found) {
    SCOPED_TRACE(name.second);
    measure(r, gpu);
  }
  return found;
}

TEST(onnx_results, are_what_runs) {
  if (!fs::exists("/usr/share/libonnx-testdata/data")) GTEST_SKIP() << "ONNX's test data is not here";
  const auto gpu = absent_gpu();
  std::string measured = "domain\toperator\tpassed\tcases\teigen\thip\ttypes\n";
  for (const auto& [name, r] : all_results(gpu.get())) {
    std::vector<std::string_view> types;
    for (const dtype t : r.types) types.push_back(to_string(t));
    measured += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", name.first, name.second, r.passed, r.cases,
                            share(r.on_eigen, r.measured), share(r.on_hip, r.measured), fmt::join(types, " "));
  }
  if (!gpu) GTEST_SKIP() << "hiprtc does not compile for gfx90a here: what a GPU serves cannot be measured";
  const std::string mine = KILN_BINARY_DIR "/onnx_results.tsv";
  std::ofstream(mine) << measured;
  EXPECT_EQ(peer::read_bytes(KILN_SOURCE_DIR "/docs/onnx_results.tsv"), measured)
      << "the results changed: if that is meant, copy " << mine << " over docs/onnx_results.tsv";
}

}  // namespace
}  // namespace kiln::test
