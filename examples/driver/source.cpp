#include "source.hpp"

#include <fmt/format.h>

#include <optional>

#include "kiln/core/trace.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::driver {

namespace {

scalar_kind scalar_of(dtype t) {
  if (t == dtype::boolean) return scalar_kind::boolean;
  if (is_float(t)) return t == dtype::f64 ? scalar_kind::f64 : scalar_kind::f32;
  return is_signed_integer(t) ? scalar_kind::i64 : scalar_kind::u64;
}

template <class Op, std::size_t... I>
std::string traced(const Op& op, std::span<const scalar_kind> kinds, const std::vector<std::string>& names,
                   std::index_sequence<I...>) {
  const expr arguments[] = {expr::argument(static_cast<int>(I), kinds[I])...};
  return print_source(as_kind(expr(op(arguments[I]...)), kinds.back()), names).str();
}

// What a pointwise op computes, from its own text; nothing for ops of other kinds and ops the registry does not know.
template <class... Ops>
std::optional<std::string> source_of(const operation& op, std::span<const scalar_kind> kinds,
                                     const std::vector<std::string>& names, type_list<Ops...>) {
  std::optional<std::string> out;
  const auto one = [&]<class Op>(type_tag<Op>) {
    if constexpr (kind_of<Op>() == op_kind::pointwise) {
      constexpr auto n = static_cast<std::size_t>(detail::call_arity<Op>());
      if (const Op* found = op.get_if<Op>(); found && kinds.size() == n)
        out = traced(*found, kinds, names, std::make_index_sequence<n>());
    }
  };
  (one(type_tag<Ops>{}), ...);
  return out;
}

std::string name_of(value_id v) {
  return fmt::format("v{}{}", v.instruction, v.result ? fmt::format("_{}", v.result) : "");
}

std::string line_of(const module_graph& m, std::uint32_t i) {
  const auto& ins = m[i];
  std::string results, operands;
  for (std::uint32_t k = 0; k < ins.results.size(); ++k)
    results += (k ? ", " : "") + to_string(ins.results[k]) + " " + name_of({i, k});
  if (ins.kind == instruction_kind::parameter) return results + " is operand";
  if (ins.kind == instruction_kind::literal) return results + " is constant";
  std::vector<scalar_kind> kinds;
  std::vector<std::string> names;
  for (value_id v : ins.inputs) {
    kinds.push_back(scalar_of(m.shape_of(v).type));
    names.push_back(name_of(v));
    operands += (operands.empty() ? "" : ", ") + names.back();
  }
  if (const auto text = source_of(ins.op, kinds, names, default_registry::types{})) return results + " = " + *text;
  return fmt::format("{} = {}({})", results, ins.op.name(), operands);
}

}  // namespace

std::string step_source(const executable& exe, const step_info& step) {
  if (step.index < 0) return {};
  const program& p = exe.optimized();
  const module_graph& main = p.main();
  const auto& ins = main[static_cast<std::uint32_t>(step.index)];
  if (!ins.op.is<op::fused>()) return "    " + line_of(main, static_cast<std::uint32_t>(step.index)) + "\n";
  const module_graph& body = p.module(ins.op.body());
  std::string out;
  for (std::uint32_t i = 0; i < body.size(); ++i) out += "    " + line_of(body, i) + "\n";
  std::string results;
  for (value_id v : body.outputs) results += (results.empty() ? "" : ", ") + name_of(v);
  return out + "    gives " + results + "\n";
}

}  // namespace kiln::driver
