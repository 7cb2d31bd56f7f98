#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/compute.hpp"
#include "kiln/interface/onnxruntime/context.hpp"
#include "kiln/interface/onnxruntime/factory.hpp"
#include "kiln/interface/onnxruntime/gpu_allocator.hpp"
#include "kiln/interface/onnxruntime/graph.hpp"
#include "kiln/interface/onnxruntime/provider_options.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/program_store.hpp"

namespace kiln::onnxruntime {

/// The execution provider of one session: says which nodes kiln runs, and compiles them.
class provider : public OrtEp {
 public:
  /// `devices` are the session's.
  provider(const factory& made_by, std::span<const OrtHardwareDevice* const> devices, const OrtSessionOptions* session,
           const OrtLogger* logger);

 private:
  struct partition;

  // Options for a session on these devices.
  provider_options read_options(std::span<const OrtHardwareDevice* const> devices, const session_entries& entries);
  std::unique_ptr<gpu_allocator> make_allocator(const OrtMemoryInfo* memory) const;
  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  void compile_all(const OrtGraph** graphs, const OrtNode** fused, std::size_t count, OrtNodeComputeInfo** infos,
                   OrtNode** contexts);
  OrtNodeComputeInfo* compile_one(const OrtGraph* graph, const OrtNode* fused, OrtNode** context);
  void add_batches(node_compute& to, const partition& p);
  executable compile_partition(const partition& p, std::optional<std::int64_t> batch);
  executable compile_graph(graph_copy graph, const std::string& name) const;
  // Writes a graph into the working folder, as options ask; what can't be written is a warning.
  void dump(const onnx::model& m, const std::string& name) const;
  // Writes the session's file anew, with a program that a run asked for.
  void write_later() const;
  std::unique_ptr<node_runner> make_runner(executable exe, const partition& p) const;
  run_settings running() const;
  // Whether parts of a node's bodies are claimed: not where kiln runs the node as a whole.
  bool takes_parts_of_bodies(const OrtNode* node, const onnx::opsets& versions) const;
  void log(severity level, const std::string& line) const { ort_.log(logger_, level, "kiln: " + line); }

  const factory& factory_;
  const host& ort_;
  const OrtLogger* logger_;
  provider_options options_;
  context_settings contexts_;
  std::string compatibility_;
  const gpu* gpu_ = nullptr;  // that has the session's tensors; null: the host
  bool takes_gpus_ = false;   // the session has a GPU of the provider's, used or not
  std::unique_ptr<target> target_;
  compile_options compiling_;
  std::shared_ptr<memory_source> memory_;  // null: the heap
  std::shared_ptr<run_trace> trace_ = std::make_shared<run_trace>();
  std::unique_ptr<program_store> store_;
};

}  // namespace kiln::onnxruntime
