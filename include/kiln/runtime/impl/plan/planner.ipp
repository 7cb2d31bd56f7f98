#include <algorithm>
#include <cstring>

#include "kiln/core/huge_page.hpp"
#include "kiln/core/mapped_file.hpp"
#include "kiln/pass/constants_stay_stored.hpp"
#include "kiln/runtime/byte_reader.hpp"
#include "kiln/runtime/impl/compile/free_constants.hpp"
#include "kiln/runtime/impl/compile/make_step_kernel.hpp"
#include "kiln/runtime/impl/plan/labels.hpp"
#include "kiln/runtime/impl/plan/open_rules.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln::detail {
namespace {

using lower::placement;

// Makes the kernels of a program, and steps and slots of what the memory plan decides.
class planner {
 public:
  static constexpr bool callers_outputs = true;

  planner(program& p, const target& t, const compile_options& options, const plan_choices& choices, thread_pool& pool,
          std::vector<std::string>& remarks)
      : program_(p),
        graph_(p.main()),
        target_(t),
        pool_(pool),
        choices_(choices),
        layouts_(plan_layouts(p, t, choices)),
        values_(p, *this) {
    plan_.nhwc_results = layouts_.count_nhwc();
    if (plan_.nhwc_results != 0) remarks.push_back(std::to_string(plan_.nhwc_results) + " results are NHWC");
    plan_.growing = growing_outputs(graph_, options.aliases);
  }

  plan build() {
    values_.grow(plan_.growing);
    make_kernels();
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      naming(graph_[i], i, [&] {
        values_.place(i);
        leave_to_run(i);
      });
    for (std::uint32_t k = 0; k < graph_.outputs.size(); ++k)
      naming(graph_.producer(graph_.outputs[k]), graph_.outputs[k].instruction, [&] { values_.place_output(k); });
    take_buffers();
    return std::move(plan_);
  }

  // ---- for the memory plan
  bool prefers_nhwc(value_id v) const {
    return layouts_.nhwc(v) && (!kernels_[v.instruction] || written(v) != stride_support::dense);
  }
  std::optional<layout> operand_of_nhwc_view(std::uint32_t i) const { return layouts_.operand_of_nhwc_view(i); }
  bool writes(value_id v, const layout& where) const {
    const std::size_t rank = graph_.shape_of(v).rank();
    const auto& kernel = kernels_[v.instruction];
    if (!kernel) return where.lens.size() == rank;  // a concatenation: its operands' kernels do
    if (written(v) == stride_support::dense) return false;
    if (where.lens.size() > rank)
      return kernel->writes_strided_channels(v.result, where.lens[2]) && lower::dense_from(where, 3);
    return lower::accepts(written(v), where) ||
           (rank > 2 && kernel->writes_strided_channels(v.result, where.lens[1]) && lower::dense_from(where, 2));
  }
  void make_step(std::uint32_t i) {
    const instruction& ins = graph_[i];
    const kernel& run = *kernels_[i];
    std::vector<typed_placement> in, out;
    for (std::size_t k = 0; k < ins.inputs.size(); ++k) {
      const value_id v = ins.inputs[k];
      const shape& type = graph_.shape_of(v);
      if (run.packed_input(k)) {
        in.push_back({nowhere(type), type});
        continue;
      }
      placement at = values_.placement_of(v);
      if (!lower::accepts(run.input_strides(k), at.where)) at = values_.copy_of(v, false, ins.op.name());
      in.push_back({at, type});
    }
    for (std::uint32_t r = 0; r < ins.results.size(); ++r) out.push_back({values_.result({i, r}), ins.results[r]});
    step_info info;
    info.instruction = label_of(ins, i), info.index = i, info.flops = flops(program_, graph_, ins);
    add_step(std::move(kernels_[i]), in, out, std::move(info), picks_from_first(ins.op));
  }
  void make_copy(const placement& from, const placement& to, const shape& type, std::string_view why) {
    step_info info;
    info.copy = true, info.instruction = why;
    add_step(target_.make_copy(choices_.derived), {{from, type}}, {{to, type}}, std::move(info));
  }

 private:
  using instruction = basic_instruction<operation>;
  struct typed_placement {
    placement at;
    shape type;
  };

  void make_kernels() {
    kernels_.resize(graph_.size());
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      if (!is_left_to_widen(graph_, i)) continue;
      if (only_products_read(i))
        widened_.push_back(i);
      else
        widen(i);
    }
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const instruction& ins = graph_[i];
      if (ins.kind != instruction_kind::op || is_view(ins) || lower::is_concat(ins)) continue;
      if (std::binary_search(widened_.begin(), widened_.end(), i)) continue;
      if (choices_.tuning) choices_.tuning->next(i, graph_.size(), label_of(ins, i));
      naming(ins, i, [&] {
        kernels_[i] = make_step_kernel(program_, i, target_, layouts_, pool_, choices_, memory_, widened_);
      });
      for (std::size_t k = 0; k < ins.inputs.size(); ++k)
        if (kernels_[i]->packed_input(k)) leave(i, ins.inputs[k]);
    }
    for (const std::uint32_t i : widened_) widen(i);
  }
  // What no kernel holds in its own form is f32 from here on.
  void widen(std::uint32_t i) {
    if (const widened_constant w = find_widened_constant(graph_, {i, 0}))
      become_literal(i, laid_out(widened_literal(graph_, w), w.at));
  }
  // Through views.
  bool only_products_read(std::uint32_t i) {
    const auto& readers = values_.readers().beside({i, 0});
    return std::all_of(readers.begin(), readers.end(), [&](const lower::uses::user& u) {
      if (u.instruction == lower::none) return false;
      const instruction& by = graph_[u.instruction];
      if (is_view(by)) return only_products_read(u.instruction);
      const auto* const fused = by.op.get_if<op::fused>();
      return by.op.is<op::dot>() || (fused && fused->kind == fusion::contraction);
    });
  }
  // In place of a conversion.
  void become_literal(std::uint32_t i, literal made) {
    const value_id from = graph_[i].inputs[0];
    graph_[i].kind = instruction_kind::literal;
    graph_[i].op = {};
    graph_[i].constant = std::move(made);
    graph_[i].inputs.clear();
    leave(i, from);
  }
  // A kernel that holds a constant in its own form reads it no more, and one that nothing reads is freed.
  void leave(std::uint32_t i, value_id v) {
    const std::uint32_t last = values_.readers().leave(graph_, i, v);
    if (last == lower::none) return;
    if (graph_[last].kind == instruction_kind::literal) {
      if (graph_[last].constant.data().size() >= huge_page / 2) forget_pages(graph_[last].constant.data());
      free_constant(graph_[last]);
    } else if (find_widened_constant(graph_, {last, 0})) {
      become_literal(last, literal(graph_[last].results[0], buffer()));
    }
  }

  stride_support written(value_id v) const { return kernels_[v.instruction]->output_strides(v.result); }

  // ---- steps
  operand slots_of(const placement& at, dtype type) {
    operand o;
    o.buffer = at.buffer;
    o.type = type;
    for (dimension d : at.where.lens) o.lens.push_back(plan_.sizes.slot(d));
    for (dimension d : at.where.strides) o.strides.push_back(plan_.sizes.slot(d));
    o.offset = plan_.sizes.slot(at.where.offset);
    return o;
  }
  // Bytes are those that a run touches: a constant in the kernel's own form counts as that, whatever it is broadcast
  // to. `picks`: of the first operand, no more are read than are written.
  void add_step(std::unique_ptr<kernel> run, const std::vector<typed_placement>& in,
                const std::vector<typed_placement>& out, step_info info, bool picks = false) {
    step s;
    s.first_operand = static_cast<std::uint32_t>(plan_.operands.size());
    s.inputs = static_cast<std::uint32_t>(in.size());
    s.outputs = static_cast<std::uint32_t>(out.size());
    info.bytes = 0;
    small_vector<std::uint32_t> touched;
    const auto add = [&](const typed_placement& p) {
      plan_.operands.push_back(slots_of(p.at, p.type.type));
      const dimension bytes = lower::distinct_elements(p.at.where) * static_cast<std::int64_t>(size_of(p.type.type));
      if (p.at.buffer != nowhere_) info.bytes += picks && touched.empty() ? smaller(bytes, out[0].type.bytes()) : bytes;
      touched.push_back(p.at.buffer);
    };
    for (const typed_placement& p : in) add(p), info.inputs.push_back(p.type);
    for (const typed_placement& p : out) add(p), info.outputs.push_back(p.type);
    values_.add_step(touched);
    info.kernel = run->name();
    info.fallback = run->is_fallback();
    info.packed_bytes = run->packed_bytes();
    info.bytes += static_cast<std::int64_t>(info.packed_bytes);
    s.run = std::move(run);
    plan_.steps.push_back(std::move(s));
    plan_.infos.push_back(std::move(info));
  }

  static bool picks_from_first(const operation& op) {
    return op.is<op::gather>() || op.is<op::gather_elements>() || op.is<op::gather_nd>();
  }

  // What a kernel holds in its own form has a shape, but no memory.
  placement nowhere(const shape& s) {
    if (nowhere_ == lower::none) nowhere_ = values_.add_buffer(lower::memory::arena, 0);
    return {nowhere_, layout::standard(s.lens)};
  }

  // ---- what the run decides
  // Extents that were taken as equal although their expressions differ are compared when sizes are known.
  void check_extents(const instruction& view, const shape& from, std::string_view where) {
    lower::equal_extents(view, from.lens, [&](dimension x, dimension y) {
      if (x == y || (x.is_constant() && y.is_constant())) return;
      plan_.obligations.push_back({plan_.sizes.slot(x), plan_.sizes.slot(y), equality(view, x, y, where)});
    });
  }
  void leave_to_run(std::uint32_t i) {
    const instruction& ins = graph_[i];
    if (is_view(ins) && !values_.readers().unread(i))
      check_extents(ins, graph_.shape_of(ins.inputs[0]), ins.name.view());
    if (ins.kind == instruction_kind::op && ins.op.is<op::fused>()) {
      const module_graph& body = program_.module(ins.op.body());
      for (std::uint32_t k = 0; k < body.size(); ++k)
        if (is_view(body[k]))
          check_extents(body[k], body.shape_of(body[k].inputs[0]), ins.name.view());
        else
          leave_rule(plan_, body, body[k], choices_.derived,
                     body[k].name.empty() ? label_of(ins, i) : std::string(body[k].name.view()));
    }
    if (!is_view(ins) && !lower::is_concat(ins)) leave_rule(plan_, graph_, ins, choices_.derived, label_of(ins, i));
  }

  // ---- the finished plan
  void take_buffers() {
    const std::vector<bool> by_elements = read_by_elements();
    for (const lower::buffer& b : values_.buffers()) {
      planned_buffer& to = plan_.buffers.emplace_back();
      static_cast<lower::buffer&>(to) = b;
      to.bytes_slot = plan_.sizes.slot(b.bytes);
      if (b.kind == lower::memory::constant)
        take_constant(graph_[values_.constants()[b.index]], by_elements[plan_.buffers.size() - 1], to);
    }
    plan_.arena_order.assign(values_.arena().begin(), values_.arena().end());
    for (const value_id v : graph_.parameters())
      plan_.inputs.push_back(slots_of(values_.placement_of(v), graph_.shape_of(v).type));
    for (std::uint32_t k = 0; k < graph_.outputs.size(); ++k)
      plan_.outputs.push_back(slots_of(values_.outputs()[k], graph_.shape_of(graph_.outputs[k]).type));
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      step& st = plan_.steps[i];
      st.last_touch = st.outputs != 0;
      for (std::uint32_t k = 0; k < st.outputs; ++k) {
        const planned_buffer& b = plan_.buffers[plan_.operands[st.first_operand + st.inputs + k].buffer];
        st.last_touch = st.last_touch && b.kind == lower::memory::output && b.last == i;
      }
    }
  }
  // By buffer: whether anything reads it otherwise than as bytes.
  std::vector<bool> read_by_elements() const {
    std::vector<bool> out(values_.buffers().size(), false);
    for (const step& s : plan_.steps) {
      const auto* const bytes = dynamic_cast<const byte_reader*>(s.run.get());
      for (std::uint32_t k = 0; k < s.inputs; ++k)
        if (!bytes || !bytes->reads_bytes_of(k)) out[plan_.operands[s.first_operand + k].buffer] = true;
    }
    for (const placement& p : values_.outputs())
      if (p.buffer < out.size()) out[p.buffer] = true;
    return out;
  }
  // As an argument of it, which copies what lies at an odd address, with all threads.
  literal aligned(const literal& l) {
    constexpr std::size_t some = std::size_t{1} << 20;
    const std::size_t bytes = l.data().size();
    if (bytes < 2 * some || reinterpret_cast<std::uintptr_t>(l.bytes()) % size_of(l.get_shape().type) == 0)
      return argument(l).to_literal();
    buffer copy = buffer::allocate(bytes);
    pool_.parallel_for(static_cast<std::int64_t>((bytes + some - 1) / some), [&](std::int64_t task, unsigned) {
      const std::size_t at = static_cast<std::size_t>(task) * some;
      std::memcpy(copy.data() + at, l.bytes() + at, std::min(some, bytes - at));
    });
    forget_pages(l.data());
    return {l.get_shape(), std::move(copy)};
  }
  void take_constant(const instruction& ins, bool by_elements, planned_buffer& to) {
    to.type = ins.results[0].type;
    if (ins.constant.has_symbols()) {
      to.kind = lower::memory::symbolic;
      for (dimension d : *ins.constant.data().values<dimension>()) to.values.push_back(plan_.sizes.slot(d));
    } else {
      to.constant = target_.has_device() || !by_elements ? ins.constant : aligned(ins.constant);
      if (choices_.held) choices_.held->emplace(ins.constant.bytes(), to.constant);
      plan_.constant_bytes += to.constant.data().size();
    }
  }

  program& program_;
  module_graph& graph_;
  const target& target_;
  thread_pool& pool_;
  const plan_choices choices_;
  constant_memory memory_;
  lower::layout_plan<program> layouts_;
  plan plan_;
  std::vector<std::unique_ptr<kernel>> kernels_;
  std::vector<std::uint32_t> widened_;  // conversions of large constants, see is_widened_late
  lower::memory_plan<program, planner> values_;
  std::uint32_t nowhere_ = lower::none;
};

}  // namespace

plan make_plan(program& p, const target& t, const compile_options& options, const plan_choices& choices,
               thread_pool& pool, std::vector<std::string>& remarks) {
  return planner(p, t, options, choices, pool, remarks).build();
}

}  // namespace kiln::detail
