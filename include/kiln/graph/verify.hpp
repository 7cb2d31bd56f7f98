#pragma once
#include "kiln/graph/module.hpp"

namespace kiln {

/// A broken invariant of a graph and the place where it was found.
struct graph_fault {
  std::uint32_t module = 0, instruction = 0;
  text op;    ///< the op's name, or "parameter", "literal", "output"
  text name;  ///< the instruction's name, where it has one
  fault why;
};

namespace detail {

template <class Program> class verifier {
 public:
  using module_type = typename Program::module_type;
  using instruction = typename module_type::instruction;

  /// `freed`: whether constants may have a shape alone, as those have whose data kernels have packed.
  constexpr explicit verifier(const Program& p, bool freed = false) : program_(p), freed_(freed) {}

  constexpr small_vector<graph_fault> run() {
    for (std::uint32_t k = 0; k < program_.modules(); ++k) check_module(k);
    return std::move(faults_);
  }

 private:
  constexpr void report(std::string_view op, std::string_view name, const fault& why) {
    graph_fault f;
    f.module = module_;
    f.instruction = instruction_;
    f.op = text(op);
    f.name = text(name);
    f.why = why;
    faults_.push_back(std::move(f));
  }
  constexpr void report(const instruction& i, const fault& why) {
    report(i.kind == instruction_kind::op          ? i.op.name()
           : i.kind == instruction_kind::parameter ? std::string_view("parameter")
                                                   : std::string_view("literal"),
           i.name.view(), why);
  }
  static constexpr bool same_shape(const shape& a, const shape& b) { return a.type == b.type && a.lens == b.lens; }

  constexpr void check_module(std::uint32_t k) {
    const module_type& m = program_.module({k});
    module_ = k;
    for (instruction_ = 0; instruction_ < m.size(); ++instruction_) check_instruction(m, m[instruction_]);
    check_names(m);
    instruction_ = static_cast<std::uint32_t>(m.size());
    if (m.faulty) report(m.first_fault_op.view(), {}, m.first_fault);
    for (value_id v : m.outputs)
      if (v.instruction >= m.size() || v.result >= m[v.instruction].results.size())
        report("output", {},
               fault::of(errc::internal, "an output names a value of its module", m.size(), v.instruction));
    if (!m.output_names.empty() && m.output_names.size() != m.outputs.size())
      report("output", {},
             fault::of(errc::internal, "as many names as outputs", m.outputs.size(), m.output_names.size()));
  }

  constexpr void check_instruction(const module_type& m, const instruction& i) {
    if (i.kind == instruction_kind::op && !i.op)
      return report("op", i.name.view(), fault::of(errc::internal, "an instruction of kind op holds an op"));
    if (i.kind != instruction_kind::op && !i.inputs.empty())
      report(i, fault::of(errc::internal, "only an op has inputs", 0, i.inputs.size()));
    if (i.results.empty()) return report(i, fault::of(errc::internal, "an instruction has a result"));
    for (value_id v : i.inputs) {
      if (v.instruction >= instruction_)
        return report(i, fault::of(errc::internal, "inputs are defined before use", instruction_, v.instruction));
      if (v.result >= m[v.instruction].results.size())
        return report(i,
                      fault::of(errc::internal, "an input names a result", m[v.instruction].results.size(), v.result));
    }
    for (const shape& s : i.results)
      if (!s.standard()) report(i, fault::of(errc::internal, "values are row-major", row_major(s.lens), s.strides));
    if (i.kind == instruction_kind::literal) return check_literal(i);
    if (i.kind != instruction_kind::op) return;
    if (i.op.kind() == op_kind::control) return check_body(m, i);
    if (calls_bodies(i)) return;
    shapes in;
    for (value_id v : i.inputs) in.push_back(m.shape_of(v));
    const auto out = i.op.shape_rule(in);
    if (!out) return report(i, out.why());
    if (out->size() != i.results.size())
      return report(
          i, fault::of(errc::internal, "as many results as the shape rule gives", out->size(), i.results.size()));
    for (std::size_t k = 0; k < out->size(); ++k)
      if (!same_shape((*out)[k], i.results[k]))
        report(i, fault::of(errc::shape_mismatch, "the shape rule agrees with the result", (*out)[k], i.results[k]));
  }

  // An instruction that calls bodies has the results it was made with.
  constexpr bool calls_bodies(const instruction& i) {
    if constexpr (requires(small_vector<module_ref> & out) { i.op.bodies(out); }) {
      small_vector<module_ref> called;
      i.op.bodies(called);
      for (const module_ref r : called)
        if (r.index == 0 || r.index >= program_.modules() || r.index == module_)
          report(i, fault::of(errc::internal, "a body is another module of the program", program_.modules(), r.index));
      return !called.empty();
    } else {
      return false;
    }
  }

  constexpr void check_literal(const instruction& i) {
    const literal& l = i.constant;
    if (i.results.size() != 1 || !same_shape(i.results[0], l.get_shape()))
      return report(i, fault::of(errc::internal, "a constant has its literal's shape", l.get_shape(), i.results[0]));
    if (!l.get_shape().is_constant())
      return report(i, fault::of(errc::internal, "a constant's dims are known", "constants", l.get_shape()));
    if (freed_ && l.bytes() == nullptr && !l.has_symbols()) return;
    const auto n = static_cast<std::size_t>(l.elements());
    std::size_t held = 0;
    if (const auto* d = l.data().template values<dimension>())
      held = d->size();
    else if (l.data().data())
      held = l.data().size() / size_of(l.get_shape().type);
    else
      visit_compute(l.get_shape().type, [&]<class T>(type_tag<T>) {
        if (const auto* v = l.data().template values<T>()) held = v->size();
      });
    if (held < n) report(i, fault::of(errc::internal, "a constant has a value for each element", n, held));
  }

  constexpr void check_body(const module_type& m, const instruction& i) {
    const std::uint32_t at = i.op.body().index;
    if (at == 0 || at >= program_.modules() || at == module_)
      return report(i, fault::of(errc::internal, "a body is another module of the program", program_.modules(), at));
    const module_type& body = program_.module({at});
    std::size_t k = 0;
    for (std::uint32_t b = 0; b < body.size(); ++b) {
      if (body[b].kind != instruction_kind::parameter) continue;
      if (k < i.inputs.size() && !same_shape(body[b].results[0], m.shape_of(i.inputs[k])))
        report(i, fault::of(errc::shape_mismatch, "an input has the shape of the body's parameter", body[b].results[0],
                            m.shape_of(i.inputs[k])));
      ++k;
    }
    if (k != i.inputs.size())
      report(i, fault::of(errc::internal, "as many inputs as the body has parameters", k, i.inputs.size()));
    if (body.outputs.size() != i.results.size())
      return report(i, fault::of(errc::internal, "as many results as the body has outputs", body.outputs.size(),
                                 i.results.size()));
    for (k = 0; k < i.results.size(); ++k) {
      const value_id v = body.outputs[k];
      if (v.instruction < body.size() && v.result < body[v.instruction].results.size() &&
          !same_shape(body.shape_of(v), i.results[k]))
        report(i, fault::of(errc::shape_mismatch, "a result has the shape of the body's output", body.shape_of(v),
                            i.results[k]));
    }
  }

  constexpr void check_names(const module_type& m) {
    for (instruction_ = 0; instruction_ < m.size(); ++instruction_) {
      if (m[instruction_].kind != instruction_kind::parameter) continue;
      for (std::uint32_t j = 0; j < instruction_; ++j)
        if (m[j].kind == instruction_kind::parameter && m[j].name == m[instruction_].name)
          report(m[instruction_],
                 fault::of(errc::internal, "parameters have different names", "a name of its own", m[j].name.view()));
    }
  }

  const Program& program_;
  const bool freed_;
  std::uint32_t module_ = 0, instruction_ = 0;
  small_vector<graph_fault> faults_;
};

[[noreturn]] void throw_graph_fault(const graph_fault& f);

}  // namespace detail

/// Every broken invariant of a program: values defined before use and in range, results that agree with each op's shape
/// rule, constants with data, bodies that fit their calls, parameters with names of their own.
template <class Program> constexpr small_vector<graph_fault> find_faults(const Program& p) {
  return detail::verifier<Program>(p).run();
}
small_vector<graph_fault> find_faults(const program& p);

/// Throws `error` with the first fault, naming op and instruction.
template <class Program> constexpr void verify(const Program& p) {
  const auto faults = find_faults(p);
  if (faults.empty()) return;
  if (std::is_constant_evaluated()) raise(faults[0].why);
  detail::throw_graph_fault(faults[0]);
}

}  // namespace kiln
