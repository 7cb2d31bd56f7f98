#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/static_program/plan/winograd_nchw.hpp"

namespace kiln::aot {

bool cpp_exporter::runs_simt(const draft& d, std::size_t product) const {
  constexpr std::string_view alike[] = {"+", "-", "*", "/", "max", "min"};
  for (std::size_t k = 0; k < d.nodes.size(); ++k) {
    const node& n = d.nodes[k];
    if (n.type != dtype::f32) return false;
    if (k == product || n.op < 0 || n.kind == op_kind::view) continue;
    for (const std::string& call : node_text(d, k, "v", true).calls)
      if (std::find(std::begin(alike), std::end(alike), call) == std::end(alike)) return false;
  }
  return true;
}

std::string cpp_exporter::write_epilogue(const draft& d, std::span<const epilogue_operand> read,
                                         std::string_view count) {
  const std::size_t product = split_of({d.nodes.data(), d.nodes.size()}).contraction;
  const bool vectors = runs_simt(d, product);
  if (!vectors) {
    out_.line("float all[lanes];");
    out_.line("store(all, sums);");
    out_.line("for (int i = 0; i < ", count, "; ++i) {");
  }
  for (const epilogue_operand& f : read) {
    if (vectors && f.along)
      out_.line("const auto v", f.node, " = load_some<", count, ">(", f.at, ");");
    else
      out_.line("const float v", f.node, " = (", f.at, ")[", f.along ? "i" : "0", "];");
  }
  out_.line(vectors ? "const auto v" : "const float v", product, vectors ? " = sums;" : " = all[i];");
  for (std::size_t k = 0; k < d.nodes.size(); ++k)
    if (k != product && d.nodes[k].op != node::parameter) write_node(d, k, "v", vectors);
  if (vectors) return cat("v", d.results[0]);
  out_.line("all[i] = v", d.results[0], ";");
  out_.close();
  return "load<vec<float, lanes>>(all)";
}

void cpp_exporter::write_winograd_nchw(const draft& d) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const lower::contraction_split split = split_of(nodes);
  const std::vector<place> at = places(d);
  const place &image = at[split.operands[0]], &weight = at[split.operands[1]], &to = at.back();
  const auto& op = *plan_.operation(nodes[split.contraction].attributes).get_if<op::convolution>();
  const kernels::winograd_nchw_extents f = plan_winograd_nchw(op, image, weight, to);

  declare("image", image, false);
  declare_prepared(weight);
  declare("out", to, true);
  std::vector<epilogue_operand> read;
  for (std::uint32_t k : split.epilogue_inputs) {
    declare(cat("in", k), at[k], false);
    const bool along = at[k].lens.size() > 1 && at[k].lens[1] != 1 && at[k].strides[1] == 1;
    read.push_back({k, cat("in", k, along ? " + f" : ""), along});
  }
  out_.line("constexpr winograd_nchw_extents extents{.channels = ", f.channels, ", .filters = ", f.filters,
            ", .height = ", f.height, ", .width = ", f.width, ", .out_height = ", f.out_height,
            ", .out_width = ", f.out_width, ", .top = ", f.top, ", .left = ", f.left, ", .x_channel = ", f.x_channel,
            ", .x_row = ", f.x_row, ", .y_channel = ", f.y_channel, ", .y_row = ", f.y_row,
            ", .halved = ", f.halved ? "true" : "false", "};");
  out_.line("// the convolution's epilogue, for the filters from f on");
  out_.line("const auto epilogue = [&]([[maybe_unused]] std::int64_t f, vec<float, lanes> sums) {");
  out_.line("return ", write_epilogue(d, read, "lanes"), ";");
  out_.line("};");
  out_.line("const auto greater = [](vec<float, lanes> a, vec<float, lanes> b) { return math::max(a, b); };");
  out_.loop("n", image.lens[0]);
  out_.line("static_winograd_nchw<extents, lanes, registers>(image + n * ", image.strides[0], ", filters, out + n * ",
            to.strides[0], ", reinterpret_cast<float*>(arena_ + ", take_scratch(f.memory() * 4),
            "), epilogue, greater);");
  out_.close();
}

}  // namespace kiln::aot
