#include <utility>

#include "kiln/fixed/filtering_plan.hpp"
#include "kiln/fixed/impl/cpp_exporter.hpp"
#include "kiln/kernel/filter_weights.hpp"

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

void cpp_exporter::write_filtering(const draft& d) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const std::size_t product = product_node_of(nodes);
  const auto sources = product_operands(nodes);
  const std::vector<place> at = places(d);
  const place &image = at[sources.lhs], &weight = at[sources.rhs], &to = at.back();
  const auto& op = *plan_.operation(nodes[product].attributes).get_if<op::convolution>();
  const kernels::filtering_extents f = plan_filtering(op, image, weight, to);

  const literal& l = graph_[plan_.constants()[static_cast<std::size_t>(weight.at.index)]].constant;
  std::vector<float> transformed(static_cast<std::size_t>(f.weights()));
  kernels::filter_weights(reinterpret_cast<const float*>(l.bytes()), transformed.data(), f.filters, f.channels);
  const std::int64_t weights =
      add_weights(reinterpret_cast<const std::byte*>(transformed.data()), transformed.size() * sizeof(float));

  declare("image", image, false);
  out_.line("const float* const filters = reinterpret_cast<const float*>(weights + ", weights, ");");
  declare("out", to, true);
  const auto extra = epilogue_inputs(nodes);
  for (std::uint32_t k : extra) declare(cat("in", k), at[k], false);
  out_.line("constexpr filtering_extents extents{.channels = ", f.channels, ", .filters = ", f.filters,
            ", .height = ", f.height, ", .width = ", f.width, ", .out_height = ", f.out_height,
            ", .out_width = ", f.out_width, ", .top = ", f.top, ", .left = ", f.left, ", .x_channel = ", f.x_channel,
            ", .x_row = ", f.x_row, ", .y_channel = ", f.y_channel, ", .y_row = ", f.y_row,
            ", .halved = ", f.halved ? "true" : "false", "};");
  cpp_writer around = std::exchange(out_, {});
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (k != product && nodes[k].op != node::parameter) write_node(d, k);
  const std::string body = out_.text();
  out_ = std::move(around);
  const bool vectors = runs_on_vectors(body);
  out_.line("// what follows the convolution, for the filters from f on");
  out_.line("const auto finish = [&]([[maybe_unused]] std::int64_t f, vec<float, lanes> sums) {");
  if (!vectors) {
    out_.line("float all[lanes];");
    out_.line("store(all, sums);");
    out_.line("for (int i = 0; i < lanes; ++i) {");
  }
  for (std::uint32_t k : extra) {
    const bool along = at[k].lens.size() > 1 && at[k].lens[1] != 1 && at[k].strides[1] == 1;
    if (vectors && along)
      out_.line("const auto v", k, " = load<vec<float, lanes>>(in", k, " + f);");
    else
      out_.line("const float v", k, " = in", k, "[", along ? "f + i" : "0", "];");
  }
  out_.line(vectors ? "const auto v" : "const float v", product, vectors ? " = sums;" : " = all[i];");
  for (std::size_t begin = 0, end; (end = body.find('\n', begin)) != body.npos; begin = end + 1) {
    std::string text = body.substr(begin, end - begin);
    if (vectors && text.find("const float v") != text.npos) text.replace(text.find("const float v"), 11, "const auto");
    out_.line(text);
  }
  out_.line(vectors ? "return v" : "all[i] = v", d.results[0], ";");
  if (!vectors) {
    out_.close();
    out_.line("return load<vec<float, lanes>>(all);");
  }
  out_.line("};");
  out_.line("const auto greater = [](vec<float, lanes> a, vec<float, lanes> b) { return math::max(a, b); };");
  out_.loop("n", image.lens[0]);
  out_.line("fixed_filtering<extents, lanes, registers>(image + n * ", image.strides[0], ", filters, out + n * ",
            to.strides[0], ", reinterpret_cast<float*>(arena_ + ", take_scratch(f.memory() * 4),
            "), finish, greater);");
  out_.close();
}

}  // namespace kiln::fixed
