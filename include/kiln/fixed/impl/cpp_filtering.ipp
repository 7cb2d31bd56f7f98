#include <utility>

#include "kiln/fixed/filtering_plan.hpp"
#include "kiln/fixed/impl/cpp_exporter.hpp"

namespace kiln::fixed {

namespace {

// Whether the text of a body is arithmetic, maxima and minima alone, which are the same text for vectors.
bool runs_on_vectors(std::string_view body) {
  for (std::size_t at = 0; (at = body.find("math::", at)) != body.npos; at += 6) {
    const std::string_view name = body.substr(at + 6, 4);
    if (name != "max(" && name != "min(") return false;
  }
  return body.find_first_of("?<>!&|") == body.npos && body.find("bool") == body.npos;
}

}  // namespace

std::string cpp_exporter::write_finish(const draft& d, std::span<const follower> read, std::string_view count) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const std::size_t product = product_node_of(nodes);
  cpp_writer around = std::exchange(out_, {});
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (k != product && nodes[k].op != node::parameter) write_node(d, k);
  const std::string body = out_.text();
  out_ = std::move(around);
  const bool vectors = runs_on_vectors(body);
  if (!vectors) {
    out_.line("float all[lanes];");
    out_.line("store(all, sums);");
    out_.line("for (int i = 0; i < ", count, "; ++i) {");
  }
  for (const follower& f : read) {
    if (vectors && f.along)
      out_.line("const auto v", f.node, " = load_some<", count, ">(", f.at, ");");
    else
      out_.line("const float v", f.node, " = (", f.at, ")[", f.along ? "i" : "0", "];");
  }
  out_.line(vectors ? "const auto v" : "const float v", product, vectors ? " = sums;" : " = all[i];");
  for (std::size_t begin = 0, end; (end = body.find('\n', begin)) != body.npos; begin = end + 1) {
    std::string text = body.substr(begin, end - begin);
    if (vectors && text.find("const float v") != text.npos) text.replace(text.find("const float v"), 11, "const auto");
    out_.line(text);
  }
  if (vectors) return cat("v", d.results[0]);
  out_.line("all[i] = v", d.results[0], ";");
  out_.close();
  return "load<vec<float, lanes>>(all)";
}

void cpp_exporter::write_filtering(const draft& d) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const std::size_t product = product_node_of(nodes);
  const auto sources = product_operands(nodes);
  const std::vector<place> at = places(d);
  const place &image = at[sources.lhs], &weight = at[sources.rhs], &to = at.back();
  const auto& op = *plan_.operation(nodes[product].attributes).get_if<op::convolution>();
  const kernels::filtering_extents f = plan_filtering(op, image, weight, to);

  declare("image", image, false);
  declare_prepared(weight);
  declare("out", to, true);
  const auto extra = epilogue_inputs(nodes);
  std::vector<follower> read;
  for (std::uint32_t k : extra) {
    declare(cat("in", k), at[k], false);
    const bool along = at[k].lens.size() > 1 && at[k].lens[1] != 1 && at[k].strides[1] == 1;
    read.push_back({k, cat("in", k, along ? " + f" : ""), along});
  }
  out_.line("constexpr filtering_extents extents{.channels = ", f.channels, ", .filters = ", f.filters,
            ", .height = ", f.height, ", .width = ", f.width, ", .out_height = ", f.out_height,
            ", .out_width = ", f.out_width, ", .top = ", f.top, ", .left = ", f.left, ", .x_channel = ", f.x_channel,
            ", .x_row = ", f.x_row, ", .y_channel = ", f.y_channel, ", .y_row = ", f.y_row,
            ", .halved = ", f.halved ? "true" : "false", "};");
  out_.line("// what follows the convolution, for the filters from f on");
  out_.line("const auto finish = [&]([[maybe_unused]] std::int64_t f, vec<float, lanes> sums) {");
  out_.line("return ", write_finish(d, read, "lanes"), ";");
  out_.line("};");
  out_.line("const auto greater = [](vec<float, lanes> a, vec<float, lanes> b) { return math::max(a, b); };");
  out_.loop("n", image.lens[0]);
  out_.line("fixed_filtering<extents, lanes, registers>(image + n * ", image.strides[0], ", filters, out + n * ",
            to.strides[0], ", reinterpret_cast<float*>(arena_ + ", take_scratch(f.memory() * 4),
            "), finish, greater);");
  out_.close();
}

}  // namespace kiln::fixed
