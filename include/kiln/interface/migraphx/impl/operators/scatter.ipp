#include "kiln/interface/migraphx/impl/operators/lowering.hpp"

namespace kiln::migraphx {

namespace {

void refuse_out_of_bounds(const lowering& c) {
  if (c.flag("skip_out_of_bounds"))
    raise(errc::unsupported, "indices outside the extent are an error: skip_out_of_bounds is not covered");
}

template <op::scatter_mode Mode> value_list add_scatter(lowering& c) {
  c.expect(3);
  refuse_out_of_bounds(c);
  return {c.build.add(op::scatter_elements{c.axis("axis"), Mode}, c.in(0), c.in(1).convert(dtype::i64), c.in(2))};
}
template <op::scatter_mode Mode> value_list add_scatter_nd(lowering& c) {
  c.expect(3);
  refuse_out_of_bounds(c);
  return {c.build.add(op::scatter_nd{Mode}, c.in(0), c.in(1).convert(dtype::i64), c.in(2))};
}

}  // namespace

operator_table scatter_operators() {
  using enum op::scatter_mode;
  static constexpr std::string_view along = "axis: 0, skip_out_of_bounds: false", plain = "skip_out_of_bounds: false";
  static constexpr operator_row table[] = {
      {"scatter_add", along, add_scatter<add>},      {"scatter_max", along, add_scatter<max>},
      {"scatter_min", along, add_scatter<min>},      {"scatter_mul", along, add_scatter<mul>},
      {"scatter_none", along, add_scatter<none>},    {"scatternd_add", plain, add_scatter_nd<add>},
      {"scatternd_max", plain, add_scatter_nd<max>}, {"scatternd_min", plain, add_scatter_nd<min>},
      {"scatternd_mul", plain, add_scatter_nd<mul>}, {"scatternd_none", plain, add_scatter_nd<none>},
  };
  return table;
}

}  // namespace kiln::migraphx
