#pragma once
#include "kiln/pass/simplify_views.hpp"

namespace kiln::detail {

/// Equal parts of the last axis, and one of them.
struct row_part {
  std::int64_t index = 0, count = 0;
};

/// The part of its operand's last axis that an instruction takes, if it is a slice of just that.
template <class R> constexpr std::optional<row_part> part_taken(const R& r, value_id v) {
  const auto* s = r.template get_if<op::slice>(v);
  if (!s) return std::nullopt;
  constexpr std::int64_t most_parts = 4;
  const dims& lens = r.shape_of(r.input(v, 0)).lens;
  for (std::size_t d = 0; d < lens.size(); ++d) {
    const axis_range at = range_of(*s, d, lens);
    if (d + 1 < lens.size()) {
      if (at.step != 1 || !(at.start == dimension(0)) || !(at.count == lens[d])) return std::nullopt;
      continue;
    }
    if (at.step != 1 || !lens[d].is_constant() || !at.start.is_constant() || !at.count.is_constant())
      return std::nullopt;
    const std::int64_t n = at.count.value(), all = lens[d].value();
    if (n == 0 || all % n != 0 || at.start.value() % n != 0 || all / n < 2 || all / n > most_parts) return std::nullopt;
    return row_part{at.start.value() / n, all / n};
  }
  return std::nullopt;
}

/// The slice that takes a part of a value whose last extent is constant.
template <class R> constexpr value_id take_part(R& r, value_id v, row_part part) {
  const dims& lens = r.shape_of(v).lens;
  const auto last = static_cast<std::int64_t>(lens.size()) - 1;
  const std::int64_t n = lens.back().value() / part.count;
  return r.add(op::slice{{last}, {part.index * n}, {(part.index + 1) * n}, {1}}, {v});
}

}  // namespace kiln::detail
