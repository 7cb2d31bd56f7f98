#include <algorithm>
#include <chrono>

#include "kiln/runtime/cache_size.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/plan/branches.hpp"
#include "kiln/runtime/impl/run/planned_program.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::detail {
namespace {

using clock = std::chrono::steady_clock;

std::size_t bytes_of(std::span<const tensor> out) {
  std::size_t bytes = 0;
  for (const tensor& t : out) bytes += static_cast<std::size_t>(t.elements()) * size_of(t.type);
  return bytes;
}

// Bytes of results from which stores past the caches gain: within the last caches of the workers, lines that are
// prefetched and written there took a quarter less time; half of them, because operands are there too.
std::size_t most_cached(unsigned workers) {
  static const shared_cache each = last_cache();
  return each.bytes * ((workers + each.processors - 1) / each.processors) / 2;
}

// The data of an empty value without memory: to a kernel, null would mean no operand.
alignas(alignment) std::byte empty_tensor[alignment];

class host_program final : public planned_program {
 public:
  host_program(plan p, compiled_program& of)
      : planned_program(std::move(p), of, nullptr), most_cached_(most_cached(pool_.size())) {
    if (pool_.size() == 1) return;
    for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) plan_.steps[i].flops = plan_.sizes.slot(infos_[i].flops);
    if (!of.flushes_denormals) return;  // workers of the pool flush them
    find_groups(plan_);
    if (!plan_.groups.empty()) report_groups(of);
  }

  void run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs,
           const run_options& options) const override {
    begin_run(w, inputs, outputs);
    take_arguments(w, inputs, outputs);
    const std::span<std::byte> scratch(w.arena.data() + w.scratch_offset, w.scratch_bytes);
    const bool watched = options.profile || options.observe;  // step by step
    auto group = w.beside.groups.begin();
    for (std::uint32_t i = 0; i < plan_.steps.size(); ++i) {
      if (!watched && group != w.beside.groups.end() && group->of->first == i) {
        run_group(w, *group, options);
        i = group++->of->last - 1;
        continue;
      }
      const auto start = options.profile ? clock::now() : clock::time_point();
      run_step(w, i, scratch, options);
      if (options.profile) options.profile(i, std::chrono::duration<double>(clock::now() - start).count());
      if (options.observe) options.observe(i, outputs_of(w, plan_.steps[i]));
    }
  }

 private:
  void bind_constants(run_memory& w) const override {
    for (std::uint32_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      if (b.kind == lower::memory::constant)
        w.bases[s] = const_cast<std::byte*>(b.constant.bytes());  // kernels only read their inputs
      for (std::size_t n = 0; n < b.values.size(); ++n)
        encode(b.type, &w.sizes[b.values[n]], w.bases[s] + n * size_of(b.type), 1);
    }
  }

  // Tensors get the caller's memory, or row-major copies of inputs with strides.
  void take_arguments(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs) const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) bytes += copied_bytes(i, inputs[i]);
    w.grow(w.dense_inputs, bytes);
    std::byte* room = w.dense_inputs.data();
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      if (b.kind == lower::memory::input) {
        const argument& a = inputs[b.index];
        w.bases[s] = const_cast<std::byte*>(a.data());  // kernels only read their inputs
        if (const std::size_t copied = copied_bytes(b.index, a)) {
          const tensor from = tensor_of(a);
          copy_tensor(from, {room, from.type, from.lens, row_major(from.lens)}, &pool_);
          w.bases[s] = room;
          room += copied;
        }
      } else if (b.kind == lower::memory::output) {
        w.bases[s] = outputs[b.index].data();
      }
    }
    for (std::size_t k = 0; k < w.tensors.size(); ++k) {
      const operand& o = plan_.operands[k];
      std::byte* const base = w.bases[o.buffer];
      w.tensors[k].data = base ? base + w.sizes[o.offset] * static_cast<std::int64_t>(size_of(o.type)) : empty_tensor;
    }
  }

  void run_step(const run_memory& w, std::uint32_t i, std::span<std::byte> scratch, const run_options& options) const {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      raise(errc::canceled, "the run was stopped before step " + std::to_string(i));
    const step& s = plan_.steps[i];
    const std::span<const tensor> out = outputs_of(w, s);
    try {
      s.run->run({inputs_of(w, s), out, scratch, w.alone[i] ? &alone_ : &pool_, &w.values,
                  s.last_touch && bytes_of(out) >= most_cached_});
    } catch (error& e) {
      e.at_instruction(infos_[i].instruction);
      throw;
    }
  }

  void run_group(run_memory& w, const branch_choice::group& g, const run_options& options) const {
    const bool few = g.order.size() <= pool_.size();  // then each branch has its own scratch, else each worker
    pool_.parallel_branches(static_cast<std::int64_t>(g.order.size()), [&](std::int64_t task, unsigned worker) {
      const std::size_t own = few ? static_cast<std::size_t>(task) : worker;
      const std::span<std::byte> scratch(w.arena.data() + w.scratch_offset + own * g.scratch, g.scratch);
      for (const std::uint32_t i : g.of->branches[g.order[static_cast<std::size_t>(task)]])
        run_step(w, i, scratch, options);
    });
  }

  // Where no size depends on a symbol, what runs side by side is known before any run.
  void report_groups(compiled_program& of) const {
    run_memory w;
    if (!bind_known_sizes(w, of.optimized)) return;
    choose_groups(w);
    for (const branch_choice::group& g : w.beside.groups)
      for (std::size_t b = 0; b < g.of->branches.size(); ++b)
        for (const std::uint32_t i : g.of->branches[b]) {
          of.report.steps[i].group = g.of->first;
          of.report.steps[i].branch = static_cast<std::int64_t>(b);
        }
  }

  const std::size_t most_cached_;
  mutable thread_pool alone_{1};  // has no state that a job changes
};

}  // namespace

std::unique_ptr<const runner> make_host_program(plan p, compiled_program& of) {
  return std::make_unique<host_program>(std::move(p), of);
}

}  // namespace kiln::detail
