#include "kiln/interface/migraphx/autocast.hpp"
#include "kiln/op/pointwise/convert.hpp"

namespace kiln::migraphx {

namespace {

bool is_f8(dtype t) {
  return t == dtype::f8e4m3fn || t == dtype::f8e4m3fnuz || t == dtype::f8e5m2 || t == dtype::f8e5m2fnuz;
}

// Users of a parameter read its narrow form instead.
void widen_parameter(module_graph& m, std::uint32_t i) {
  const std::size_t before = m.size();
  const dtype narrow = m[i].results[0].type;
  m[i].results[0].type = dtype::f32;
  const value_id from{i, 0}, to = m.add(op::convert{narrow}, {from});
  const auto redirect = [&](small_vector<value_id>& all) {
    for (value_id& v : all)
      if (v == from) v = to;
  };
  for (std::uint32_t k = 0; k < before; ++k) redirect(m[k].inputs);
  redirect(m.outputs);
}

}  // namespace

void autocast_fp8(program& p) {
  if (p.is_compiled()) raise(errc::invalid_argument, "a program is changed before it is compiled");
  kiln::program graph = p.graph();
  module_graph& m = graph.main();
  const auto size = static_cast<std::uint32_t>(m.size());
  for (std::uint32_t i = 0; i < size; ++i)
    if (m[i].kind == instruction_kind::parameter && is_f8(m[i].results[0].type)) widen_parameter(m, i);
  for (value_id& v : m.outputs)
    if (is_f8(m.shape_of(v).type)) v = m.add(op::convert{dtype::f32}, {v});
  m.compact();
  p.replace(std::move(graph), {});
}

}  // namespace kiln::migraphx
