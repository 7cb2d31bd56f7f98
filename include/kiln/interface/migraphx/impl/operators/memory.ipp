#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

// Operators that name memory, and what is not there.
namespace kiln::migraphx {

namespace {

shape shape_attribute(const lowering& c) {
  const attributes& given = c.op.values().at("shape");
  if (!given.is_object() || !given.contains("lens"))
    raise(errc::invalid_argument, "attribute 'shape' has type and lens: found " + given.dump());
  const attributes t = given.value("type", attributes("float_type"));
  const type_t type = t.is_string() ? type_named(t.get<std::string>()) : checked_type(t.get<std::int64_t>());
  std::vector<std::size_t> lens;
  for (const attributes& n : given.at("lens")) {
    if (!n.is_number_integer() || n.get<std::int64_t>() < 0)
      raise(errc::invalid_argument, "the lens of attribute 'shape' are whole numbers from 0: found " + n.dump());
    lens.push_back(n.get<std::size_t>());
  }
  return {type, std::move(lens)};
}

value_list add_allocate(lowering& c) {
  c.expect(0, 1);
  const kiln::shape s = to_kiln(shape_attribute(c), c.label);
  return {c.build.add(op::fill{s.lens, 0, s.type}, value_list{})};
}
value_list add_as_shape(lowering& c) {
  c.expect(1);
  return {c.in(0).reshape(to_kiln(shape_attribute(c), c.label).lens)};
}
// A value in each element of the other operand's memory.
value_list add_fill(lowering& c) {
  c.expect(2);
  return {c.in(0).convert(c.in(1).type()).reshape({}).broadcast_to(c.in(1).get_shape().lens)};
}
value_list add_undefined(lowering& c) {
  c.expect(0);
  c.result_type = shape();
  return {c.build.constant(literal::of<float>({dtype::f32, {0}}, {}))};
}

}  // namespace

operator_table memory_operators() {
  static constexpr operator_row table[] = {
      {"allocate", "shape: {}, buf_type: null", add_allocate},
      {"as_shape", "shape: {}", add_as_shape},
      {"fill", "", add_fill},
      {"undefined", "", add_undefined},
  };
  return table;
}

}  // namespace kiln::migraphx
