#include "kiln/interface/onnxruntime/provider.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "kiln/interface/named_target.hpp"
#include "kiln/interface/onnxruntime/compute.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/partition.hpp"
#include "kiln/quantize/precision.hpp"
#include "kiln/quantize/table.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::onnxruntime {

namespace {

provider& of(OrtEp* e) { return *static_cast<provider*>(e); }

// Options of the provider stand among a session's entries as "ep.<name in lower case>.<option>".
session_entries own_entries(const session_entries& all, std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string prefix = "ep." + name + ".";
  session_entries out;
  for (const auto& [key, value] : all)
    if (key.starts_with(prefix)) out.emplace_back(key.substr(prefix.size()), value);
  return out;
}

std::vector<std::string> names_of(const host& ort, const std::vector<const OrtValueInfo*>& values) {
  std::vector<std::string> out;
  for (const OrtValueInfo* v : values) out.push_back(v ? ort.get<const char*>(api::value_name, v) : "");
  return out;
}

// The target of the session's device.
std::string target_name(const provider_options& o) {
  if (o.target == "gpu" || o.target == "hip") return "hip:" + std::to_string(o.device_id);
  if (o.device_id != 0)
    raise(fault::of(errc::invalid_argument, "device_id of target " + o.target, "0",
                    static_cast<std::int64_t>(o.device_id)));
  return o.target;
}

// A partition in the precision that the session asks for; `said` gets what was done.
program in_precision(program p, const provider_options& o, std::vector<std::string>& said) {
  const auto take = [&](quantize::quantized_program made) {
    for (const text& line : made.note.remarks) said.push_back(line.str());
    return std::move(made.graph);
  };
  quantize::precision_options how;
  if (o.int8 || o.fp8) {
    how.to = o.int8 ? quantize::precision::int8 : quantize::precision::fp8;
    how.known = quantize::read_table(o.table_file());
    how.int8.activations = dtype::i8, how.int8.symmetric = true;
    p = take(quantize::with_precision(std::move(p), how));
    how.is_prepared = true;
  }
  if (o.fp16 || o.bf16) {
    how.to = o.fp16 ? quantize::precision::f16 : quantize::precision::bf16;
    p = take(quantize::with_precision(std::move(p), how));
  }
  return p;
}

}  // namespace

provider::provider(const factory& made_by, const OrtSessionOptions* session, const OrtLogger* logger)
    : OrtEp{}, factory_(made_by), ort_(made_by.runtime()), logger_(logger) {
  const session_entries entries = ort_.entries(session);
  options_ = read_provider_options(own_entries(entries, made_by.name()), [](const char* n) { return std::getenv(n); });
  contexts_ = read_context_settings(entries);
  compiling_.threads = options_.threads;
  compiling_.pool = options_.threads ? std::make_shared<thread_pool>(options_.threads) : nullptr;
  compiling_.tune = options_.tunes();
  compiling_.tuning_file = options_.tuning_file;
  compiling_.cache = options_.disable_caching ? "" : options_.cache_dir;
  compiling_.cache_limit = options_.cache_limit;
  target_ = named_target(target_name(options_), compiling_);
  compatibility_ = compatibility_info(*target_);
  ort_version_supported = api_version;
  GetName = [](const OrtEp* e) { return static_cast<const provider*>(e)->factory_.name().c_str(); };
  GetCapability = [](OrtEp* e, const OrtGraph* graph, OrtEpGraphSupportInfo* support) -> OrtStatus* {
    return of(e).ort_.guarded([&] { of(e).claim(graph, support); });
  };
  Compile = [](OrtEp* e, const OrtGraph** graphs, const OrtNode** fused, std::size_t count, OrtNodeComputeInfo** infos,
               OrtNode** contexts) -> OrtStatus* {
    return of(e).ort_.guarded([&] { of(e).compile_all(graphs, fused, count, infos, contexts); });
  };
  GetCompiledModelCompatibilityInfo = [](OrtEp* e, const OrtGraph*) { return of(e).compatibility_.c_str(); };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<node_compute*>(infos[i]);
  };
  IsConcurrentRunSupported = [](OrtEp*, bool* answer) -> OrtStatus* {
    *answer = true;
    return nullptr;
  };
}

bool provider::takes_parts_of_bodies(const OrtNode* node, const onnx::opsets& versions) const {
  const graph_copy alone = read_lone_node(ort_, node, versions);
  // ONNX Runtime infers the types of sequences anew, and then finds no operator set of the fused nodes in a body
  for (const auto* list : {&alone.model.main.inputs, &alone.model.main.outputs})
    for (const onnx::value_info& v : *list)
      if (v.kind != onnx::value_kind::tensor) return false;
  return !onnx::partition_model(alone.model, alone.values).left.empty();
}

void provider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  const graph_copy g = read_graph(ort_, graph, tensor_memory::shared);
  if (const auto* const around = ort_.get<const OrtNode*>(api::parent_node, graph))
    if (!takes_parts_of_bodies(around, g.model.versions)) return;
  onnx::partition_options how;
  how.least_nodes = options_.least_nodes;
  how.refuse = [](const onnx::node& n) { return std::string(is_context(n) ? "is of another provider" : ""); };
  onnx::model_partition made = onnx::partition_model(g.model, g.values, how);
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (is_own_context(g.model.main.nodes[i])) made.parts.push_back({i});
  std::erase_if(made.left, [&](const onnx::node_fault& f) { return is_own_context(g.model.main.nodes[f.node]); });
  OrtNodeFusionOptions fusing{};
  fusing.ort_version_supported = api_version;
  fusing.drop_constant_initializers = true;
  std::size_t claimed = 0;
  for (const std::vector<std::size_t>& part : made.parts) {
    std::vector<const OrtNode*> nodes;
    for (const std::size_t i : part) nodes.push_back(g.nodes[i]);
    ort_.call_ep(ep_api::add_nodes_to_fuse, support, nodes.data(), nodes.size(), &fusing);
    claimed += nodes.size();
  }
  for (const onnx::node_fault& f : made.left) {
    const onnx::node& n = g.model.main.nodes[f.node];
    ort_.log(logger_, severity::verbose, "kiln leaves node '" + n.name + "' (" + n.op_type + "): " + f.why);
  }
  ort_.log(logger_, claimed == g.nodes.size() ? severity::info : severity::warning,
           "kiln: " + std::to_string(claimed) + " of " + std::to_string(g.nodes.size()) + " nodes in " +
               std::to_string(made.parts.size()) + " partitions");
}

void provider::compile_all(const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
                           OrtNodeComputeInfo** infos, OrtNode** contexts) {
  std::size_t made = 0;
  try {
    for (; made < count; ++made)
      infos[made] = compile_one(graphs[made], fused[made], contexts_.enable && contexts ? &contexts[made] : nullptr);
  } catch (...) {
    for (std::size_t i = 0; i < made; ++i) delete static_cast<node_compute*>(infos[i]);
    throw;
  }
}

OrtNodeComputeInfo* provider::compile_one(const OrtGraph* graph, const OrtNode* fused, OrtNode** context) {
  graph_copy g = read_graph(ort_, graph, tensor_memory::owned);
  const std::string name = ort_.get<const char*>(api::node_name, fused);
  const std::string path = ort_.get<const char*>(api::graph_model_path, graph);
  const auto values = [&](auto count, auto items) {
    return names_of(ort_, ort_.list<const OrtValueInfo*>(count, items, fused));
  };
  const node_ports outside{values(api::node_input_count, api::node_inputs),
                           values(api::node_output_count, api::node_outputs)};
  const onnx::graph& main = g.model.main;
  if (main.nodes.size() == 1 && is_own_context(main.nodes[0])) {
    const node_ports own{main.nodes[0].inputs, main.nodes[0].outputs};
    return new node_compute(ort_, load_context(main.nodes[0], path, *target_, compiling_), own, outside);
  }
  executable exe = compile_graph(std::move(g), name);
  node_ports own;
  for (const port& p : exe.inputs()) own.inputs.push_back(p.name);
  for (const port& p : exe.outputs()) own.outputs.push_back(p.name);
  if (context) *context = make_context(ort_, contexts_, path, name, own, exe, *target_);
  return new node_compute(ort_, std::move(exe), own, outside);
}

executable provider::compile_graph(graph_copy g, const std::string& name) const {
  onnx::imported read = onnx::import_model(std::move(g.model));
  if (options_.dump_model_ops) onnx::write_model(name + ".onnx", read.graph);
  compile_options compiling = compiling_;
  compiling.remarks = std::move(read.remarks);
  program p = in_precision(std::move(read.graph), options_, compiling.remarks);
  for (const std::string& line : compiling.remarks) ort_.log(logger_, severity::verbose, "kiln, " + name + ": " + line);
  return compile(std::move(p), *target_, compiling);
}

}  // namespace kiln::onnxruntime
