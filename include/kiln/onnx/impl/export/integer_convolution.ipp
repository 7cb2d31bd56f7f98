#include "kiln/graph/literal_values.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/quant/quantize_linear.hpp"

// Convolutions of integers. ONNX has those of 8 bits less a zero point.
namespace kiln::onnx {

namespace {

// Bytes as i32, less a zero point of their type: a byte of a run, or a number.
struct centered_bytes {
  value_id bytes, zero;
  std::int64_t number = 0;
};

const module_graph::instruction* op_at(const module_graph& m, value_id v) {
  return m.producer(v).kind == instruction_kind::op ? &m.producer(v) : nullptr;
}
// The byte that a value of i32 is converted from, or empty.
value_id narrow(const module_graph& m, value_id v) {
  const auto* const i = op_at(m, v);
  if (!i || !i->op.is<op::convert>()) return {};
  const dtype from = m.shape_of(i->inputs[0]).type;
  return from == dtype::u8 || from == dtype::i8 ? i->inputs[0] : value_id{};
}
std::optional<centered_bytes> centered(const module_graph& m, value_id v) {
  if (const value_id bytes = narrow(m, v)) return centered_bytes{bytes, {}};
  const auto* const difference = op_at(m, v);
  if (!difference || !difference->op.is<op::sub>()) return std::nullopt;
  value_id zero = difference->inputs[1];
  while (is_view(m.producer(zero))) zero = m.producer(zero).inputs[0];
  const value_id bytes = narrow(m, difference->inputs[0]), byte = narrow(m, zero);
  if (bytes && m.producer(zero).kind == instruction_kind::literal) {
    const auto number = uniform_value(m.producer(zero).constant);
    const auto [low, high] = kiln::detail::bounds_of_integer(m.shape_of(bytes).type);
    if (!number || *number < static_cast<double>(low) || *number > static_cast<double>(high)) return std::nullopt;
    return centered_bytes{bytes, {}, static_cast<std::int64_t>(*number)};
  }
  if (!bytes || !byte || m.shape_of(byte).type != m.shape_of(bytes).type) return std::nullopt;
  if (!(m.shape_of(byte).elements() == dimension(1))) return std::nullopt;
  return centered_bytes{bytes, byte};
}

// Others as im2col by a Gather, then MatMul.
void write_gathered_convolution(exporter& x, const exported& e, const op::convolution& o) {
  const dims &in = e.types[0].lens, &w = e.types[1].lens, &out = e.result().lens;
  const std::size_t axes = in.size() - 2;
  for (std::size_t d = 1; d < in.size(); ++d)
    if (!in[d].is_constant() || !w[d].is_constant() || !out[d].is_constant())
      exporter::unsupported("convolutions of integers of symbolic extents");
  std::vector<std::int64_t> around(2 * in.size(), 0), windows{0}, taps{0};
  for (std::size_t d = 0; d < axes; ++d) {
    const std::int64_t step = o.stride.empty() ? 1 : o.stride[d], gap = o.dilation.empty() ? 1 : o.dilation[d];
    std::int64_t extent = in[d + 2].value();
    if (!o.pads.empty()) {
      around[d + 2] = o.pads[d], around[in.size() + d + 2] = o.pads[axes + d];
      extent += o.pads[d] + o.pads[axes + d];
    }
    const auto spread = [extent](std::vector<std::int64_t>& list, std::int64_t count, std::int64_t by) {
      std::vector<std::int64_t> next;
      for (const std::int64_t at : list)
        for (std::int64_t k = 0; k < count; ++k) next.push_back(at * extent + k * by);
      list = std::move(next);
    };
    spread(windows, out[d + 2].value(), step);
    spread(taps, w[d + 2].value(), gap);
  }
  std::vector<std::int64_t> index;
  for (const std::int64_t tap : taps)
    for (const std::int64_t window : windows) index.push_back(tap + window);
  const auto count = [](const std::vector<std::int64_t>& list) { return static_cast<std::int64_t>(list.size()); };
  const dimension depth = w[1] * count(taps);
  const std::string padded = o.pads.empty() ? e.in[0] : x.make("Pad", {e.in[0], x.integers(around)}),
                    flat = x.reshaped(padded, {in[0], o.group, w[1], -1}), columns = e.out[0] + "_columns";
  const literal at = literal::of<std::int64_t>({dtype::i64, {count(taps), count(windows)}}, index);
  x.write("Gather", {flat, x.constant(at)}, {columns}).set("axis", std::int64_t{3});
  const std::string y = x.make("MatMul", {x.reshaped(e.in[1], {o.group, w[0] / o.group, depth}),
                                          x.reshaped(columns, {in[0], o.group, depth, count(windows)})});
  x.write("Reshape", {y, x.dimensions(all(out))}, {e.out[0]}).set("allowzero", std::int64_t{1});
}

}  // namespace

void write_integer_convolution(exporter& x, const exported& e) {
  const auto& o = e.as<op::convolution>();
  const auto& in = (*e.home)[e.at].inputs;
  const auto image = centered(*e.home, in[0]), filters = centered(*e.home, in[1]);
  if (!image || !filters) return write_gathered_convolution(x, e, o);
  names inputs{e.name_of(image->bytes), e.name_of(filters->bytes)};
  for (const auto& side : {*image, *filters}) {
    const auto type = e.home->shape_of(side.bytes).type;
    if (!side.zero)
      inputs.push_back(side.number == 0 ? "" : x.scalar(type, side.number));
    else
      inputs.push_back(x.reshaped(e.name_of(side.zero), {}));
  }
  auto n = x.write("ConvInteger", inputs, e.out);
  put_window(n, o).set("group", o.group);
}

}  // namespace kiln::onnx
