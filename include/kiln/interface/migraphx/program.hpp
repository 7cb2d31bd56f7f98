#pragma once
#include <functional>
#include <map>
#include <mutex>

#include "kiln/interface/migraphx/module.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::migraphx {

/// Where a program is compiled for, by name: "ref", "cpu", "gpu", or a target's name of kiln's own.
class target {
 public:
  /// An unknown name is a `not_found` error that lists the targets there are.
  explicit target(std::string name);
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// How a program is compiled.
struct compile_options {
  /// With a GPU: whether parameters and results are in the host's memory. Otherwise they are in the device's, and the
  /// results are written to the parameters `main:#output_N`.
  bool offload_copy = false;
  bool fast_math = true;         ///< allows approximations; kiln makes none
  bool exhaustive_tune = false;  ///< chooses kernels by timing them
};

/// Arguments by parameter name.
using parameter_map = std::map<std::string, argument>;

/// What a traced run has done: a step's number, its kernel's name, and its first result.
struct trace_info {
  std::size_t index = 0;
  std::string name;
  argument result;
};
using trace_callback = std::function<void(const trace_info&)>;

/// The queue of a compiled program's device; a program for the host has none.
class context {
 public:
  explicit context(std::shared_ptr<const device> on = nullptr);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  void finish() const;
  void* queue() const;

 private:
  std::unique_ptr<device_queue> queue_;
};

/// Modules, the first of which runs, and what was compiled from them.
class program {
 public:
  program();
  ~program();
  program(program&&) noexcept;
  program& operator=(program&&) noexcept;
  /// A program of kiln's own, with what its maker took for granted.
  explicit program(kiln::program graph, std::vector<std::string> remarks = {});
  /// Another program with the same modules; instructions of the one are not the other's. What was compiled is shared.
  program clone() const;

  module& main_module() { return *modules_.front(); }
  const module& main_module() const { return *modules_.front(); }
  const std::vector<std::unique_ptr<module>>& modules() const { return modules_; }
  /// A module for an operator that runs it; a name that is taken is an `invalid_argument` error.
  module& create_module(const std::string& name);

  /// Names in the order of the parameters; of a program that was compiled for device memory also those of its results.
  std::vector<std::string> parameter_names() const;
  std::map<std::string, shape> parameter_shapes() const;
  std::vector<shape> output_shapes() const;

  bool is_compiled() const;
  /// Makes this a compiled program. A second time, and for a GPU that is not there, this is an error. What is changed
  /// afterwards is no part of it: a run or a save is then an `invalid_argument` error.
  void compile(const target& to, const compile_options& options = {});
  /// Runs with arguments by name; more than the program takes are left out. A program that is not compiled runs on the
  /// reference. Any number of threads may run one program.
  std::vector<argument> run(const parameter_map& parameters) const;
  /// The same on a stream of the caller's, without waiting for it, where the target has a device.
  std::vector<argument> run_async(const parameter_map& parameters, void* stream, std::string_view stream_type) const;
  /// The same, telling of each step.
  std::vector<argument> run_trace(const parameter_map& parameters, const trace_callback& tell) const;

  context& get_context() const;
  void sort();
  std::string text_of() const;
  /// Equal modules, compiled for the same target or not compiled.
  friend bool operator==(const program& a, const program& b);

  /// What runs and saves: compiled for a target.
  struct compiled {
    compiled(executable e, std::shared_ptr<const device> d) : exe(std::move(e)), on(std::move(d)) {}
    executable exe;
    std::shared_ptr<const device> on;
    std::string target_name;
    compile_options options;
    std::vector<std::string> result_names;  ///< parameters that take the results; none where they are made
    /// How it was compiled, and for which target by MIGraphX's name; result names follow from that.
    void settle(std::string target, compile_options how);
  };
  const std::shared_ptr<const compiled>& get_compiled() const { return compiled_; }
  void set_compiled(std::shared_ptr<const compiled> c);
  /// A program that was changed after it was compiled is an `invalid_argument` error.
  void check_unchanged() const;
  /// The main module as kiln's program.
  kiln::program graph() const { return main_module().graph(); }
  /// Another graph in place of the main module's, with remarks on how it came about. Instructions that were handed out
  /// are stale then: they are still there, but none may read them.
  void replace(kiln::program graph, const std::vector<std::string>& remarks);
  const std::vector<std::string>& remarks() const { return remarks_; }
  void set_remarks(std::vector<std::string> remarks) { remarks_ = std::move(remarks); }
  /// Counts changes of all modules.
  std::size_t version() const;

 private:
  struct memory;
  std::shared_ptr<const compiled> ready() const;
  std::vector<argument> run_with(const parameter_map& parameters, const run_options& options) const;
  std::vector<std::unique_ptr<module>> modules_;
  std::vector<std::string> remarks_;
  std::shared_ptr<const compiled> compiled_;
  std::size_t compiled_version_ = 0;
  std::unique_ptr<memory> memory_;
};

}  // namespace kiln::migraphx
