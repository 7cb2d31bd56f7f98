#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/core/memory_source.hpp"
#include "kiln/interface/onnxruntime/abi_device.hpp"
#include "kiln/interface/onnxruntime/host.hpp"
#include "kiln/interface/onnxruntime/run_trace.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::onnxruntime {

/// Inputs and outputs by name.
struct node_ports {
  std::vector<std::string> inputs, outputs;
};

/// What all runs of a session share: where memory comes from, the stream that they are given to on a device, what notes
/// their kernels, and the device that has their inputs and outputs.
struct run_settings {
  std::shared_ptr<memory_source> memory;
  void* stream = nullptr;
  std::shared_ptr<run_trace> trace{};
  const device* where = nullptr;  // null: the host
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
  // An output: its shape for the inputs' extents if that is known before the run, and where this run has it.
  struct run_output {
    bool is_known = false;
    shape type;
    std::vector<std::int64_t> extents;
    std::size_t bytes = 0;
    OrtValue* bound = nullptr;
    bool is_direct = false;  // computed where ONNX Runtime has it
    argument aside;          // where it is computed if that is an input's memory; kept for the next run
  };
  // What one run at a time needs. What follows from the inputs' extents is kept until they change.
  struct run_state {
    workspace memory;
    void* stream = nullptr;                    // that the last run was given to
    std::unique_ptr<device_event> is_done;     // the last run, where it may still go on
    std::vector<std::int64_t> given, extents;  // of all inputs, each after its rank: of this run, and of the last one
    std::vector<std::byte*> places;            // of the inputs
    std::vector<std::size_t> input_bytes;
    bool is_sized = false;
    std::vector<run_output> made;
    std::vector<argument> inputs, outputs;
  };
  class state_lease;

  std::unique_ptr<run_state> take_state(void* stream);
  void* stream_of(OrtKernelContext* context) const;
  void wait_for_last(run_state& s, void* stream) const;
  void order(void* first, void* second) const;
  void take_inputs(run_state& s, OrtKernelContext* context) const;
  void take_outputs(run_state& s, OrtKernelContext* context) const;
  void run_program(run_state& s) const;
  void copy_out(void* to, const argument& from, std::size_t bytes) const;
  void give_outputs(run_state& s, OrtKernelContext* context) const;
  void size(run_state& s) const;
  bool meets_an_input(const run_state& s, const std::byte* data, std::size_t bytes) const;

  const host& ort_;
  const run_settings how_;
  executable exe_;
  std::vector<std::size_t> inputs_, outputs_;  // of the node, for each of the executable
  std::mutex guard_;
  std::vector<std::unique_ptr<run_state>> idle_;
  std::size_t states_ = 0;  // idle or in use
};

}  // namespace kiln::onnxruntime
