#include "kiln/onnx/element.hpp"
#include "kiln/onnx/impl/export/exporter.hpp"
#include "kiln/op/index/bit_cast.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "kiln/op/sequence/linear_attention.hpp"

// Ops without an operator in common operator sets: recurrences become Scan with a body of ordinary operators.
namespace kiln::onnx {

namespace {

shape without_axis(shape s, std::int64_t axis) {
  dims lens;
  for (std::size_t d = 0; d < s.rank(); ++d)
    if (static_cast<std::int64_t>(d) != axis) lens.push_back(s.lens[d]);
  return {s.type, lens};
}

// Floats are multiplied in f64 and rounded once, as by the op.
void write_cumprod(exporter& x, const exported& e) {
  const auto& o = e.as<op::cumprod>();
  const dtype t = e.result().type, sums = is_float(t) ? dtype::f64 : t;
  const std::int64_t axis = normal_axis(o.axis, e.result().rank());
  const shape slice = without_axis({sums, e.result().lens}, axis);
  const exporter::scan_over over{{x.expanded(x.scalar(sums, 1), slice.lens)},
                                 {sums == t ? e.in[0] : x.cast(e.in[0], sums)},
                                 {slice, slice},
                                 axis,
                                 o.reverse};
  const std::string all = sums == t ? e.out[0] : e.out[0] + "_wide";
  x.scan(over, {e.out[0] + "_last", all}, {slice}, [&](const names& in) {
    const std::string next = x.make("Mul", in);
    return names{next, o.exclusive ? in[0] : next};
  });
  if (sums != t) x.write("Cast", {all}, {e.out[0]}).set("to", static_cast<std::int64_t>(to_element(t)));
}

void write_linear_attention(exporter& x, const exported& e) {
  const auto& o = e.as<op::linear_attention>();
  const dtype t = e.result().type;
  const dims &q = e.types[0].lens, &state = e.types[3].lens;
  const dims of_row{q[0], state[1], q[2] / state[1], q[3]}, result{q[0], q[2], state[3]};
  // values that the body reads are outside
  const std::string grouped = x.dimensions(all(of_row)), whole = x.dimensions(all(result)),
                    scale = x.scalar(t, o.scale);
  const auto along = [&](std::int64_t axis) {
    const std::int64_t list[] = {axis};
    return x.integers(list);
  };
  const std::string second = along(2), third = along(3);
  const auto unsqueezed = [&](const std::string& v, const std::string& axis) { return x.make("Unsqueeze", {v, axis}); };
  const exporter::scan_over over{
      {e.in[3]},
      {e.in[0], e.in[1], e.in[2], e.in[4], e.in[5]},
      {e.types[3], without_axis(e.types[0], 1), without_axis(e.types[1], 1), without_axis(e.types[2], 1),
       without_axis(e.types[4], 1), without_axis(e.types[5], 1)},
      1};
  x.scan(over, {e.out[1], e.out[0]}, {{t, result}}, [&](const names& in) {
    const std::string key = unsqueezed(in[2], third), faded = x.make("Mul", {in[0], unsqueezed(in[4], third)});
    std::string added = unsqueezed(in[3], second);
    if (o.corrects) {
      const std::string held = x.make("MatMul", {unsqueezed(in[2], second), faded});
      added = x.make("Mul", {x.make("Sub", {added, held}), unsqueezed(unsqueezed(in[5], second), third)});
    }
    const std::string next = x.make("Add", {faded, x.make("MatMul", {key, added})});
    const std::string read = x.make("MatMul", {x.make("Reshape", {in[1], grouped}), next});
    return names{next, x.make("Reshape", {x.make("Mul", {read, scale}), whole})};
  });
}

void write_bit_cast(exporter& x, const exported& e) {
  x.write("BitCast", e.in, {e.out[0]}).set("to", static_cast<std::int64_t>(to_element(e.result().type)));
}

}  // namespace

std::span<const op_exporter> export_recurrence() {
  static constexpr op_exporter table[] = {
      {"bit_cast", write_bit_cast},
      {"cumprod", write_cumprod},
      {"linear_attention", write_linear_attention},
  };
  return table;
}

}  // namespace kiln::onnx
