#include "kiln/fixed/impl/cpp_exporter.hpp"
#include "kiln/fixed/reduce_plan.hpp"

namespace kiln::fixed {

std::string cpp_exporter::nest::offset(std::size_t operand, std::string_view prefix) const {
  index_text t;
  for (std::size_t d = 0; d < extent.size(); ++d) t.add(cat(prefix, d), step[operand][d]);
  return t.str();
}

void cpp_exporter::open(const nest& n, std::string_view prefix) {
  for (std::size_t d = 0; d < n.extent.size(); ++d) out_.loop(cat(prefix, d), n.extent[d]);
}

std::string cpp_exporter::literal_value(const node& n) const {
  const scalar_kind kind = kind_of_values(n.type);
  const expr e =
      kind == scalar_kind::f32
          ? expr::constant(static_cast<double>(std::bit_cast<float>(static_cast<std::int32_t>(n.attributes))), kind)
      : kind == scalar_kind::f64 ? expr::constant(std::bit_cast<double>(n.attributes), kind)
                                 : expr::constant(n.attributes, kind);
  return print_source(e, {}, {.prefix = "math::"}).str();
}

std::string cpp_exporter::traced(const operation& op, trace_part part, dtype type, std::vector<std::string> names,
                                 std::size_t conditions, const std::string& temporary) {
  std::vector<expr> arguments;
  for (std::size_t i = 0; i < names.size(); ++i)
    arguments.push_back(
        expr::argument(static_cast<int>(i), i < conditions ? scalar_kind::boolean : kind_of_values(type)));
  const expr result = as_kind(op.trace(part, arguments), kind_of_values(type));
  const source_text text = print_source(result, names, {.prefix = "math::", .temporary = temporary});
  for (const std::string& s : text.statements) out_.line(s);
  std::string value = text.values[0];
  if (value.size() > 2 && value.front() == '(' && value.find(')') == value.size() - 1)
    value = value.substr(1, value.size() - 2);
  return value;
}

void cpp_exporter::write_node(const draft& d, std::size_t k, std::string_view prefix) {
  const node& n = d.nodes[k];
  const std::string name = cat(prefix, k);
  // these may be read by other stages of a row only
  if (n.op == node::literal || n.kind == op_kind::view)
    return out_.line("[[maybe_unused]] const ", value_name(n.type), " ", name, " = ",
                     n.op == node::literal ? literal_value(n) : cat(prefix, n.inputs[0]), ";");
  const operation& op = plan_.operation(n.attributes);
  const auto conditions = static_cast<std::size_t>(op.info().conditions);
  std::vector<std::string> names;
  for (std::uint32_t i : n.inputs) names.push_back(cat(prefix, i));
  const dtype from = d.nodes[n.inputs[conditions]].type;
  std::string value = traced(op, trace_part::compute, from, std::move(names), conditions, cat(name, "_"));
  // what is stored decides the value: i32 wraps though it is computed in 64 bits, a converted float is clamped
  const bool same = kind_of_values(from) == kind_of_values(n.type);
  const bool whole = is_float(n.type) || n.type == dtype::boolean || size_of(n.type) == 8;
  if (n.type != dtype::boolean && (!same || !whole))
    value = cat("math::stored<", stored_name(n.type), ">(", value, ")");
  else if (n.type == dtype::boolean && from != dtype::boolean && !op.info().returns_bool)
    value = cat("(", value, ") != 0");
  out_.line("const ", value_name(n.type), " ", name, " = ", value, ";");
}

void cpp_exporter::write_copy(const draft& d) {
  const std::vector<place> at = places(d);
  const nest n = make_nest(at[1].lens, at, [](std::size_t) { return true; });
  declare("from", at[0], false);
  declare("to", at[1], true);
  open(n, "i");
  out_.line("to[", n.offset(1, "i"), "] = from[", n.offset(0, "i"), "];");
  out_.close(n.extent.size());
}

void cpp_exporter::write_pointwise(const draft& d) {
  const std::vector<place> at = places(d);
  const nest n = make_nest(d.outputs.empty() ? ints{} : at[d.inputs.size()].lens, at, [](std::size_t) { return true; });
  for (std::size_t k = 0; k < at.size(); ++k)
    declare(k < d.inputs.size() ? cat("in", k) : cat("out", k - d.inputs.size()), at[k], k >= d.inputs.size());
  open(n, "i");
  for (std::size_t k = 0; k < d.nodes.size(); ++k) {
    if (d.nodes[k].op == node::parameter)
      out_.line("const ", value_name(d.nodes[k].type), " v", k, " = in", k, "[", n.offset(k, "i"), "];");
    else
      write_node(d, k);
  }
  for (std::size_t k = 0; k < d.outputs.size(); ++k)
    out_.line("out", k, "[", n.offset(d.inputs.size() + k, "i"), "] = static_cast<", stored_name(d.outputs[k].type),
              ">(v", d.results[k], ");");
  out_.close(n.extent.size());
}

void cpp_exporter::write_reduce(const draft& d) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const reduce_plan plan = plan_reduce(nodes);
  const std::vector<place> at = places(d);
  const auto node_of = [&](std::size_t k) {
    return k < d.inputs.size() ? k : static_cast<std::size_t>(d.results[k - d.inputs.size()]);
  };
  const nest rows = make_nest(plan.full, at, [&](std::size_t k) { return !plan.reduced[k]; });
  std::vector<place> inner = at;
  for (std::size_t k = 0; k < inner.size(); ++k)
    if (plan.values[node_of(k)].row)
      for (std::int64_t& s : inner[k].strides) s = 0;
  const nest inside = make_nest(plan.full, inner, [&](std::size_t k) { return plan.reduced[k]; });
  const std::int64_t length = plan.row_elements(), last = inside.extent.empty() ? 1 : inside.extent.back();
  const std::size_t outer = inside.extent.empty() ? 0 : inside.extent.size() - 1;

  for (std::size_t k = 0; k < at.size(); ++k)
    declare(k < d.inputs.size() ? cat("in", k) : cat("out", k - d.inputs.size()), at[k], k >= d.inputs.size());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (plan.values[k].saved)
      out_.line(stored_name(nodes[k].type), "* const saved", k, " = reinterpret_cast<", stored_name(nodes[k].type),
                "*>(arena_ + ", take_scratch(length * 8), ");");
  open(rows, "r");
  const auto element = [&](std::size_t k) {  // its index, with x along the last dim
    index_text t;
    for (std::size_t i = 0; i < rows.extent.size(); ++i) t.add(cat("r", i), rows.step[k][i]);
    for (std::size_t i = 0; i < outer; ++i) t.add(cat("p", i), inside.step[k][i]);
    if (!inside.extent.empty()) t.add("x", inside.step[k].back());
    return t.str();
  };
  const auto flat = [&] {
    index_text t;
    std::int64_t step = last;
    std::vector<std::int64_t> steps(outer);
    for (std::size_t i = outer; i-- > 0; step *= inside.extent[i]) steps[i] = step;
    for (std::size_t i = 0; i < outer; ++i) t.add(cat("p", i), steps[i]);
    return t.add("x", 1).str();
  }();
  for (std::size_t k = 0; k < d.inputs.size(); ++k)
    if (plan.values[k].row)
      out_.line("const ", value_name(nodes[k].type), " v", k, " = in", k, "[", rows.offset(k, "r"), "];");
  for (std::uint32_t s = 0; s <= plan.stages; ++s) {
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (plan.values[k].row && plan.values[k].stage == s && !is_reduction(nodes[k]) && nodes[k].op != node::parameter)
        write_node(d, k);
    if (s == plan.stages) break;
    // one loop over the row; sums are kept for each lane, so that compilers vectorise them
    std::vector<std::size_t> sums;
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (is_reduction(nodes[k]) && plan.values[k].stage == s + 1) sums.push_back(k);
    bool any = !sums.empty();
    for (std::size_t k = 0; k < d.outputs.size(); ++k)
      any = any || (!plan.values[d.results[k]].row && plan.values[d.results[k]].stage == s);
    for (std::size_t k = 0; k < nodes.size(); ++k)
      any = any || (plan.values[k].saved && plan.values[k].stage == s && nodes[k].op >= 0 && !plan.values[k].row);
    if (!any) continue;
    for (std::size_t k : sums) {
      const std::string type = value_name(nodes[k].type);
      node start;
      start.type = nodes[k].type;
      start.op = node::literal;
      const operation& op = plan_.operation(nodes[k].attributes);
      visit_compute(start.type, [&]<class T>(type_tag<T>) {
        T value{};
        op.table().start(op.data(), start.type, &value);
        words w;
        put_words(w, value);
        start.attributes = w[0];
      });
      out_.line(type, " sum", k, "[lanes];");
      out_.line("for (", type, "& each : sum", k, ") each = ", literal_value(start), ";");
    }
    std::string positions;
    for (std::size_t i = 0; i < outer; ++i) positions += cat("std::int64_t p", i, ", ");
    out_.line("const auto visit", s, " = [&](", positions,
              "[[maybe_unused]] std::int64_t x, [[maybe_unused]] int lane) {");
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const node& n = nodes[k];
      const reduce_plan::value& v = plan.values[k];
      if (v.row) continue;
      if (n.op == node::parameter)
        out_.line("[[maybe_unused]] const ", value_name(n.type), " v", k, " = in", k, "[", element(k), "];");
      else if (v.stage < s && v.saved)
        out_.line("[[maybe_unused]] const ", value_name(n.type), " v", k, " = saved", k, "[", flat, "];");
      else if (v.stage == s || (v.stage < s && (n.op == node::literal || n.kind == op_kind::view)))
        write_node(d, k);
      if (n.op >= 0 && n.kind != op_kind::view && v.stage == s && v.saved)
        out_.line("saved", k, "[", flat, "] = static_cast<", stored_name(n.type), ">(v", k, ");");
    }
    for (std::size_t k : sums) {
      const operation& op = plan_.operation(nodes[k].attributes);
      const std::string x =
          traced(op, trace_part::prepare, nodes[k].type, {cat("v", nodes[k].inputs[0])}, 0, cat("x", k, "_"));
      const std::string y =
          traced(op, trace_part::combine, nodes[k].type, {cat("sum", k, "[lane]"), x}, 0, cat("y", k, "_"));
      out_.line("sum", k, "[lane] = ", y, ";");
    }
    for (std::size_t k = 0; k < d.outputs.size(); ++k)
      if (!plan.values[d.results[k]].row && plan.values[d.results[k]].stage == s)
        out_.line("out", k, "[", element(d.inputs.size() + k), "] = static_cast<", stored_name(d.outputs[k].type),
                  ">(v", d.results[k], ");");
    out_.line("};");
    std::string parts;
    for (std::size_t i = 0; i < outer; ++i) {
      out_.loop(cat("p", i), inside.extent[i]);
      parts += cat("p", i, ", ");
    }
    out_.line("constexpr std::int64_t whole", s, " = ", last, " / lanes * lanes;");
    out_.line("for (std::int64_t x = 0; x < whole", s, "; x += lanes) {");
    out_.line("for (int lane = 0; lane < lanes; ++lane) visit", s, "(", parts, "x + lane, lane);");
    out_.line("}");
    out_.line("for (std::int64_t x = whole", s, "; x < ", last, "; ++x) visit", s, "(", parts,
              "x, static_cast<int>(x - whole", s, "));");
    out_.close(outer);
    for (std::size_t k : sums) {
      const operation& op = plan_.operation(nodes[k].attributes);
      const std::string type = value_name(nodes[k].type);
      out_.line(type, " all", k, " = sum", k, "[0];");
      out_.line("for (int lane = 1; lane < lanes; ++lane) {");
      const std::string y =
          traced(op, trace_part::combine, nodes[k].type, {cat("all", k), cat("sum", k, "[lane]")}, 0, cat("z", k, "_"));
      out_.line("all", k, " = ", y, ";");
      out_.line("}");
      const std::string value = traced(op, trace_part::finish, nodes[k].type,
                                       {cat("all", k), cat(type, "(", length, ")")}, 0, cat("f", k, "_"));
      out_.line("const ", type, " v", k, " = math::stored<", stored_name(nodes[k].type), ">(", value, ");");
    }
    out_.line("");
  }
  for (std::size_t k = 0; k < d.outputs.size(); ++k)
    if (plan.values[d.results[k]].row)
      out_.line("out", k, "[", rows.offset(d.inputs.size() + k, "r"), "] = static_cast<",
                stored_name(d.outputs[k].type), ">(v", d.results[k], ");");
  out_.close(rows.extent.size());
}

}  // namespace kiln::fixed
