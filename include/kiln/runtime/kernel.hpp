#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/core/constant_memory.hpp"
#include "kiln/lower/strides.hpp"
#include "kiln/pass/pipeline.hpp"
#include "kiln/runtime/derived_data.hpp"
#include "kiln/runtime/tensor.hpp"

namespace kiln {

class thread_pool;
class device;
class device_queue;
class tuning_session;

/// What a kernel is given for one run.
struct launch {
  std::span<const tensor> in;
  std::span<const tensor> out;
  std::span<std::byte> scratch;  ///< 64-byte aligned, at least what `scratch_bytes` asked for
  thread_pool* pool = nullptr;
  const bindings* symbols = nullptr;  ///< values of the program's symbols
  bool unread = false;                ///< the results are big and nothing in this run reads them: caches gain nothing
  device_queue* queue = nullptr;      ///< of a target with a device: where the kernel's work goes
  std::int32_t* faults = nullptr;     ///< there: a number in the device's memory; see `kernel::reports_faults`
};

using lower::stride_support;

/// A step of an executable: compiled once, run by many threads at once, so everything that changes is in the launch.
class kernel {
 public:
  virtual ~kernel() = default;
  /// A short name for reports: the op or fusion and how it is computed.
  virtual std::string name() const = 0;
  virtual void run(const launch& l) const = 0;
  /// Temporary memory for these operands and that many threads.
  virtual std::size_t scratch_bytes(std::span<const tensor> /*in*/, std::span<const tensor> /*out*/,
                                    unsigned /*threads*/) const {
    return 0;
  }
  /// Seconds that a run by so many threads is estimated to take; 0 where its operations and bytes tell.
  virtual double estimated_seconds(std::span<const tensor> /*in*/, std::span<const tensor> /*out*/,
                                   unsigned /*threads*/) const {
    return 0;
  }
  /// Layouts operand i may have; the plan copies others to row-major first.
  virtual stride_support input_strides(std::size_t /*i*/) const { return stride_support::dense; }
  /// Layouts result k may be given (a part of a concatenation, a transposed buffer).
  virtual stride_support output_strides(std::size_t /*k*/) const { return stride_support::dense; }
  /// Whether result k, of [batch, channels, spatial...], may have any strides of its batch and channels, and its
  /// channels as two dims, the inner one of `run` channels: then a channel shuffle of it needs no copy.
  virtual bool writes_strided_channels(std::size_t /*k*/, dimension /*run*/) const { return false; }
  /// Whether the kernel kept its own form of a constant operand and the plan need not hold the original.
  virtual bool packed_input(std::size_t /*i*/) const { return false; }
  /// Bytes of packed constants that the kernel holds.
  virtual std::size_t packed_bytes() const { return 0; }
  /// Makes ready what only runs at these sizes need, so that the first run does not pay for it. The tensors have no
  /// memory yet; their addresses count from an aligned base.
  virtual void prepare(std::span<const tensor> /*in*/, std::span<const tensor> /*out*/) const {}
  /// Whether the kernel works in the memory of the target's device. Others of such a target get the host's memory, with
  /// copies around them.
  virtual bool on_device() const { return false; }
  /// Whether a run may meet data it can't compute: it then writes a number other than 0 to `launch::faults`, and the
  /// run raises `fault_text` after its last step.
  virtual bool reports_faults() const { return false; }
  virtual std::string fault_text() const { return {}; }
  /// Whether the op's reference computation runs because the target has no kernel for it.
  virtual bool is_fallback() const { return false; }
};

/// An instruction to be turned into a kernel.
struct kernel_request {
  const program& whole;
  const module_graph& graph;
  const basic_instruction<operation>& instruction;
  std::vector<const literal*> constants;  ///< per input: the constant it is or views, or null
  std::vector<layout> constant_layouts;   ///< per input: how it views that constant
  std::vector<shape> inputs;              ///< shapes of the inputs (dims may be symbolic)
  std::vector<bool> nhwc = {};            ///< per input: whether it will be NHWC
  bool result_nhwc = false;
  thread_pool* pool = nullptr;        ///< for packing in parallel
  tuning_session* tuning = nullptr;   ///< where kernels are chosen by timing them: see `make_best`
  bool near_constants = false;        ///< the program's constants stay in the L2 cache from run to run
  constant_memory* memory = nullptr;  ///< for packed constants
  derived_data* derived = nullptr;    ///< what a saved program keeps

  /// A constant in the kernel's own form: so many bytes, which `pack(to)` fills. Only there may a kernel read a
  /// constant of more than 64 KiB that it says it has packed (`kernel::packed_input`): a program that is loaded has
  /// its packed form alone.
  template <class Pack> buffer packed(std::size_t bytes, Pack&& pack) const {
    const auto make = [&] {
      buffer made = memory ? memory->allocate(bytes) : buffer::allocate(bytes);
      pack(made.data());
      return made;
    };
    return derived ? derived->block(bytes, make) : make();
  }
  /// What the kernel chooses among fewer than `end` by estimates or measurements.
  template <class Choose> std::int64_t decide(std::int64_t end, Choose&& choose) const {
    return derived ? derived->decide(end, choose) : static_cast<std::int64_t>(choose());
  }
};

/// Where programs run. A target turns instructions into kernels; the plan, memory and threads are common.
class target {
 public:
  virtual ~target() = default;
  virtual std::string_view name() const = 0;
  /// Whether the target wants the fusion passes.
  virtual bool fuses() const { return true; }
  /// Passes that write programs in the forms that its kernels have; none by default.
  virtual target_passes passes() const { return {}; }
  /// Whether runs treat denormal floats as zero (the compile report then says so).
  virtual bool flushes_denormals() const { return false; }
  /// What an instruction with one result of rank 3 or more wants of its layout.
  virtual lower::layout_role role(const program& /*whole*/, const basic_instruction<operation>& /*instruction*/) const {
    return lower::layout_role::none;
  }
  /// A kernel for the instruction, or null: then its reference computation runs.
  virtual std::unique_ptr<kernel> make_kernel(const kernel_request& request) const = 0;
  /// What the packed constants and the code of its kernels depend on, beside the program: a saved program runs where
  /// this is the same.
  virtual std::string binary_format() const { return std::string(name()); }
  /// The machine's part of the tuning cache's key: the processor, the number of threads, the kernels' version. Empty
  /// if there is nothing to choose.
  virtual std::string machine(unsigned /*threads*/) const { return {}; }
  /// A kernel that copies operand 0 to result 0, both of any strides; `derived` of the program that it is for.
  virtual std::unique_ptr<kernel> make_copy(const derived_data* derived) const;
  /// Whether its kernels work in the memory of a device.
  virtual bool has_device() const { return false; }
  /// The device; null where there is none, or none here (an executable for an absent device compiles, but a run is an
  /// error).
  virtual std::shared_ptr<const device> get_device() const { return nullptr; }
};

}  // namespace kiln
