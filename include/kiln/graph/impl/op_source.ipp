#include "kiln/graph/op_source.hpp"

namespace kiln {

source_text print_op(const operation& op, trace_part part, dtype type, const std::vector<std::string>& names,
                     std::size_t conditions, const dialect& how) {
  std::vector<expr> arguments;
  for (std::size_t i = 0; i < names.size(); ++i)
    arguments.push_back(
        expr::argument(static_cast<int>(i), i < conditions ? scalar_kind::boolean : kind_of_values(type)));
  return print_source(as_kind(op.trace(part, arguments), kind_of_values(type)), names, how);
}

expr start_of(const operation& op, dtype type, bool finished) {
  return visit_compute(type, [&]<class T>(type_tag<T>) {
    T value{};
    op.table().start(op.data(), type, &value);
    if (finished) op.table().finish(op.data(), type, &value, 0);
    if constexpr (std::is_floating_point_v<T>)
      return expr::constant(static_cast<double>(value), kind_of_values(type));
    else
      return expr::constant(static_cast<std::int64_t>(value), kind_of_values(type));
  });
}

narrowing narrowing_of(dtype sum) {
  const bool whole = is_float(sum) || sum == dtype::boolean || size_of(sum) == 8;
  return whole ? narrowing::none : narrowing::stored;
}

narrowing narrowing_of(const op_info& op, dtype from, dtype to) {
  if (to == dtype::boolean) return from != dtype::boolean && !op.returns_bool ? narrowing::not_zero : narrowing::none;
  if (kind_of_values(from) != kind_of_values(to)) return narrowing::stored;
  if (is_narrow(to)) return from == to ? narrowing::none : narrowing::stored;
  return narrowing_of(to);
}

}  // namespace kiln
