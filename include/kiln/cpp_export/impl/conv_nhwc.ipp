#include "kiln/cpp_export/impl/exporter.hpp"
#include "kiln/static_program/plan/conv_nhwc.hpp"
#include "kiln/static_program/step/prepare_weight.hpp"

namespace kiln::aot {

namespace {

std::string text_of(const kernels::window_extents& p) {
  return cat("constexpr window_extents extents{.channels = ", p.channels, ", .filters = ", p.filters,
             ", .height = ", p.height, ", .width = ", p.width, ", .out_height = ", p.out_height,
             ", .out_width = ", p.out_width, ", .kernel_rows = ", p.kernel_rows,
             ", .kernel_columns = ", p.kernel_columns, ", .row_stride = ", p.row_stride,
             ", .column_stride = ", p.column_stride, ", .row_dilation = ", p.row_dilation,
             ", .column_dilation = ", p.column_dilation, ", .top = ", p.top, ", .left = ", p.left,
             ", .x_channel = ", p.x_channel, ", .x_row = ", p.x_row, ", .x_column = ", p.x_column, "};");
}
std::string text_of(const kernels::winograd_nhwc_extents& p) {
  return cat("constexpr winograd_nhwc_extents extents{.channels = ", p.channels, ", .filters = ", p.filters,
             ", .height = ", p.height, ", .width = ", p.width, ", .out_height = ", p.out_height,
             ", .out_width = ", p.out_width, ", .top = ", p.top, ", .left = ", p.left, ", .x_row = ", p.x_row,
             ", .x_column = ", p.x_column, ", .outputs = ", p.outputs, "};");
}

}  // namespace

void cpp_exporter::declare_prepared(const place& weight) {
  for (const prepared_weight& w : plan_.prepared()) {
    if (w.base != weight.at.base) continue;
    const argument from(graph_[plan_.constants()[static_cast<std::size_t>(weight.at.index)]].constant);
    std::vector<float> form(static_cast<std::size_t>(w.elements()));
    prepare_weight(w, from.as<float>().data(), form.data());
    const std::int64_t at = add_weights(reinterpret_cast<const std::byte*>(form.data()), form.size() * sizeof(float));
    out_.line("const float* const filters = reinterpret_cast<const float*>(weights + ", at, ");");
  }
}

void cpp_exporter::write_image(const draft& d) {
  const std::span<const node> nodes(d.nodes.data(), d.nodes.size());
  const lower::contraction_split split = split_of(nodes);
  const std::vector<place> at = places(d);
  const auto* conv = plan_.operation(nodes[split.contraction].attributes).get_if<op::convolution>();
  const auto image_of = [&](const place& p) { return conv ? p : rows_as_image(p); };
  const place image = image_of(at[split.operands[0]]), to = image_of(at.back());
  const kernels::window_extents windows =
      conv ? plan_windows(*conv, image, at[split.operands[1]], to)
           : plan_rows(nodes, std::span<const place>(at.data(), at.size() - 1), at.back());
  const kernels::winograd_nhwc_extents winograd = plan_winograd_nhwc(windows);
  const bool filters = d.record.kind == step_kind::winograd_nhwc;

  declare("image", image, false);
  declare_prepared(at[split.operands[1]]);
  declare("out", to, true);
  // where a vector of a pixel's channels begins
  const auto offset = [](const place& p) {
    index_text t;
    t.add("n", p.lens[0] == 1 ? 0 : p.strides[0]).add("y", p.lens[2] == 1 ? 0 : p.strides[2]);
    return t.add("x", p.lens[3] == 1 ? 0 : p.strides[3]).add("f", p.lens[1] == 1 ? 0 : p.strides[1]).str();
  };
  std::vector<epilogue_operand> read;
  for (std::uint32_t k : split.epilogue_inputs) {
    const place p = image_of(at[k]);
    declare(cat("in", k), p, false);
    read.push_back({k, cat("in", k, " + ", offset(p)), p.lens[1] != 1 && p.strides[1] == 1});
  }
  out_.line(filters ? text_of(winograd) : text_of(windows));
  const std::int64_t elements = d.record.kind == step_kind::depthwise ? 0
                                : filters                             ? winograd.memory()
                                                                      : windows.memory();
  if (elements != 0)
    out_.line("float* const memory = reinterpret_cast<float*>(arena_ + ", take_scratch(elements * 4), ");");
  out_.line("for (std::int64_t n = 0; n < ", image.lens[0], "; ++n) {");
  out_.line("// the epilogue of the sums of a pixel's channels from f on");
  out_.line(
      "const auto put = [&]([[maybe_unused]] std::int64_t y, [[maybe_unused]] std::int64_t x, std::int64_t f, auto "
      "some, vec<float, lanes> sums) __attribute__((always_inline)) {");
  out_.line("constexpr int count = decltype(some)::value;");
  const std::string made = write_epilogue(d, read, "count");
  out_.line("store_some<count>(out + ", offset(to), ", ", made, ");");
  out_.line("};");
  const std::string from = cat("image", image.lens[0] == 1 ? "" : cat(" + n * ", image.strides[0]), ", filters, ");
  if (d.record.kind == step_kind::depthwise)
    out_.line("static_depthwise_nhwc<extents, lanes, registers / 3>(", from, "put);");
  else
    out_.line(filters ? "static_winograd_nhwc" : "static_conv_nhwc", "<extents, lanes, registers>(", from,
              elements != 0 ? "memory" : "static_cast<float*>(nullptr)", ", put);");
  out_.close();
}

}  // namespace kiln::aot
