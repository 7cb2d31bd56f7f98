#include "kiln/interface/onnxruntime/provider.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "kiln/core/stopwatch.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/interface/onnxruntime/session_settings.hpp"
#include "kiln/onnx/batch.hpp"
#include "kiln/onnx/model_file.hpp"
#include "kiln/onnx/partition.hpp"

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

bool has_bodies(const onnx::node& n) {
  return std::any_of(n.attributes.begin(), n.attributes.end(),
                     [](const onnx::attribute& a) { return !a.graphs.empty(); });
}

node_ports ports_of(const executable& exe) {
  node_ports out;
  for (const port& p : exe.inputs()) out.inputs.push_back(p.name);
  for (const port& p : exe.outputs()) out.outputs.push_back(p.name);
  return out;
}

}  // namespace

provider_options provider::read_options(std::span<const OrtHardwareDevice* const> devices,
                                        const session_entries& entries) {
  std::vector<const gpu*> gpus;
  for (const OrtHardwareDevice* const d : devices)
    if (const gpu* const g = factory_.gpu_of(d)) gpus.push_back(g);
  provider_options defaults;
  // the processor among the devices is what a program knows of that has never chosen a GPU
  if (!gpus.empty() && gpus.size() == devices.size())
    defaults.target = "gpu", defaults.device_id = static_cast<unsigned>(gpus.front()->index());
  provider_options out = read_provider_options(
      own_entries(entries, factory_.name()), [](const char* n) { return std::getenv(n); }, defaults);
  if (gpus.empty()) return out;
  takes_gpus_ = true;
  if (out.uses_gpu()) {
    for (const gpu* const g : gpus)
      if (g->index() == static_cast<int>(out.device_id)) gpu_ = g;
    if (!gpu_)
      raise(fault::of(errc::invalid_argument, "device_id is one of the session's GPUs: the first of them",
                      std::int64_t{gpus.front()->index()}, std::int64_t{out.device_id}));
  }
  return out;
}

provider::provider(const factory& made_by, std::span<const OrtHardwareDevice* const> devices,
                   const OrtSessionOptions* session, const OrtLogger* logger)
    : OrtEp{}, factory_(made_by), ort_(made_by.runtime()), logger_(logger) {
  const session_entries entries = ort_.entries(session);
  options_ = read_options(devices, entries);
  contexts_ = read_context_settings(entries);
  compiling_ = compile_options_of(options_);
  memory_ = memory_of(options_);
  target_ = gpu_ ? gpu_->make_target(compiling_) : named_target(target_name(options_), compiling_);
  compatibility_ = compatibility_info(*target_);
  store_ = std::make_unique<program_store>(
      store_of(options_), *target_, compiling_,
      [this](bool is_warning, const std::string& line) { log(is_warning ? severity::warning : severity::info, line); });
  if (!options_.model_arch.empty())
    log(severity::warning, "model_arch '" + options_.model_arch + "' changes nothing: kiln goes by the graph");
  for (const std::string& line : table_warnings(options_)) log(severity::warning, line);
  if (contexts_.enable && !options_.batches().empty())
    log(severity::warning, "contexts hold a partition's program for any batch: none is compiled for one batch alone");
  ort_version_supported = ort_.version();
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
  CreateProfiler = [](OrtEp* e, OrtEpProfilerImpl** made) -> OrtStatus* {
    return of(e).ort_.guarded([&] { *made = make_profiler(of(e).ort_, of(e).trace_); });
  };
  if (takes_gpus_) {
    GetDefaultMemoryDevice = [](const OrtEp* e, const OrtMemoryDevice** where) -> OrtStatus* {
      const auto& own = *static_cast<const provider*>(e);
      return own.ort_.guarded(
          [&] { *where = own.gpu_ ? own.gpu_->memory_device() : own.factory_.host_memory_device(); });
    };
    CreateAllocator = [](OrtEp* e, const OrtMemoryInfo* memory, OrtAllocator** made) -> OrtStatus* {
      return of(e).ort_.guarded([&] { *made = of(e).make_allocator(memory).release(); });
    };
    GetKernelRegistry = [](OrtEp* e, const OrtKernelRegistry** kernels) -> OrtStatus* {
      *kernels = of(e).gpu_ ? of(e).factory_.copy_kernels_of_gpus() : nullptr;
      return nullptr;
    };
  }
  IsConcurrentRunSupported = [](OrtEp*, bool* answer) -> OrtStatus* {
    *answer = true;
    return nullptr;
  };
}

std::unique_ptr<gpu_allocator> provider::make_allocator(const OrtMemoryInfo* memory) const {
  bool on_host = false;
  const gpu* const g = factory_.gpu_of(memory, on_host);
  if (!g) return nullptr;
  gpu_memory_settings how;
  if (!on_host) how.limit = memory_limit(options_);
  how.powers_of_two = options_.arena == arena_growth::next_power_of_two;
  return std::make_unique<gpu_allocator>(*g, on_host, how);
}

run_settings provider::running() const {
  run_settings out{memory_, options_.user_stream, trace_};
  out.where = target_->get_device().get();
  return out;
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
  const stopwatch since;
  const graph_copy g = read_graph(ort_, graph, tensor_memory::shared);
  if (const auto* const around = ort_.get<const OrtNode*>(api::parent_node, graph)) {
    if (!takes_parts_of_bodies(around, g.model.versions)) return;
  } else {
    dump(g.model, g.model.main.name);
  }
  onnx::partition_options how;
  how.least_nodes = options_.least_nodes;
  how.refuse = [this](const onnx::node& n) -> std::string {
    if (is_context(n)) return "is of another provider";
    if (!options_.cpu_control_flow && has_bodies(n)) return "is control flow, and cpu_control_flow is 0";
    return "";
  };
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
    log(options_.dump_model_ops ? severity::warning : severity::verbose,
        "leaves node '" + n.name + "' (" + n.op_type + "): " + f.why);
  }
  log(claimed == g.nodes.size() ? severity::info : severity::warning,
      std::to_string(claimed) + " of " + std::to_string(g.nodes.size()) + " nodes in " +
          std::to_string(made.parts.size()) + " partitions");
  log(severity::verbose, g.model.main.name + ": partitioned in " + since.str());
}

void provider::compile_all(const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
                           OrtNodeComputeInfo** infos, OrtNode** contexts) {
  const memory_scope memory(memory_, true);
  std::size_t made = 0;
  try {
    for (; made < count; ++made)
      infos[made] = compile_one(graphs[made], fused[made], contexts_.enable && contexts ? &contexts[made] : nullptr);
    store_->write();
  } catch (...) {
    // ONNX Runtime releases what it finds
    for (std::size_t i = 0; i < made; ++i) delete static_cast<node_compute*>(std::exchange(infos[i], nullptr));
    throw;
  }
}

// A fused node and its graph. The callback's graph dies with it; a copy of the model serves programs that are made
// later.
struct provider::partition {
  std::string name;
  const OrtGraph* graph;
  onnx::fingerprint content;
  node_ports outside;
  std::optional<onnx::open_batch> open;
  std::shared_ptr<const onnx::model> copy;
};

OrtNodeComputeInfo* provider::compile_one(const OrtGraph* graph, const OrtNode* fused, OrtNode** context) {
  const std::string path = ort_.get<const char*>(api::graph_model_path, graph);
  const auto values = [&](auto count, auto items) {
    return names_of(ort_, ort_.list<const OrtValueInfo*>(count, items, fused));
  };
  partition p;
  p.name = ort_.get<const char*>(api::node_name, fused), p.graph = graph;
  p.outside = {values(api::node_input_count, api::node_inputs), values(api::node_output_count, api::node_outputs)};
  {
    const stopwatch since;
    // weights stay ONNX Runtime's until it is known that none of the files has the program
    const graph_copy g = read_graph(ort_, graph, tensor_memory::shared);
    const onnx::graph& main = g.model.main;
    if (main.nodes.size() == 1 && is_own_context(main.nodes[0])) {
      const node_ports own{main.nodes[0].inputs, main.nodes[0].outputs};
      executable exe = load_context(main.nodes[0], path, *target_, compiling_);
      return new node_compute(ort_, std::make_unique<node_runner>(ort_, running(), std::move(exe), own, p.outside));
    }
    p.content = onnx::fingerprint_of(g.model, *compiling_.pool);
    log(severity::verbose, p.name + ": read and hashed in " + since.str());
    p.open = onnx::batch_of(main);
    dump(g.model, p.name);
  }
  executable exe = compile_partition(p, {});
  if (context) *context = make_context(ort_, contexts_, path, p.name, ports_of(exe), exe, *target_);
  auto out = std::make_unique<node_compute>(ort_, make_runner(std::move(exe), p));
  if (!contexts_.enable) add_batches(*out, p);
  return out.release();
}

void provider::add_batches(node_compute& to, const partition& p) {
  const std::vector<std::int64_t> batches = options_.batches();
  if (batches.empty()) return;
  if (!p.open) return log(severity::info, p.name + ": no batch is open, so that one program serves");
  auto later = std::make_shared<partition>(p);
  if (!options_.precompile_at_load)
    later->copy = std::make_shared<const onnx::model>(read_graph(ort_, p.graph, tensor_memory::owned).model);
  std::vector<std::unique_ptr<batch_program>> programs;
  for (const std::int64_t b : batches) {
    programs.push_back(std::make_unique<batch_program>(b, [this, later, b] {
      const memory_scope memory(memory_, true);
      executable exe = compile_partition(*later, b);
      if (!options_.precompile_at_load) write_later();
      return make_runner(std::move(exe), *later);
    }));
    if (options_.precompile_at_load) programs.back()->get();
  }
  const auto& inputs = p.outside.inputs;
  const auto at = std::find(inputs.begin(), inputs.end(), p.open->input);
  to.add_batches(static_cast<std::size_t>(at - inputs.begin()), std::move(programs));
}

executable provider::compile_partition(const partition& p, std::optional<std::int64_t> batch) {
  const std::string extents = batch ? onnx::to_string(*p.open, *batch) : "any";
  const std::string name = batch ? p.name + " of " + extents : p.name;
  return store_->get(name, identity_of(p.content, extents, options_), [&] {
    graph_copy g;
    if (p.copy)
      g.model = *p.copy;
    else
      g = read_graph(ort_, p.graph, tensor_memory::owned);
    if (batch) onnx::fix_batch(g.model.main, *p.open, *batch);
    return compile_graph(std::move(g), name);
  });
}

void provider::dump(const onnx::model& m, const std::string& name) const {
  if (!options_.dump_model_ops) return;
  const std::string file = file_name(name) + ".onnx";
  try {
    onnx::write_model(file, m);
    log(severity::info, "wrote " + file);
  } catch (const error& e) {
    log(severity::warning, file + " is not written: " + e.what());
  }
}

void provider::write_later() const {
  try {
    store_->write();
  } catch (const error& e) {
    log(severity::warning, std::string("a run's program is not saved: ") + e.what());
  }
}

std::unique_ptr<node_runner> provider::make_runner(executable exe, const partition& p) const {
  const node_ports own = ports_of(exe);
  return std::make_unique<node_runner>(ort_, running(), std::move(exe), own, p.outside);
}

executable provider::compile_graph(graph_copy g, const std::string& name) const {
  onnx::imported read = onnx::import_model(std::move(g.model));
  compile_options compiling = compiling_;
  compiling.remarks = std::move(read.remarks);
  program p = in_precision(std::move(read.graph), options_, compiling.remarks);
  for (const std::string& line : compiling.remarks) log(severity::verbose, name + ": " + line);
  return compile(std::move(p), *target_, compiling);
}

}  // namespace kiln::onnxruntime
