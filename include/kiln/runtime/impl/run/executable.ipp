#include "kiln/runtime/executable.hpp"

#include "kiln/runtime/impl/run/compiled_program.hpp"
#include "kiln/runtime/named_inputs.hpp"
#include "kiln/runtime/processor.hpp"
#include "kiln/runtime/run_options.hpp"

namespace kiln {

workspace::workspace() : memory_(std::make_unique<detail::run_memory>()) {}
workspace::workspace(workspace&&) noexcept = default;
workspace& workspace::operator=(workspace&&) noexcept = default;
workspace::~workspace() = default;
std::size_t workspace::bytes() const { return memory_->bytes(); }
std::size_t workspace::growths() const { return memory_->all_growths(); }

executable::executable(std::unique_ptr<const detail::compiled_program> p) : program_(std::move(p)) {}
executable::executable(executable&&) noexcept = default;
executable& executable::operator=(executable&&) noexcept = default;
executable::~executable() = default;
std::span<const port> executable::inputs() const { return program_->ports.inputs; }
std::span<const port> executable::outputs() const { return program_->ports.outputs; }
const compile_report& executable::report() const { return program_->report; }
const program& executable::optimized() const { return program_->optimized; }
thread_pool& executable::pool() const { return *program_->pool; }
std::size_t executable::input_index(std::string_view name) const { return program_->ports.input_index(name); }

void executable::bind(workspace& w, std::span<const shape> inputs) const { program_->runs->bind(*w.memory_, inputs); }

std::vector<shape> executable::output_shapes(std::span<const shape> inputs) const {
  program_->ports.check(inputs);
  return program_->runs->output_shapes(inputs);
}

std::vector<argument> executable::make_outputs(std::span<const shape> inputs) const {
  std::vector<argument> out;
  for (const shape& s : output_shapes(inputs))
    out.push_back(s.is_constant() && !is_object(s.type) ? program_->ports.allocate_output(out.size(), s) : argument());
  return out;
}

void executable::run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs,
                     const run_options& options) const {
  program_->run(*w.memory_, inputs, outputs, options);
}

void executable::run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs) const {
  program_->run(*w.memory_, inputs, outputs, run_options());
}

std::vector<argument> executable::run(std::span<const argument> inputs) const {
  workspace w;
  std::vector<argument> outputs(program_->ports.outputs.size());
  run(w, inputs, outputs);
  return outputs;
}

std::vector<argument> executable::run(const std::map<std::string, argument>& inputs) const {
  std::vector<named_input> named;
  for (const auto& [name, value] : inputs) named.push_back({name, value});
  return run(ordered_inputs(*this, named));
}

void detail::compiled_program::run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs,
                                   const run_options& options, const symbol_values& outer) const {
  if (unchecked) std::call_once(unchecked->done, unchecked->check);
  const flush_denormals flush(flushes_denormals);
  if (w.outer != outer) {
    w.outer = outer;
    w.outer_changed = true;
  }
  runs->run(w, inputs, outputs, options);
}

}  // namespace kiln
