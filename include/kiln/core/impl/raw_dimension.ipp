#include "kiln/core/raw_dimension.hpp"

#include <mutex>

#include "kiln/core/impl/dimension_table.hpp"

namespace kiln {

dimension checked_dimension(std::int64_t raw) {
  const dimension d = dimension::from_raw(raw);
  if (d.is_constant()) return d;
  detail::expressions::table& t = detail::expressions::shared_table();
  const std::shared_lock lock(t.mutex);
  if (static_cast<std::uint64_t>(raw - dimension::first_expression) >= t.polynomials.size())
    raise(errc::invalid_argument,
          "an extent is a number, or an expression that kiln made: found " + std::to_string(raw));
  return d;
}

}  // namespace kiln
