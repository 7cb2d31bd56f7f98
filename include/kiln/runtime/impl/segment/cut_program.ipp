#include <algorithm>
#include <set>

#include "kiln/graph/symbols.hpp"
#include "kiln/lower/views.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/runtime/impl/segment/segments.hpp"

namespace kiln::detail {

bool runs_on_host(const module_graph& m, std::uint32_t i) {
  const auto& ins = m[i];
  if (ins.kind != instruction_kind::op) return false;
  if (ins.op.kind() == op_kind::dynamic) return true;
  const auto holds_objects = [](const shape& s) { return is_object(s.type); };
  for (const value_id v : ins.inputs)
    if (holds_objects(m.shape_of(v))) return true;
  return std::any_of(ins.results.begin(), ins.results.end(), holds_objects);
}

bool has_segments(const program& p) {
  const module_graph& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (runs_on_host(m, i)) return true;
  // the host alone hands objects on
  return std::any_of(m.outputs.begin(), m.outputs.end(), [&](value_id v) { return is_object(m.shape_of(v).type); });
}

void known_symbols::match(const shape& stated, const shape& made, std::string_view what) {
  const auto refuse = [&] {
    raise(errc::shape_mismatch, std::string(what) + ": expected " + to_string(stated) + ", found " + to_string(made));
  };
  const bool holder = made.type == dtype::sequence || made.type == dtype::optional || made.type == dtype::map;
  if (stated.type == dtype::optional && !holder) return;  // what one held, handed to the caller
  if (stated.type != made.type || stated.rank() != made.rank()) refuse();
  for (std::size_t d = 0; d < made.rank(); ++d) {
    const dimension open = values.substitute(stated.lens[d]);
    if (is_symbol(open))
      bind(open, made.lens[d].value());
    else if (!(open == made.lens[d]))
      refuse();
  }
}

namespace {

// A part of a program as a program of its own: with the bodies that it calls, and no others.
class part_of {
 public:
  explicit part_of(const program& whole) : whole_(whole) {}

  program part;

  /// The op, calling bodies of the part.
  operation moved(const operation& op) {
    const auto with = [&]<class Op>(Op o, auto... bodies) {
      ((o.*bodies = copied(o.*bodies)), ...);
      return operation(o);
    };
    if (const auto* f = op.get_if<op::fused>()) return with(*f, &op::fused::body);
    if (const auto* b = op.get_if<op::branch>()) return with(*b, &op::branch::then_body, &op::branch::else_body);
    if (const auto* l = op.get_if<op::loop>()) return with(*l, &op::loop::iteration);
    return op;
  }
  /// A body with all that it calls.
  module_graph moved(const module_graph& m) {
    module_graph out = m;
    for (std::uint32_t i = 0; i < out.size(); ++i)
      if (out[i].kind == instruction_kind::op) out[i].op = moved(out[i].op);
    return out;
  }

 private:
  module_ref copied(module_ref r) {
    const auto [at, fresh] = copied_.try_emplace(r.index);
    if (fresh) {
      module_graph m = moved(whole_.module(r));
      copied_[r.index] = part.add_module(std::move(m));
    }
    return copied_[r.index];
  }

  const program& whole_;
  std::map<std::uint32_t, module_ref> copied_;
};

class cutter {
 public:
  cutter(compiled_program& p, const target& t, const plan_choices& choices, const std::vector<output_alias>& aliases)
      : program_(p.optimized),
        graph_(program_.main()),
        target_(t),
        pool_(p.pool),
        choices_(choices),
        growing_(growing_outputs(graph_, aliases)),
        report_(p.report) {}

  segmentation cut() {
    number_values();
    assign();
    out_.segments.resize(last_ + 1);
    at_.resize(last_ + 1);
    for (const std::uint32_t i : order_)
      if (is_op(i)) at_[segment_[i]].push_back(i);
    wanted_.resize(last_ + 1);
    for (std::uint32_t k = 0; k <= last_; ++k) collect_wanted(k);
    for (const value_id v : graph_.outputs) want(v);
    for (std::uint32_t k = last_ + 1; k-- > 0;) want_sources(k);
    for (std::uint32_t k = 0; k <= last_; ++k) {
      add_segment(k);
      for (const std::uint32_t i : at_[k])
        if (host_[i]) add_host_step(i);
    }
    for (const value_id v : graph_.outputs) out_.outputs.push_back(slot(v));
    std::size_t grown = 0;
    for (const segment& s : out_.segments) grown += s.growing.size();
    if (grown != growing_.size())
      raise(errc::unsupported,
            "an output can't grow in place: the part of the program that makes it is a step of the host");
    return std::move(out_);
  }

 private:
  bool is_op(std::uint32_t i) const { return graph_[i].kind == instruction_kind::op; }
  bool is_constant(value_id v) const { return graph_.producer(v).kind == instruction_kind::literal; }
  bool is_parameter(value_id v) const { return graph_.producer(v).kind == instruction_kind::parameter; }

  void number_values() {
    first_.resize(graph_.size());
    for (const value_id v : graph_.parameters()) first_[v.instruction] = static_cast<std::uint32_t>(out_.slots++);
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (graph_[i].kind != instruction_kind::parameter) {
        first_[i] = static_cast<std::uint32_t>(out_.slots);
        out_.slots += graph_[i].results.size();
      }
  }
  std::uint32_t number(value_id v) const { return first_[v.instruction] + v.result; }
  // A value's slot; a constant that is read outside planned parts becomes an argument.
  std::uint32_t slot(value_id v) {
    if (is_constant(v) && !held_[v.instruction]) {
      held_[v.instruction] = true;
      const literal& l = graph_.producer(v).constant;
      if (l.has_symbols()) {
        out_.symbolic.emplace(number(v), l);
      } else {
        out_.constants.emplace_back(number(v), argument(l));
        if (choices_.held) choices_.held->emplace(l.bytes(), out_.constants.back().second.to_literal());
      }
    }
    return number(v);
  }

  void symbols_of(const module_graph& m, std::uint32_t i, small_vector<dimension>& out) const {
    collect_symbols(m, i, out);
    if (m[i].kind != instruction_kind::op || !m[i].op.is<op::fused>()) return;
    const module_graph& body = program_.module(m[i].op.body());
    for (std::uint32_t k = 0; k < body.size(); ++k) symbols_of(body, k, out);
  }

  // The segment of each instruction: planned ones run before the host steps of their segment.
  void assign() {
    segment_.assign(graph_.size(), 0);
    host_.assign(graph_.size(), false);
    held_.assign(graph_.size(), false);
    // bodies of fused ops mention symbols too, which the module's own order does not see
    const symbol_binders binders(graph_);
    std::vector<small_vector<std::uint32_t>> needed(graph_.size());
    small_vector<dimension> mentioned;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      host_[i] = runs_on_host(graph_, i);
      for (const value_id v : graph_[i].inputs) needed[i].push_back(v.instruction);
      if (graph_[i].kind == instruction_kind::parameter || binders.empty()) continue;
      mentioned.clear();
      symbols_of(graph_, i, mentioned);
      for (const dimension d : mentioned)
        if (const auto b = binders.find(d); b && *b != i) needed[i].push_back(*b);
    }
    small_vector<std::uint8_t> seen(graph_.size(), 0);
    const auto before = [&](std::uint32_t i, std::size_t k) {
      return k < needed[i].size() ? needed[i][k] : value_id{}.instruction;
    };
    for (std::uint32_t i = 0; i < graph_.size(); ++i) append_depth_first(i, seen, order_, before);
    small_vector<std::uint8_t> placed(graph_.size(), 0);
    for (const std::uint32_t i : order_) {
      for (const std::uint32_t earlier : needed[i])
        if (placed[earlier])
          segment_[i] = std::max(segment_[i], segment_[earlier] + (host_[earlier] && !host_[i] ? 1 : 0));
      placed[i] = 1;
      last_ = std::max(last_, segment_[i]);
    }
  }

  // A view is made anew where it is read, so that nothing is written out for it.
  bool moves(value_id v) const { return is_op(v.instruction) && !host_[v.instruction] && is_view(graph_.producer(v)); }

  void want(value_id v) {
    if (is_constant(v) || is_parameter(v) || host_[v.instruction]) return;
    if (asked_.insert(number(v)).second) wanted_[segment_[v.instruction]].push_back(v);
  }
  // What a segment's planned part has to hand on.
  void collect_wanted(std::uint32_t k) {
    const auto want_from = [&](auto& self, value_id v, std::uint32_t reader) -> void {
      if (moves(v))
        self(self, graph_.producer(v).inputs[0], reader);
      else if (segment_[v.instruction] < reader)
        want(v);
    };
    for (const std::uint32_t i : at_[k])
      for (const value_id v : graph_[i].inputs)
        if (host_[i])
          want(v);
        else if (!is_view(graph_[i]))
          want_from(want_from, v, k);
  }
  // A view that is handed on reads its source in its own segment, or hands on an earlier one's: from the last segment
  // to the first.
  void want_sources(std::uint32_t k) {
    for (std::size_t n = 0; n < wanted_[k].size(); ++n) {
      value_id v = wanted_[k][n];
      if (!moves(v)) continue;
      while (moves(v)) v = graph_.producer(v).inputs[0];
      if (segment_[v.instruction] < k) want(v);
    }
  }

  void add_segment(std::uint32_t k) {
    if (wanted_[k].empty()) return;
    part_of cut(program_);
    module_graph part;
    part.name = graph_.name;
    std::map<std::uint32_t, value_id> made;
    std::vector<std::uint32_t> in, out;
    const auto get = [&](auto& self, value_id v) -> value_id {
      if (const auto found = made.find(number(v)); found != made.end()) return found->second;
      const auto& ins = graph_.producer(v);
      const bool inside = is_op(v.instruction) && !host_[v.instruction] && (segment_[v.instruction] == k || moves(v));
      value_id at;
      if (is_constant(v)) {
        at = part.add_literal(ins.constant);
      } else if (inside) {
        small_vector<value_id> inputs;
        for (const value_id in : ins.inputs) inputs.push_back(self(self, in));
        const value_id first = part.add_with_shapes(cut.moved(ins.op), std::move(inputs), ins.results, ins.name.view());
        for (std::uint32_t r = 0; r < ins.results.size(); ++r) made[first_[v.instruction] + r] = {first.instruction, r};
        return made[number(v)];
      } else {
        const std::string name = is_parameter(v) ? ins.name.str() : "value " + std::to_string(number(v));
        at = part.add_parameter(name, graph_.shape_of(v));
        in.push_back(number(v));
      }
      if (!ins.name.empty()) part[at.instruction].name = ins.name;
      return made[number(v)] = at;
    };
    for (const value_id v : wanted_[k]) {
      part.outputs.push_back(get(get, v));
      part.output_names.push_back(text("value " + std::to_string(number(v))));
      out.push_back(number(v));
    }
    segment& s = out_.segments[k];
    std::vector<output_alias> aliases;
    for (const growing_output& g : growing_) {
      const auto made_at = std::find(out.begin(), out.end(), number(graph_.outputs[g.output]));
      if (made_at == out.end()) continue;
      const auto at = static_cast<std::uint32_t>(made_at - out.begin());
      part.output_names[at] = graph_.output_names[g.output];
      aliases.push_back({part.output_names[at].str(), graph_.producer(graph_.parameters()[g.input]).name.str()});
      s.growing.emplace_back(at, g.output);
    }
    cut.part.main() = std::move(part);
    s.planned = compile_part(std::move(cut.part), target_, pool_, choices_, std::move(aliases));
    s.in = std::move(in), s.out = std::move(out);
    const compile_report& part_report = s.planned->report;
    report_.steps.insert(report_.steps.end(), part_report.steps.begin(), part_report.steps.end());
    report_.constant_bytes += part_report.constant_bytes;
    report_.remarks.insert(report_.remarks.end(), part_report.remarks.begin(), part_report.remarks.end());
  }

  void add_host_step(std::uint32_t i) {
    const auto& ins = graph_[i];
    host_step s;
    s.op = ins.op;
    s.results = ins.results;
    s.name = ins.name.empty() ? std::string(ins.op.name()) + "#" + std::to_string(i) : ins.name.str();
    step_info info;
    info.kernel = std::string(ins.op.name()) + " (host)";
    info.instruction = s.name;
    for (const value_id v : ins.inputs) {
      s.in.push_back(slot(v));
      info.inputs.push_back(graph_.shape_of(v));
    }
    for (std::uint32_t r = 0; r < ins.results.size(); ++r) {
      s.out.push_back(number({i, r}));
      info.outputs.push_back(ins.results[r]);
    }
    if (target_.has_device() && ins.op.kind() == op_kind::dynamic) count_on_device(s, ins);
    if (s.counts) info.kernel = s.on_device->name();
    small_vector<module_ref> called;
    ins.op.bodies(called);
    for (const module_ref r : called) {
      part_of body(program_);
      module_graph moved = body.moved(program_.module(r));
      body.part.main() = std::move(moved);
      if (const auto* l = ins.op.get_if<op::loop>())
        s.loop = simplify_loop_body(body.part, static_cast<std::size_t>(l->carried));
      s.bodies.push_back(compile_part(std::move(body.part), target_, pool_, choices_));
      report_.remarks.push_back(s.name + " runs a body of " + std::to_string(s.bodies.back()->report.steps.size()) +
                                " kernels");
    }
    report_.steps.push_back(std::move(info));
    out_.segments[segment_[i]].steps.push_back(std::move(s));
  }

  // A kernel of the target that finds how large the step's result is.
  void count_on_device(host_step& s, const basic_instruction<operation>& ins) {
    const std::size_t n = ins.inputs.size();
    kernel_request request{program_, graph_, ins, std::vector<const literal*>(n), std::vector<layout>(n), {}};
    for (const value_id v : ins.inputs) request.inputs.push_back(graph_.shape_of(v));
    request.nhwc.resize(n);
    request.pool = pool_.get();
    request.derived = choices_.derived;
    s.on_device = target_.make_kernel(request);
    s.counts = dynamic_cast<const counting_kernel*>(s.on_device.get());
    if (!s.counts) return s.on_device.reset();
    // Of extents that only a run knows its functions are those for 64. A run with extents that ask for others, narrower
    // words to move slices by or wider places, builds them when it meets them first.
    const auto nominal = [](const shape& t) {
      ints lens;
      for (const dimension d : t.lens) lens.push_back(d.is_constant() ? d.value() : 64);
      return tensor{nullptr, t.type, lens, row_major(lens)};
    };
    std::vector<tensor> in, out;
    for (const shape& t : request.inputs) in.push_back(nominal(t));
    for (const shape& t : ins.results) out.push_back(nominal(t));
    s.on_device->prepare(in, out);
  }

  const program& program_;
  const module_graph& graph_;
  const target& target_;
  const std::shared_ptr<thread_pool>& pool_;
  const plan_choices choices_;
  const std::vector<growing_output> growing_;
  compile_report& report_;
  segmentation out_;
  std::vector<std::uint32_t> first_, segment_;
  small_vector<std::uint32_t> order_;
  std::vector<bool> host_, held_;
  std::vector<std::vector<std::uint32_t>> at_;  // instructions of each segment
  std::vector<std::vector<value_id>> wanted_;   // what each segment hands on
  std::set<std::uint32_t> asked_;
  std::uint32_t last_ = 0;
};

}  // namespace

segmentation cut_program(compiled_program& p, const target& t, const plan_choices& choices,
                         const std::vector<output_alias>& aliases) {
  return cutter(p, t, choices, aliases).cut();
}

}  // namespace kiln::detail
