#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/core/memory_source.hpp"
#include "kiln/interface/onnxruntime/host.hpp"
#include "kiln/interface/onnxruntime/run_trace.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::onnxruntime {

/// Inputs and outputs by name.
struct node_ports {
  std::vector<std::string> inputs, outputs;
};

/// What all runs of a session share: where memory comes from, the stream that they are given to on a device, and what
/// notes their kernels.
struct run_settings {
  std::shared_ptr<memory_source> memory;
  void* stream = nullptr;
  std::shared_ptr<run_trace> trace{};
};

/// Runs an executable on the inputs and outputs of a fused node. Any number of threads may do so at once.
class node_runner {
 public:
  /// `own` are the names of the executable's inputs and outputs in the graph, `fused` those of the fused node, which
  /// may have more.
  node_runner(const host& ort, run_settings how, executable exe, const node_ports& own, const node_ports& fused);
  ~node_runner();

  const executable& program() const { return exe_; }
  void run(OrtKernelContext* context);

 private:
  // What one run at a time needs; the shapes are those of the last run.
  struct run_state {
    workspace memory;
    std::vector<argument> inputs, outputs;
    std::vector<std::int64_t> extents;            // of all inputs, one after the other
    std::vector<std::vector<std::int64_t>> made;  // of each output; empty where only a run knows
    std::vector<bool> is_known;
    std::vector<argument> aside;  // for outputs that the caller bound to an input's memory
  };
  class state_lease;

  std::unique_ptr<run_state> take_state();
  void run_program(run_state& s) const;
  void take_inputs(run_state& s, OrtKernelContext* context) const;
  void read_extents(const OrtValue* value, std::vector<std::int64_t>& to) const;
  argument memory_of(run_state& s, std::size_t k, OrtValue* bound) const;
  OrtValue* output_value(OrtKernelContext* context, std::size_t k, const std::vector<std::int64_t>& extents) const;

  const host& ort_;
  const run_settings how_;
  executable exe_;
  std::vector<std::size_t> inputs_, outputs_;  // of the node, for each of the executable
  std::mutex guard_;
  std::vector<std::unique_ptr<run_state>> idle_;
  std::size_t states_ = 0;  // idle or in use
};

}  // namespace kiln::onnxruntime
