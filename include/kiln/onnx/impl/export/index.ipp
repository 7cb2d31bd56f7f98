#include <limits>

#include "kiln/onnx/impl/export/exporter.hpp"

// Views, data movement and generation.
namespace kiln::onnx {

namespace {

void write_reshape(exporter& x, const exported& e) {
  x.write("Reshape", {e.in[0], x.dimensions(all(e.result().lens))}, e.out).set("allowzero", std::int64_t{1});
}
void write_expand(exporter& x, const exported& e) {
  x.write("Expand", {e.in[0], x.dimensions(all(e.result().lens))}, e.out);
}
void write_broadcast(exporter& x, const exported& e) {
  const dims& to = e.result().lens;
  const auto axis = static_cast<std::size_t>(normal_axis(e.as<op::broadcast>().axis, to.size()));
  dims aligned(to.size(), dimension(1));
  for (std::size_t d = 0; d < e.types[0].rank(); ++d) aligned[axis + d] = e.types[0].lens[d];
  x.write("Expand", {x.reshaped(e.in[0], aligned), x.dimensions(all(to))}, e.out);
}
void write_transpose(exporter& x, const exported& e) {
  auto n = x.write("Transpose", e.in, e.out);
  if (const ints& order = e.as<op::transpose>().permutation; !order.empty()) n.set("perm", all(order));
}
void write_slice(exporter& x, const exported& e) {
  const auto& s = e.as<op::slice>();
  ints axes = s.axes, steps = s.steps;
  for (std::size_t d = axes.size(); d < s.starts.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
  for (std::size_t d = steps.size(); d < s.starts.size(); ++d) steps.push_back(1);
  x.write(
      "Slice",
      {e.in[0], x.dimensions(all(s.starts)), x.dimensions(all(s.ends)), x.integers(all(axes)), x.integers(all(steps))},
      e.out);
}
void write_reverse(exporter& x, const exported& e) {
  ints axes = e.as<op::reverse>().axes;
  if (axes.empty())
    for (std::size_t d = 0; d < e.result().rank(); ++d) axes.push_back(static_cast<std::int64_t>(d));
  const ints back(axes.size(), -1), end(axes.size(), std::numeric_limits<std::int64_t>::min());
  x.write("Slice", {e.in[0], x.integers(all(back)), x.integers(all(end)), x.integers(all(axes)), x.integers(all(back))},
          e.out);
}

void write_fill(exporter& x, const exported& e) {
  const auto& f = e.as<op::fill>();
  const double v[] = {f.value};
  x.write("ConstantOfShape", {x.dimensions(all(f.lens))}, e.out)
      .set("value", literal::of<double>(shape{f.type, {1}}, v));
}
void write_iota(exporter& x, const exported& e) {
  const auto& i = e.as<op::iota>();
  const auto axis = static_cast<std::size_t>(normal_axis(i.axis, i.lens.size()));
  const dimension extent[] = {i.lens[axis]};
  const std::string n = x.reshaped(x.dimensions(extent), {});
  const std::string steps = x.make("Range", {x.scalar(dtype::i64, 0), n, x.scalar(dtype::i64, 1)});
  dims along(i.lens.size(), dimension(1));
  along[axis] = i.lens[axis];
  const std::string line = x.reshaped(i.type == dtype::i64 ? steps : x.cast(steps, i.type), along);
  x.write("Expand", {line, x.dimensions(all(i.lens))}, e.out);
}
void write_one_hot(exporter& x, const exported& e) {
  const auto& o = e.as<op::one_hot>();
  const dimension depth[] = {o.depth};
  x.write("OneHot", {e.in[0], x.dimensions(depth), e.in[1]}, e.out).set("axis", o.axis);
}
void write_pad(exporter& x, const exported& e) {
  const auto& p = e.as<op::pad>();
  names in{e.in[0], x.dimensions(all(p.pads))};
  if (e.in.size() > 1) in.push_back(x.reshaped(e.in[1], {}));
  x.write("Pad", in, e.out).set("mode", to_string(p.mode));
}
void write_top_k(exporter& x, const exported& e) {
  const auto& t = e.as<op::topk>();
  const dimension k[] = {t.k};
  x.write("TopK", {e.in[0], x.dimensions(k)}, e.out)
      .set("axis", t.axis)
      .set("largest", std::int64_t{t.largest})
      .set("sorted", std::int64_t{1});
}
void write_tri(exporter& x, const exported& e) {
  const auto& t = e.as<op::tri>();
  x.write("Trilu", {e.in[0], x.scalar(dtype::i64, t.k)}, e.out).set("upper", std::int64_t{t.upper});
}
void write_cumsum(exporter& x, const exported& e) {
  const auto& s = e.as<op::cumsum>();
  x.write("CumSum", {e.in[0], x.scalar(dtype::i64, s.axis)}, e.out)
      .set("exclusive", std::int64_t{s.exclusive})
      .set("reverse", std::int64_t{s.reverse});
}
void write_concat(exporter& x, const exported& e) {
  x.write("Concat", e.in, e.out).set("axis", e.as<op::concat>().axis);
}
// ONNX's indices have 32 or 64 bits.
names with_indices(exporter& x, const exported& e) {
  names in = e.in;
  if (e.types[1].type != dtype::i64 && e.types[1].type != dtype::i32) in[1] = x.cast(in[1], dtype::i64);
  return in;
}
void write_gather(exporter& x, const exported& e) {
  x.write("Gather", with_indices(x, e), e.out).set("axis", e.as<op::gather>().axis);
}
void write_gather_elements(exporter& x, const exported& e) {
  x.write("GatherElements", with_indices(x, e), e.out).set("axis", e.as<op::gather_elements>().axis);
}
names with_long_indices(exporter& x, const exported& e) {
  names in = e.in;
  if (e.types[1].type != dtype::i64) in[1] = x.cast(in[1], dtype::i64);
  return in;
}
void write_gather_nd(exporter& x, const exported& e) {
  x.write("GatherND", with_long_indices(x, e), e.out).set("batch_dims", e.as<op::gather_nd>().batch_dims);
}
void write_scatter_elements(exporter& x, const exported& e) {
  const auto& s = e.as<op::scatter_elements>();
  x.write("ScatterElements", with_indices(x, e), e.out).set("axis", s.axis).set("reduction", to_string(s.reduction));
}
void write_scatter_nd(exporter& x, const exported& e) {
  x.write("ScatterND", with_long_indices(x, e), e.out).set("reduction", to_string(e.as<op::scatter_nd>().reduction));
}
template <class Op> void write_extreme(exporter& x, const exported& e, std::string_view name) {
  const auto& a = e.as<Op>();
  x.write(name, e.in, e.out)
      .set("axis", a.axis)
      .set("keepdims", std::int64_t{1})
      .set("select_last_index", std::int64_t{a.select_last_index});
}
void write_arg_max(exporter& x, const exported& e) { write_extreme<op::arg_max>(x, e, "ArgMax"); }
void write_arg_min(exporter& x, const exported& e) { write_extreme<op::arg_min>(x, e, "ArgMin"); }

}  // namespace

std::span<const op_exporter> export_index() {
  static constexpr op_exporter table[] = {
      {"arg_max", write_arg_max},
      {"arg_min", write_arg_min},
      {"broadcast", write_broadcast},
      {"concat", write_concat},
      {"contiguous", write_same<"Identity">},
      {"cumsum", write_cumsum},
      {"expect_dims", write_same<"Identity">},
      {"fill", write_fill},
      {"flatten", write_reshape},
      {"gather", write_gather},
      {"gather_elements", write_gather_elements},
      {"gather_nd", write_gather_nd},
      {"iota", write_iota},
      {"multibroadcast", write_expand},
      {"one_hot", write_one_hot},
      {"pad", write_pad},
      {"reshape", write_reshape},
      {"reverse", write_reverse},
      {"scatter_elements", write_scatter_elements},
      {"scatter_nd", write_scatter_nd},
      {"slice", write_slice},
      {"squeeze", write_reshape},
      {"topk", write_top_k},
      {"transpose", write_transpose},
      {"tri", write_tri},
      {"unsqueeze", write_reshape},
  };
  return table;
}

}  // namespace kiln::onnx
