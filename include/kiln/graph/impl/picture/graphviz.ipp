#include "kiln/graph/impl/picture/label.hpp"
#include "kiln/graph/picture.hpp"

namespace kiln {

namespace {

std::string quoted(const std::string& s) {
  std::string out;
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

void write_module(const program& p, std::uint32_t at, std::string& out) {
  const module_graph& m = p.module({at});
  const std::string prefix = "m" + std::to_string(at) + "_";
  out += "  subgraph cluster_" + std::to_string(at) + " {\n    label=\"" + quoted(m.name.str()) +
         (at ? " @" + std::to_string(at) : "") + "\";\n";
  const std::vector<bool> boxes = picture::boxes_of(m);
  const auto edge = [&](value_id from, const std::string& to) {
    while (!boxes[from.instruction] && m.producer(from).kind == instruction_kind::op) from = m.producer(from).inputs[0];
    if (boxes[from.instruction])
      out += "    " + prefix + std::to_string(from.instruction) + " -> " + prefix + to + ";\n";
  };
  for (std::uint32_t k = 0; k < m.size(); ++k) {
    if (!boxes[k]) continue;
    std::string label;
    for (const std::string& l : picture::label_of(p, m, boxes, k)) label += (label.empty() ? "" : "\\n") + quoted(l);
    out += "    " + prefix + std::to_string(k) + " [label=\"" + label + "\"";
    if (m[k].kind == instruction_kind::op)
      out += ", fillcolor=\"" + std::string(picture::color_of(m[k].op.kind())) + "\"";
    out += "];\n";
    for (const value_id v : m[k].inputs) edge(v, std::to_string(k));
  }
  for (std::size_t k = 0; k < m.outputs.size(); ++k) {
    out += "    " + prefix + "out" + std::to_string(k) + " [label=\"" + quoted(picture::output_name(m, k)) + "\"];\n";
    edge(m.outputs[k], "out" + std::to_string(k));
  }
  out += "  }\n";
}

}  // namespace

std::string to_graphviz(const program& p) {
  std::string out =
      "digraph kiln {\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\"];\n";
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    if (k == 0 || p.module({k}).size()) write_module(p, k, out);
  return out + "}\n";
}

}  // namespace kiln
