#include "kiln/cpp_export/impl/exporter.hpp"

namespace kiln::aot {

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

std::string cpp_exporter::write_part(const operation& op, trace_part part, dtype type,
                                     const std::vector<std::string>& names, const std::string& temporary) {
  const source_text text = print_op(op, part, type, names, 0, {.prefix = "math::", .temporary = temporary});
  for (const std::string& s : text.statements) out_.line(s);
  return text.values[0];
}

source_text cpp_exporter::node_text(const draft& d, std::size_t k, std::string_view prefix, bool vectors) const {
  const node& n = d.nodes[k];
  const operation& op = plan_.operation(n.attributes);
  const auto conditions = static_cast<std::size_t>(op.info().conditions);
  std::vector<std::string> names;
  for (std::uint32_t i : n.inputs) names.push_back(cat(prefix, i));
  const dtype from = d.nodes[n.inputs[conditions]].type;
  const std::string temporary = cat(prefix, k, "_");
  source_text text =
      print_op(op, trace_part::compute, from, names, conditions,
               {.prefix = "math::", .temporary = temporary, .deduced = vectors, .outer_parentheses = false});
  std::string& value = text.values[0];
  const narrowing how = narrowing_of(op.info(), from, n.type);
  if (how == narrowing::stored) value = cat("math::stored<", stored_name(n.type), ">(", value, ")");
  if (how == narrowing::not_zero) value = cat("(", value, ") != 0");
  return text;
}

void cpp_exporter::write_node(const draft& d, std::size_t k, std::string_view prefix, bool vectors) {
  const node& n = d.nodes[k];
  const std::string type = vectors ? "auto" : value_name(n.type);
  // constants and views may be read by other levels of a row only
  if (n.op == node::literal || n.kind == op_kind::view)
    return out_.line("[[maybe_unused]] const ", type, " ", prefix, k, " = ",
                     n.op == node::literal ? literal_value(n) : cat(prefix, n.inputs[0]), ";");
  const source_text text = node_text(d, k, prefix, vectors);
  for (const std::string& s : text.statements) out_.line(s);
  out_.line("const ", type, " ", prefix, k, " = ", text.values[0], ";");
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

}  // namespace kiln::aot
