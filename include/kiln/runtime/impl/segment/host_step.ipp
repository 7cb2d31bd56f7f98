#include "kiln/core/object.hpp"
#include "kiln/op/dynamic/branch.hpp"
#include "kiln/op/dynamic/loop.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/segment/segments.hpp"

namespace kiln::detail {

namespace {

using arguments = small_vector<argument>;

struct caller {
  const host_step& step;
  const known_symbols& symbols;
  std::span<run_memory> inner;
  const run_options& options;

  std::vector<argument> run_body(std::size_t k, std::span<const argument> in) const {
    run_options plain;
    plain.cancel = options.cancel;
    std::vector<argument> out(step.bodies[k]->ports.outputs.size());
    step.bodies[k]->run(inner[k], in, out, plain, symbols.list);
    return out;
  }
};

bool one_bool(const argument& a, const char* what) {
  if (a.elements() != 1) raise(fault::of(errc::shape_mismatch, "number of elements of a condition", 1, a.elements()));
  if (a.get_shape().type != dtype::boolean) raise(errc::shape_mismatch, std::string(what) + " is a bool");
  return a.contiguous().as<bool>()[0];
}

arguments run_branch(const caller& c, std::span<const argument> in) {
  const auto& op = *c.step.op.get_if<op::branch>();
  const auto first = static_cast<std::size_t>(op.then_inputs);
  const std::vector<argument> out =
      one_bool(in[0], "a condition") ? c.run_body(0, in.subspan(1, first)) : c.run_body(1, in.subspan(1 + first));
  return arguments(std::span<const argument>(out));
}

// Pieces of one shape as one tensor with a new first dim; of no piece only the stated extents are known, others are 0.
argument stack(const std::vector<argument>& pieces, const shape& stated, const bindings& symbols) {
  const auto n = static_cast<std::int64_t>(pieces.size());
  shape whole{stated.type, {n}};
  if (pieces.empty()) {
    for (std::size_t d = 1; d < stated.rank(); ++d) {
      const dimension extent = symbols.substitute(stated.lens[d]);
      whole.lens.push_back(extent.is_constant() ? extent : dimension(0));
    }
    return argument(whole);
  }
  for (const dimension d : pieces[0].get_shape().lens) whole.lens.push_back(d);
  argument out(whole);
  const std::size_t bytes = static_cast<std::size_t>(pieces[0].get_shape().bytes().value());
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    if (!(pieces[k].get_shape().lens == pieces[0].get_shape().lens))
      raise(fault::of(errc::shape_mismatch, "what a loop collects has one shape in all iterations",
                      pieces[0].get_shape(), pieces[k].get_shape()));
    if (bytes) std::memcpy(out.data() + k * bytes, pieces[k].contiguous().data(), bytes);
  }
  return is_object(whole.type) ? retained(whole, out.data()) : out;
}

arguments run_loop(const caller& c, std::span<const argument> in) {
  const auto& op = *c.step.op.get_if<op::loop>();
  const auto carried = static_cast<std::size_t>(op.carried), collected = c.step.results.size() - carried;
  const std::int64_t most = in[0].contiguous().as<std::int64_t>()[0];
  bool goes_on = one_bool(in[1], "a loop's condition");
  arguments state(in.subspan(2));  // carried values, then what the body reads besides
  std::vector<std::vector<argument>> pieces(collected);
  for (std::int64_t k = 0; k < most && goes_on; ++k) {
    if (c.options.cancel && c.options.cancel->load(std::memory_order_relaxed))
      raise(errc::canceled, "the run was stopped before iteration " + std::to_string(k) + " of a loop");
    arguments given;
    given.push_back(argument::of<std::int64_t>({}, std::span<const std::int64_t>(&k, 1)));
    given.push_back(argument::of<bool>({}, std::span<const bool>(&goes_on, 1)));
    for (const argument& a : state) given.push_back(a);
    const std::vector<argument> out = c.run_body(0, given);
    goes_on = one_bool(out[0], "a loop's condition");
    for (std::size_t i = 0; i < carried; ++i) state[i] = out[1 + i];
    for (std::size_t i = 0; i < collected; ++i) pieces[i].push_back(out[1 + carried + i]);
  }
  arguments out;
  for (std::size_t i = 0; i < carried; ++i) out.push_back(state[i]);
  for (std::size_t i = 0; i < collected; ++i)
    out.push_back(stack(pieces[i], c.step.results[carried + i], c.symbols.values));
  return out;
}

}  // namespace

small_vector<argument> run_host_step(const host_step& step, std::span<const argument> in, const known_symbols& symbols,
                                     std::span<run_memory> inner, const run_options& options) {
  const caller c{step, symbols, inner, options};
  if (step.op.is<op::branch>()) return run_branch(c, in);
  if (step.op.is<op::loop>()) return run_loop(c, in);
  operation op = step.op;
  op.substitute(symbols.values);
  if (op.table().produce) return op.produce(in);
  return evaluate_op(op, in);
}

}  // namespace kiln::detail
