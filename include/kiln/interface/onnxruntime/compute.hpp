#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "kiln/interface/onnxruntime/host.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::onnxruntime {

/// Inputs and outputs by name.
struct node_ports {
  std::vector<std::string> inputs, outputs;
};

/// What runs a fused node: an executable, and which of the node's inputs and outputs are its own. Any number of threads
/// may run it at once.
class node_compute : public OrtNodeComputeInfo {
 public:
  /// `own` are the names of the executable's inputs and outputs in the graph, `fused` those of the fused node, which
  /// may have more.
  node_compute(const host& ort, executable exe, const node_ports& own, const node_ports& fused);

 private:
  // What one run at a time needs; the shapes are those of the last run.
  struct run_state {
    workspace memory;
    std::vector<argument> inputs, outputs;
    std::vector<std::int64_t> extents;            // of all inputs, one after the other
    std::vector<std::vector<std::int64_t>> made;  // of each output; empty where only a run knows
    std::vector<bool> is_known;
  };
  class state_lease;

  void run(OrtKernelContext* context);
  void take_inputs(run_state& s, OrtKernelContext* context) const;
  OrtValue* output_value(OrtKernelContext* context, std::size_t k, const std::vector<std::int64_t>& extents) const;

  const host& ort_;
  executable exe_;
  std::vector<std::size_t> inputs_, outputs_;  // of the node, for each of the executable
  std::mutex guard_;
  std::vector<std::unique_ptr<run_state>> idle_;
};

}  // namespace kiln::onnxruntime
