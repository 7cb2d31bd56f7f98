#include "kiln/interface/migraphx/program.hpp"

#include <algorithm>

#include "kiln/graph/print.hpp"
#include "kiln/interface/migraphx/custom_op.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/tensor.hpp"

namespace kiln::migraphx {

target::target(std::string name) : name_(std::move(name)) {
  try {
    (void)named_target(name_);
  } catch (const error& e) {
    if (e.code() == errc::not_found)
      raise(errc::not_found, "a target is ref, cpu or gpu: found '" + name_ +
                                 "', which is no name of kiln's own either (" + e.message() + ")");
    if (e.code() != errc::unsupported) throw;  // a GPU that is not there is refused where a program is compiled for it
  }
}

context::context(std::shared_ptr<const device> on) {
  if (on) queue_ = on->make_queue();
}
context::~context() = default;
void context::finish() const {
  if (!queue_) return;
  queue_->enter();
  queue_->wait();
}
void* context::queue() const { return queue_ ? queue_->stream() : nullptr; }

// What runs keep for the next ones: workspaces that wait for the next run, and what a program that is not compiled runs
// as.
struct program::memory {
  std::mutex mutex;
  std::vector<workspace> workspaces;
  std::shared_ptr<const compiled> reference;
  std::size_t reference_version = 0;
  std::unique_ptr<migraphx::context> queue;
};

namespace {

constexpr std::string_view result_name = "main:#output_";

// A workspace of a program for the time of one run.
template <class Memory> class lent_workspace {
 public:
  explicit lent_workspace(Memory& from) : from_(from) {
    const std::lock_guard lock(from.mutex);
    if (from.workspaces.empty()) return;
    own_ = std::move(from.workspaces.back());
    from.workspaces.pop_back();
  }
  ~lent_workspace() {
    const std::lock_guard lock(from_.mutex);
    from_.workspaces.push_back(std::move(own_));
  }
  lent_workspace(const lent_workspace&) = delete;
  lent_workspace& operator=(const lent_workspace&) = delete;
  workspace& get() { return own_; }

 private:
  Memory& from_;
  workspace own_;
};

std::shared_ptr<const program::compiled> compile_for(const std::string& name, const kiln::program& graph,
                                                     const compile_options& options,
                                                     const std::vector<std::string>& remarks) {
  kiln::compile_options with;
  with.remarks = remarks;
  with.tune = options.exhaustive_tune && name != "ref" && name != "reference";
  const auto to = named_target(name, with);
  if (to->has_device() && !to->get_device())
    raise(errc::unsupported, "target '" + name + "' has a device here: found none");
  if (to->has_device())
    for (const std::string& op : offloaded_custom_ops(graph))
      raise(errc::unsupported, "custom op '" + op +
                                   "' works in the memory of a GPU, which kiln does not give it: it "
                                   "runs where runs_on_offload_target() is false");
  auto made = std::make_shared<program::compiled>(kiln::compile(graph, *to, with), to->get_device());
  made->settle(name, options);
  return made;
}

const argument& parameter(const parameter_map& all, const std::string& name) {
  const auto found = all.find(name);
  if (found == all.end()) raise(errc::invalid_argument, "each parameter is given: '" + name + "' is missing");
  return found->second;
}

// An argument as the executable's port takes it: one element is rank 0 where the port is.
kiln::argument taken(const argument& a, const port& as, bool on_device) {
  if (a.get_shape().type() == type_t::tuple_type)
    raise(errc::invalid_argument, "parameter '" + as.name + "' is a tensor: found a tuple");
  const kiln::shape& s = a.value().get_shape();
  if (s.type != as.type.type)
    raise(errc::invalid_argument, "parameter '" + as.name + "' has type " +
                                      std::string(to_string(type_of_dtype(as.type.type))) + ": found " +
                                      std::string(to_string(a.get_shape().type())));
  if (!a.data() && a.get_shape().elements() != 0)
    raise(errc::invalid_argument, "parameter '" + as.name + "' has elements: found no memory");
  if (as.type.rank() == 0 && s.rank() == 1 && s.lens[0] == dimension(1))
    return kiln::argument({s.type, {}}, reinterpret_cast<std::byte*>(a.data()));
  if (s.rank() != as.type.rank())
    raise(errc::invalid_argument,
          "parameter '" + as.name + "' is " + to_string(from_kiln(as.type)) + ": found " + to_string(a.get_shape()));
  for (std::size_t d = 0; d < s.rank(); ++d)
    if (s.lens[d].value() < as.type.lens[d].min() || s.lens[d].value() > as.type.lens[d].max())
      raise(errc::invalid_argument,
            "parameter '" + as.name + "' is " + to_string(from_kiln(as.type)) + ": found " + to_string(a.get_shape()));
  if (on_device && !s.standard())
    raise(errc::unsupported,
          "parameter '" + as.name + "' in the device's memory is row-major: found " + to_string(a.get_shape()));
  return a.value();
}

argument shown(const tensor& t) {
  return argument(kiln::argument({t.type, to_dims(t.lens), to_dims(t.strides)}, t.data));
}

}  // namespace

void program::compiled::settle(std::string target, compile_options how) {
  target_name = std::move(target);
  options = how;
  result_names.clear();
  if (on && !options.offload_copy)
    for (std::size_t k = 0; k < exe.outputs().size(); ++k)
      result_names.push_back(std::string(result_name) + std::to_string(k));
}

program::program() : memory_(std::make_unique<memory>()) { modules_.push_back(std::make_unique<module>("main", true)); }
program::program(kiln::program graph, std::vector<std::string> remarks) : program() {
  remarks_ = std::move(remarks);
  main_module().adopt(std::move(graph));
}
program::~program() = default;
program::program(program&&) noexcept = default;
program& program::operator=(program&&) noexcept = default;

program program::clone() const {
  program out;
  out.modules_.clear();
  out.remarks_ = remarks_;
  out.compiled_ = compiled_;
  out.compiled_version_ = compiled_version_;
  std::map<instruction_ref, instruction_ref> copies;
  std::map<const module*, module*> others;
  for (const auto& m : modules_) {
    out.modules_.push_back(std::make_unique<module>(m->name(), m->is_main_));
    others[m.get()] = out.modules_.back().get();
  }
  for (const auto& m : modules_) {
    module& to = *others[m.get()];
    to.build_.get_program() = m->build_.get_program();
    to.captures_ = m->captures_;
    for (const instruction& i : m->instructions_) copies[&i] = &to.put(to.instructions_.end(), i);
    to.former_ = m->former_;  // modules beside a rebuilt one still mention them
    auto former = to.former_.begin();
    for (const instruction& i : m->former_) {
      former->owner = &to;
      copies[&i] = &*former++;
    }
    to.version_ = m->version_;
  }
  const auto copy_of = [&](instruction_ref i) {
    const auto at = copies.find(i);
    if (at == copies.end())
      raise(errc::invalid_argument, "a program's instructions read its own modules: found one that reads another's");
    return at->second;
  };
  for (const auto& m : out.modules_) {
    for (std::list<instruction>* const all : {&m->instructions_, &m->former_})
      for (instruction& i : *all) {
        for (instruction_ref& in : i.inputs) in = copy_of(in);
        for (const module*& called : i.module_inputs)
          if (const auto at = others.find(called); at != others.end()) called = at->second;
      }
    for (module::capture& c : m->captures_) c.from = copy_of(c.from);
  }
  return out;
}

module& program::create_module(const std::string& name) {
  for (const auto& m : modules_)
    if (m->name() == name)
      raise(errc::invalid_argument, "each module has a name of its own: found a second '" + name + "'");
  modules_.push_back(std::make_unique<module>(name));
  return *modules_.back();
}

std::vector<std::string> program::parameter_names() const {
  std::vector<std::string> out = main_module().parameter_names();
  if (compiled_) out.insert(out.end(), compiled_->result_names.begin(), compiled_->result_names.end());
  return out;
}

std::map<std::string, shape> program::parameter_shapes() const {
  std::map<std::string, shape> out;
  for (const std::string& name : main_module().parameter_names()) out[name] = main_module().parameter_shape(name);
  if (!compiled_) return out;
  for (std::size_t k = 0; k < compiled_->result_names.size(); ++k)
    out[compiled_->result_names[k]] = from_kiln(compiled_->exe.outputs()[k].type);
  return out;
}

std::vector<shape> program::output_shapes() const {
  if (!compiled_) return main_module().output_shapes();
  std::vector<shape> out;
  for (const port& p : compiled_->exe.outputs()) out.push_back(from_kiln(p.type));
  return out;
}

bool program::is_compiled() const { return compiled_ != nullptr; }
void program::set_compiled(std::shared_ptr<const compiled> c) {
  compiled_ = std::move(c);
  compiled_version_ = version();
}

std::size_t program::version() const {
  std::size_t out = modules_.size();
  for (const auto& m : modules_) out += m->version();
  return out;
}

void program::check_unchanged() const {
  if (compiled_ && compiled_version_ != version())
    raise(errc::invalid_argument,
          "a compiled program stays as it is: this one was changed after it was compiled for target '" +
              compiled_->target_name + "'; change it before, or a clone that was made before");
}

void program::replace(kiln::program graph, const std::vector<std::string>& remarks) {
  main_module().adopt(std::move(graph));
  remarks_.insert(remarks_.end(), remarks.begin(), remarks.end());
}

void program::compile(const target& to, const compile_options& options) {
  if (compiled_)
    raise(errc::invalid_argument,
          "a program is compiled once: this one is for target '" + compiled_->target_name + "'");
  set_compiled(compile_for(to.name(), graph(), options, remarks_));
}

std::shared_ptr<const program::compiled> program::ready() const {
  check_unchanged();
  if (compiled_) return compiled_;
  const std::lock_guard lock(memory_->mutex);
  if (!memory_->reference || memory_->reference_version != version()) {
    memory_->workspaces.clear();
    memory_->reference = compile_for("ref", graph(), {}, remarks_);
    memory_->reference_version = version();
  }
  return memory_->reference;
}

std::vector<argument> program::run_with(const parameter_map& parameters, const run_options& options) const {
  const auto c = ready();
  const bool on_device = c->on && !c->options.offload_copy;
  std::vector<kiln::argument> inputs, outputs;
  for (const port& p : c->exe.inputs()) inputs.push_back(taken(parameter(parameters, p.name), p, on_device));
  for (std::size_t k = 0; k < c->exe.outputs().size(); ++k) {
    const port& p = c->exe.outputs()[k];
    outputs.push_back(c->result_names.empty() ? kiln::argument()
                                              : taken(parameter(parameters, c->result_names[k]), p, true));
  }
  lent_workspace mine(*memory_);
  c->exe.run(mine.get(), inputs, outputs, options);
  std::vector<argument> out;
  for (kiln::argument& a : outputs) out.emplace_back(std::move(a));
  return out;
}

std::vector<argument> program::run(const parameter_map& parameters) const { return run_with(parameters, {}); }

std::vector<argument> program::run_async(const parameter_map& parameters, void* stream, std::string_view) const {
  run_options options;
  if (ready()->on) options.stream = stream;
  return run_with(parameters, options);
}

std::vector<argument> program::run_trace(const parameter_map& parameters, const trace_callback& tell) const {
  const auto c = ready();
  run_options options;
  options.observe = [&](std::size_t step, std::span<const tensor> results) {
    const step_info& about = c->exe.report().steps[step];
    trace_info info{step, about.instruction.empty() ? about.kernel : about.instruction, {}};
    if (!results.empty() && !is_object(results[0].type) && !is_complex(results[0].type))
      info.result = shown(results[0]);
    tell(info);
  };
  return run_with(parameters, options);
}

context& program::get_context() const {
  if (!compiled_) raise(errc::invalid_argument, "a context belongs to a compiled program");
  const std::lock_guard lock(memory_->mutex);
  if (!memory_->queue) memory_->queue = std::make_unique<migraphx::context>(compiled_->on);
  return *memory_->queue;
}

void program::sort() {
  for (const auto& m : modules_) m->sort();
}

std::string program::text_of() const {
  std::string out;
  for (const auto& m : modules_) out += "module: \"" + m->name() + "\"\n" + m->text_of() + "\n";
  if (compiled_) out += "compiled for target '" + compiled_->target_name + "'\n";
  return out;
}

bool operator==(const program& a, const program& b) {
  if (a.is_compiled() != b.is_compiled()) return false;
  if (a.is_compiled() && a.compiled_->target_name != b.compiled_->target_name) return false;
  const auto text_of_graph = [](const program& p) {
    if (p.main_module().instructions().empty()) return std::string();
    kiln::program graph = p.graph();
    for (std::uint32_t k = 0; k < graph.modules(); ++k) graph.module({k}).renumber();
    return print(graph).str();
  };
  return text_of_graph(a) == text_of_graph(b);
}

}  // namespace kiln::migraphx
