#include <chrono>

#include "kiln/core/object.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/executable_state.hpp"

namespace kiln {

namespace {

using clock = std::chrono::steady_clock;

void copy_values(const argument& from, argument& to, thread_pool* pool) {
  const ints lens = to_ints(from.get_shape().lens);
  const dtype type = from.get_shape().type;
  copy_tensor({const_cast<std::byte*>(from.data()), type, lens, to_ints(from.get_shape().element_strides())},
              {to.data(), type, lens, row_major(lens)}, pool);
}

tensor view_of(argument& a) {
  const ints lens = to_ints(a.get_shape().lens);
  return {a.data(), a.get_shape().type, lens, to_ints(a.get_shape().element_strides())};
}

// One run of a staged executable: slots hold what parts hand on, and are let go when it ends.
class stage_run {
 public:
  stage_run(const detail::staging& stages, std::vector<workspace>& inner, const run_options& options,
            detail::known_symbols symbols)
      : stages_(stages), inner_(inner), options_(options), symbols_(std::move(symbols)) {
    slots_.resize(stages.slots);
    for (const auto& [at, value] : stages.constants) slots_[at] = value;
  }

  void put(std::uint32_t k, const argument& value) { slots_[k] = value; }
  /// What a slot holds; numbers that mention symbols have the values of now.
  argument value(std::uint32_t k) const {
    const auto found = stages_.symbolic.find(k);
    if (found == stages_.symbolic.end()) return slots_[k];
    small_vector<dimension> numbers = found->second.to<dimension>();
    for (dimension& d : numbers) d = symbols_.values.evaluate(d);
    const shape& type = found->second.get_shape();
    return argument(literal::of_dimensions(type.lens, std::move(numbers), type.type));
  }

  void run() {
    for (const auto& stage : stages_.stages) {
      if (stage.planned) run_segment(*stage.planned);
      for (const detail::host_step& s : stage.steps) run_step(s);
    }
  }

 private:
  // The workspaces of what comes next, in order.
  std::span<workspace> take(std::size_t n) {
    while (inner_.size() < used_ + n) inner_.emplace_back();
    used_ += n;
    return std::span<workspace>(inner_).subspan(used_ - n, n);
  }

  std::vector<argument> gather(const std::vector<std::uint32_t>& from) const {
    std::vector<argument> out;
    out.reserve(from.size());
    for (const std::uint32_t k : from) out.push_back(value(k));
    return out;
  }

  void run_segment(const detail::segment& s) {
    const std::vector<argument> in = gather(s.in);
    std::vector<argument> out(s.out.size());
    run_options shifted;
    shifted.cancel = options_.cancel;
    const std::size_t first = step_;
    if (options_.profile) shifted.profile = [&](std::size_t i, double t) { options_.profile(first + i, t); };
    if (options_.observe)
      shifted.observe = [&](std::size_t i, std::span<const tensor> made) { options_.observe(first + i, made); };
    detail::executable_access::run(s.run, take(1)[0], in, out, shifted, symbols_.list);
    step_ += s.run.report().steps.size();
    for (std::size_t k = 0; k < out.size(); ++k) slots_[s.out[k]] = std::move(out[k]);
  }

  void run_step(const detail::host_step& s) {
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
      raise(errc::cancelled, "the run was stopped before step " + std::to_string(step_));
    const auto start = options_.profile ? clock::now() : clock::time_point();
    try {
      const std::vector<argument> in = gather(s.in);
      auto made = detail::run_host_step(s, in, symbols_, take(s.bodies.size()), options_);
      for (std::size_t k = 0; k < made.size(); ++k) {
        symbols_.match(s.results[k], made[k].get_shape(), "result " + std::to_string(k));
        slots_[s.out[k]] = std::move(made[k]);
      }
      if (s.op.table().bind) {
        const std::vector<argument> results = gather(s.out);
        bindings bound = symbols_.values;
        s.op.table().bind(s.op.data(), results, bound);
        small_vector<dimension> named;
        s.op.symbols(named);
        for (const dimension d : named)
          if (const auto v = bound.find(d)) symbols_.bind(d, *v);
      }
    } catch (error& e) {
      e.at_instruction(s.name);
      throw;
    }
    if (options_.profile) options_.profile(step_, std::chrono::duration<double>(clock::now() - start).count());
    if (options_.observe) {
      std::vector<tensor> seen;
      for (const std::uint32_t k : s.out) seen.push_back(view_of(slots_[k]));
      options_.observe(step_, seen);
    }
    ++step_;
  }

  const detail::staging& stages_;
  std::vector<workspace>& inner_;
  const run_options& options_;
  detail::known_symbols symbols_;
  std::vector<argument> slots_;
  std::size_t used_ = 0, step_ = 0;
};

}  // namespace

void executable::state::run_stages(workspace::state& w, std::span<const argument> given, std::span<argument> made,
                                   const run_options& options) const {
  if (given.size() != inputs.size())
    raise(fault::of(errc::invalid_argument, "number of inputs", inputs.size(), given.size()));
  if (made.size() != outputs.size())
    raise(fault::of(errc::invalid_argument, "number of outputs", outputs.size(), made.size()));
  detail::known_symbols symbols(w.outer);
  for (std::size_t i = 0; i < given.size(); ++i) check_type(inputs[i], given[i].get_shape(), "input");
  check_data(given);
  for (const symbol_source& s : this->symbols) symbols.bind(s.symbol, given[s.input].get_shape().lens[s.dim].raw());
  for (std::size_t i = 0; i < given.size(); ++i)
    symbols.match(inputs[i].type, {given[i].get_shape().type, given[i].get_shape().lens},
                  "input '" + inputs[i].name + "'");
  stage_run r(*stages, w.inner, options, std::move(symbols));
  for (std::size_t i = 0; i < given.size(); ++i) r.put(static_cast<std::uint32_t>(i), given[i]);
  r.run();
  for (std::size_t k = 0; k < made.size(); ++k) {
    const argument value = r.value(stages->outputs[k]);
    if (is_object(value.get_shape().type)) {
      made[k] = value.owned();
      continue;
    }
    // what a run gives is the caller's to write: never a constant's memory, an input's or another output's
    if (detail::is_unset(made[k])) made[k] = argument(shape(value.get_shape().type, value.get_shape().lens));
    const shape& type = made[k].get_shape();
    if (type.type != value.get_shape().type || !(type.lens == value.get_shape().lens) || !type.standard())
      raise(errc::shape_mismatch, "output '" + outputs[k].name + "': expected row-major " +
                                      to_string(shape(value.get_shape().type, value.get_shape().lens)) + ", found " +
                                      to_string(type));
    copy_values(value, made[k], pool.get());
  }
}

}  // namespace kiln
